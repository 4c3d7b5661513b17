"""Equations 13 to 16: sums taken as means."""

import torch

from igd.method.scoring import image_score, localisation_map, scale_score, worst_patch


def test_scales_count_alike() -> None:
    torch.testing.assert_close(
        image_score([torch.tensor([0.2]), torch.tensor([0.6])]), torch.tensor([0.4])
    )


def test_terms_in_the_unit_interval_make_scores_there() -> None:
    terms = list(torch.rand(2, 100))
    score = scale_score(terms, [0.1, 0.9])
    assert 0 <= score.min() <= score.max() <= 1
    torch.testing.assert_close(score, 0.1 * terms[0] + 0.9 * terms[1])


def test_the_worst_patch_is_worst_in_the_sum_not_in_a_term() -> None:
    reconstruction, anomaly = torch.tensor([[0.9, 0.6, 0.0]]), torch.tensor([[0.0, 0.6, 0.9]])
    score, patch = worst_patch([reconstruction, anomaly], [0.5, 0.5])
    assert patch.tolist() == [1]
    torch.testing.assert_close(score, torch.tensor([0.6]))


def test_a_defect_in_one_patch_is_not_diluted() -> None:
    errors = torch.zeros(1, 225)
    errors[0, 17] = 1
    assert worst_patch([errors], [1.0])[0].item() == 1


def test_maps_are_averaged_pixel_by_pixel_by_their_weights() -> None:
    maps = list(torch.rand(3, 2, 4, 4))
    torch.testing.assert_close(localisation_map(maps, [1.0] * 3), torch.stack(maps).mean(dim=0))
    weighted = (2 * maps[0] + maps[1] + maps[2]) / 4
    torch.testing.assert_close(localisation_map(maps, [2.0, 1.0, 1.0]), weighted)
