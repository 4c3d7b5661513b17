"""Shapes, torchvision's names, one mode, and nothing computed twice."""

import pytest
import torch
from torch import nn

from igd.method.networks import AutoEncoder, Critic, Encoder
from igd.method.resnet import ResNet18, measure_statistics


@pytest.mark.parametrize("side", [32, 256])
@pytest.mark.parametrize("channels", [1, 3])
def test_shapes(side: int, channels: int) -> None:
    model = AutoEncoder(side, channels, width=4, latent_size=128)
    image = torch.rand(2, channels, side, side)
    latent, reconstruction, interpolation = model(image, torch.rand(2) / 2)
    assert latent.shape == (2, 128)
    assert reconstruction.shape == interpolation.shape == image.shape
    assert Critic(side, channels, 4)(image).shape == (2,)


def test_latents_do_not_depend_on_mode_or_batch() -> None:
    encoder = Encoder(ResNet18(3, 4, "small"), 32, 16)
    image = torch.rand(8, 3, 32, 32)
    measure_statistics(encoder, image)
    with torch.no_grad():
        latent = encoder.eval()(image)
        torch.testing.assert_close(encoder.train()(image), latent, rtol=0, atol=0)
        torch.testing.assert_close(encoder(image[:1]), latent[:1])


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


def test_critic_starts_by_saying_nothing() -> None:
    critic = Critic(32, 3, 8)
    assert torch.equal(critic(torch.randn(4, 3, 32, 32)), torch.zeros(4))
    assert isinstance(critic, nn.Module)
