"""The Gaussian at each position: moments against NumPy, distances against SciPy, and a planted
defect found.
"""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import mahalanobis as scipy_mahalanobis
from torch import Tensor

from igd.scales.position_moments import (
    PositionDescriptor,
    PositionMoments,
    in_cells,
    mahalanobis,
)

COUNT, SIZE, ROWS, COLUMNS = 60, 3, 4, 6
CELL = 2


@pytest.fixture
def features() -> Tensor:
    """Far from 0, where a naive sum of squares loses digits, with a mean and a spread of its own at
    each position.
    """
    mixed = torch.einsum(
        "bdrc,de->berc",
        torch.randn(COUNT, SIZE, ROWS, COLUMNS, dtype=torch.float64),
        torch.randn(3, 3).double(),
    )
    return 100 + 10 * torch.randn(SIZE, ROWS, COLUMNS) + mixed * (0.5 + torch.rand(ROWS, COLUMNS))


def moments_of(*batches: Tensor) -> PositionMoments:
    moments = PositionMoments()
    for batch in batches:
        moments.update(batch)
    return moments


def covariances(features: Tensor) -> np.ndarray:
    """NumPy's covariance of each cell, row by row, around each position's own mean."""
    values = features.double().numpy()
    centred = values - values.mean(axis=0)
    cells = []
    for row in range(0, ROWS, CELL):
        for column in range(0, COLUMNS, CELL):
            part = centred[:, :, row : row + CELL, column : column + CELL]
            vectors = part.transpose(0, 2, 3, 1).reshape(-1, SIZE)
            cells.append(np.cov(vectors.T, bias=True))  # its mean is 0 already
    return np.stack(cells)


@pytest.mark.parametrize("sizes", [[60], [1] * 60, [59, 1], [7, 30, 23]])
def test_moments_are_numpys_whatever_the_batches(features: Tensor, sizes: list[int]) -> None:
    moments = moments_of(*features.split(sizes))
    np.testing.assert_allclose(moments.mean, features.mean(dim=0), rtol=1e-10)
    np.testing.assert_allclose(
        moments.scatter / (COUNT * CELL**2), covariances(features), rtol=1e-6, atol=1e-9
    )


def test_single_precision_is_accumulated_in_double() -> None:
    features = 100 + torch.randn(500, SIZE, ROWS, COLUMNS)
    moments = moments_of(*features.split(1))
    assert moments.mean.dtype == moments.scatter.dtype == torch.float64
    np.testing.assert_allclose(moments.mean, features.double().mean(dim=0), rtol=1e-12)


def test_the_order_of_images_does_not_matter(features: Tensor) -> None:
    one, other = moments_of(*features.split(13)), moments_of(*features.flip(0).split(13))
    torch.testing.assert_close(one.mean, other.mean)
    torch.testing.assert_close(one.scatter, other.scatter)


def test_distance_is_scipys_with_the_same_ridge(features: Tensor) -> None:
    ridge = 0.05
    distance = mahalanobis(
        features.float(),
        moments_of(features).describe(neighbour_shrinkage=0, global_shrinkage=0, ridge=ridge),
    )
    covariance = covariances(features)
    least = ridge * np.trace(covariance.mean(axis=0)) / SIZE
    for image, row, column in [(0, 0, 0), (3, 1, 5), (59, 3, 2), (7, 2, 3)]:
        cell = row // CELL * (COLUMNS // CELL) + column // CELL
        expected = scipy_mahalanobis(
            features[image, :, row, column].numpy(),
            features.mean(dim=0)[:, row, column].numpy(),
            np.linalg.inv(covariance[cell] + least * np.eye(SIZE)),
        )
        assert distance[image, row, column].item() == pytest.approx(expected**2 / SIZE, rel=1e-3)


def test_covariances_borrow_from_neighbours_and_share_with_all(features: Tensor) -> None:
    covariance = covariances(features).reshape(ROWS // CELL, COLUMNS // CELL, SIZE, SIZE)
    descriptor = moments_of(features).describe(
        neighbour_shrinkage=0.5, global_shrinkage=0.1, ridge=0.01
    )
    everywhere = covariance.mean(axis=(0, 1))
    for row, column in [(0, 0), (1, 1)]:
        around = covariance[max(0, row - 1) : row + 2, max(0, column - 1) : column + 2].mean(
            axis=(0, 1)
        )
        mixed = 0.9 * (0.5 * covariance[row, column] + 0.5 * around) + 0.1 * everywhere
        expected = mixed + 0.01 * np.trace(everywhere) / SIZE * np.eye(SIZE)
        inverse = np.linalg.inv(
            descriptor.whitener[row * (COLUMNS // CELL) + column].double().numpy()
        )
        np.testing.assert_allclose(inverse @ inverse.T, expected, rtol=1e-3, atol=1e-4)


def test_normal_features_are_one_unit_away_on_average(features: Tensor) -> None:
    distance = mahalanobis(features.float(), moments_of(features).describe(0, 0, 1e-6))
    torch.testing.assert_close(distance.mean(), torch.tensor(1.0), rtol=1e-3, atol=0)


def test_no_feature_in_cells_is_lost_or_moved() -> None:
    features = torch.arange(2 * 3 * 4 * 6).view(2, 3, 4, 6)
    cells = in_cells(features, (CELL, CELL))
    assert cells.shape == (6, 2 * CELL**2, 3)
    back = cells.view(2, 3, 2, CELL, CELL, 3).permute(2, 5, 0, 3, 1, 4).reshape(features.shape)
    assert torch.equal(back, features)
    # The second cell of the first image's first feature.
    assert cells[1, : CELL**2, 0].tolist() == [
        2,
        3,
        8,
        9,
    ]


@pytest.mark.parametrize("place", [(0, 0), (1, 4), (3, 5), (2, 2)])
def test_a_planted_shift_peaks_at_its_position(features: Tensor, place: tuple[int, int]) -> None:
    descriptor = moments_of(features).describe(0.5, 0.1, 0.01)
    odd = features[:5].float()
    odd[:, :, place[0], place[1]] += 30
    peaks = mahalanobis(odd, descriptor).flatten(1).argmax(dim=1)
    assert peaks.tolist() == [place[0] * COLUMNS + place[1]] * 5


def test_of_white_features_it_is_the_mean_square() -> None:
    white = PositionDescriptor(
        torch.zeros(SIZE, ROWS, COLUMNS), torch.eye(SIZE).expand(6, SIZE, SIZE)
    )
    features = torch.randn(2, SIZE, ROWS, COLUMNS)
    torch.testing.assert_close(mahalanobis(features, white), features.square().mean(dim=1))


@pytest.mark.parametrize("count", [1, 12, 58])
def test_images_taken_out_again_are_as_if_never_seen(features: Tensor, count: int) -> None:
    left = moments_of(features).without(moments_of(features[:count]))
    direct = moments_of(features[count:])
    assert left.count == direct.count
    np.testing.assert_allclose(left.mean, direct.mean, rtol=1e-10)
    np.testing.assert_allclose(left.scatter, direct.scatter, rtol=1e-6, atol=1e-6)
