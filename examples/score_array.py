"""Images as NumPy arrays, from a camera or another program: fit, score, and the map of one of them.

python examples/score_array.py            # bricks that come with igd
python examples/score_array.py parts/good # a folder of normal pictures of one size
"""

import sys
from pathlib import Path

import numpy as np

from igd import IGD
from igd.data.decoding import find_images, read_image
from igd.data.demo import make_demo


def main(folder: Path) -> None:
    # (n, height, width, 3), uint8.
    images = np.stack([np.asarray(read_image(path)) for path in find_images(folder)])
    train, new = images[:-2], images[-2:].copy()
    height, width = new.shape[1:3]
    new[1, height // 3 : height // 2, width // 3 : width // 2] = (
        255  # a white patch on the last one
    )

    detector = IGD(image_size=128).fit(train)
    print(
        "score_samples    ",
        detector.score_samples(new).round(3),
        "(scikit-learn's sign: the lower, the more anomalous)",
    )
    print("decision_function", detector.decision_function(new).round(3), "(below 0 is an alarm)")
    patched = detector.predict(new[1])  # one array, one Prediction
    row, column = np.unravel_index(patched.map.argmax(), patched.map.shape)
    print(
        f"map {patched.map.shape}, its peak at row {row}, column {column}; anomalous: "
        f"{patched.is_anomalous}"
    )


if __name__ == "__main__":
    main(
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else make_demo(Path("igd-examples/bricks")) / "train" / "good"
    )
