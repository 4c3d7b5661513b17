"""What stands between anomalib's models and our metrics; the models themselves need anomalib."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.decomposition import IncrementalPCA
from torch import Tensor, nn

from igd import UserError
from igd.benchmark.suites import find_method
from igd.evaluation.metrics import PixelMetrics

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def methods() -> ModuleType:
    return program("anomalib_methods")


def greedy(rows: Tensor, first: int, count: int) -> list[int]:
    """k-centre greedy selection, one centre after another."""
    picked, nearest = [first], (rows - rows[first]).norm(dim=1)
    while len(picked) < count:
        picked.append(int(nearest.argmax()))
        nearest = torch.minimum(nearest, (rows - rows[picked[-1]]).norm(dim=1))
    return picked


@pytest.mark.parametrize("active", [1, 7, 60, 1000])
def test_farthest_first_picks_what_a_plain_greedy_selection_picks(
    methods: ModuleType, active: int
) -> None:
    rows = torch.randn(400, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert methods.farthest_first(rows, 3, 50, active) == greedy(rows, 3, 50)


def test_the_pca_is_that_of_scikit_learn_batch_by_batch(methods: ModuleType) -> None:
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(300, 8)) * np.arange(1, 9) + 100).astype(np.float32)
    ours, theirs = methods.CovariancePCA(), IncrementalPCA()
    for batch in np.split(rows, 3):
        ours.partial_fit(batch)
        theirs.partial_fit(batch)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-5
    )
    np.testing.assert_allclose(ours.mean_, theirs.mean_, rtol=1e-6)
    aligned = np.abs((ours.components_ * theirs.components_).sum(axis=1))  # signs are free
    np.testing.assert_allclose(aligned, 1, rtol=1e-5)


@pytest.mark.parametrize(("count", "others"), [(350, 70), (76, 20), (30, 15)])
def test_enough_images_are_held_out_to_promise_five_percent(
    methods: ModuleType, count: int, others: int
) -> None:
    learnt, held_out = methods.split(count, seed=0)
    assert len(held_out) == others
    assert sorted([*learnt, *held_out]) == list(range(count))
    assert methods.split(count, seed=1)[1] != held_out


def test_a_map_in_unit_range_has_the_same_metrics_whatever_its_scale(methods: ModuleType) -> None:
    rng = np.random.default_rng(0)
    distances = rng.gamma(4.0, 10.0, (64, 64)).astype(np.float32)
    mask = np.zeros((64, 64), dtype=bool)
    mask[20:40, 20:40] = True
    distances[mask] *= 2
    found = []
    for scale in (10.0, 100.0):
        unit = methods.in_unit_range(distances, scale)
        assert unit.min() >= 0
        assert unit.max() < 1
        pixels = PixelMetrics()
        pixels.add(unit, mask)
        found.append([pixels.results()[name] for name in ("pixel_auroc", "aupro")])
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


class Model(nn.Module):
    """As much of a model as has a backbone where anomalib's have theirs."""

    def __init__(self) -> None:
        super().__init__()
        network = nn.ModuleDict({"conv1": nn.Conv2d(1, 1, 1), "layer4": nn.Conv2d(1, 1, 1)})
        self.feature_extractor: Any = nn.Module()
        self.feature_extractor.feature_extractor = network


def test_weights_must_hold_all_that_is_read(
    methods: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "resnet18.safetensors"
    monkeypatch.setenv(methods.WEIGHTS, str(file))
    with pytest.raises(UserError, match=r"no such file; \$IGD_PEER_WEIGHTS names"):
        methods.load_backbone(Model())
    ones = {"conv1.weight": torch.ones(1, 1, 1, 1), "conv1.bias": torch.ones(1)}
    save_file(ones, file)
    model = Model()
    methods.load_backbone(model)  # without layer4, which nobody reads
    assert model.feature_extractor.feature_extractor["conv1"].bias.item() == 1
    save_file({"conv1.weight": ones["conv1.weight"]}, file)
    with pytest.raises(UserError, match=r"does not fit ResNet18: conv1\.bias"):
        methods.load_backbone(Model())


def test_the_peers_are_methods_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = program("beside_anomalib")
    monkeypatch.chdir(beside.ROOT)
    for name in ("PaDiM", "PatchCore", "PatchCore1", "MHPatchCore"):
        assert find_method(f"{beside.METHODS}:{name}").source


def test_the_smallest_set_comes_first(tmp_path: Path) -> None:
    beside = program("beside_anomalib")
    for name, images in (("one/large", 3), ("other/small", 1)):
        (tmp_path / name / "train" / "good").mkdir(parents=True)
        for number in range(images):
            (tmp_path / name / "train" / "good" / f"{number}.png").touch()
    (tmp_path / "other" / "notes").mkdir()
    sets = beside.find_sets([tmp_path / "one", tmp_path / "other"])
    assert beside.by_size(sets) == ["small", "large"]
    for _ in range(2):  # links of an earlier run are renewed
        folder = beside.linked(sets, tmp_path / "sets")
    assert sorted(each.name for each in folder.glob("*/train/good")) == ["good", "good"]


def test_without_weights_nothing_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = program("beside_anomalib")
    place = tmp_path / "place"
    asked = [str(tmp_path), "--weights", "absent.safetensors", "--place", str(place)]
    monkeypatch.setattr(sys, "argv", ["beside_anomalib.py", *asked])
    with pytest.raises(SystemExit) as ended:
        beside.main()
    assert ended.value.code == 2
    assert "no such file; --weights names" in capsys.readouterr().err
    assert not place.exists()
