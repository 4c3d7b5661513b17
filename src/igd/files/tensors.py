"""The one container format of the project: safetensors with a JSON header and a checksum over
both.
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from igd.errors import UserError
from igd.files import atomic, read_whole

HEADER = "igd"  # key of the JSON header among the safetensors metadata
CHECKSUM = "sha256"  # key of the checksum in that header


def write_tensors(path: Path, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write tensors and a JSON header as one safetensors file, whole or not at all."""
    contents = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    # In the header, not beside it: safetensors writes several metadata in any order.
    described = json.dumps({**header, CHECKSUM: checksum(header, contents)}, sort_keys=True)
    with atomic(path) as part:
        try:
            save_file(contents, part, metadata={HEADER: described})
        except SafetensorError as error:
            raise OSError(f"{path}: could not be written ({error})") from None


def read_tensors(
    path: Path, kind: str, version: int, checked_since: int = 0
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and tensors of a file that says it is of this kind and not newer than this version.

    The checksum must agree; only a file of a format older than `checked_since` may have none.
    """
    contents = read_whole(path)
    try:
        metadata = _metadata(contents)
        header = json.loads(metadata[HEADER])
        recorded = header.pop(CHECKSUM, None)
        if header["kind"] != kind:
            raise UserError(f"{path}: is an igd {header['kind']}, not an igd {kind}")
        if header["format"] > version:
            raise UserError(
                f"{path}: made by a newer igd ({header.get('made_by', 'unknown')}, format "
                f"{header['format']}; "
                f"this one reads up to {version}); upgrade with: pip install -U igd-anomaly"
            )
        # Copies begin where PyTorch lets tensors begin: on some machines sums depend on it.
        tensors = {name: value.clone() for name, value in load(contents).items()}
        if recorded is None and header["format"] < checked_since:
            return header, tensors
    except UserError:
        raise
    except (
        SafetensorError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        ArithmeticError,
        RuntimeError,
        struct.error,
    ):
        raise UserError(
            f"{path}: not an igd {kind}, or damaged; make it again or copy it again"
        ) from None
    if recorded != checksum(header, tensors):
        raise UserError(
            f"{path}: damaged: its contents don't have its checksum; make it again or copy it again"
        )
    return header, tensors


def checksum(header: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """SHA-256 of a header and of all tensors, by name, type, shape and value."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.view(-1).view(torch.uint8).numpy().data if value.numel() else b"")
    return digest.hexdigest()


def has_checksum(path: Path) -> bool:
    """Whether a file that was read brought a checksum, which then agreed."""
    return CHECKSUM in json.loads(_metadata(path.read_bytes())[HEADER])


def _metadata(contents: bytes) -> dict[str, str]:
    """What stands beside the tensors: a length, then so many bytes of JSON."""
    (length,) = struct.unpack_from("<Q", contents)
    metadata = json.loads(contents[8 : 8 + min(length, len(contents))])["__metadata__"]
    if not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("metadata are text")
    return dict(metadata)


def load_weights(module: torch.nn.Module, tensors: dict[str, Tensor], path: Path | str) -> None:
    """Load tensors into a module built on the meta device, after checking that names and shapes
    agree.
    """
    expected = module.state_dict()
    wrong = sorted(
        name
        for name in expected.keys() | tensors.keys()
        if name not in expected
        or name not in tensors
        or _kind(expected[name]) != _kind(tensors[name])
    )
    if wrong:
        raise UserError(
            f"{path}: damaged: {len(wrong)} tensors don't fit the model it describes, {wrong[0]} "
            f"among them"
        )
    module.load_state_dict(tensors, assign=True)


def _kind(tensor: Tensor) -> tuple[torch.dtype, torch.Size]:
    return tensor.dtype, tensor.shape
