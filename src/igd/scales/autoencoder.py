"""The paper's model at one scale: IGD on whole images ('global') or on patches of them
('local').
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from igd.backbones.features import Features, patch_features
from igd.data.patches import all_patches, lay_over, mirrored
from igd.data.store import Pixels
from igd.files.checkpoint_file import under
from igd.files.tensors import load_weights
from igd.method.gaussian import GaussianDescriptor, squared_distance
from igd.method.networks import AutoEncoder, Critic, Decoded
from igd.method.objective import Objective, anomaly_score
from igd.method.reconstruction import reconstruction_error_and_map
from igd.method.scoring import worst_patch
from igd.method.training_state import TrainingState, start_training
from igd.ops.filters import resize, smooth
from igd.progress import Progress
from igd.rng import generator, spread
from igd.scales.base import Scale, ScaleOutput, concatenated
from igd.scales.encoder_statistics import LEAST, EncoderStatistics
from igd.scales.error_background import (
    background_tensors,
    describe_background,
    read_background,
)
from igd.scales.position_moments import PositionDescriptor, PositionMoments, excess
from igd.scales.samples import FeatureSamples
from igd.scales.scale_settings import AutoEncoderSettings
from igd.scales.whitening import start_whitened

DESCRIBED = 4096  # images, at most, that statistics are taken from
PIXELS_AT_ONCE = 16 * 256 * 256  # of input, while scoring; bounds memory

Network = TypeVar("Network", bound=torch.nn.Module)


class AutoEncoderScale(Scale):
    """Auto-encoder and descriptor; a whole image is the case of one patch an image."""

    settings: AutoEncoderSettings
    autoencoder: AutoEncoder  # made by `start`, or read from a file
    descriptor: GaussianDescriptor  # learnt, or read from a file
    # Of the error at each position; None: maps show errors as they are.
    background: PositionDescriptor | None = None
    # Of the encoder at every depth; None: l_h counts in its place.
    statistics: EncoderStatistics | None = None

    def __init__(
        self,
        settings: AutoEncoderSettings,
        objective: Objective,
        image_side: int,
        channels: int,
        features: int
        | None = None,  # length of a frozen backbone's vectors; None: the encoder reads images
    ) -> None:
        self.settings, self.channels, self.features = settings, channels, features
        # Frozen features need no warm-up.
        self.objective = objective if features is None else replace(objective, warm_up=0.0)
        self.image_side, self.patch = image_side, settings.patch or image_side
        self.side = self.patch >> settings.downsampling  # of what the networks read
        possible = features is None and settings.patch is None and objective.both_terms
        if settings.statistics and not possible:
            raise ValueError(f"the {settings.name} model has no use for an encoder's statistics")

    def build(self) -> AutoEncoder:
        """Networks of the right shape, with weights drawn from torch's own generator."""
        settings = self.settings
        return AutoEncoder(
            self.side,
            self.channels,
            settings.width,
            self.latent_size,
            self.objective.bias,
            self.features,
        )

    @property
    def latent_size(self) -> int:
        limits = [size for size in (self.settings.latent_size, self.features) if size is not None]
        assert limits
        return min(limits)

    def samples(
        self, pixels: Pixels, features: Tensor | None = None, mirrored: Tensor | None = None
    ) -> FeatureSamples:
        """The patches of images as training samples, with a frozen backbone's features of each and
        of its mirror image.
        """
        settings = self.settings
        return FeatureSamples(
            pixels, self.patch, settings.stride, settings.downsampling, features, mirrored
        )

    def start(self, samples: FeatureSamples) -> TrainingState:
        """The state before the first step: the same for the same seed and images."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(
                generator(self.settings.training.seed, self.settings.name).initial_seed()
            )
            self.autoencoder = in_fast_layout(self.build())
            critic = in_fast_layout(Critic(self.side, self.channels, self.settings.width))
        if self.settings.start == "whitened" and samples.features is not None:
            start_whitened(self.autoencoder.encoder.linear, samples.features)
        return start_training(self.autoencoder, critic, samples, self.settings.training)

    def finish(self, state: TrainingState) -> None:
        """Take over what training made; from here on it scores."""
        assert state.descriptor is not None
        self.autoencoder.cpu()
        self.descriptor = GaussianDescriptor(
            state.descriptor.mean.cpu(), state.descriptor.variance.cpu()
        )
        self.history = state.history
        self.autoencoder.requires_grad_(False)  # scoring uses the library's convolutions

    @torch.no_grad()
    def describe(self, samples: FeatureSamples, progress: Progress) -> None:
        """Learn the statistics of the encoder as training left it, where they count."""
        if not self.settings.statistics:
            return
        encoder, chosen = self.autoencoder.encoder, spread(len(samples), DESCRIBED)
        parts = chosen.split(max(1, PIXELS_AT_ONCE // self.side**2))
        tracked = progress.track(parts, len(chosen), f"describing {self.settings.name} model", len)
        batches = map(samples.batch, tracked)
        self.statistics = EncoderStatistics()
        self.statistics.learn(
            (each.image, encoder.with_maps(each.encoder_input)[1]) for each in batches
        )

    def measure(self, latent: Tensor | None, maps: PositionMoments) -> None:
        """What is usual among images that nothing was fitted to, from their maps and, of whole
        images, their latents (b, Z).

        Those that the encoder was fitted to lie closer to mu. Where they are fewer than the
        directions of its first layer, so much closer that l_h would be 1 for every other image. (Of
        patches there are always enough.)
        """
        if latent is not None:
            variance = squared_distance(latent, self.descriptor.mean).median()
            self.descriptor = replace(self.descriptor, variance=variance)
        self.background = describe_background(maps)

    def patch_features(self, features: Features, margin: int = 0, every: int = 1) -> Tensor:
        """A frozen backbone's features of the images' patches, in the order of `samples`: (n,
        f).
        """
        if self.settings.patch is None:
            assert features.vector is not None
            return features.vector
        along = (self.image_side - self.patch) // self.settings.stride + 1 + 2 * margin
        return patch_features([features.maps[n] for n in features.fine], along, along, margin)[
            :, ::every, ::every
        ].flatten(0, 2)

    @torch.no_grad()
    def score(self, pixels: Tensor, features: Features | None) -> ScaleOutput:
        settings = self.settings
        patches = (self.image_side - self.patch) // (
            settings.stride * settings.inference_stride
        ) + 1
        at_once = max(1, PIXELS_AT_ONCE // (self.side * (patches + 2 * self._margin)) ** 2)
        parts = [slice(first, first + at_once) for first in range(0, len(pixels), at_once)]
        return concatenated(
            [self.forward(pixels[part], features and features[part]) for part in parts]
        )

    def forward(self, pixels: Tensor, features: Features | None) -> ScaleOutput:
        """Score and map of images: eqs. 14, 15 and 17.

        Patches reconstruct worst at their own edge. Inside the image others overlap it; a mirrored
        margin gives the edge of the image such neighbours too. They count in the map, not in the
        score. Where only some patches are scored, they lie side by side and there is no margin.
        """
        settings = self.settings
        beyond, stride = self._margin * settings.stride, settings.stride * settings.inference_stride
        patches = all_patches(mirrored(pixels, beyond), self.patch, stride, settings.downsampling)
        image = patches.flatten(0, 2)
        read = (
            image
            if features is None
            else self.patch_features(features, self._margin, settings.inference_stride)
        )
        losses, maps = self._losses(image, read)
        inner = slice(self._margin, -self._margin or None)
        inside = [
            loss.unflatten(0, patches.shape[:3])[:, inner, inner].flatten(1)
            for loss in losses.values()
        ]
        if self.region is not None and settings.patch:
            numbers = self.region.patches(self.patch, stride)
            inside = [loss[:, numbers] for loss in inside]
        score, worst = worst_patch(inside, self._weights)
        at_worst = [loss.gather(1, worst[:, None])[:, 0] for loss in inside]
        terms = dict(zip(losses, at_worst, strict=True))
        anomaly_map = self._laid_over(maps.unflatten(0, patches.shape[:3]), stride, beyond)
        if settings.patch:
            return ScaleOutput([score], [1.0], terms, [anomaly_map], [1.0])
        least = {number: LEAST[name] for number, name in enumerate(terms) if name in LEAST}
        return ScaleOutput(at_worst, self._weights, terms, [anomaly_map], [1.0], least)

    def _losses(self, image: Tensor, encoder_input: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """l_r and l_h of each patch (n,), as far as the objective has them, statistics where they
        count, and the map of each (n, side, side).
        """
        objective, further = self.objective, {}
        if self.statistics is None:
            decoded = self.autoencoder(encoder_input, decode=objective.reconstruction is not None)
        else:
            latent, seen = self.autoencoder.encoder.with_maps(encoder_input)
            decoded = Decoded(latent, self.autoencoder.decoder(latent), None)
            further = self.statistics.distances(image, seen)
        anomaly = anomaly_score(objective, self.descriptor, decoded.latent)
        if objective.reconstruction is None:
            return {"anomaly": anomaly}, anomaly.view(-1, 1, 1).expand(-1, self.side, self.side)
        error, anomaly_map = reconstruction_error_and_map(
            image,
            decoded.reconstruction,
            self.settings.similarity,
            kind=objective.reconstruction,
            rho=objective.rho,
            product=objective.product_map,
        )
        losses = {"reconstruction": error.clamp(max=1)}
        if objective.classifier:
            losses |= {"anomaly": anomaly, **further}
        return losses, anomaly_map.clamp(max=1)

    @property
    def _weights(self) -> list[float]:
        """Of the losses in a score. Statistics stand in l_h's place, which is told all the same."""
        if not self.objective.both_terms:
            return [1.0]
        if self.settings.statistics:
            return [1.0, 0.0, 1.0, 1.0]
        return [1 - self.settings.anomaly_share, self.settings.anomaly_share]

    def _laid_over(self, maps: Tensor, stride: int, beyond: int) -> Tensor:
        """One map of each image, of the maps of its patches: (b, side, side)."""
        if self.settings.downsampling:
            maps = resize(maps, (self.patch, self.patch), "bilinear")
        whole = lay_over(maps, stride)[
            :, beyond : beyond + self.image_side, beyond : beyond + self.image_side
        ]
        whole = smooth(whole, self.settings.smoothing)
        return whole if self.background is None else excess(whole, self.background)

    @property
    def _margin(self) -> int:
        """Rows and columns of patches beyond the image, on each side, while scoring."""
        return 1 if self.settings.patch and self.settings.inference_stride == 1 else 0

    @torch.no_grad()
    def latents(self, pixels: Tensor, features: Features | None) -> Tensor:
        """Latents of images, each of the one of its patches that is furthest from the centre: (b,
        Z).
        """
        samples = self.samples(pixels, None if features is None else self.patch_features(features))
        chunk = max(1, PIXELS_AT_ONCE // self.side**2)
        parts = [
            self.autoencoder(samples.encoder_input(indices), decode=False).latent
            for indices in torch.arange(len(samples)).split(chunk)
        ]
        latent = torch.cat(parts)
        patches = samples.rows * samples.columns
        furthest = squared_distance(latent, self.descriptor.mean).view(-1, patches).argmax(dim=1)
        return latent[torch.arange(len(pixels)) * patches + furthest]

    def tensors(self) -> dict[str, Tensor]:
        assert self.history is not None
        omega = {"mean": self.descriptor.mean, "variance": self.descriptor.variance}
        weights = {f"weights.{key}": value for key, value in self.autoencoder.state_dict().items()}
        statistics = self.statistics.tensors() if self.statistics else {}
        return {
            **omega,
            "history": self.history,
            **weights,
            **background_tensors(self.background),
            **{f"statistics.{key}": value for key, value in statistics.items()},
        }

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:
        with torch.device(
            "meta"
        ):  # nothing is allocated before the file's own tensors are known to fit
            self.autoencoder = self.build()
        weights = {
            name.removeprefix("weights."): value
            for name, value in tensors.items()
            if name.startswith("weights.")
        }
        load_weights(self.autoencoder, weights, path)
        self.autoencoder = in_fast_layout(self.autoencoder).requires_grad_(False)
        mean, variance = tensors["mean"], tensors["variance"]
        if mean.shape != (self.latent_size,) or variance.shape != ():
            raise ValueError(
                f"the descriptor of the {self.settings.name} model has the wrong shape"
            )
        self.descriptor, self.history = GaussianDescriptor(mean, variance), tensors["history"]
        if self.settings.statistics:
            self.statistics = EncoderStatistics()
            self.statistics.restore(under("statistics.", tensors))
        self.background = read_background(tensors, self.image_side)


def in_fast_layout(network: Network) -> Network:
    """The weights in the memory layout that convolutions are fastest in on a CPU."""
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network
