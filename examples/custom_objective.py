"""An objective of one's own beside the paper's: a value, not a fork.

python examples/custom_objective.py           # bricks that come with igd
python examples/custom_objective.py bottle    # a data set in MVTec's layout
"""

import sys
import warnings
from dataclasses import replace
from pathlib import Path

from igd import IGD
from igd.data.demo import make_demo
from igd.data.reading import read_dataset
from igd.errors import TrainingWarning
from igd.evaluation.evaluate import evaluate
from igd.method.objective import OBJECTIVES

STEPS = 40  # far too few for a result; enough to see that it runs

OBJECTIVES["igd-half-mae"] = replace(OBJECTIVES["igd"], rho=0.5)  # the paper's rho is 0.15


def main(folder: Path) -> None:
    dataset = read_dataset(folder)
    for objective in ("igd", "igd-half-mae"):
        detector = IGD(
            objective=objective,
            pretrain="scratch",
            image_size=32,
            width=4,
            steps=STEPS,
            batch_size=16,
        )
        metrics = evaluate(detector.fit(dataset), dataset.test_samples()).metrics
        print(
            f"{objective:<14} rho {OBJECTIVES[objective].rho:.2f}  image AUROC "
            f"{metrics['image_auroc']:.3f}"
        )


if __name__ == "__main__":
    # Which rightly say that so few steps teach little.
    warnings.simplefilter("ignore", TrainingWarning)
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else make_demo(Path("igd-examples/bricks")))
