"""EfficientNet-Lite against the package that its published weights belong to."""

import pytest
import torch

from igd.backbones.efficientnet import SameConv2d, folded_parameters
from igd.backbones.weights import build_backbone, find_weights, load_backbone, read_parameters

reference = pytest.importorskip("efficientnet_lite_pytorch")


def test_lite0_sees_what_the_reference_sees() -> None:
    oracle = reference.EfficientNet.from_name("efficientnet-lite0").eval()
    oracle.load_state_dict(read_parameters(find_weights("efficientnet_lite0")))
    network = load_backbone("efficientnet_lite0").network
    image = torch.randn(2, 3, 224, 224)
    with torch.no_grad():
        expected = oracle.extract_features(image)
        last = network.maps(image)[-1]
        torch.testing.assert_close(
            torch.nn.functional.relu6(network.head(last)), expected, rtol=0, atol=1e-4
        )
        torch.testing.assert_close(network.pool(last), expected.mean(dim=(2, 3)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2])
def test_larger_ones_see_what_the_reference_sees(size: int) -> None:
    """With random weights, whose normalisation is far from the identity that it would otherwise
    start as.
    """
    oracle = reference.EfficientNet.from_name(f"efficientnet-lite{size}", image_size=96).eval()
    for layer in oracle.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(layer.weight, 0.5, 1.5)
            torch.nn.init.normal_(layer.bias)
            torch.nn.init.normal_(layer.running_mean)
            torch.nn.init.uniform_(layer.running_var, 0.5, 2.0)
    network = build_backbone(
        f"efficientnet_lite{size}", folded_parameters(oracle.state_dict()), "the test"
    ).network
    image = torch.randn(1, 3, 96, 96)
    with torch.no_grad():
        expected = oracle.extract_features(image).mean(dim=(2, 3))
        assert expected.std() > 0.1
        torch.testing.assert_close(
            network.pool(network.maps(image)[-1]), expected, rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize(
    ("side", "stride", "kernel"), [(32, 2, 3), (33, 2, 3), (33, 2, 5), (32, 1, 5), (7, 2, 5)]
)
def test_same_padding_rounds_the_side_up(side: int, stride: int, kernel: int) -> None:
    assert (
        SameConv2d(1, 1, kernel, stride)(torch.zeros(1, 1, side, side)).shape[-2:]
        == (-(-side // stride),) * 2
    )
