"""The one container format of the project: safetensors with a JSON header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from igd.errors import UserError
from igd.files import atomic

HEADER = "igd"  # key of the JSON header among the safetensors metadata


def write_tensors(path: Path, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write tensors and a JSON header as one safetensors file, whole or not at all."""
    contents = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with atomic(path) as part:
        try:
            save_file(contents, part, metadata={HEADER: json.dumps(header, sort_keys=True)})
        except SafetensorError as error:
            raise OSError(f"{path}: could not be written ({error})") from None


def read_tensors(path: Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and tensors of a file that says it is of this kind and not newer than this version."""
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as opened:
            header = json.loads((opened.metadata() or {})[HEADER])
            if header["kind"] != kind:
                raise UserError(f"{path}: is an igd {header['kind']}, not an igd {kind}")
            if header["format"] > version:
                raise UserError(
                    f"{path}: made by a newer igd ({header.get('made_by', 'unknown')}, format {header['format']}; "
                    f"this one reads up to {version}); upgrade with: pip install -U igd-anomaly"
                )
            return header, {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, TypeError, json.JSONDecodeError):
        raise UserError(f"{path}: not an igd {kind}, or damaged; make it again or copy it again") from None


def load_weights(module: torch.nn.Module, tensors: dict[str, Tensor], path: Path | str) -> None:
    """Load tensors into a module built on the meta device, after checking that names and shapes agree."""
    expected = module.state_dict()
    wrong = sorted(
        name
        for name in expected.keys() | tensors.keys()
        if name not in expected or name not in tensors or _kind(expected[name]) != _kind(tensors[name])
    )
    if wrong:
        raise UserError(f"{path}: damaged: {len(wrong)} tensors don't fit the model it describes, {wrong[0]} among them")
    module.load_state_dict(tensors, assign=True)


def _kind(tensor: Tensor) -> tuple[torch.dtype, torch.Size]:
    return tensor.dtype, tensor.shape
