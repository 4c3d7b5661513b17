"""Random numbers that depend on a seed and a purpose, and on nothing else."""

from __future__ import annotations

import numpy as np
import torch


def generator(seed: int, purpose: str, counter: int = 0) -> torch.Generator:
    """A generator of its own for each purpose: what one part of a run draws changes nothing in
    another.
    """
    entropy = np.random.SeedSequence([seed, *purpose.encode(), counter + 1])
    return torch.Generator().manual_seed(int(entropy.generate_state(1, np.uint64)[0]))
