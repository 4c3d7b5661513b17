"""Omega, the mean and the spread of the latents."""

import torch
from lightning_fabric import Fabric

from igd.method.e_step import e_step, online_e_step
from igd.method.objective import OBJECTIVES


def test_e_step_is_the_mean_and_the_spread_of_the_latents(fabric: Fabric) -> None:
    latents = torch.randn(100, 8)
    omega = e_step(latents.split(13), OBJECTIVES["igd"], None, fabric)
    torch.testing.assert_close(omega.mean, latents.mean(dim=0), atol=1e-6, rtol=1e-6)
    expected = (latents - latents.mean(dim=0)).square().sum(dim=1).mean()
    torch.testing.assert_close(omega.variance, expected, atol=0, rtol=1e-6)


def test_dsvdd_keeps_its_first_centre_away_from_zero(fabric: Fabric) -> None:
    dsvdd = OBJECTIVES["dsvdd"]
    first = e_step([torch.zeros(10, 4)], dsvdd, None, fabric)
    assert torch.equal(first.mean, torch.full((4,), 0.1))
    later = torch.randn(1000, 4)
    second = e_step([later], dsvdd, first, fabric)
    assert torch.equal(second.mean, first.mean)
    # Of the centre that stays, not of the mean.
    around = (later - first.mean).square().sum(dim=1).mean()
    torch.testing.assert_close(second.variance, around, rtol=1e-5, atol=0)


def test_online_e_step_follows_the_latents(fabric: Fabric) -> None:
    igd = OBJECTIVES["igd"]
    omega = e_step([torch.randn(50, 4)], igd, None, fabric)
    moved = torch.randn(50, 4) * 0.5 + 3
    for _ in range(100):
        omega = online_e_step(moved, 0.1, igd, omega, fabric)
    expected = e_step([moved], igd, None, fabric)
    torch.testing.assert_close(omega.mean, expected.mean, atol=1e-3, rtol=0)
    one, other = torch.randn(60, 4), torch.randn(40, 4) + 5
    mixed = online_e_step(other, 0.4, igd, e_step([one], igd, None, fabric), fabric)
    torch.testing.assert_close(mixed.variance, e_step([one, other], igd, None, fabric).variance)
    torch.testing.assert_close(omega.variance, expected.variance, atol=1e-2, rtol=0)
