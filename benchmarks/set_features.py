"""Features of data sets in MVTec's layout, extracted once and kept: what every candidate reads.

The images pass through the detector's own decoding, geometry and backbone; a folder keeps the
result, so that a hundred candidates cost one pass.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from igd.data.formats.folders import categories
from igd.data.image_set import decode
from igd.data.reading import read_dataset
from igd.data.sources import as_source
from igd.data.store import Pixels
from igd.progress import Progress
from igd.scales.scale_settings import PositionSettings
from igd.training.checkpoint import Controls
from igd.training.make_backbone import make_backbone
from igd.training.parameters import Parameters
from igd.training.plan import Plan, make_plan

KEPT = Path("~/.cache/igd-arena").expanduser()
AT_ONCE = 32  # images


@dataclass(frozen=True)
class SetFeatures:
    """Feature maps of one data set, float16 (n, channels, rows, columns) a level."""

    name: str
    training: list[Tensor]
    test: list[Tensor]
    labels: Tensor  # of the test images: 1 is anomalous

    def of(self, images: Tensor) -> list[Tensor]:
        """Maps of some training images."""
        return [level[images] for level in self.training]


def data_arguments(description: str | None) -> argparse.ArgumentParser:
    """What every measurement of the arena is told."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, nargs="+", required=True, help="folders of data sets, MVTec's layout"
    )
    parser.add_argument("--only", nargs="+", help="names of some of the sets")
    parser.add_argument("--kept", type=Path, default=KEPT, help="folder that keeps features")
    parser.add_argument("--out", type=Path)
    return parser


def find_sets(folders: list[Path], only: list[str] | None) -> list[Path]:
    """The data sets of several folders, by name."""
    found = {each.name: each for folder in folders for each in categories(folder)}
    return [found[name] for name in only or sorted(found)]


def features_of(path: Path, kept: Path) -> SetFeatures:
    """Features of a data set, from the folder that keeps them or from its images."""
    file = kept / f"{path.name}.safetensors"
    if not file.exists():
        kept.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        save_file(_extracted(path), part)
        part.replace(file)
    tensors = load_file(file)
    count = sum(name.startswith("training.") for name in tensors)
    training, test = (
        [tensors[f"{split}.{number}"] for number in range(count)] for split in ("training", "test")
    )
    return SetFeatures(path.name, training, test, tensors["labels"])


def images_of(path: Path) -> tuple[Plan, dict[str, Pixels]]:
    """How the default reads a data set, and its training and test images, brought to that size."""
    dataset = read_dataset(path)
    splits = {"training": as_source(dataset.train), "test": as_source(dataset.test)}
    plan = make_plan(Parameters(fit_to="resize"), splits["training"])
    assert any(isinstance(each, PositionSettings) for each in plan.settings)
    return plan, {
        split: decode(source, plan.geometry, strict=True, progress=Progress()).pixels
        for split, source in splits.items()
    }


@torch.no_grad()
def _extracted(path: Path) -> dict[str, Tensor]:
    plan, images = images_of(path)
    tensors = {"labels": torch.tensor([sample.label for sample in read_dataset(path).test])}
    for split, pixels in images.items():
        backbone = make_backbone(plan, pixels, None, Controls(Progress(), lambda: False, None))
        assert backbone is not None
        batches = [
            [level.half() for level in backbone(pixels[some]).maps]
            for some in torch.arange(len(pixels)).split(AT_ONCE)
        ]
        for number, level in enumerate(zip(*batches, strict=True)):
            tensors[f"{split}.{number}"] = torch.cat(level)
    return tensors
