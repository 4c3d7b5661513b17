"""Coefficients, pairs, shapes, and a critic that really learns alpha."""

import pytest
import torch

from igd.method.interpolation import (
    critic_loss,
    draw_alpha,
    draw_zeta,
    fooling_loss,
    interpolate_images,
    interpolate_latents,
)
from igd.method.networks import Critic
from igd.rng import generator


def test_coefficients_have_their_ranges() -> None:
    alpha, zeta = draw_alpha(10_000, generator(0, "alpha")), draw_zeta(10_000, generator(0, "zeta"))
    assert alpha.shape == zeta.shape == (10_000,)
    assert 0 <= alpha.min() < 0.01
    assert 0.49 < alpha.max() < 0.5
    assert zeta.max() > 0.99
    assert abs(alpha.var().item() - 1 / 48) < 1e-3


@pytest.mark.parametrize("count", [2, 5, 6])
def test_a_latent_is_never_paired_with_itself(count: int) -> None:
    latent = torch.eye(count)
    other = interpolate_latents(latent, torch.zeros(count))
    assert (other.argmax(dim=1) != latent.argmax(dim=1)).all()
    torch.testing.assert_close(interpolate_latents(latent, torch.ones(count)), latent)


def test_interpolation_of_images_ends_at_both() -> None:
    image, reconstruction = torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 4)
    blended = interpolate_images(image, reconstruction, torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(blended[0], image[0])
    torch.testing.assert_close(blended[1], reconstruction[1])


def test_losses_are_their_formulas() -> None:
    predicted, alpha, blended = (
        torch.tensor([0.3, 0.1]),
        torch.tensor([0.2, 0.4]),
        torch.tensor([0.5, 0.0]),
    )
    torch.testing.assert_close(critic_loss(predicted, alpha, blended), torch.tensor([0.26, 0.09]))
    torch.testing.assert_close(fooling_loss(predicted), torch.tensor([0.09, 0.01]))


def test_critic_output_has_the_shape_of_alpha() -> None:
    critic = Critic(32, 3, 4)
    alpha = draw_alpha(5, generator(0, "alpha"))
    assert critic(torch.rand(5, 3, 32, 32)).shape == alpha.shape
    with pytest.raises(ValueError, match="differ in shape"):
        critic_loss(torch.zeros(5), alpha[:, None], torch.zeros(5))


def test_critic_learns_alpha_on_a_toy_problem() -> None:
    """Images that are blends of two fixed patterns: alpha can be seen, so a sound critic predicts
    it.
    """
    first, second = torch.rand(2, 1, 1, 32, 32)
    critic = Critic(32, 1, 8)
    optimizer = torch.optim.Adam(critic.parameters(), lr=3e-3)

    def blends(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        alpha = draw_alpha(64, generator(0, "toy", step))
        weight = alpha.view(-1, 1, 1, 1)
        return weight * first + (1 - weight) * second, alpha

    for step in range(150):
        image, alpha = blends(step)
        loss = critic_loss(critic(image), alpha, torch.zeros_like(alpha)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    image, alpha = blends(10_000)
    with torch.no_grad():
        error = (critic(image) - alpha).square().mean().item()
    assert error < 0.5 / 48
