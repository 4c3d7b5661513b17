"""Whether an installation of igd-anomaly-runtime does what it is for; `make package` runs this.

python packaging/runtime/check.py MODEL.onnx IMAGES
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path


def main(model: str, images: str) -> None:
    igd = str(Path(sys.executable).with_name("igd"))
    for package in ("torch", "scipy", "sklearn", "matplotlib", "safetensors", "onnx"):
        assert find_spec(package) is None, f"{package} is installed"

    from igd import Runtime

    first, *_ = Runtime.load(model).predict(images)
    assert 0 <= first.score <= 1

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([igd, "predict", model, images, "--out", folder, "--quiet"], check=True)
        rows = (Path(folder) / "scores.csv").read_text(encoding="utf-8").splitlines()
        assert first.name in rows[1]
        refused = subprocess.run(
            [igd, "train", images, "-o", f"{folder}/model.igd"],
            check=False,
            capture_output=True,
            text=True,
        )
    assert refused.returncode == 2, refused
    assert "pip install igd-anomaly" in refused.stderr, refused.stderr
    sys.stdout.write(f"runtime without PyTorch: {len(rows) - 1} images predicted\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
