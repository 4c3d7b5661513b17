"""The paper's ablation, in small: what each term adds, mean and standard deviation over seeds.

python examples/ablation.py           # bricks that come with igd
python examples/ablation.py bottle    # a data set in MVTec's layout

`igd benchmark run mnist:ablation --pretrain scratch` does it in full, and can be resumed.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

from igd import IGD
from igd.data.demo import make_demo
from igd.data.reading import read_dataset
from igd.errors import TrainingWarning
from igd.evaluation.evaluate import evaluate

OBJECTIVES = ("mse", "rec", "rec+gac", "igd")
SEEDS = (0, 1)
STEPS = 10  # far too few for a result; enough to see that it runs
SMALL = {"pretrain": "scratch", "image_size": 32, "width": 4, "batch_size": 16}


def main(folder: Path) -> None:
    dataset = read_dataset(folder)
    print(f"{'objective':<12}image AUROC, {len(SEEDS)} seeds")
    for objective in OBJECTIVES:
        found = []
        for seed in SEEDS:
            detector = IGD(objective=objective, seed=seed, steps=STEPS, **SMALL)
            found.append(
                evaluate(detector.fit(dataset), dataset.test_samples()).metrics["image_auroc"]
            )
        print(f"{objective:<12}{np.mean(found):.3f} ± {np.std(found, ddof=1):.3f}")


if __name__ == "__main__":
    # Which rightly say that so few steps teach little.
    warnings.simplefilter("ignore", TrainingWarning)
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else make_demo(Path("igd-examples/bricks")))
