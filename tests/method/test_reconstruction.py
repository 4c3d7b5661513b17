"""MAE + MS-SSIM: range, zero, agreement with its formula, and errors that can't cancel."""

import torch

from igd.method.reconstruction import reconstruction_error, reconstruction_error_and_map
from igd.method.similarity import PATCH, Similarity, ms_ssim


def pair() -> tuple[torch.Tensor, torch.Tensor]:
    image = torch.randn(4, 3, 32, 32)
    return image, image + torch.randn_like(image)


def error_map(*images: torch.Tensor | Similarity, **settings: str | float) -> torch.Tensor:
    return reconstruction_error_and_map(*images, **settings)[1]


def test_is_zero_for_a_perfect_reconstruction() -> None:
    image, _ = pair()
    assert torch.equal(reconstruction_error(image, image, PATCH), torch.zeros(4))
    assert torch.equal(error_map(image, image, PATCH), torch.zeros(4, 32, 32))


def test_is_the_formula() -> None:
    image, other = pair()
    mae = (image - other).abs().mean(dim=(1, 2, 3)) / 4.7579
    expected = 0.15 * mae + 0.85 * (1 - ms_ssim(image, other, PATCH))
    torch.testing.assert_close(reconstruction_error(image, other, PATCH), expected)


def test_the_error_beside_a_map_is_the_error() -> None:
    image, other = pair()
    for kind in ("ms-ssim+mae", "mse"):
        error, _ = reconstruction_error_and_map(image, other, PATCH, kind=kind)
        torch.testing.assert_close(error, reconstruction_error(image, other, PATCH, kind=kind))


def test_lives_between_zero_and_one_for_images_in_range() -> None:
    black, white = torch.full((1, 3, 32, 32), -2.1179), torch.full((1, 3, 32, 32), 2.64)
    for error in (reconstruction_error(black, white, PATCH), error_map(black, white, PATCH)):
        assert error.min() > 0.1
        assert error.max() <= 1


def test_opposite_errors_do_not_cancel() -> None:
    image = torch.zeros(1, 1, 32, 32)
    other = image.clone()
    other[..., ::2], other[..., 1::2] = 1, -1
    assert reconstruction_error(image, other, PATCH, rho=1.0) > 0.2
    assert (error_map(image, other, PATCH, rho=1.0) > 0.2).all()


def test_mse_is_a_setting() -> None:
    image, other = pair()
    expected = ((image - other) / 4.7579).square()
    torch.testing.assert_close(
        reconstruction_error(image, other, PATCH, kind="mse"), expected.mean(dim=(1, 2, 3))
    )
    torch.testing.assert_close(error_map(image, other, PATCH, kind="mse"), expected.mean(dim=1))
