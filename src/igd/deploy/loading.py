"""A model file as a predictor, whatever it runs in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from igd.errors import UserError
from igd.files import EXPORTED
from igd.inference.predictor import Predictor


def load_predictor(path: Path, at_once: int = 1) -> Predictor:
    """An `.onnx` file in ONNX Runtime, without PyTorch; any other as an `.igd` file.

    Several batches `at_once` are scored by a thread each. That gives more images a second than one
    batch after the other by as many threads, which wait for each other, and each image later.
    """
    threads = 1 if at_once > 1 else None
    predictor = _load(path, threads)
    predictor.at_once_ = at_once
    return predictor


def _load(path: Path, threads: int | None) -> Predictor:
    if path.suffix.lower() == EXPORTED:
        from igd.inference.runtime import Runtime

        return Runtime.load(path, threads)
    try:
        from igd.detector import IGD
    except ModuleNotFoundError as error:
        if (error.name or "igd").partition(".")[0] == "igd":
            raise
        raise UserError(
            f"{path}: an .igd file needs the package {error.name}, which is not installed; "
            f"pip install igd-anomaly, or export it on a machine that has it: igd export {path} "
            f"{path.with_suffix('.onnx')}"
        ) from None

    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    return IGD.load(path)


def named(paths: Sequence[Path]) -> dict[str, Path]:
    """Model files by the names they are served under, which are those of the files without their
    suffixes.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if path.stem in found:
            raise UserError(
                f"{path} and {found[path.stem]} would both be called '{path.stem}'; rename one of "
                f"the files"
            )
        if not path.is_file():
            raise UserError(f"{path}: no such model file")
        found[path.stem] = path
    return found
