"""The false-alarm promise, measured: over random splits of real normal images, how many of the new
ones raise an alarm?

python benchmarks/false_alarms.py --data ~/.cache/igd-data/fashion_mnist.npz \\
    --out docs/results/false-alarms.json

A detector is trained once on some images of one class. The others, all of one pool, are scored and
then split at random, again and again, into images to calibrate with and new ones. What is exact,
for n calibration images, m new ones, a promised rate r and k = floor(r (n + 1)), where no two
scores are equal:

- Over all splits, a new image raises an alarm with probability k / (n + 1) <= r. This is the
  promise.
- Given one calibration set, the chance is not r but some value around it, Beta(k, n + 1 - k)
  distributed: a threshold from few images may be unlucky for good. So the alarms of one split
  follow a beta-binomial, which is wider than the binomial of m independent images at rate r, and
  fewer splits than 95 % lie in the latter's 95 % interval; the table says how many should.
- Splits of one pool are independent given the pool, and which images raise an alarm depends on
  ranks alone. So the mean over splits has a standard error of the beta-binomial's deviation over
  the root of their number; its interval is 1.96 of them.

Shuffling makes the images of a split exchangeable, whatever the detector: these rows check the
arithmetic (thresholds, ties, rounding), not the world. The last rows use the detector as a user
would: its own held-out images, chosen before training, set the threshold, and all others are new;
held-out images that had been trained on would look too normal and show here. One draw.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from conditions import FROM_SCRATCH, conditions
from numpy.typing import NDArray
from scipy.stats import betabinom, binom

from igd import IGD
from igd.files import write_text
from igd.inference.conformal import threshold
from igd.progress import TerminalProgress

PROMISED = (0.10, 0.05, 0.01)
CALIBRATION, NEW = 999, 500  # images in a split
Floats = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--normal", type=int, default=0, help="the class that is normal")
    parser.add_argument(
        "--trained-on",
        type=int,
        default=2000,
        help="images, a fifth of which the detector holds out",
    )
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--recipe", default="fast")
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    arrays = np.load(options.data)
    rng = np.random.default_rng(options.seed)
    pool = rng.permutation(arrays["x_train"][arrays["y_train"] == options.normal])
    detector = IGD(**FROM_SCRATCH, recipe=options.recipe, steps=options.steps, seed=options.seed)
    detector.fit(pool[: options.trained_on], progress=TerminalProgress())
    scores = -detector.score_samples(pool[options.trained_on :])
    own = detector.calibration_.scores.double().numpy()
    summary = {
        "what": f"False alarms, promised and realised: Fashion MNIST, class {options.normal}, "
        f"{options.splits} splits of {len(scores)} images",
        "command": f"python benchmarks/false_alarms.py --data FILE --normal {options.normal} "
        f"--trained-on {options.trained_on} --splits {options.splits} --recipe {options.recipe} "
        f"--steps {options.steps} "
        f"--seed {options.seed}",
        **conditions(options.recipe, options.seed),
        "calibration_images": CALIBRATION,
        "new_images": NEW,
        "equal_scores": int(len(scores) - len(np.unique(scores))),
        "promises": [over_splits(scores, rate, options.splits, rng) for rate in PROMISED],
        "own_calibration_images": len(own),
        "own_new_images": len(scores),
        "own_promises": [as_used(own, scores, rate) for rate in PROMISED],
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


def over_splits(
    scores: Floats, rate: float, splits: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Split, calibrate and count alarms many times; what was realised beside what should be."""
    alarms = np.empty(splits, dtype=np.int64)
    for split in range(splits):
        calibration, new = np.split(rng.permutation(scores)[: CALIBRATION + NEW], [CALIBRATION])
        alarms[split] = (new > threshold(calibration, rate)).sum()
    exact = alarms_in_a_split(CALIBRATION, NEW, rate)
    error = 1.96 * exact.std() / NEW / math.sqrt(splits)
    low, high = binom.interval(0.95, NEW, rate)
    return {
        "promised": rate,
        "realised_mean": float(alarms.mean() / NEW),
        "interval_of_the_mean": [
            float(exact.mean() / NEW - error),
            float(exact.mean() / NEW + error),
        ],
        "binomial_interval_of_a_split": [low / NEW, high / NEW],
        "share_of_splits_inside": float(((alarms >= low) & (alarms <= high)).mean()),
        "share_that_should_be": float(exact.cdf(high) - exact.cdf(low - 1)),
    }


def as_used(calibration: Floats, new: Floats, rate: float) -> dict[str, Any]:
    """The detector's own threshold on images it never saw: one draw, and the interval it should lie
    in.
    """
    low, high = alarms_in_a_split(len(calibration), len(new), rate).interval(0.95)
    return {
        "promised": rate,
        "realised": float((new > threshold(calibration, rate)).mean()),
        "interval": [float(low / len(new)), float(high / len(new))],
    }


def alarms_in_a_split(calibration: int, new: int, rate: float) -> Any:
    """The distribution of the number of false alarms, for exchangeable images without equal
    scores.
    """
    allowed = math.floor(rate * (calibration + 1) + 1e-9)
    return betabinom(new, allowed, calibration + 1 - allowed)


if __name__ == "__main__":
    main()
