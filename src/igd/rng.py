"""Random numbers that depend on a seed and a purpose, and on nothing else; and choices without
them.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def generator(seed: int, purpose: str, counter: int = 0) -> torch.Generator:
    """A generator of its own for each purpose: what one part of a run draws changes nothing in
    another.
    """
    entropy = np.random.SeedSequence([seed, *purpose.encode(), counter + 1])
    return torch.Generator().manual_seed(int(entropy.generate_state(1, np.uint64)[0]))


def spread(count: int, most: int) -> Tensor:
    """At most so many of the numbers below `count`, from the first to the last: what comes first in
    a folder may be of one day or one camera.

    >>> spread(10, 4).tolist()
    [0, 3, 6, 9]
    """
    return torch.linspace(0, count - 1, min(most, count)).long()
