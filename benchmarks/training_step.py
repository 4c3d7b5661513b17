"""Training steps of the paper: ours against plain ones, at the same mathematics.

Plain is what the paper's equations suggest in PyTorch as it comes: encode and decode, and for the
critic encode and decode again; the library's 3x3 and 7x7 convolutions, also for MS-SSIM; memory
layout and Adam as they are by default. Activations in place and strides of 1x1 convolutions are as
in ours. Both start from the same weights; tests/ops/test_convolutions.py compares the layers, in
which alone their networks differ. With `--precision bf16-mixed` ours rounds what convolutions read:
that is other mathematics, for processors that multiply such numbers faster.

python benchmarks/training_step.py --out docs/results/training-step.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from conditions import conditions
from lightning_fabric import Fabric
from ratio import compare
from torch import Tensor, nn

from igd.files import write_text
from igd.method.em import train
from igd.method.gaussian import anomaly
from igd.method.interpolation import (
    critic_loss,
    fooling_loss,
    interpolate_images,
    interpolate_latents,
)
from igd.method.networks import AutoEncoder, Critic
from igd.method.objective import OBJECTIVES
from igd.method.schedule import Training
from igd.method.similarity import PATCH, SMALLEST, WHOLE_IMAGE, Similarity
from igd.method.training_state import Batch, TrainingState, start_training
from igd.ops.convolutions import Convolution3x3, EnlargingConvolution, Transposed3x3
from igd.scales.autoencoder import in_fast_layout
from igd.training.distributed import make_fabric

STEPS = 4


class Images:
    def __init__(self, count: int, side: int, layout: torch.memory_format) -> None:
        self.images, self.layout = torch.randn(count, 3, side, side), layout

    def __len__(self) -> int:
        return len(self.images)

    def encoder_input(self, indices: Tensor) -> Tensor:
        return self.images[indices].contiguous(memory_format=self.layout)

    def batch(self, indices: Tensor, mirrored: Tensor | None = None) -> Batch:
        images = self.encoder_input(indices)
        return Batch(images, images)


class Shape(NamedTuple):
    """What is trained on what."""

    side: int
    width: int
    batch: int
    setting: Similarity


SHAPES = {
    "32 x 32, width 64 as in the paper, batch 64": Shape(32, 64, 64, PATCH),
    "256 x 256, width 64 as in the paper, batch 4": Shape(256, 64, 4, WHOLE_IMAGE),
    "32 x 32, width 16, batch 64": Shape(32, 16, 64, PATCH),
    "256 x 256, width 16, batch 8": Shape(256, 16, 8, WHOLE_IMAGE),
}


def both(shape: Shape, precision: str = "32-true") -> tuple[Callable[[], None], Callable[[], None]]:
    """Steps of ours and plain ones, from the same weights."""
    side, width, batch, setting = shape
    training = Training(steps=STEPS, batch_size=batch)
    fast, usual = (
        Images(batch, side, layout) for layout in (torch.channels_last, torch.contiguous_format)
    )
    one, other = (
        fresh(side, width, fast, training, True),
        fresh(side, width, usual, training, False),
    )
    fabric = make_fabric("cpu", precision)
    return (
        partial(ours, one, fast, training, setting, fabric),
        partial(plain, other, usual, setting),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", choices=("32-true", "bf16-mixed"), default="32-true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ratios = {}
    print(
        f"{f'{STEPS} training steps of the paper':<52} {'ours':>12} {'plain':>12}   times as fast"
    )
    for name, shape in SHAPES.items():
        sides = both(shape, options.precision)
        ratios[name] = compare(name, *sides, rounds=options.rounds)
    summary = {
        "what": f"{STEPS} training steps of the paper, ours ({options.precision}) and plain ones "
        f"(32-true) in turn",
        "command": f"python benchmarks/training_step.py --rounds {options.rounds} "
        f"--precision {options.precision}",
        **conditions("paper", 0),
        "ratios": ratios,
    }
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


def fresh(side: int, width: int, samples: Images, training: Training, fast: bool) -> TrainingState:
    torch.manual_seed(0)
    autoencoder, critic = AutoEncoder(side, 3, width), Critic(side, 3, width)
    if fast:
        autoencoder, critic = in_fast_layout(autoencoder), in_fast_layout(critic)
    else:
        use_library_convolutions(autoencoder)
    state = start_training(autoencoder, critic, samples, training)
    if not fast:
        adam = partial(
            torch.optim.Adam, lr=training.learning_rate, weight_decay=training.weight_decay
        )
        state.optimizer = adam(autoencoder.parameters())
        state.critic_optimizer = adam(critic.parameters())
    return state


def use_library_convolutions(network: nn.Module) -> None:
    """In place of ours, with their parameters."""
    for part in list(network.modules()):
        for name, layer in part.named_children():
            if isinstance(layer, Convolution3x3):
                usual: nn.Module = nn.Conv2d(
                    layer.in_channels, layer.out_channels, 3, layer.stride[0], 1, bias=False
                )
            elif isinstance(layer, Transposed3x3):
                usual = nn.ConvTranspose2d(
                    layer.in_channels,
                    layer.out_channels,
                    3,
                    layer.stride[0],
                    1,
                    output_padding=layer.stride[0] - 1,
                    bias=False,
                )
            elif isinstance(layer, EnlargingConvolution):
                usual = nn.ConvTranspose2d(
                    layer.in_channels, layer.out_channels, 7, 2, 3, output_padding=1
                )
            else:
                continue
            usual.load_state_dict(layer.state_dict())
            if isinstance(layer, EnlargingConvolution):
                usual = nn.Sequential(nn.Upsample(scale_factor=2), usual)
            setattr(part, name, usual)


def ours(
    state: TrainingState, samples: Images, training: Training, setting: Similarity, fabric: Fabric
) -> None:
    state.step = 0
    train(state, samples, OBJECTIVES["igd"], setting, training, fabric)


def plain(state: TrainingState, samples: Images, setting: Similarity) -> None:
    """From the paper, line by line: an auto-encoder step, then a critic step that starts from the
    images again.
    """
    encoder, decoder, critic = state.autoencoder.encoder, state.autoencoder.decoder, state.critic
    for _ in range(STEPS + 1):  # as many E-steps as ours has
        with torch.no_grad():
            latent = encoder(samples.encoder_input(torch.arange(len(samples))))
            mean = latent.mean(dim=0)
            variance = (latent - mean).square().sum(dim=1).mean()
    for _ in range(STEPS):
        image = samples.encoder_input(torch.randperm(len(samples)))
        alpha, zeta = torch.rand(len(image)) / 2, torch.rand(len(image))

        latent = encoder(image)
        reconstruction = decoder(latent)
        predicted = critic(decoder(interpolate_latents(latent, alpha)))
        loss = (
            anomaly(latent, mean, variance).mean()
            + plain_error(image, reconstruction, setting).mean()
        )
        state.optimizer.zero_grad()
        (loss + 0.1 * fooling_loss(predicted).mean()).backward()
        state.optimizer.step()

        with torch.no_grad():
            latent = encoder(image)
            interpolation = decoder(interpolate_latents(latent, alpha))
            blended = interpolate_images(image, decoder(latent), zeta)
        state.critic_optimizer.zero_grad()
        critic_loss(critic(interpolation), alpha, critic(blended)).mean().backward()
        state.critic_optimizer.step()


def plain_error(image: Tensor, reconstruction: Tensor, setting: Similarity) -> Tensor:
    """l_r of eq. 12, MS-SSIM by depthwise convolutions."""
    offset = torch.arange(setting.window) - setting.window // 2
    window = torch.exp(-offset.square() / (2 * setting.sigma**2))
    kernel = (window[:, None] * window / window.sum() ** 2).expand(3, 1, -1, -1)
    blur = partial(F.conv2d, weight=kernel, groups=3)
    c1, c2 = ((k * setting.data_range) ** 2 for k in (setting.k1, setting.k2))
    one, other, similarity = image, reconstruction, torch.ones(len(image), 3)
    for scale, weight in enumerate(setting.weights):
        mean, other_mean = blur(one), blur(other)
        variance, other_variance = (
            blur(one * one) - mean * mean,
            blur(other * other) - other_mean * other_mean,
        )
        factor = (2 * (blur(one * other) - mean * other_mean) + c2) / (
            variance + other_variance + c2
        )
        if scale == len(setting.weights) - 1:
            factor = (
                factor * (2 * mean * other_mean + c1) / (mean * mean + other_mean * other_mean + c1)
            )
        similarity = similarity * factor.mean(dim=(2, 3)).clamp(min=SMALLEST) ** weight
        one, other = (
            F.avg_pool2d(each, 2, ceil_mode=True, count_include_pad=False) for each in (one, other)
        )
    absolute = (image - reconstruction).abs().mean(dim=(1, 2, 3)) / setting.data_range
    return 0.15 * absolute + 0.85 * (1 - similarity.mean(dim=1))


if __name__ == "__main__":
    main()
