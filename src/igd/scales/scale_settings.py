"""What each scale is told: what it reads, how it describes that, how much counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from igd.errors import UserError
from igd.method.objective import Objective
from igd.method.resnet import reduction, stem_for
from igd.method.schedule import Training
from igd.method.similarity import Similarity


@dataclass(frozen=True)
class AutoEncoderSettings:
    """One auto-encoder of the detector: what it reads, its networks and its training."""

    name: str
    similarity: Similarity
    training: Training
    patch: int | None = None  # side of the patches it reads; None: the whole image
    downsampling: int = 0  # times that what it reads is halved first
    stride: int = 16  # distance of neighbouring patches
    inference_stride: int = 1  # one patch in so many, along each axis, while scoring
    width: int = 64  # channels of the first stage; ResNet18's are 64
    latent_size: int | None = 128  # Z, no more than a frozen backbone has features; None: as many
    start: Literal["random", "whitened"] = "random"  # of the linear layer on frozen features
    # Of l_h in the score, the rest being l_r's, unless statistics count:
    anomaly_share: float = 0.5
    # Gaussians of the encoder at every depth and of the image's own detail, in the place of l_h;
    # for encoders that learn from scratch, in scores whose parts are scaled.
    statistics: bool = False
    smoothing: float = 0.0  # of the map: sigma of a Gaussian, in pixels of the model's image
    maps = ()  # it reads none of a backbone by its number

    @property
    def smallest_side(self) -> int:
        """Shortest side of what it reads that MS-SSIM can still divide, in pixels of the image."""
        return self.similarity.smallest_side << self.downsampling


def without_effect_left_out(
    settings: ScaleSettings, objective: Objective, frozen: bool, calibrated: bool
) -> ScaleSettings:
    """The same settings; statistics only where a score is made of them."""
    if not isinstance(settings, AutoEncoderSettings):
        return settings
    counted = calibrated and not frozen and not settings.patch and objective.both_terms
    return replace(settings, statistics=settings.statistics and counted)


def check_side(settings: AutoEncoderSettings, image_side: int) -> None:
    """Refuse sides that the networks, the patches or MS-SSIM can't divide."""
    patch = settings.patch or image_side
    side = patch >> settings.downsampling
    if patch > image_side:
        raise UserError(
            f"an image side of {image_side} is shorter than the {settings.name} model's patches "
            f"({patch})"
        )
    if patch < settings.smallest_side:
        scales, window = len(settings.similarity.weights), settings.similarity.window
        raise UserError(
            f"an image side of {patch} is too short for the {settings.name} model: {scales} "
            f"scales of MS-SSIM with an "
            f"{window}x{window} window need {settings.smallest_side} pixels"
        )
    divisor, step = (
        reduction(stem_for(side)) << settings.downsampling,
        settings.stride * settings.inference_stride,
    )
    if patch % divisor or (image_side - patch) % step:
        multiple = step if settings.patch else divisor
        raise UserError(
            f"an image side of {image_side} does not suit the {settings.name} model; use a "
            f"multiple of {multiple}"
        )


FEATURE_SIDE = 8  # pixels of an image that a feature map says anything about
GRAIN = "grain"  # a bank of early features
# Levels of a backbone, as numbers of its feature maps.
EARLY, FINE, LATE, SHALLOW = (0,), (1, 2), (3,), (4,)


@dataclass(frozen=True)
class Level:
    """Feature maps that are described together, and how much they count in the anomaly map."""

    name: str
    maps: tuple[int, ...]  # of the backbone's levels, which share one grid
    pooled: bool = False  # over 3x3 positions
    cell: int = 2  # positions along the side of a cell, which share a covariance
    map_weight: float = 1.0


@dataclass(frozen=True)
class PositionSettings:
    """Where: a Gaussian per position of a frozen backbone's maps (PaDiM; Defard et al., 2021)."""

    name: str = "position"
    levels: tuple[Level, ...] = (
        Level("shallow", SHALLOW),
        Level("early", EARLY, pooled=True, cell=1),
        Level("fine", FINE, map_weight=2.0),
        Level("late", LATE, map_weight=0.5),
    )
    neighbour_shrinkage: float = 0.25  # share of its neighbours' covariance in a position's
    global_shrinkage: float = 0.1  # share of the whole image's
    ridge: float = 1e-4  # added to the variance of each feature, in units of their mean
    top: int = 3  # positions whose mean distance is the score
    smoothing: float = 2.0  # of the map: sigma of a Gaussian, in pixels of the model's image
    scored: bool = True  # False: it makes the map alone, unless there is no other scale
    smallest_side = FEATURE_SIDE

    @property
    def maps(self) -> tuple[int, ...]:
        """The numbers of all feature maps that it reads."""
        return tuple(number for level in self.levels for number in level.maps)


@dataclass(frozen=True)
class BankSettings:
    """What: a bank of normal patches, wherever they were (PatchCore; Roth et al., 2022)."""

    name: str = "bank"
    maps: tuple[int, ...] = FINE
    patches: int = 1000  # in the bank
    nearest: int = 3  # of them, whose mean distance counts
    ridge: float = 0.1  # of the whitening, in units of the mean variance of a feature
    top: int = 3  # positions whose mean distance is the score
    map_weight: float = 1.0
    smoothing: float = 2.0
    smallest_side = FEATURE_SIDE


@dataclass(frozen=True)
class WholeSettings:
    """The whole: a Gaussian of the mean and the deviation of all features of an image."""

    name: str = "whole"
    maps: tuple[int, ...] = (*FINE, *LATE)
    shrinkage: float = 0.3  # of the correlation towards none
    smoothing: float = 0.0
    smallest_side = FEATURE_SIDE


@dataclass(frozen=True)
class EmbeddingSettings:
    """The whole of a small image: a Gaussian of the backbone's one vector (Rippel et al., 2021)."""

    name: str = "embedding"
    directions: int = 1024  # of largest variance that are kept; one variance for all others
    turns: bool = False  # whether how well an image's turns are told apart counts, too
    smoothing: float = 0.0
    maps = ()
    smallest_side = FEATURE_SIDE


@dataclass(frozen=True)
class PixelSettings:
    """The scale of models made before 0.2, which is scored and no longer trained."""

    name: str = "pixel"
    neighbour_shrinkage: float = 0.25
    global_shrinkage: float = 0.03
    ridge: float = 0.001
    min_samples: int = 300
    shift: float = 4.0
    rotation: float = 10.0
    background_power: float = 0.5  # of an image's own background that distances are divided by
    smoothing: float = 4.0
    maps = ()  # whatever its backbone makes
    smallest_side = FEATURE_SIDE


FeatureSettings = PositionSettings | BankSettings | WholeSettings | EmbeddingSettings
MAPLESS = ("whole", "embedding")  # scales that have no map
ScaleSettings = AutoEncoderSettings | FeatureSettings | PixelSettings
