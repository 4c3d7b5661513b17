"""The auto-encoder of the paper's objective on patches of features: networks, EM and scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from igd.method.balance import Limit, share_latent
from igd.method.gaussian import anomaly, squared_distance
from igd.method.interpolation import (
    critic_loss,
    draw_alpha,
    draw_zeta,
    fooling_loss,
    interpolate_images,
    interpolate_latents,
)
from igd.method.objective import Objective
from igd.rng import generator
from igd.scales.patch_features import log_peak

HIDDEN, LATENT = 256, 32
BATCH, RATE = 1024, 1e-3
E_STEP_EVERY = 100  # steps, and over so many patches:
E_STEP_ON = 16_384
TOP = 3
BALANCE = 0.3  # of `fast`: l_h's largest pull, at the end, in units of the constraints'


class Networks(NamedTuple):
    encoder: nn.Module
    decoder: nn.Module
    critic: nn.Module


class Omega(NamedTuple):
    """A Gaussian of latents for each place; one place stands for all where position has no say."""

    mean: Tensor  # (places, Z)
    variance: Tensor  # (places,)

    def anomaly(self, latent: Tensor, place: Tensor) -> Tensor:
        """l_h of each patch: (b, Z) -> (b,)."""
        return anomaly(latent, self.mean[place], self.variance[place])


def networks(size: int) -> Networks:
    return Networks(
        nn.Sequential(nn.Linear(size, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, LATENT)),
        nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, size)),
        nn.Sequential(nn.Linear(size, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)),
    )


def error(patch: Tensor, reconstruction: Tensor, objective: Objective) -> Tensor:
    """l_r of each patch: (b, d) -> (b,)."""
    if objective.reconstruction == "mse":
        return (patch - reconstruction).square().mean(dim=1)
    cosine = 1 - F.cosine_similarity(patch, reconstruction, dim=1)
    absolute = (patch - reconstruction).abs().mean(dim=1)
    return (1 - objective.rho) * cosine + objective.rho * absolute


def train(
    patches: Tensor,
    places: Tensor,
    objective: Objective,
    balanced: bool,
    seed: int,
    scored_at: Sequence[int],
    batch: int = BATCH,
) -> Iterator[tuple[int, Networks, Omega | None]]:
    """The networks after each number of steps at which they are scored, with omega."""
    torch.manual_seed(seed)
    nets, rng = networks(patches.shape[1]), generator(seed, "feature space")
    weights = [*nets.encoder.parameters(), *nets.decoder.parameters()]
    optimizer = torch.optim.Adam(weights, lr=RATE)
    critic_optimizer = torch.optim.Adam(nets.critic.parameters(), lr=RATE)
    omega = None
    for step in range(max(scored_at)):
        if objective.classifier and step % E_STEP_EVERY == 0:
            omega = e_step(nets.encoder, patches, places, objective)
        drawn = torch.randint(len(patches), (batch,), generator=rng)
        limit = Limit(BALANCE * step / max(scored_at)) if balanced else None
        loss, for_critic = losses(nets, patches[drawn], places[drawn], omega, objective, limit, rng)
        optimizer.zero_grad()
        loss.backward(inputs=weights, retain_graph=for_critic is not None)
        optimizer.step()
        if for_critic is not None:
            critic_optimizer.zero_grad()
            for_critic.backward(inputs=list(nets.critic.parameters()))
            critic_optimizer.step()
        if step + 1 in scored_at:
            if objective.classifier:
                omega = e_step(nets.encoder, patches, places, objective)
            yield step + 1, nets, omega


@torch.no_grad()
def e_step(encoder: nn.Module, patches: Tensor, places: Tensor, objective: Objective) -> Omega:
    """omega of the latents of some patches, place by place: eq. 3."""
    latent, place = encoder(patches[:E_STEP_ON]).double(), places[:E_STEP_ON]
    number = int(places.max()) + 1
    count = torch.bincount(place, minlength=number).clamp(min=1)
    total = latent.new_zeros(number, latent.shape[1]).index_add(0, place, latent)
    mean = total / count[:, None]
    distance = squared_distance(latent, mean[place])
    variance = latent.new_zeros(number).index_add(0, place, distance) / count
    return Omega(mean.float(), variance.float().clamp(min=objective.variance_floor * LATENT))


def losses(
    nets: Networks,
    batch: Tensor,
    place: Tensor,
    omega: Omega | None,
    objective: Objective,
    limit: Limit | None,
    rng: torch.Generator,
) -> tuple[Tensor, Tensor | None]:
    """What the auto-encoder and the critic go down: eq. 7."""
    latent, for_classifier = share_latent(nets.encoder(batch), limit)
    reconstruction = nets.decoder(latent)
    loss = objective.reconstruction_weight * error(batch, reconstruction, objective).mean()
    if omega is not None:
        loss = loss + omega.anomaly(for_classifier, place).mean()
    if not objective.interpolation:
        return loss, None
    alpha, zeta = draw_alpha(len(batch), rng), draw_zeta(len(batch), rng)
    predicted = nets.critic(nets.decoder(interpolate_latents(latent, alpha)))[:, 0]
    loss = loss + objective.fooling_weight * fooling_loss(predicted).mean()
    blended = interpolate_images(batch, reconstruction.detach(), zeta)
    return loss, critic_loss(predicted, alpha, nets.critic(blended)[:, 0]).mean()


@torch.no_grad()
def scores(
    nets: Networks, omega: Omega | None, white: Tensor, place: Tensor, objective: Objective
) -> dict[str, Tensor]:
    """Each image by its worst patches, white (n, rows, columns, d): by l_r, l_h and their sum."""
    terms: dict[str, list[Tensor]] = {}
    for image in white:
        rows, columns, size = image.shape
        patch = image.reshape(-1, size)
        latent = nets.encoder(patch)
        maps = {"l_r": error(patch, nets.decoder(latent), objective)}
        if omega is not None:
            maps["l_h"] = omega.anomaly(latent, place)
            maps["sum"] = maps["l_r"] + maps["l_h"]
        for name, each in maps.items():
            terms.setdefault(name, []).append(log_peak(each.view(1, rows, columns), TOP))
    return {name: torch.cat(each) for name, each in terms.items()}
