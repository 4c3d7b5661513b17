"""SSIM and MS-SSIM: identity, symmetry, gradient, agreement with an independent implementation."""

import pytest
import torch
from pytorch_msssim import ms_ssim as reference_ms_ssim
from pytorch_msssim import ssim as reference_ssim

from igd.method.similarity import PATCH, WHOLE_IMAGE, Similarity, ms_ssim, ms_ssim_and_map, ssim

SETTINGS = [(WHOLE_IMAGE, 192), (PATCH, 48)]


def pair(side: int, noise: float = 0.3, channels: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    image = torch.rand(3, channels, side, side) * 4.7579
    return image, image + noise * torch.randn_like(image)


def ms_ssim_map(
    image: torch.Tensor, other: torch.Tensor, setting: Similarity, **settings: bool
) -> torch.Tensor:
    return ms_ssim_and_map(image, other, setting, **settings)[1]


@pytest.mark.parametrize(("setting", "side"), SETTINGS)
@pytest.mark.parametrize("noise", [0.05, 0.5, 3.0])
def test_agrees_with_pytorch_msssim(setting: Similarity, side: int, noise: float) -> None:
    image, other = pair(side, noise)
    given = {"data_range": setting.data_range, "win_size": setting.window, "size_average": False}
    expected = reference_ms_ssim(image, other, weights=list(setting.weights), **given)
    torch.testing.assert_close(ms_ssim(image, other, setting), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        ssim(image, other, setting), reference_ssim(image, other, **given), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize(("setting", "side"), SETTINGS)
@pytest.mark.parametrize("similarity", [ssim, ms_ssim, ms_ssim_map])
def test_identical_images_have_similarity_one(similarity, setting: Similarity, side: int) -> None:
    image, _ = pair(side)
    result = similarity(image, image, setting)
    assert torch.equal(result, torch.ones_like(result))


@pytest.mark.parametrize("similarity", [ssim, ms_ssim, ms_ssim_map])
def test_is_symmetric(similarity) -> None:
    image, other = pair(32)
    torch.testing.assert_close(
        similarity(image, other, PATCH), similarity(other, image, PATCH), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("similarity", [ssim, ms_ssim])
def test_gradient(similarity) -> None:
    setting = Similarity(window=3, weights=(0.4, 0.6))
    image, other = (tensor[:1, :1, :8, :8].double() for tensor in pair(16, noise=0.2))
    other.requires_grad_()
    assert torch.autograd.gradcheck(lambda o: similarity(image, o, setting), (other,))


def test_negative_contrast_gives_no_nan() -> None:
    image, _ = pair(32)
    other = (-image).requires_grad_()
    similarity = ms_ssim(image, other, PATCH)
    similarity.sum().backward()
    assert similarity.isfinite().all()
    assert other.grad.isfinite().all()
    assert (similarity < 0.1).all()


@pytest.mark.parametrize("product", [True, False])
def test_map_has_the_size_of_the_image_and_points_at_the_difference(product: bool) -> None:
    image = torch.rand(1, 3, 48, 40)
    other = image.clone()
    other[:, :, 30:38, 8:16] = 4
    difference = 1 - ms_ssim_map(image, other, PATCH, product=product)
    assert difference.shape == (1, 48, 40)
    row, column = divmod(int(difference.argmax()), 40)
    assert 28 <= row < 40
    assert 6 <= column < 18
    assert difference[0, :8].max() < 0.2 * difference.max()


@pytest.mark.parametrize(("setting", "side"), SETTINGS)
def test_the_score_beside_a_map_is_the_score(setting: Similarity, side: int) -> None:
    image, other = pair(side)
    torch.testing.assert_close(
        ms_ssim_and_map(image, other, setting)[0], ms_ssim(image, other, setting)
    )


@pytest.mark.parametrize("setting", [WHOLE_IMAGE, PATCH])
def test_smallest_side_is_exact(setting: Similarity) -> None:
    smallest = setting.smallest_side
    assert smallest == (setting.window - 1) * 2 ** (len(setting.weights) - 1) + 1
    image = torch.rand(1, 1, smallest, smallest)
    assert ms_ssim(image, image, setting) == 1
    with pytest.raises(ValueError, match=f"at least {smallest}"):
        ms_ssim(image[..., 1:], image[..., 1:], setting)


def test_settings_are_the_papers() -> None:
    assert (WHOLE_IMAGE.window, WHOLE_IMAGE.weights) == (
        11,
        (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    )
    assert (PATCH.window, PATCH.weights) == (3, (0.0516, 0.3295, 0.3463, 0.2726))
    assert (PATCH.data_range, PATCH.k1, PATCH.k2) == (4.7579, 0.01, 0.03)
