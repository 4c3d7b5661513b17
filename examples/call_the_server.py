"""Start the server, ask it about images over HTTP, and stop it: what a program on the line does.

python examples/call_the_server.py               # trains a model on bricks that come with igd
python examples/call_the_server.py parts.onnx    # a model of your own, .igd or .onnx
"""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

from igd.data.demo import make_demo

OUT = Path("igd-examples")


def ask(url: str, model: str, image: Path) -> dict:
    """One image as the body of a request; the answer as JSON."""
    request = urllib.request.Request(
        f"{url}/v1/models/{model}/score", data=image.read_bytes(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["images"][0]


def main(model: Path, images: list[Path]) -> None:
    command = [sys.executable, "-m", "igd.cli", "serve", str(model), "--port", "0", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            url = json.loads(server.stdout.readline())["url"]  # said when it is ready
            for image in images:
                result = ask(url, model.stem, image)
                where = [
                    f"{box['width']}x{box['height']} at ({box['x']}, {box['y']})"
                    for box in result["regions"][:1]
                ]
                print(
                    f"{image.parent.name}/{image.name}: anomalous: {result['is_anomalous']}, p "
                    f"{result['p_value']:.3f}",
                    *where,
                )
        finally:
            server.terminate()  # it finishes what it has taken, and exits with 0
    print(f"the server ended with {server.returncode}")


if __name__ == "__main__":
    bricks = make_demo(OUT / "bricks")
    if len(sys.argv) > 1:
        given = Path(sys.argv[1])
    else:
        from igd import IGD

        given = OUT / "parts.igd"
        IGD(image_size=128).fit(bricks / "train" / "good").save(given)
    main(given, [bricks / "test" / kind / "000.png" for kind in ("good", "hole", "stain")])
