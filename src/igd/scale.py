"""One trained model of the detector: IGD looking at whole images ('global') or at patches of them ('local')."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from lightning_fabric import Fabric
from torch import Tensor

from igd.data.pixels import PatchSamples, lay_over, mirrored, smooth
from igd.errors import UserError
from igd.method.em import TrainingState, generator, start_training, train
from igd.method.gaussian import GaussianDescriptor, squared_distance
from igd.method.health import check_decoder, check_training
from igd.method.networks import AutoEncoder, Critic, reduction, stem_for
from igd.method.objective import Objective, anomaly_score
from igd.method.reconstruction import reconstruction_error, reconstruction_map
from igd.recipes import ScaleSettings

CHECKED = 32  # training samples on which the decoder is checked
PIXELS_AT_ONCE = 16 * 256 * 256  # of input, while scoring; bounds memory


Network = TypeVar("Network", bound=torch.nn.Module)


@dataclass
class Look:
    """What a scale sees in a batch of images."""

    score: Tensor  # of each image, that of its worst patch, (b,)
    terms: dict[str, Tensor]  # l_r and l_h at that patch, as far as the objective has them
    map: Tensor  # (b, side, side)


class Scale:
    """Auto-encoder and descriptor at one scale; a whole image is the case of one patch an image."""

    autoencoder: AutoEncoder  # made by `start`, or read from a file

    def __init__(self, settings: ScaleSettings, objective: Objective, image_side: int, channels: int) -> None:
        self.settings, self.objective, self.channels = settings, objective, channels
        self.side = settings.patch or image_side
        self.descriptor: GaussianDescriptor | None = None
        self.history: Tensor | None = None

    def build(self) -> AutoEncoder:
        """Networks of the right shape, with weights drawn from torch's own source of chance."""
        settings = self.settings
        return AutoEncoder(self.side, self.channels, settings.width, settings.latent_size, self.objective.bias)

    @staticmethod
    def check(settings: ScaleSettings, image_side: int) -> None:
        """Refuse sides that the networks, the patches or MS-SSIM can't divide."""
        side = settings.patch or image_side
        if side > image_side:
            raise UserError(f"an image side of {image_side} is shorter than the {settings.name} model's patches ({side})")
        if side < settings.similarity.smallest_side:
            scales, window = len(settings.similarity.weights), settings.similarity.window
            raise UserError(
                f"an image side of {side} is too short for the {settings.name} model: {scales} scales of MS-SSIM with an "
                f"{window}x{window} window need {settings.similarity.smallest_side} pixels"
            )
        divisor = reduction(stem_for(side))
        if side % divisor or (image_side - side) % settings.stride:
            raise UserError(
                f"an image side of {image_side} does not suit the {settings.name} model; use a multiple of {divisor}"
            )

    def start(self, pixels: Tensor) -> TrainingState:
        """The state before the first step: the same for the same seed and images."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(generator(self.settings.training.seed, self.settings.name).initial_seed())
            self.autoencoder = in_fast_layout(self.build())
            critic = in_fast_layout(Critic(self.side, self.channels, self.settings.width))
        return start_training(self.autoencoder, critic, self.samples(pixels), self.settings.training)

    def fit(
        self,
        state: TrainingState,
        before: dict[str, Tensor],
        pixels: Tensor,
        fabric: Fabric,
        after_step: Callable[[TrainingState], None],
    ) -> list[str]:
        """Train from `state` to the end; returns warnings."""
        setting, training = self.settings.similarity, self.settings.training
        train(state, self.samples(pixels), self.objective, setting, training, fabric, after_step)
        self.autoencoder.cpu()
        assert state.descriptor is not None
        mean, variance, radius = state.descriptor.mean, state.descriptor.variance, state.descriptor.radius
        self.descriptor = GaussianDescriptor(mean.cpu(), variance.cpu(), radius.cpu())
        self.history = state.history
        warnings = check_training(state, before, self.objective)
        if self.objective.reconstruction and len(pixels) > 1:
            samples = self.samples(pixels)
            spread = torch.linspace(0, len(samples) - 1, min(CHECKED, len(samples))).long()
            warnings += check_decoder(self.autoencoder, samples[spread], setting)
        return warnings

    def samples(self, pixels: Tensor) -> PatchSamples:
        return PatchSamples(pixels, self.side, self.settings.stride)

    @torch.no_grad()
    def look(self, pixels: Tensor) -> Look:
        """Score and map a batch of images: eqs. 14 to 17, each term a mean in [0, 1].

        Patches reconstruct worst at their own edge. Inside the image others overlap it; a mirrored margin gives the edge of
        the image such neighbours too. They count in the map, not in the score.
        """
        margin = self.settings.stride if self.settings.patch else 0
        samples = self.samples(mirrored(pixels, margin))
        chunk = max(1, PIXELS_AT_ONCE // self.side**2)
        parts = [self._look_at(samples[indices]) for indices in torch.arange(len(samples)).split(chunk)]
        terms = (torch.cat(part) for part in zip(*parts, strict=True))
        grid = (len(pixels), samples.rows, samples.columns)
        reconstruction, anomaly, score, maps = (term.view(*grid, *term.shape[1:]) for term in terms)
        inner = slice(1, -1) if margin else slice(None)
        worst = score[:, inner, inner].flatten(1).max(dim=1)
        at_worst = {
            name: term[:, inner, inner].flatten(1).gather(1, worst.indices[:, None])[:, 0]
            for name, term, counts in (
                ("reconstruction", reconstruction, self.objective.reconstruction),
                ("anomaly", anomaly, self.objective.classifier),
            )
            if counts
        }
        heat = lay_over(maps, self.settings.stride)[:, margin : margin + pixels.shape[2], margin : margin + pixels.shape[3]]
        return Look(worst.values, at_worst, smooth(heat, self.settings.smoothing))

    @torch.no_grad()
    def latents(self, pixels: Tensor) -> Tensor:
        """Where images lie in the latent space, each by the one of its patches that is furthest from the centre: (b, Z)."""
        assert self.descriptor is not None
        samples = self.samples(pixels)
        chunk = max(1, PIXELS_AT_ONCE // self.side**2)
        parts = [
            self.autoencoder(samples[indices], decode=False).latent for indices in torch.arange(len(samples)).split(chunk)
        ]
        latent = torch.cat(parts)
        patches = samples.rows * samples.columns
        furthest = squared_distance(latent, self.descriptor.mean).view(-1, patches).argmax(dim=1)
        return latent[torch.arange(len(pixels)) * patches + furthest]

    def _look_at(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        assert self.descriptor is not None
        objective, setting = self.objective, self.settings.similarity
        decoded = self.autoencoder(image, decode=objective.reconstruction is not None)
        anomaly = anomaly_score(objective, self.descriptor, decoded.latent)
        if objective.reconstruction is None:
            heat = anomaly.view(-1, 1, 1).expand(-1, self.side, self.side)
            return torch.zeros_like(anomaly), anomaly, anomaly, heat
        kind, rho = objective.reconstruction, objective.rho
        error = reconstruction_error(image, decoded.reconstruction, setting, kind=kind, rho=rho).clamp(max=1)
        heat = reconstruction_map(
            image, decoded.reconstruction, setting, kind=kind, rho=rho, product=objective.product_map
        ).clamp(max=1)
        share = self.settings.anomaly_share if objective.classifier else 0.0
        return error, anomaly, share * anomaly + (1 - share) * error, heat


def in_fast_layout(network: Network) -> Network:
    """The weights in the memory layout that convolutions are fastest in on a CPU."""
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network
