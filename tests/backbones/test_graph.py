"""The graph that ONNX Runtime runs computes what the network computes."""

import pytest
import torch
from torch import nn

from igd.backbones.architectures import KINDS, View
from igd.backbones.graph import FrozenGraph
from igd.backbones.weights import load_backbone
from igd.method.resnet import measure_statistics


def network_called(name: str) -> nn.Module:
    if name == "efficientnet_lite0":
        return load_backbone(name).network
    torch.manual_seed(0)
    network = KINDS[name].build().requires_grad_(False)
    measure_statistics(network, torch.randn(8, 3, 64, 64))
    return network.eval()


@pytest.fixture(scope="module", params=["efficientnet_lite0", "resnet18", "resnet18_small"])
def view(request: pytest.FixtureRequest) -> View:
    return View(network_called(request.param), KINDS[request.param].fine_blocks, vector=True)


@pytest.fixture(scope="module")
def graph(view: View) -> FrozenGraph:
    return FrozenGraph(view)


@pytest.mark.parametrize(
    ("count", "height", "width"), [(1, 64, 64), (3, 96, 96), (2, 75, 75), (2, 64, 110), (1, 31, 33)]
)
def test_graph_equals_network_whatever_the_batch_and_the_sides(
    view: View, graph: FrozenGraph, count: int, height: int, width: int
) -> None:
    image = torch.randn(count, 3, height, width)
    for one, other in zip(graph(image), view(image), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5 * other.abs().max().item())


def test_an_image_is_seen_alike_in_any_company(graph: FrozenGraph) -> None:
    images = torch.randn(5, 3, 64, 64)
    together, alone = graph(images), [graph(image[None]) for image in images]
    for output, parts in zip(together, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(
            output, torch.cat(parts), rtol=1e-5, atol=1e-5 * output.abs().max().item()
        )


def test_images_that_are_not_contiguous_are_seen_as_they_are(graph: FrozenGraph) -> None:
    image = torch.randn(2, 64, 64, 3).permute(0, 3, 1, 2)
    torch.testing.assert_close(graph(image)[-1], graph(image.contiguous())[-1], rtol=0, atol=0)
