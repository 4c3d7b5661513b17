"""Where test images lie in a model's latent space, on a plane: t-SNE."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.manifold import TSNE

from igd.cpu import in_parallel
from igd.data.geometry import stack
from igd.data.sample import Sample
from igd.detector import IGD

POINTS = 500  # at most: more would be a cloud, and t-SNE takes longer than they are worth
FEWEST = 10  # below, distances on the plane say nothing
AT_ONCE = 16  # images encoded together

Floats = NDArray[np.float64]


def latent_planes(
    detector: IGD, samples: Sequence[Sample], seed: int = 0
) -> tuple[list[Sample], dict[str, Floats]]:
    """Some of the samples, and for each scale where they lie on its plane: (n, 2)."""
    picked = np.random.default_rng(seed).permutation(len(samples))[:POINTS]
    shown = [samples[n] for n in np.sort(picked)]
    if len(shown) < FEWEST:
        return shown, {}
    latents = _latents(detector, shown)
    return shown, {
        name: plane(latent, seed)
        for name, latent in latents.items()
        if np.ptp(latent, axis=0).any()
    }


def plane(latent: Floats, seed: int = 0) -> Floats:
    """t-SNE of latents (n, Z): near stays near, far means little."""
    perplexity = min(30.0, (len(latent) - 1) / 3)
    placed: Floats = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(
        latent.astype(np.float32)
    )
    return placed


def _latents(detector: IGD, samples: list[Sample]) -> dict[str, Floats]:
    if detector.tiling_:
        return _latents_of_tiled(detector, samples)
    inputs: list[NDArray[np.uint8]] = []
    latents: dict[str, list[Floats]] = {}
    for number, pixels in enumerate(
        in_parallel(lambda sample: detector.model_input(sample.read()), samples), start=1
    ):
        inputs.append(pixels)
        if len(inputs) == AT_ONCE or number == len(samples):
            for name, latent in detector.fitted_.latents(torch.from_numpy(stack(inputs))).items():
                latents.setdefault(name, []).append(latent.double().numpy())
            inputs = []
    return {name: np.concatenate(parts) for name, parts in latents.items()}


def _latents_of_tiled(detector: IGD, samples: list[Sample]) -> dict[str, Floats]:
    """Of images in tiles, the mean over the tiles."""
    latents: dict[str, list[Floats]] = {}
    for sample in samples:
        own: dict[str, list[Floats]] = {}
        for tiles, _ in detector.model_inputs(sample.identifier, sample.read()):
            for name, latent in detector.fitted_.latents(torch.from_numpy(tiles)).items():
                own.setdefault(name, []).append(latent.double().numpy())
        for name, parts in own.items():
            latents.setdefault(name, []).append(np.concatenate(parts).mean(axis=0))
    return {name: np.stack(rows) for name, rows in latents.items()}
