"""Export a model, then predict with it in a program that can't import PyTorch.

python examples/export_without_torch.py              # trains one on bricks that come with igd
python examples/export_without_torch.py parts.igd    # a model of your own
"""

import subprocess
import sys
from pathlib import Path

from igd import IGD
from igd.data.demo import make_demo
from igd.deploy.export import export

OUT = Path("igd-examples")
ELSEWHERE = """
import sys

sys.modules["torch"] = None  # as if it were not installed

from igd import Runtime

for result in Runtime.load(sys.argv[1]).predict(sys.argv[2]):
    print(
        f"without PyTorch: score {result.score:.3f}, p {result.p_value:.3f}, anomalous: "
        f"{result.is_anomalous}"
    )
"""


def main(detector: IGD, images: Path) -> None:
    target = OUT / "parts.onnx"
    parity = export(detector, target)  # refuses to write a file that disagrees with the detector
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB; {parity}")
    for result in detector.predict(images):
        print(
            f"with PyTorch:    score {result.score:.3f}, p {result.p_value:.3f}, anomalous: "
            f"{result.is_anomalous}"
        )
    command = [sys.executable, "-c", ELSEWHERE, str(target), str(images)]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")


if __name__ == "__main__":
    bricks = make_demo(OUT / "bricks")
    given = (
        IGD.load(sys.argv[1])
        if len(sys.argv) > 1
        else IGD(image_size=128).fit(bricks / "train" / "good")
    )
    main(given, bricks / "test" / "hole")
