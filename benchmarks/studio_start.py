"""From `igd studio` on an empty folder to the first verdict.

`python benchmarks/studio_start.py -o docs/results/studio-start.json` takes a person's steps by the
requests that the page sends, without a person's pauses: the studio is started, 100 photographs of
the demo's brick wall at 256 pixels are sent, a model is trained, an image with a hole is inspected.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from conditions import conditions
from PIL import Image

from igd.cpu import cores
from igd.data.demo import make_demo
from igd.files import write_text

IMAGES, SIDE, AT_ONCE = 100, 256, 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder))
    print(json.dumps(measured, indent=1))
    if options.output:
        write_text(options.output, json.dumps(measured, indent=1) + "\n")


def measure(folder: Path) -> dict[str, Any]:
    demo = make_demo(folder / "bricks")
    photographs = sorted((demo / "train" / "good").iterdir())[:IMAGES]
    defect = sorted((demo / "test" / "hole").iterdir())[0]
    for path in (*photographs, defect):
        with Image.open(path) as image:
            image.resize((SIDE, SIDE)).save(path)
    load, started = os.getloadavg()[0], time.perf_counter()
    steps: dict[str, float] = {}

    def step(name: str) -> None:
        steps[name] = round(time.perf_counter() - started, 1)

    studio = subprocess.Popen(
        [
            *(sys.executable, "-m", "igd.cli", "studio", str(folder / "workspace")),
            *("--port", "0", "--json"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert studio.stdout is not None
        url = json.loads(studio.stdout.readline())["url"]
        step("studio answers")
        number = ask(url, "/v1/sets", {})["id"]
        for first in range(0, IMAGES, AT_ONCE):
            ask(url, f"/v1/sets/{number}/images", files=photographs[first : first + AT_ONCE])
        step("images are there")
        job = ask(url, "/v1/jobs", {"kind": "train", "model": "bricks", "set": number})["id"]
        while (told := ask(url, f"/v1/jobs/{job}"))["state"] in ("queued", "running"):
            time.sleep(0.2)
        assert told["state"] == "done", told
        step("model is trained")
        while "bricks" not in [m["name"] for m in ask(url, "/v1/models")["models"]]:
            time.sleep(0.1)
        (verdict,) = ask(url, "/v1/models/bricks/inspect", files=[defect])["images"]
        step("first verdict")
    finally:
        studio.terminate()
        studio.wait(60)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "what": f"From igd studio on an empty folder to the first verdict, {IMAGES} images of "
        f"{SIDE} pixels",
        "command": "python benchmarks/studio_start.py",
        **conditions("fast", 0),
        "python": platform.python_version(),
        "cores": cores(),
        "load_before": round(load, 1),
        "images": IMAGES,
        "side": SIDE,
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),  # of the studio and its job
        "seconds": steps,
        "verdict": {name: verdict[name] for name in ("is_anomalous", "p_value", "outcome")},
    }


def ask(
    url: str, path: str, body: dict[str, Any] | None = None, files: list[Path] | None = None
) -> Any:
    """GET, or POST of JSON or of files."""
    request = urllib.request.Request(url + path)
    if files is not None:
        boundary = "igd-benchmark"
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="images"; filename='
        parts = (f'{head}"{f.name}"\r\n\r\n'.encode() + f.read_bytes() for f in files)
        request.data = b"\r\n".join(parts) + f"\r\n--{boundary}--\r\n".encode()
        request.add_header("Content-Type", f"multipart/form-data; boundary={boundary}")
    elif body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
