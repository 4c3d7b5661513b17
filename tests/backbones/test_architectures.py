"""Backbones behind their one interface: the same names, the same numbers, whatever is cut off."""

import pytest
import torch

from igd.backbones.architectures import KINDS, Backbone, View, find_kind, prepared, rotations
from igd.errors import UserError
from igd.method.resnet import ResNet18, measure_statistics


@pytest.fixture(scope="module", params=KINDS)
def backbone(request: pytest.FixtureRequest) -> Backbone:
    torch.manual_seed(0)
    network = KINDS[request.param].build()
    if isinstance(network, ResNet18):
        measure_statistics(network, torch.randn(4, 3, 64, 64))
    return Backbone(request.param, network.eval().requires_grad_(False), "the test", "random")


def test_a_map_of_every_block_and_a_vector(backbone: Backbone) -> None:
    image = torch.randn(2, 3, 64, 64)
    *maps, vector = View(backbone.network, tuple(range(len(backbone.channels))), vector=True)(image)
    assert [each.shape[1] for each in maps] == backbone.channels
    assert vector.shape == (2, backbone.kind.pooled)
    # 1/16 of the image's side.
    assert {maps[block].shape[-2:] for block in backbone.kind.fine_blocks} == {(4, 4)}


def test_what_is_cut_off_changes_nothing_before_it(backbone: Backbone) -> None:
    image = torch.randn(1, 3, 64, 64)
    whole = backbone.network.maps(image)
    for last in (0, 3, max(backbone.kind.fine_blocks), len(whole) - 1):
        cut = backbone.up_to(last)
        maps = cut.network.maps(image)
        assert len(maps) == last + 1
        assert all(torch.equal(one, other) for one, other in zip(maps, whole, strict=False))
        assert cut.network.state_dict().keys() <= backbone.network.state_dict().keys()
    # Cutting a copy left the original as it was.
    assert len(backbone.network.maps(image)) == len(whole)


def test_resnet18_has_torchvisions_names_and_shapes() -> None:
    """torchvision is not installed for the sake of this: names and shapes are written down from the
    ResNet18 it builds.
    """
    expected = {"conv1.weight": (64, 3, 7, 7)}
    normalised = {"bn1": 64}
    inside = 64
    for stage, outside in enumerate((64, 128, 256, 512), 1):
        for block in (0, 1):
            place = f"layer{stage}.{block}"
            expected[f"{place}.conv1.weight"] = (outside, inside, 3, 3)
            expected[f"{place}.conv2.weight"] = (outside, outside, 3, 3)
            normalised |= {f"{place}.bn1": outside, f"{place}.bn2": outside}
            if inside != outside:
                expected[f"{place}.downsample.0.weight"] = (outside, inside, 1, 1)
                normalised[f"{place}.downsample.1"] = outside
            inside = outside
    for name, channels in normalised.items():
        expected |= {
            f"{name}.{part}": (channels,)
            for part in ("weight", "bias", "running_mean", "running_var")
        }
        expected[f"{name}.num_batches_tracked"] = ()
    assert {
        name: tuple(value.shape) for name, value in KINDS["resnet18"].build().state_dict().items()
    } == expected


def test_pixels_are_made_what_a_network_was_trained_on() -> None:
    kind = KINDS["resnet18"]
    grey = torch.full((2, 1, 8, 8), 51, dtype=torch.uint8)
    image = prepared(grey, kind, (16, 16))
    assert image.shape == (2, 3, 16, 16)
    for channel, (mean, std) in enumerate(zip(kind.mean, kind.std, strict=True)):
        torch.testing.assert_close(image[:, channel], torch.full((2, 16, 16), (0.2 - mean) / std))


def test_enlarging_leaves_no_values_that_pixels_cannot_have() -> None:
    edges = torch.zeros(1, 3, 8, 8, dtype=torch.uint8)
    edges[..., 4:] = 255
    kind = KINDS["efficientnet_lite0"]
    pixels = prepared(edges, kind, (32, 32)) * kind.std[0] + kind.mean[0]
    assert pixels.min() >= -1e-6
    assert pixels.max() <= 1 + 1e-6


def test_an_unknown_backbone_is_answered_with_those_there_are() -> None:
    with pytest.raises(
        UserError, match=r"no backbone is called 'vgg'; there are efficientnet_lite0, .*resnet18"
    ):
        find_kind("vgg")


def test_rotations_are_quarter_turns() -> None:
    image = torch.rand(3, 3, 6, 8)
    quarter, half, three_quarters = rotations(image)
    # Anticlockwise: the right edge comes to the top.
    torch.testing.assert_close(quarter, image.flip(3).transpose(2, 3))
    assert torch.equal(half, image.flip(2).flip(3))
    assert torch.equal(rotations(quarter)[2], image)
    assert torch.equal(rotations(quarter)[0], half)
    assert torch.equal(rotations(three_quarters)[0], image)
