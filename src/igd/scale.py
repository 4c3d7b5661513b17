"""One trained model of the detector: IGD looking at whole images ('global') or at patches of them ('local')."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from igd.data.pixels import all_patches, lay_over, mirrored
from igd.data.store import Pixels
from igd.errors import UserError
from igd.health import check_decoder, check_training
from igd.looking import Look, SeenSamples, excess, joined
from igd.method.em import TrainingState, generator, start_training, train
from igd.method.filters import resize, smooth
from igd.method.gaussian import GaussianDescriptor, squared_distance
from igd.method.networks import AutoEncoder, Critic, reduction, stem_for
from igd.method.objective import Objective, anomaly_score
from igd.method.positions import CELL, PositionDescriptor, PositionMoments
from igd.method.reconstruction import reconstruction_error_and_map
from igd.pretraining.features import Seen, patch_features
from igd.pretraining.whitening import start_whitened
from igd.recipes import ScaleSettings
from igd.tensorfiles import load_weights

if TYPE_CHECKING:
    from lightning_fabric import Fabric

CHECKED = 32  # training samples on which the decoder is checked
FEWEST_MAPS = 3  # that tell what is usual at a place
BORROWED, SHARED = 0.25, 0.5  # shares of its neighbours' and of the whole map's variance in that of a place
LEAST_SPREAD = 0.02  # at a place, as a share of the mean error: a few maps may agree by chance
PIXELS_AT_ONCE = 16 * 256 * 256  # of input, while scoring; bounds memory


Network = TypeVar("Network", bound=torch.nn.Module)


class Scale:
    """Auto-encoder and descriptor at one scale; a whole image is the case of one patch an image."""

    autoencoder: AutoEncoder  # made by `start`, or read from a file

    def __init__(
        self, settings: ScaleSettings, objective: Objective, image_side: int, channels: int, features: int | None = None
    ) -> None:
        self.settings, self.channels = settings, channels
        self.objective = objective if features is None else replace(objective, warm_up=0.0)  # frozen features know how to see
        self.features = features  # length of a frozen backbone's vectors; None: the encoder sees images
        self.image_side, self.patch = image_side, settings.patch or image_side
        self.side = self.patch >> settings.halvings  # of what the networks see
        self.descriptor: GaussianDescriptor | None = None
        self.usual: PositionDescriptor | None = None  # error at each place of a map; None: maps show errors as they are
        self.history: Tensor | None = None

    def build(self) -> AutoEncoder:
        """Networks of the right shape, with weights drawn from torch's own source of chance."""
        settings = self.settings
        return AutoEncoder(self.side, self.channels, settings.width, self.latent_size, self.objective.bias, self.features)

    @property
    def latent_size(self) -> int:
        limits = [size for size in (self.settings.latent_size, self.features) if size is not None]
        assert limits
        return min(limits)

    @staticmethod
    def check(settings: ScaleSettings, image_side: int) -> None:
        """Refuse sides that the networks, the patches or MS-SSIM can't divide."""
        patch = settings.patch or image_side
        side = patch >> settings.halvings
        if patch > image_side:
            raise UserError(f"an image side of {image_side} is shorter than the {settings.name} model's patches ({patch})")
        if patch < settings.smallest_side:
            scales, window = len(settings.similarity.weights), settings.similarity.window
            raise UserError(
                f"an image side of {patch} is too short for the {settings.name} model: {scales} scales of MS-SSIM with an "
                f"{window}x{window} window need {settings.smallest_side} pixels"
            )
        divisor, step = reduction(stem_for(side)) << settings.halvings, settings.stride * settings.scored
        if patch % divisor or (image_side - patch) % step:
            multiple = step if settings.patch else divisor
            raise UserError(
                f"an image side of {image_side} does not suit the {settings.name} model; use a multiple of {multiple}"
            )

    def start(self, samples: SeenSamples) -> TrainingState:
        """The state before the first step: the same for the same seed and images."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(generator(self.settings.training.seed, self.settings.name).initial_seed())
            self.autoencoder = in_fast_layout(self.build())
            critic = in_fast_layout(Critic(self.side, self.channels, self.settings.width))
        if self.settings.start == "whitened" and samples.features is not None:
            start_whitened(self.autoencoder.encoder.linear, samples.features)
        return start_training(self.autoencoder, critic, samples, self.settings.training)

    def fit(
        self,
        state: TrainingState,
        before: dict[str, Tensor],
        samples: SeenSamples,
        fabric: Fabric,
        after_step: Callable[[TrainingState], None],
    ) -> list[str]:
        """Train from `state` to the end; returns warnings."""
        setting, training = self.settings.similarity, self.settings.training
        train(state, samples, self.objective, setting, training, fabric, after_step)
        self.autoencoder.cpu()
        assert state.descriptor is not None
        mean, variance, radius = state.descriptor.mean, state.descriptor.variance, state.descriptor.radius
        self.descriptor = GaussianDescriptor(mean.cpu(), variance.cpu(), radius.cpu())
        self.history = state.history
        warnings = check_training(state, before, self.objective)
        if self.objective.reconstruction and len(samples) > 1:
            spread = torch.linspace(0, len(samples) - 1, min(CHECKED, len(samples))).long()
            image, seen = samples[spread], samples.seen(spread)
            warnings += check_decoder(self.autoencoder, image, image if seen is None else seen, setting)
        self.autoencoder.requires_grad_(False)  # from here on it scores, by the library's convolutions
        return warnings

    def measure(self, latent: Tensor | None, maps: PositionMoments) -> None:
        """What is usual among images that nothing was fitted to, from their maps and, of whole images, their latents (b, Z).

        Those that the encoder was fitted to lie closer to mu. Where they are fewer than the directions of its first layer,
        so much closer that l_h would be 1 for every other image. (Of patches there are always enough.) And some places,
        such as edges, are hard to reconstruct in every image: a map should show what is unusual for its place.
        """
        assert self.descriptor is not None
        if latent is not None:
            variance = squared_distance(latent, self.descriptor.mean).median()
            self.descriptor = replace(self.descriptor, variance=variance)
        least = float(LEAST_SPREAD * maps.mean.mean()) ** 2
        if maps.count >= FEWEST_MAPS and least:
            self.usual = maps.describe(BORROWED, SHARED, ridge=0, least=least)

    def tensors(self) -> dict[str, Tensor]:
        """All that was learnt."""
        assert self.descriptor is not None
        assert self.history is not None
        omega = {"mean": self.descriptor.mean, "variance": self.descriptor.variance, "radius": self.descriptor.radius}
        weights = {f"weights.{key}": value for key, value in self.autoencoder.state_dict().items()}
        usual = self.usual and {"usual.mean": self.usual.mean, "usual.whitener": self.usual.whitener}
        return {**omega, "history": self.history, **weights, **(usual or {})}

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:
        """The reverse of `tensors`; what does not fit raises an error that names the file."""
        with torch.device("meta"):  # nothing is allocated before the file's own tensors are known to fit
            self.autoencoder = self.build()
        weights = {name.removeprefix("weights."): value for name, value in tensors.items() if name.startswith("weights.")}
        load_weights(self.autoencoder, weights, path)
        self.autoencoder = in_fast_layout(self.autoencoder).requires_grad_(False)
        mean, variance, radius = (tensors[name] for name in ("mean", "variance", "radius"))
        if mean.shape != (self.latent_size,) or variance.shape != () or radius.shape != ():
            raise ValueError(f"the descriptor of the {self.settings.name} model has the wrong shape")
        self.descriptor, self.history = GaussianDescriptor(mean, variance, radius), tensors["history"]
        if "usual.mean" in tensors:
            self.usual = PositionDescriptor(tensors["usual.mean"], tensors["usual.whitener"])
            side, cells = self.image_side, (self.image_side // CELL) ** 2
            if self.usual.mean.shape != (1, side, side) or self.usual.whitener.shape != (cells, 1, 1):
                raise ValueError(f"the usual map of the {self.settings.name} model has the wrong shape")

    def samples(self, pixels: Pixels, features: Tensor | None = None, mirrored: Tensor | None = None) -> SeenSamples:
        """The patches of images as training samples, with what a frozen backbone sees of each and of its mirror image."""
        settings = self.settings
        return SeenSamples(pixels, self.patch, settings.stride, settings.halvings, features, mirrored)

    def features_of(self, seen: Seen, margin: int = 0, every: int = 1) -> Tensor:
        """What a frozen backbone sees of the images' patches, in the order of `samples`: (n, features)."""
        if self.settings.patch is None:
            assert seen.vector is not None
            return seen.vector
        along = (self.image_side - self.patch) // self.settings.stride + 1 + 2 * margin
        return patch_features(seen.maps, along, along, margin)[:, ::every, ::every].flatten(0, 2)

    @torch.no_grad()
    def look(self, pixels: Tensor, seen: Seen | None) -> Look:
        """Score and map a batch of images, as many at once as memory should hold."""
        patches = (self.image_side - self.patch) // (self.settings.stride * self.settings.scored) + 1 + 2 * self._margin
        at_once = max(1, PIXELS_AT_ONCE // (self.side * patches) ** 2)
        parts = [slice(first, first + at_once) for first in range(0, len(pixels), at_once)]
        return joined([self.look_at_once(pixels[part], seen and seen[part]) for part in parts])

    def look_at_once(self, pixels: Tensor, seen: Seen | None) -> Look:
        """Score and map images in one piece: eqs. 14 to 17, each term a mean in [0, 1].

        Patches reconstruct worst at their own edge. Inside the image others overlap it; a mirrored margin gives the edge of
        the image such neighbours too. They count in the map, not in the score. Where only some patches are scored, they
        lie side by side and there is no margin.
        """
        settings = self.settings
        beyond, stride = self._margin * settings.stride, settings.stride * settings.scored
        patches = all_patches(mirrored(pixels, beyond), self.patch, stride, settings.halvings)
        features = None if seen is None else self.features_of(seen, self._margin, settings.scored)
        terms = self._look_at(patches.flatten(0, 2), features)
        reconstruction, anomaly, score, maps = (term.unflatten(0, patches.shape[:3]) for term in terms)
        inner = slice(self._margin, -self._margin or None)
        worst = score[:, inner, inner].flatten(1).max(dim=1)
        at_worst = {
            name: term[:, inner, inner].flatten(1).gather(1, worst.indices[:, None])[:, 0]
            for name, term, counts in (
                ("reconstruction", reconstruction, self.objective.reconstruction),
                ("anomaly", anomaly, self.objective.classifier),
            )
            if counts
        }
        full_size = maps if not settings.halvings else resize(maps, (self.patch, self.patch), "bilinear")
        heat = lay_over(full_size, stride)[:, beyond : beyond + self.image_side, beyond : beyond + self.image_side]
        if settings.patch or len(at_worst) == 1:
            made_of = [(worst.values, 1.0)]
        else:
            share = settings.anomaly_share
            made_of = [(at_worst["reconstruction"], 1 - share), (at_worst["anomaly"], share)]
        heat = smooth(heat, settings.smoothing)
        return Look(made_of, at_worst, heat if self.usual is None else excess(heat, self.usual))

    @property
    def _margin(self) -> int:
        """Rows and columns of patches beyond the image, on each side, while scoring."""
        return 1 if self.settings.patch and self.settings.scored == 1 else 0

    @torch.no_grad()
    def latents(self, pixels: Tensor, seen: Seen | None) -> Tensor:
        """Where images lie in the latent space, each by the one of its patches that is furthest from the centre: (b, Z)."""
        assert self.descriptor is not None
        samples = self.samples(pixels, None if seen is None else self.features_of(seen))
        chunk = max(1, PIXELS_AT_ONCE // self.side**2)
        parts = []
        for indices in torch.arange(len(samples)).split(chunk):
            features = samples.seen(indices)
            parts.append(self.autoencoder(samples[indices] if features is None else features, decode=False).latent)
        latent = torch.cat(parts)
        patches = samples.rows * samples.columns
        furthest = squared_distance(latent, self.descriptor.mean).view(-1, patches).argmax(dim=1)
        return latent[torch.arange(len(pixels)) * patches + furthest]

    def _look_at(self, image: Tensor, seen: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        assert self.descriptor is not None
        objective, setting = self.objective, self.settings.similarity
        decoded = self.autoencoder(image if seen is None else seen, decode=objective.reconstruction is not None)
        anomaly = anomaly_score(objective, self.descriptor, decoded.latent)
        if objective.reconstruction is None:
            heat = anomaly.view(-1, 1, 1).expand(-1, self.side, self.side)
            return torch.zeros_like(anomaly), anomaly, anomaly, heat
        kind, rho = objective.reconstruction, objective.rho
        error, heat = reconstruction_error_and_map(
            image, decoded.reconstruction, setting, kind=kind, rho=rho, product=objective.product_map
        )
        error, share = error.clamp(max=1), self.settings.anomaly_share if objective.classifier else 0.0
        return error, anomaly, share * anomaly + (1 - share) * error, heat.clamp(max=1)


def in_fast_layout(network: Network) -> Network:
    """The weights in the memory layout that convolutions are fastest in on a CPU."""
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network
