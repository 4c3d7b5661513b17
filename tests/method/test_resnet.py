"""Torchvision's names, and statistics of layers that are measured once."""

import torch
from torch import nn

from igd.method.networks import Encoder
from igd.method.resnet import Normalisation, ResNet18, measure_statistics, normalise_by_batch


def torchvision_resnet18_names() -> dict[str, tuple[int, ...]]:
    """Names and shapes of torchvision's ResNet18 without `fc`, written out from its definition."""
    names: dict[str, tuple[int, ...]] = {"conv1.weight": (64, 3, 7, 7)}

    def norm(prefix: str, channels: int) -> None:
        for suffix in ("weight", "bias", "running_mean", "running_var"):
            names[f"{prefix}.{suffix}"] = (channels,)
        names[f"{prefix}.num_batches_tracked"] = ()

    norm("bn1", 64)
    inside = 64
    for stage, channels in enumerate((64, 128, 256, 512), start=1):
        for block in (0, 1):
            prefix = f"layer{stage}.{block}"
            names[f"{prefix}.conv1.weight"] = (channels, inside, 3, 3)
            norm(f"{prefix}.bn1", channels)
            names[f"{prefix}.conv2.weight"] = (channels, channels, 3, 3)
            norm(f"{prefix}.bn2", channels)
            if inside != channels:
                names[f"{prefix}.downsample.0.weight"] = (channels, inside, 1, 1)
                norm(f"{prefix}.downsample.1", channels)
            inside = channels
    return names


def test_a_public_resnet18_checkpoint_fits() -> None:
    expected = torchvision_resnet18_names()
    assert {name: tuple(value.shape) for name, value in ResNet18().state_dict().items()} == expected
    ResNet18().load_state_dict({name: torch.zeros(shape) for name, shape in expected.items()})
    assert sum(parameter.numel() for parameter in ResNet18().parameters()) == 11_176_512


def test_measured_statistics_standardise_every_layer() -> None:
    encoder = Encoder(ResNet18(3, 8, "small"), 64, 16)
    image = torch.rand(64, 3, 32, 32)
    measure_statistics(encoder, image)
    outputs: list[torch.Tensor] = []
    for layer in encoder.modules():
        if isinstance(layer, Normalisation):
            # What follows is in place.
            layer.register_forward_hook(lambda _, __, output: outputs.append(output.clone()))
    with torch.no_grad():
        encoder(image)
    for output in outputs:
        torch.testing.assert_close(
            output.mean(dim=(0, 2, 3)), torch.zeros(output.shape[1]), atol=1e-4, rtol=0
        )
        torch.testing.assert_close(
            output.var(dim=(0, 2, 3)), torch.ones(output.shape[1]), atol=1e-2, rtol=0
        )


def test_an_encoder_that_is_trained_alone_is_normalised_as_usual() -> None:
    usual, own = nn.BatchNorm2d(3), Normalisation(3)
    normalise_by_batch(own)
    for seed in range(3):
        image = 2 * torch.randn(8, 3, 5, 5, generator=torch.Generator().manual_seed(seed)) + 1
        torch.testing.assert_close(own(image), usual(image))
    torch.testing.assert_close(own.eval()(image), usual.eval()(image))
    assert not torch.equal(own(image[:1]), own.train()(image[:1]))
