"""`igd pretrain`: an encoder of one's own, for `igd train --pretrain FILE`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.cli.common import DONE, add_command, checkpoint_beside, interruptible, progress_of
from igd.cli.data_flags import add_data_flags, training_set
from igd.errors import UserError
from igd.training.parameters import PRECISIONS

if TYPE_CHECKING:
    from igd.backbones.architectures import Backbone
    from igd.data.store import Pixels
    from igd.files.checkpoint_file import Checkpoint
    from igd.pretraining.contrastive import Contrast, Contrasted
    from igd.pretraining.rotation import Rotated, Rotation


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "pretrain", help="make an encoder of one's own", description="Make an encoder of one's own."
    )
    ways = parser.add_subparsers(title="ways", required=True, metavar="WAY")
    distill = add_command(
        ways,
        "distill",
        run_distill,
        "learn to give a large network's features",
        "igd pretrain distill parts/good -o encoder.igd",
    )
    distill.add_argument(
        "--teacher",
        default="efficientnet_lite0",
        help="network with ImageNet weights (default: %(default)s)",
    )
    distill.add_argument(
        "--weights", type=Path, help="file with the teacher's weights (default: those installed)"
    )
    _add_common(distill)
    contrast = add_command(
        ways,
        "contrastive",
        run_contrastive,
        "learn from the images alone",
        "igd pretrain contrastive parts/good -o encoder.igd",
    )
    contrast.add_argument(
        "--rotated",
        action="store_true",
        help="count turned images as other images, and learn to tell the turns apart; "
        "for normal images that are upright",
    )
    _add_common(contrast)
    rotation = add_command(
        ways,
        "rotation",
        run_rotation,
        "learn to tell how an image is turned, where normal ones are upright",
        "igd pretrain rotation parts/good -o encoder.igd",
    )
    _add_common(rotation, slow="ResNet18 at its full width, and longer")


def _add_common(command: argparse.ArgumentParser, slow: str = "the paper's numbers") -> None:
    add = command.add_argument
    add("images", type=Path, help="folder of images, or a data set (docs/data.md)")
    add("-o", "--output", type=Path, required=True, help="the file to write, such as encoder.igd")
    add("--resume", action="store_true", help="go on where an interrupted training stopped")
    add(
        "--recipe",
        default="fast",
        choices=("fast", "paper"),
        help=f"minutes (default) or {slow}",
    )
    add("--steps", type=int, help="batches to train on (default: the recipe's)")
    add("--batch-size", type=int, help="default: the recipe's")
    add("--learning-rate", type=float, help="default: the recipe's")
    add(
        "--image-size", type=int, help="side of the images (default: 32 for small images, else 256)"
    )
    add(
        "--patch",
        type=int,
        help="learn from patches of this side instead of whole images, for the local model",
    )
    add("--precision", default="32-true", choices=PRECISIONS, help="default: %(default)s")
    add("--seed", type=int, default=0)
    add_data_flags(command)


def run_distill(options: argparse.Namespace) -> int:
    with _output(options) as checkpoint:
        return _distill(options, checkpoint)


def run_contrastive(options: argparse.Namespace) -> int:
    with _output(options) as checkpoint:
        return _contrastive(options, checkpoint)


def run_rotation(options: argparse.Namespace) -> int:
    with _output(options) as checkpoint:
        return _rotation(options, checkpoint)


@contextmanager
def _output(options: argparse.Namespace) -> Iterator[Path]:
    """Hold the place of the encoder; its checkpoint is beside it."""
    from igd.files import check_writable, locked

    check_writable(options.output)
    with locked(options.output, "training"):
        yield checkpoint_beside(options)


def _distill(options: argparse.Namespace, checkpoint: Path) -> int:
    from igd.backbones.features import FrozenBackbone, input_shape
    from igd.backbones.weights import load_backbone
    from igd.pretraining.distillation import FAST, Distillation, distil

    started = time.time()
    backbone = load_backbone(options.teacher, options.weights)
    pixels = _pixels(options)
    settings = _replaced(FAST if options.recipe == "fast" else Distillation(), options)
    teacher = FrozenBackbone(
        backbone, input_shape((pixels.shape[-2], pixels.shape[-1]), backbone), (), vector=True
    )
    told = {"way": "distill", "teacher": options.teacher, **asdict(settings)}
    saved = _checkpoint(checkpoint, {**told, "weights": backbone.identity}, pixels, options)
    with interruptible() as stop:
        made = distil(teacher, pixels, settings, progress_of(options), stop, saved)
    told |= {
        "cosine": round(made.agreement, 4),
        "images": len(pixels),
        "seconds": round(time.time() - started, 1),
    }
    return _finish(
        options,
        made.encoder,
        told,
        f"mean cosine with the teacher {made.agreement:.3f}",
        checkpoint,
    )


def _contrastive(options: argparse.Namespace, checkpoint: Path) -> int:
    from igd.pretraining.contrastive import Contrast, contrast, fast

    own, rotated = _given(options), options.rotated

    def settings(side: int) -> Contrast:
        recipe = fast(side, rotated) if options.recipe == "fast" else Contrast(rotated=rotated)
        return replace(recipe, **own)

    return _from_images_alone("contrastive", contrast, settings, options, checkpoint)


def _rotation(options: argparse.Namespace, checkpoint: Path) -> int:
    from igd.pretraining.rotation import Rotation, fast, learn_rotation

    own = _given(options)

    def settings(side: int) -> Rotation:
        return replace(fast(side) if options.recipe == "fast" else Rotation(), **own)

    return _from_images_alone("rotation", learn_rotation, settings, options, checkpoint)


def _from_images_alone(
    way: str,
    learn: Callable[..., Contrasted | Rotated],
    settings_for: Callable[[int], Contrast | Rotation],  # images of a side
    options: argparse.Namespace,
    checkpoint: Path,
) -> int:
    started = time.time()
    pixels = _pixels(options)
    settings = settings_for(min(pixels.shape[-2:]))
    told = {"way": way, **asdict(settings)}
    saved = _checkpoint(checkpoint, told, pixels, options)
    with interruptible() as stop:
        made = learn(pixels, settings, progress_of(options), stop, saved)
    last = made.losses[-max(1, len(made.losses) // 10) :].mean().item()
    told |= {
        "loss": round(last, 4),
        "images": len(pixels),
        "seconds": round(time.time() - started, 1),
    }
    return _finish(options, made.encoder, told, f"last loss {last:.3f}", checkpoint)


def _checkpoint(
    path: Path, told: dict[str, Any], pixels: Pixels, options: argparse.Namespace
) -> Checkpoint:
    """The file to go on from, read if an earlier run left one."""
    from igd.files.checkpoint_file import Checkpoint
    from igd.training.checkpoint import fingerprint
    from igd.version import __version__

    cut = {"image_size": options.image_size, "patch": options.patch}
    settings = {"made_by": __version__, "parameters": {**told, **cut}}
    saved = Checkpoint(path, fingerprint(settings, pixels), settings)
    if options.resume and not saved.load():
        progress_of(options).say(f"{path}: nothing to resume; starting from the beginning")
    return saved


def _pixels(options: argparse.Namespace) -> Pixels:
    """The normal training images of a data set, decoded, or patches of them."""
    from igd.data.geometry import Geometry
    from igd.data.image_set import decode
    from igd.data.patches import cut_patches
    from igd.data.sources import as_source
    from igd.training.plan import choose_side

    source = as_source(training_set(options))
    geometry = Geometry(choose_side(options.image_size, source))  # whatever their sizes, one square
    pixels = decode(source, geometry, progress=progress_of(options)).pixels
    if options.patch is None:
        return pixels
    if not 0 < options.patch <= pixels.shape[-1]:
        raise UserError(
            f"--patch is {options.patch}; the images have {pixels.shape[-1]} pixels a side"
        )
    return cut_patches(pixels, options.patch, options.seed)


def _replaced(settings: Any, options: argparse.Namespace) -> Any:
    return replace(settings, **_given(options))


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """What of the settings the command line says."""
    given = {name: getattr(options, name) for name in ("steps", "batch_size", "learning_rate")}
    for name, value in given.items():
        if value is not None and not 0 < value < float("inf"):
            raise UserError(f"--{name.replace('_', '-')} is {value}; it must be a positive number")
    own = {name: value for name, value in given.items() if value is not None}
    return {"seed": options.seed, "precision": options.precision, **own}


def _finish(
    options: argparse.Namespace,
    encoder: Backbone,
    told: dict[str, Any],
    outcome: str,
    checkpoint: Path,
) -> int:
    """Write the encoder, and say so; until it is safe, the checkpoint stays."""
    from igd.pretraining.encoders import save_encoder

    save_encoder(options.output, encoder, told)
    checkpoint.unlink(missing_ok=True)
    if options.json:
        print(json.dumps({"encoder": str(options.output), **told}))
    else:
        print(
            f"{options.output}: learnt from {told['images']} images in {told['seconds']:.0f} s; "
            f"{outcome}; "
            f"use it with: igd train ... --pretrain {options.output}"
        )
    return DONE
