"""False alarms on images of other patients, with and without groups: 60 patients with 4 near copies
each to learn from, 60 others to test on.

python benchmarks/patients.py --seeds 5
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd import IGD

SIDE, PATIENTS, COPIES, PROMISED = 96, 60, 4, 0.05
WAYS = {"cross-fitted": None, "half held out": 0.5}


def near_copies(seed: int) -> NDArray[np.uint8]:
    """A smooth random field for each patient, and copies of it with noise of 3 grey levels."""
    rng = np.random.default_rng(seed)
    images = []
    for _ in range(PATIENTS):
        coarse = Image.fromarray(rng.integers(40, 216, (8, 8, 3), dtype=np.uint8))
        field = np.asarray(coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC), dtype=float)
        images += [field + rng.normal(0, 3, field.shape) for _ in range(COPIES)]
    return np.array(images).clip(0, 255).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    groups = np.repeat(np.arange(PATIENTS), COPIES)
    for seed in range(parser.parse_args().seeds):
        learnt, others = near_copies(2 * seed), near_copies(2 * seed + 1)
        for way, share in WAYS.items():
            for grouped in (False, True):
                detector = IGD(
                    image_size=SIDE, max_false_alarms=PROMISED, calibration=share, seed=seed
                ).fit(learnt, groups=groups if grouped else None)
                alarms = (-detector.score_samples(others) > detector.threshold_).sum()
                told = {"seed": seed, "way": way, "groups": grouped, "alarms": int(alarms)}
                print(json.dumps({**told, "images": len(others)}), flush=True)


if __name__ == "__main__":
    main()
