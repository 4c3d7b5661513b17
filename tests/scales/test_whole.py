"""The whole image as one vector: what is in it counts, where it is does not."""

import pytest
import torch
import torch.nn.functional as F

from igd.backbones.features import Features
from igd.scales.scale_settings import WholeSettings
from igd.scales.whole import WholeScale

SETTINGS = WholeSettings(maps=(0, 1))


def maps(count: int, seed: int, shift: float = 0.0) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    fine = 1 + torch.rand(count, 6, 8, 8, generator=rng)
    fine[:, 0] += shift
    return [fine, 1 + torch.rand(count, 5, 4, 4, generator=rng)]


def learnt() -> WholeScale:
    scale = WholeScale(SETTINGS)
    scale.learn(Features([each.half() for each in maps(200, 0)], None), torch.Generator())
    return scale


def test_distances_of_normal_images_are_about_one_a_dimension() -> None:
    (distance,) = learnt().distances(Features(maps(100, 1), None))
    assert 0.8 < distance.mean() < 1.3


def test_more_of_something_everywhere_is_far() -> None:
    scale = learnt()
    (far,) = scale.distances(Features(maps(10, 2, shift=0.5), None))
    (near,) = scale.distances(Features(maps(10, 2), None))
    assert far.min() > 3 * near.max()


def test_where_it_is_does_not_matter() -> None:
    scale, images = learnt(), maps(4, 3)
    (distance,) = scale.distances(Features(images, None))
    (moved,) = scale.distances(Features([each.roll(2, dims=3) for each in images], None))
    torch.testing.assert_close(moved, distance, rtol=1e-3, atol=1e-4)


def test_it_has_no_map() -> None:
    output = learnt().output([torch.ones(3)], (32, 32))
    assert output.maps == output.map_weights == []


def test_few_images_do_not_make_it_singular() -> None:
    scale = WholeScale(SETTINGS)
    scale.learn(Features([each.half() for each in maps(3, 0)], None), torch.Generator())
    assert scale.distances(Features(maps(2, 1), None))[0].isfinite().all()


@pytest.mark.parametrize("positions", [1, 2, 400])
def test_deviations_are_those_of_torch(positions: int) -> None:
    maps = torch.rand(3, 5, positions, 1, generator=torch.Generator().manual_seed(0))
    scale = WholeScale(WholeSettings(maps=(0,)))
    found = scale.vectors(Features([maps], None))[:, 5:]
    expected = maps.flatten(2).std(dim=2, correction=min(1, positions - 1))
    torch.testing.assert_close(found, F.normalize(expected, dim=1))
