"""Features of patches have unit length, as torch would make it, and are drawn from some images."""

import torch
import torch.nn.functional as F

from igd.scales.patch_features import drawn_patches, unit_features


def test_each_block_has_the_unit_length_that_torch_gives_it() -> None:
    rng = torch.Generator().manual_seed(0)
    maps = [torch.randn(2, channels, 4, 6, generator=rng) for channels in (3, 5)]
    maps[0][0, :, 1, 2] = 0  # nothing has no length
    expected = torch.cat([F.normalize(each, dim=1) for each in maps], dim=1)
    torch.testing.assert_close(unit_features(maps), expected)


def test_patches_are_drawn_from_the_images_asked_for() -> None:
    maps = [torch.arange(1, 7.0).view(6, 1, 1, 1).expand(6, 1, 4, 4).repeat(1, 2, 1, 1)]
    maps[0][:, 1] = 1
    wanted, rng = torch.tensor([1, 4]), torch.Generator().manual_seed(0)
    drawn = drawn_patches(maps, 100, rng, images=wanted)
    assert len(drawn) == 2 * 16
    ratios = (drawn[:, 0] / drawn[:, 1]).round()  # which image a patch is of
    assert set((ratios - 1).tolist()) == set(wanted.tolist())
