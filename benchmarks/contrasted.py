"""The ablation's methods on encoders that learnt by contrast, from a linear layer that starts at
random: where training has something to do.

igd benchmark run cifar10:ablation --classes 1 7 8 9 --seeds 0 1 2 --feature-cache DIR --methods \\
    benchmarks/contrasted.py:Mse benchmarks/contrasted.py:Rec benchmarks/contrasted.py:RecGac \\
    benchmarks/contrasted.py:Igd benchmarks/contrasted.py:Dsvdd benchmarks/contrasted.py:DsvddRec

As in the paper, the encoder is frozen, and one linear layer, the decoder and the critic learn. An
encoder learns from the training images of a run, whatever is among them; runs that have the same
images share it, whatever their seed, in the folder of the feature cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from igd.benchmark.methods import Settings, Trained
from igd.benchmark.run import digest, made_by
from igd.data.geometry import Geometry
from igd.data.image_set import decode
from igd.data.sample import Sample
from igd.data.sources import as_source
from igd.data.store import Pixels, take
from igd.errors import UserError
from igd.pretraining import contrastive
from igd.pretraining.encoders import save_encoder
from igd.scales.recipes import RECIPES, SMALL_SIDE
from igd.scales.scale_settings import AutoEncoderSettings

CONTRAST = replace(contrastive.FAST_ROTATED, steps=400)
STEPS = 300

_small = RECIPES["fast"].frozen_small[0]
assert isinstance(_small, AutoEncoderSettings)
UNWHITENED = replace(
    RECIPES["fast"],
    frozen_small=(
        replace(
            _small,
            start="random",
            latent_size=128,
            anomaly_share=0.5,
            training=replace(_small.training, steps=STEPS, learning_rate=1e-3, batch_size=16),
        ),
    ),
    default_scales=("global",),
)


class Contrasted(Trained):
    @classmethod
    def relevant_settings(cls, settings: Settings) -> Settings:
        changed = {name: value for name, value in settings.items() if name == "steps"}
        told = {"recipe": "fast", "pretrain": "contrastive", "start": "random"}
        return {**told, **changed, "objective": cls.objective}

    @classmethod
    def config(cls, settings: Settings) -> Any:
        return asdict(UNWHITENED), asdict(CONTRAST), super().config(settings)

    def fit(self, images: Sequence[Sample]) -> None:
        geometry = Geometry(SMALL_SIDE)
        pixels = decode(as_source(images), geometry, progress=self.support.progress).pixels
        self.settings = {
            name: value for name, value in self.settings.items() if name != "start"
        } | {"recipe": UNWHITENED, "pretrain": str(self._encoder(pixels))}
        super().fit(images)

    def _encoder(self, pixels: Pixels) -> Path:
        folder = self.support.feature_cache
        if folder is None:
            raise UserError("encoders are shared in the folder of --feature-cache; name one")
        every = take(pixels, torch.arange(len(pixels))).numpy()
        images = hashlib.sha256(every.tobytes()).hexdigest()
        path = folder / f"contrasted-{digest([images, asdict(CONTRAST), made_by()])}.igd"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            made = contrastive.contrast(
                pixels, CONTRAST, self.support.progress, self.support.stop
            ).encoder
            as_they_are = replace(made, turned=False, seen_twice=False)  # as the paper sees images
            save_encoder(path, as_they_are, asdict(CONTRAST))
        return path


class Mse(Contrasted):
    objective = "mse"


class Rec(Contrasted):
    objective = "rec"


class RecGac(Contrasted):
    objective = "rec+gac"


class Igd(Contrasted):
    objective = "igd"


class Dsvdd(Contrasted):
    objective = "dsvdd"


class DsvddRec(Contrasted):
    objective = "dsvdd+rec"
