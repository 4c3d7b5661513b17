"""On real images, where they are: learning is visible within seconds of training."""

import numpy as np
import pytest
from conftest import real_data
from sklearn.metrics import roc_auc_score

from igd import IGD
from igd.data.reading import read_dataset


@pytest.mark.filterwarnings("ignore:.*model:")
def test_fashion_mnist_trousers() -> None:
    arrays = np.load(real_data("fashion_mnist.npz"))
    detector = IGD(scales=("global",), steps=60).fit(
        arrays["x_train"][arrays["y_train"] == 1][:1000]
    )
    labels = arrays["y_test"][:1000] != 1
    predictions = detector.predict(arrays["x_test"][:1000])
    assert roc_auc_score(labels, [each.score for each in predictions]) > 0.9
    assert (
        roc_auc_score(labels, [each.terms["global.reconstruction"] for each in predictions]) > 0.9
    )
    assert predictions[0].map.shape == (28, 28)


@pytest.mark.parametrize(
    ("name", "train", "test"), [("bottle", 209, 83), ("capsule", 219, 132), ("grid", 264, 78)]
)
def test_mvtec_categories_are_read_as_they_are(name: str, train: int, test: int) -> None:
    dataset = read_dataset(real_data("mvtec256") / name)
    assert len(dataset.training_samples()) == train
    samples = dataset.test_samples()
    assert len(samples) == test
    for sample in samples[:: len(samples) // 5]:
        assert (sample.mask is not None) == bool(sample.label)
        if sample.mask is not None:
            assert sample.read_mask(sample.read().size).any()
