"""Encoders of one's own, a ResNet18 however it learnt, as a file that `--pretrain FILE` takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from igd.backbones.architectures import KINDS, Backbone, prepared
from igd.backbones.weights import build_backbone, identity
from igd.errors import UserError
from igd.files.tensors import read_tensors, write_tensors
from igd.method.resnet import measure_statistics, normalise_by_batch
from igd.rng import generator
from igd.version import __version__

FORMAT = 1
KIND = "encoder"


def kind_for(side: int, narrow: bool) -> str:
    """The student for images of this side: small ones keep more of their few pixels."""
    return f"resnet18{'' if side > 64 else '_small'}{'_narrow' if narrow else ''}"


def fresh_encoder(
    shape: tuple[int, int], narrow: bool, first: Tensor, seed: int, purpose: str
) -> tuple[str, nn.Module]:
    """The name and network of an encoder with random weights, its normalisation measured on these
    8-bit images.
    """
    name = kind_for(min(shape), narrow)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator(seed, purpose).initial_seed())
        network = KINDS[name].build()
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    measure_statistics(network, prepared(first, KINDS[name], shape))
    normalise_by_batch(network)
    return name, network


def frozen(name: str, network: nn.Module, origin: str, turned: bool = False) -> Backbone:
    """A trained network as a backbone; one that learnt to tell turns reads an image in all of them,
    each twice.
    """
    network.eval().requires_grad_(False)
    network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    weights = identity(network.state_dict())
    return Backbone(name, network, origin, weights, turned=turned, seen_twice=turned)


def save_encoder(path: Path, backbone: Backbone, provenance: dict[str, Any]) -> None:
    header = {
        "kind": KIND,
        "format": FORMAT,
        "made_by": f"igd {__version__}",
        "backbone": backbone.name,
        "origin": backbone.origin,
        "turned": backbone.turned,
        "seen_twice": backbone.seen_twice,
        "provenance": provenance,
    }
    write_tensors(path, header, backbone.network.state_dict())


def load_encoder(path: Path) -> Backbone:
    """Read what `save_encoder` wrote, or say why this file is not one."""
    header, parameters = read_tensors(path, KIND, FORMAT)
    if header.get("backbone") not in list(KINDS):  # a list: what stands there may not be hashable
        raise UserError(f"{path}: damaged: no backbone is called {header.get('backbone')!r}")
    if not all(value.isfinite().all() for value in parameters.values()):
        raise UserError(f"{path}: damaged: it holds values that are not numbers")
    origin = f"{path.name} ({header.get('origin')})"
    backbone = build_backbone(header["backbone"], parameters, origin)
    alone = not backbone.kind.vector_blocks  # its vector is of turns and of nothing else
    turned, twice = (alone and header.get(name) is True for name in ("turned", "seen_twice"))
    return replace(backbone, turned=turned, seen_twice=twice)
