"""One M-step of the paper: ours against a plain one that encodes and decodes again for the critic.

python benchmarks/training_step.py
"""

from __future__ import annotations

from functools import partial

import torch
from lightning_fabric import Fabric
from ratio import compare
from torch import Tensor

from igd.method.em import Training, TrainingState, start_training, train
from igd.method.gaussian import anomaly
from igd.method.interpolation import critic_loss, fooling_loss, interpolate_images, interpolate_latents
from igd.method.networks import AutoEncoder, Critic
from igd.method.objective import OBJECTIVES
from igd.method.reconstruction import reconstruction_error
from igd.method.similarity import PATCH, WHOLE_IMAGE, Similarity
from igd.scale import in_fast_layout

STEPS = 2


class Images:
    def __init__(self, count: int, side: int) -> None:
        self.images = torch.randn(count, 3, side, side)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, indices: Tensor) -> Tensor:
        return self.images[indices].contiguous(memory_format=torch.channels_last)

    def seen(self, indices: Tensor, mirrored: Tensor | None = None) -> None:
        return None


def main() -> None:
    print(f"{f'{STEPS} training steps of the paper':<52} {'ours':>12} {'plain':>12}   faster")
    for name, side, width, batch, setting in (
        ("32 x 32, width 16, batch 64", 32, 16, 64, PATCH),
        ("32 x 32, width 64 (the paper's), batch 16", 32, 64, 16, PATCH),
        ("256 x 256, width 16, batch 4", 256, 16, 4, WHOLE_IMAGE),
    ):
        samples, training = Images(batch, side), Training(steps=STEPS, batch_size=batch)
        states = [fresh(side, width, samples, training) for _ in range(2)]
        compare(
            name, partial(ours, states[0], samples, training, setting), partial(plain, states[1], samples, setting), rounds=5
        )


def fresh(side: int, width: int, samples: Images, training: Training) -> TrainingState:
    torch.manual_seed(0)
    autoencoder, critic = in_fast_layout(AutoEncoder(side, 3, width)), in_fast_layout(Critic(side, 3, width))
    return start_training(autoencoder, critic, samples, training)


def ours(state: TrainingState, samples: Images, training: Training, setting: Similarity) -> None:
    state.step = 0
    train(state, samples, OBJECTIVES["igd"], setting, training, Fabric(accelerator="cpu", devices=1))


def plain(state: TrainingState, samples: Images, setting: Similarity) -> None:
    """From the paper, line by line: an auto-encoder step, then a critic step that starts from the images again."""
    encoder, decoder, critic = state.autoencoder.encoder, state.autoencoder.decoder, state.critic
    for _ in range(STEPS + 1):  # as many E-steps as ours has
        with torch.no_grad():
            latent = encoder(samples[torch.arange(len(samples))])
            mean = latent.mean(dim=0)
            variance = (latent - mean).square().sum(dim=1).mean()
    for _ in range(STEPS):
        image = samples[torch.randperm(len(samples))]
        alpha, zeta = torch.rand(len(image)) / 2, torch.rand(len(image))

        latent = encoder(image)
        reconstruction = decoder(latent)
        predicted = critic(decoder(interpolate_latents(latent, alpha)))
        loss = anomaly(latent, mean, variance).mean() + reconstruction_error(image, reconstruction, setting).mean()
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


if __name__ == "__main__":
    main()
