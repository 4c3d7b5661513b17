"""Which terms count and how much. IGD, its ablations and DSVDD are settings of the same code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from igd.method.gaussian import GaussianDescriptor, anomaly, squared_distance
from igd.method.interpolation import fooling_loss
from igd.method.networks import Decoded
from igd.method.reconstruction import ErrorKind, reconstruction_error
from igd.method.similarity import Similarity

SMALLEST_VARIANCE = 1e-10  # a dimension: below this, sigma^2 is a collapse, not a spread
Classifier = Literal["gaussian", "hypersphere"]


@dataclass(frozen=True)
class Objective:
    """The terms of eq. 7. The defaults are the paper's IGD, but for `variance_floor`, which is the
    authors' code's.
    """

    # L_h; a hypersphere has a fixed centre and networks without bias.
    classifier: Classifier | None = "gaussian"
    reconstruction: ErrorKind | None = "ms-ssim+mae"  # l_r
    interpolation: bool = True  # l_d and the fooling term
    rho: float = 0.15  # share of MAE in l_r
    critic_weight: float = 1.0  # lambda_1
    reconstruction_weight: float = 1.0  # lambda_2
    fooling_weight: float = 0.1  # lambda_3
    zeta: float | None = None  # None: zeta ~ U(0, 1)
    mean_floor: float = 0.0  # least distance of each coordinate of mu from 0
    # Least sigma^2 in training, a dimension, which makes 1 of Z = 128: l_h is blind to z's scale,
    # which would shrink for ever.
    variance_floor: float = 1 / 128
    # Least sigma^2 in scoring, a dimension: in effect none.
    scoring_floor: float = SMALLEST_VARIANCE
    # Share of the steps that go to `warming_up` first, where the encoder reads images.
    warm_up: float = 0.0
    product_map: bool = True  # scales of MS-SSIM multiply in maps; False: they add up

    @property
    def both_terms(self) -> bool:
        """Whether it has l_r and l_h."""
        return self.reconstruction is not None and self.classifier is not None

    @property
    def fixed_centre(self) -> bool:
        return self.classifier == "hypersphere"

    @property
    def warming_up(self) -> Objective:
        """What is minimised in the warm-up, as DSVDD's authors do it: the plain error of an
        auto-encoder.
        """
        return replace(self, classifier=None, reconstruction="mse", interpolation=False)

    @property
    def bias(self) -> bool:
        """DSVDD removes every bias, or the network could reach the centre without looking at the
        image.
        """
        return not self.fixed_centre


OBJECTIVES: dict[str, Objective] = {
    "igd": Objective(),
    "mse": Objective(classifier=None, reconstruction="mse", interpolation=False),
    "rec": Objective(classifier=None, interpolation=False),
    "rec+gac": Objective(interpolation=False),
    "dsvdd": Objective(
        "hypersphere", reconstruction=None, interpolation=False, mean_floor=0.1, warm_up=0.5
    ),
    "dsvdd+rec": Objective("hypersphere", interpolation=False, mean_floor=0.1, warm_up=0.5),
    "authors": Objective(
        zeta=0.2, mean_floor=0.1, variance_floor=1 / 128, scoring_floor=1 / 128, product_map=False
    ),
}


@dataclass(frozen=True)
class AutoEncoderLoss:
    """What the auto-encoder minimises, and its parts: means over the batch."""

    total: Tensor
    classification: Tensor
    reconstruction: Tensor
    fooling: Tensor


def autoencoder_loss(
    objective: Objective,
    setting: Similarity,
    descriptor: GaussianDescriptor,
    image: Tensor,
    decoded: Decoded,
    predicted_alpha: Tensor | None,
) -> AutoEncoderLoss:
    """l_h + lambda_2 (l_r + lambda_3 |d(x_alpha)|^2): eq. 7 without the critic's own term, with
    eqs. 8 and 11.
    """
    zero = torch.zeros((), device=image.device)
    classification = classification_loss(objective, descriptor, decoded.latent)
    reconstruction, fooling = zero, zero
    if objective.reconstruction and decoded.reconstruction is not None:
        reconstruction = reconstruction_error(
            image, decoded.reconstruction, setting, kind=objective.reconstruction, rho=objective.rho
        ).mean()
    if predicted_alpha is not None:
        fooling = fooling_loss(predicted_alpha).mean()
    constraint = objective.reconstruction_weight * (
        reconstruction + objective.fooling_weight * fooling
    )
    return AutoEncoderLoss(classification + constraint, classification, reconstruction, fooling)


def classification_loss(
    objective: Objective, descriptor: GaussianDescriptor, latent: Tensor
) -> Tensor:
    """l_h of eq. 8, or DSVDD's squared distance to its centre."""
    if objective.classifier is None:
        return torch.zeros((), device=latent.device)
    if objective.classifier == "gaussian":
        return _bounded_anomaly(descriptor, latent, objective.variance_floor).mean()
    return squared_distance(latent, descriptor.mean).mean()


def anomaly_score(objective: Objective, descriptor: GaussianDescriptor, latent: Tensor) -> Tensor:
    """l_h of each latent at inference, whichever loss trained it: monotone in the distance to the
    centre, in [0, 1].
    """
    return _bounded_anomaly(descriptor, latent, objective.scoring_floor)


def _bounded_anomaly(descriptor: GaussianDescriptor, latent: Tensor, floor: float) -> Tensor:
    return anomaly(latent, descriptor.mean, descriptor.variance.clamp(min=floor * latent.shape[1]))
