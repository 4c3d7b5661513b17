"""A student that saw normal images only, beside its teacher: where they disagree is where an image
is not normal (Bergmann et al., 2020).

python benchmarks/disagreement.py --data MVTEC FIELD \\
    --out docs/results/disagreement.json

The teacher is the frozen backbone: its fine features, each block of unit length, pooled over 3x3
positions, white. The student is a small convolutional network that reads the images themselves, at
half the size that the backbone is shown, and learns to say at each position what the teacher says.
The map of an image is the squared difference, its score that of the largest positions. A fifth of
the training images is held out and scales the score, so that it can join the readings of the
default in their soft maximum. One run a set and seed; runs that are done are kept beside the
features.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from choice import parts_of
from conditions import conditions, publish
from feature_space import auroc, by_set, difference, held_out_and_learnt, together, white_patches
from hardship import CONDITIONS, kept_run
from set_features import data_arguments, features_of, find_sets, images_of
from torch import Tensor, nn

from igd.data.store import Pixels
from igd.files import write_text
from igd.ops.filters import resize
from igd.progress import TerminalProgress
from igd.rng import generator
from igd.scales.autoencoder import in_fast_layout
from igd.scales.patch_features import log_peak

STEPS, BATCH, RATE = 300, 8, 1e-3
WIDTH = 32  # channels of the first layer; each of three layers halves the side and doubles them
CELL = 8  # pixels of what the student reads that become one position
TOP = 3


def student(features: int) -> nn.Module:
    """(b, 3, 8 rows, 8 columns) -> (b, features, rows, columns)."""
    layers: list[nn.Module] = []
    in_channels = 3
    for out_channels in (WIDTH, 2 * WIDTH, 4 * WIDTH):
        layers += [nn.Conv2d(in_channels, out_channels, 3, 2, 1), nn.BatchNorm2d(out_channels)]
        layers.append(nn.ReLU())
        in_channels = out_channels
    wide = 8 * WIDTH
    layers += [nn.Conv2d(in_channels, wide, 3, 1, 1), nn.BatchNorm2d(wide), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(wide, features, 3, 1, 1))


def as_read(pixels: Pixels, grid: tuple[int, int]) -> Tensor:
    """Images as the student reads them, standardised."""
    size = (CELL * grid[0], CELL * grid[1])
    batches = torch.arange(len(pixels)).split(64)
    small = torch.cat([resize(pixels[some].float(), size, "bicubic") for some in batches])
    return (small.expand(-1, 3, -1, -1) / 255 - 0.5) / 0.25


def trained(images: Tensor, said: Tensor, seed: int) -> nn.Module:
    """A student of what a teacher said, (n, rows, columns, d), of images."""
    torch.manual_seed(seed)
    network = in_fast_layout(student(said.shape[-1]))
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    rng = generator(seed, "student")
    for _ in range(STEPS):
        some = torch.randint(len(images), (BATCH,), generator=rng)
        batch = images[some].contiguous(memory_format=torch.channels_last)
        loss = F.mse_loss(network(batch).permute(0, 2, 3, 1), said[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    network.eval()
    return network


@torch.no_grad()
def disagreement(network: nn.Module, images: Tensor, said: Tensor) -> Tensor:
    """Of each image, by its positions of largest disagreement: (n,)."""
    found = [
        log_peak((network(image).permute(0, 2, 3, 1) - told).square().mean(dim=3), TOP)
        for image, told in zip(images.split(BATCH), said.split(BATCH), strict=True)
    ]
    return torch.cat(found)


def run(path: Path, kept: Path, seed: int) -> dict[str, Any]:
    """One set: the student alone, the default, and both together."""
    features = features_of(path, kept)
    held_out, learnt = held_out_and_learnt(len(features.training[0]), seed)
    training, test, scaling = white_patches(features, learnt, held_out)
    grid = (test.shape[1], test.shape[2])
    images = {split: as_read(pixels, grid) for split, pixels in images_of(path)[1].items()}
    started = time.process_time()
    network = trained(images["training"][learnt], training, seed)
    seconds = time.process_time() - started
    of_test = disagreement(network, images["test"], test)
    of_normal = disagreement(network, images["training"][held_out], scaling)
    default = parts_of(features, seed, kept)
    return {
        "cpu_seconds": round(seconds, 1),
        "alone": auroc(features, of_test),
        "default": auroc(features, together(default)),
        "fused": auroc(features, together(default, (of_normal, of_test))),
    }


def main() -> None:
    parser = data_arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    paths, runs = find_sets(options.data, options.only), []
    asked = [(path, seed) for seed in options.seeds for path in paths]
    for path, seed in TerminalProgress().track(asked, len(asked), "training students"):
        file = kept_run(options.kept, path.name, "student", seed, CONDITIONS[0])
        if not file.exists():
            write_text(file, json.dumps(run(path, options.kept, seed)))
        runs.append({"set": path.name, "seed": seed, **json.loads(file.read_text())})
    figures = {name: by_set(runs, name) for name in ("alone", "default", "fused")}
    told: dict[str, Any] = {
        "what": f"A student of normal images beside its teacher, {len(paths)} data sets",
        "command": "python benchmarks/disagreement.py --data DIR ... --seeds "
        + " ".join(map(str, options.seeds)),
        **conditions("fast", options.seeds[0]),
        "disagreement": {
            "means": {
                name: round(float(np.mean(list(each.values()))), 4)
                for name, each in figures.items()
            },
            "fused - default": difference(figures["fused"], figures["default"]),
        },
        "runs": runs,
    }
    publish(told, options.out, "disagreement")


if __name__ == "__main__":
    main()
