"""How well the four turns of an image are told apart by an encoder that learnt to tell them.

Of an image that shows something else than normal ones, such an encoder does not know which way up
it is (Golan and El-Yaniv, 2018). Its own classifier is not needed to see that: Gaussians of the
four turns' vectors that share a covariance, Fisher's discriminant, tell them as well.
"""

from __future__ import annotations

import torch
from torch import Tensor

from igd.backbones.architectures import TURNS
from igd.scales.whitening import shrinkage_of


def turn_direction(vectors: Tensor) -> Tensor:
    """The direction (d,) along which vectors of normal images (n, d), one turn after another, tell
    the turns apart.

    Along it the margin between turns is measured in shares of its mean, and counts the less the
    smaller that is: where no more than chance tells turns apart, the direction is 0. What chance
    makes of a direction, images that it was not learnt from don't show; so either half of the
    images says how well the other's direction tells turns, less two standard errors.
    """
    double = vectors.double()
    halves = double[::2], double[1::2]
    others = torch.cat([one @ discriminant(other) for one, other in (halves, halves[::-1])])
    error = others.std(correction=0) / max(len(others) - 1, 1) ** 0.5
    told = (others.mean() - 2 * error).clamp(min=0)
    direction = discriminant(double)
    margin = double.mean(dim=0) @ direction
    return (direction * (told / (1 + told) / margin if told else 0.0)).to(vectors)


def lacking(margin: Tensor, normal: Tensor) -> Tensor:
    """What images lack of the margin between turns that normal ones have in the mean.

    Twice that margin is the most that counts in an image's favour: where normal images hardly tell
    their turns, a defect that does must not pass for the most normal of all.
    """
    return (normal - margin).maximum(-normal.abs())


def discriminant(vectors: Tensor) -> Tensor:
    """Fisher's, of the turns of images (n, d): the direction (d,) of the margin between them.

    With a shared covariance the logarithm of a turn's probability is linear in that turn's vector,
    but for what all turns have in common. The margin is the right turn's, less the mean of all
    four, summed over an image's turns: linear too.
    """
    each = vectors.unflatten(1, (TURNS, -1))
    mean = each.mean(dim=0)
    within = (each - mean).flatten(0, 1)
    shrinkage, covariance = shrinkage_of(within.float()), within.T @ within / len(within)
    level = covariance.diagonal().mean().clamp(min=torch.finfo(torch.float32).tiny)
    shrunk = (1 - shrinkage) * covariance
    shrunk.diagonal().add_(shrinkage * level)
    apart = mean - mean.mean(dim=0)
    direction: Tensor = torch.linalg.solve(shrunk, apart.T).T
    return direction.flatten()
