"""Shapes, torchvision's names, one mode, and nothing computed twice."""

import pytest
import torch
from torch import nn

from igd.method.balance import share_latent
from igd.method.networks import AutoEncoder, Critic, Encoder
from igd.method.resnet import Normalisation, ResNet18, measure_statistics, normalise_by_batch


@pytest.mark.parametrize("side", [32, 256])
@pytest.mark.parametrize("channels", [1, 3])
def test_shapes(side: int, channels: int) -> None:
    model = AutoEncoder(side, channels, width=4, latent_size=128)
    image = torch.rand(2, channels, side, side)
    latent, reconstruction, interpolation = model(image, torch.rand(2) / 2)
    assert latent.shape == (2, 128)
    assert reconstruction.shape == interpolation.shape == image.shape
    assert Critic(side, channels, 4)(image).shape == (2,)


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


def test_latents_do_not_depend_on_mode_or_batch() -> None:
    encoder = Encoder(ResNet18(3, 4, "small"), 32, 16)
    image = torch.rand(8, 3, 32, 32)
    measure_statistics(encoder, image)
    with torch.no_grad():
        latent = encoder.eval()(image)
        torch.testing.assert_close(encoder.train()(image), latent, rtol=0, atol=0)
        torch.testing.assert_close(encoder(image[:1]), latent[:1])


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


def test_without_bias_a_black_image_stays_at_zero() -> None:
    """No shift anywhere: the network can't reach a centre without looking at the image."""
    model = AutoEncoder(32, 1, width=4, bias=False)
    measure_statistics(model, torch.rand(8, 1, 32, 32))
    assert torch.equal(model.encoder(torch.zeros(1, 1, 32, 32)), torch.zeros(1, 128))
    assert not [name for name, _ in model.named_parameters() if name.endswith("bias")]


def test_one_pass_encodes_and_decodes_once() -> None:
    model = AutoEncoder(32, 1, width=4)
    calls = {"encoder": 0, "decoder": 0}

    def count(name: str):
        def hook(*_: object) -> None:
            calls[name] += 1

        return hook

    model.encoder.register_forward_hook(count("encoder"))
    model.decoder.register_forward_hook(count("decoder"))
    image, alpha = torch.rand(4, 1, 32, 32), torch.rand(4) / 2
    latent, reconstruction, interpolation = model(image, alpha)
    assert calls == {"encoder": 1, "decoder": 1}
    torch.testing.assert_close(model.decoder(latent), reconstruction, atol=1e-5, rtol=1e-4)
    weight = alpha[:, None]
    blended = weight * latent + (1 - weight) * latent.roll(1, 0)
    torch.testing.assert_close(model.decoder(blended), interpolation, atol=1e-5, rtol=1e-4)


def test_limit_on_the_classifiers_pull() -> None:
    def gradient(limit: float | None) -> torch.Tensor:
        latent = torch.ones(2, 3, requires_grad=True)
        for_decoder, for_classifier = share_latent(latent, limit)
        (for_decoder[:, 0].sum() + 100 * for_classifier[:, 1].sum()).backward()
        assert latent.grad is not None
        return latent.grad

    torch.testing.assert_close(gradient(None)[0], torch.tensor([1.0, 100.0, 0.0]))
    torch.testing.assert_close(gradient(0.5)[0], torch.tensor([1.0, 0.5, 0.0]))
    torch.testing.assert_close(gradient(1000.0)[0], torch.tensor([1.0, 100.0, 0.0]))


def test_critic_starts_by_saying_nothing() -> None:
    critic = Critic(32, 3, 8)
    assert torch.equal(critic(torch.randn(4, 3, 32, 32)), torch.zeros(4))
    assert isinstance(critic, nn.Module)


def test_an_encoder_that_is_trained_alone_is_normalised_as_usual() -> None:
    usual, own = nn.BatchNorm2d(3), Normalisation(3)
    normalise_by_batch(own)
    for seed in range(3):
        image = 2 * torch.randn(8, 3, 5, 5, generator=torch.Generator().manual_seed(seed)) + 1
        torch.testing.assert_close(own(image), usual(image))
    torch.testing.assert_close(own.eval()(image), usual.eval()(image))
    assert not torch.equal(own(image[:1]), own.train()(image[:1]))
