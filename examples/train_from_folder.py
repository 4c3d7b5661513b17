"""Learn from normal images, save the model, predict for images it has not seen.

python examples/train_from_folder.py            # bricks that come with igd
python examples/train_from_folder.py bottle     # normal pictures, or a data set in MVTec's layout
"""

import sys
from pathlib import Path

from igd import IGD
from igd.data.demo import make_demo
from igd.data.reading import read_dataset

OUT = Path("igd-examples")


def main(folder: Path) -> None:
    dataset = read_dataset(folder)
    detector = IGD(image_size=128).fit(dataset)
    OUT.mkdir(exist_ok=True)
    detector.save(OUT / "parts.igd")
    promise = f"at most {detector.false_alarm_rate_:.0%} of normal images"
    print(f"{OUT / 'parts.igd'}: scores above {detector.threshold_:.3f} are alarms, {promise}")
    for sample in dataset.test[::8]:
        result = detector.predict([sample])[0]
        verdict = "ANOMALOUS" if result.is_anomalous else "normal"
        print(
            f"{verdict:<10} score {result.score:.3f}  p {result.p_value:.3f}  {sample.kind:<8} "
            f"{Path(sample.identifier).name}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else make_demo(OUT / "bricks"))
