"""`igd train`: learn from normal images."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from igd.cli.common import (
    DONE,
    add_command,
    add_data_flags,
    checkpoint_beside,
    identity,
    interruptible,
    progress_of,
    training_set,
    warnings_as_lines,
)


def add(commands: Any) -> None:
    command = add_command(commands, "train", run, "learn from normal images", "igd train parts/good -o parts.igd")
    command.add_argument("images", type=Path, help="folder of normal images, or a data set (docs/data.md)")
    command.add_argument("-o", "--output", type=Path, required=True, help="the model file to write, such as parts.igd")
    command.add_argument("--resume", action="store_true", help="go on where an interrupted training stopped")
    add_data_flags(command)
    command.add_argument("--fraction", type=float, default=1, help="share of the training images to use (default: all)")
    add_training_flags(command)


def run(options: argparse.Namespace) -> int:
    from igd.detector import IGD

    target, checkpoint = options.output, checkpoint_beside(options)
    dataset = training_set(options, options.fraction)
    detector = IGD(**{name: getattr(options, name) for name in TRAINING_FLAGS})
    with interruptible() as stop, warnings_as_lines():
        detector.fit(
            dataset,
            checkpoint=checkpoint,
            resume=options.resume,
            progress=progress_of(options),
            stop=stop,
        )
    detector.save(target)  # until here the checkpoint stays: a full disk costs nothing that was learnt
    checkpoint.unlink(missing_ok=True)
    if options.json:
        print(
            json.dumps({"model": str(target), "threshold": detector.threshold_, **identity(detector), **detector.provenance_})
        )
    else:
        made = detector.provenance_
        beside = f" ({made['measuring_images']} more weighed the parts of the score)" if made["measuring_images"] else ""
        print(
            f"{target}: learnt from {made['images']} images in {made['seconds']:.0f} s "
            f"(recipe {options.recipe}, seed {options.seed}); scores above {detector.threshold_:.4f} are alarms, at most "
            f"{detector.false_alarm_rate_:.1%} of normal images by the {made['calibration_images']} held out{beside}"
        )
    return DONE


TRAINING_FLAGS = [
    "recipe",
    "objective",
    "scales",
    "image_size",
    "fit_to",
    "epochs",
    "steps",
    "batch_size",
    "learning_rate",
    "width",
    "pretrain",
    "backbone",
    "weights",
    "combination",
    "feature_cache",
    "calibration",
    "max_false_alarms",
    "seed",
    "device",
    "precision",
    "strict",
]


def add_training_flags(command: argparse.ArgumentParser) -> None:
    """The constructor's parameters, under their own names."""
    add = command.add_argument
    add("--recipe", default="fast", help="fast (default), paper, authors")
    add("--objective", default="igd", help="igd (default), mse, rec, rec+gac, dsvdd, dsvdd-soft, dsvdd+rec, authors")
    add(
        "--scales",
        type=lambda text: tuple(text.split(",")),
        help="of global, local, pixel, such as global,pixel (default: the recipe's)",
    )
    add("--image-size", type=int, help="side of the square the model sees (default: 32 for small images, else 256)")
    add(
        "--fit", dest="fit_to", choices=("resize", "crop", "letterbox"), help="how images become that square (default: resize)"
    )
    add("--epochs", type=int, help="passes over the images (default: the recipe's)")
    add("--steps", type=int, help="batches to train on instead of epochs, not counting pre-training (default: the recipe's)")
    add("--batch-size", type=int, help="default: the recipe's")
    add("--learning-rate", type=float, help="default: the recipe's")
    add("--width", type=int, help="channels of the networks' first stage (default: the recipe's)")
    add("--pretrain", help="scratch, imagenet, distill, contrastive, or a file of igd pretrain (default: the recipe's)")
    add("--backbone", default="efficientnet_lite0", help="network with ImageNet weights (default: %(default)s)")
    add("--weights", type=Path, help="file with the backbone's weights, .safetensors or .pth (default: those installed)")
    add("--combination", choices=("calibrated", "sum"), help="how scales are added up (default: the recipe's)")
    add("--feature-cache", type=Path, help="folder to keep the backbone's features of the images in (default: nowhere)")
    add("--calibration", type=float, default=0.2, help="share of the images held out for the threshold (default: 0.2)")
    add("--max-false-alarms", type=float, help="accepted share of false alarms (default: 0.05, or what is possible)")
    add("--seed", type=int, default=0)
    add("--device", default="cpu", help="cpu (default) or cuda")
    add("--precision", default="32-true", choices=("32-true", "bf16-mixed"))
    add("--strict", action="store_true", help="refuse unreadable images instead of leaving them out")
