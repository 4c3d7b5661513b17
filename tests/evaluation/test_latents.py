"""Latents on a plane: of which patch, reproducible, and only where they mean something."""

from dataclasses import replace

import numpy as np
import torch
from conftest import spotted, stripes

from igd import IGD
from igd.data.sample import Sample
from igd.evaluation.latents import POINTS, latent_planes, plane
from igd.method.gaussian import squared_distance


def samples(count: int) -> list[Sample]:
    images = np.concatenate(
        [stripes(count // 2, seed=4), spotted(stripes(count - count // 2, seed=5))]
    )
    return [Sample(str(number), image) for number, image in enumerate(images)]


def test_of_patches_the_furthest_counts(fitted_large: IGD) -> None:
    local = fitted_large.fitted_.scales[1]
    pixels = (
        torch.from_numpy(stripes(2, side=192, seed=8, colour=True)).permute(0, 3, 1, 2).contiguous()
    )
    assert local.descriptor is not None
    for image, latent in zip(pixels, local.latents(pixels, None), strict=True):
        patches = local.samples(image[None])
        with torch.no_grad():
            each = local.autoencoder(patches[torch.arange(len(patches))], decode=False).latent
        expected = each[squared_distance(each, local.descriptor.mean).argmax()]
        torch.testing.assert_close(latent, expected, rtol=1e-4, atol=1e-5)


def test_a_plane_for_each_scale_the_same_for_the_same_seed(fitted: IGD) -> None:
    shown, planes = latent_planes(fitted, samples(20))
    again = latent_planes(fitted, samples(20))[1]
    assert planes.keys() == {"global"}
    assert planes["global"].shape == (len(shown), 2) == (20, 2)
    np.testing.assert_array_equal(planes["global"], again["global"])


def test_groups_stay_groups() -> None:
    rng = np.random.default_rng(0)
    placed = plane(np.concatenate([rng.normal(size=(40, 16)), rng.normal(size=(40, 16)) + 10]))
    one, other = placed[:40], placed[40:]
    spread = max(np.linalg.norm(group - group.mean(axis=0), axis=1).max() for group in (one, other))
    assert np.linalg.norm(one.mean(axis=0) - other.mean(axis=0)) > spread


def test_few_images_have_no_plane_and_many_are_a_sample(fitted: IGD) -> None:
    assert latent_planes(fitted, samples(8))[1] == {}
    many = [
        replace(each, identifier=f"{rotation} {each.identifier}")
        for rotation in range(26)
        for each in samples(20)
    ]
    shown, planes = latent_planes(fitted, many)
    assert len({sample.identifier for sample in shown}) == POINTS == len(planes["global"])
