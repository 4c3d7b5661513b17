"""The scale of models made before 0.2: it scores as it did."""

import torch

from igd.backbones.features import Features
from igd.scales.pixel import PixelScale, normalised_by_background
from igd.scales.position_moments import PositionMoments
from igd.scales.scale_settings import PixelSettings


def scale() -> PixelScale:
    made = PixelScale(PixelSettings(smoothing=1.0))
    for channels in (3, 4):
        moments = PositionMoments()
        moments.update(torch.randn(30, channels, 8, 8))
        made.descriptors.append(moments.describe(0.25, 0.03, 0.001))
    return made


def test_a_position_unlike_itself_is_the_peak() -> None:
    maps = [0.1 * torch.randn(1, 3, 4, 4), 0.1 * torch.randn(1, 4, 4, 4)]
    maps[0][0, :, 1, 2] = 20
    output = scale().forward(torch.zeros(1, 3, 32, 32), Features(maps, None))
    row, column = divmod(int(output.maps[0].argmax()), 32)
    assert 8 <= row < 16
    assert 16 <= column < 24
    assert output.parts[0] == output.maps[0].max()


def test_stored_and_restored_scores_the_same(tmp_path) -> None:
    one, other = scale(), PixelScale(PixelSettings(smoothing=1.0))
    other.restore(one.tensors(), tmp_path)
    features = Features([torch.randn(2, 3, 4, 4), torch.randn(2, 4, 4, 4)], None)
    pixels = torch.zeros(2, 3, 32, 32)
    assert torch.equal(
        one.forward(pixels, features).parts[0], other.forward(pixels, features).parts[0]
    )


def test_the_background_is_divided_away_as_far_as_asked() -> None:
    distance = torch.rand(2, 8, 8) + 1
    torch.testing.assert_close(
        normalised_by_background(9 * distance, 1.0), normalised_by_background(distance, 1.0)
    )
    assert torch.equal(normalised_by_background(distance, 0.0), distance)
