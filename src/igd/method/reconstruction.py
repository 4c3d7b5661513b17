"""How far a reconstruction is from its image: MAE + MS-SSIM (eqs. 12 and 17), or the ablation's
plain MSE.

Decided here, where the paper writes sums: both parts are means and the absolute error is divided by
the pixel range, so that every value lives in [0, 1].
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from igd.method.similarity import Similarity, ms_ssim, ms_ssim_and_map

ErrorKind = Literal["ms-ssim+mae", "mse"]


def reconstruction_error(
    image: Tensor,
    reconstruction: Tensor,
    setting: Similarity,
    *,
    kind: ErrorKind = "ms-ssim+mae",
    rho: float = 0.15,
) -> Tensor:
    """Loss and score of each image, l_r = rho MAE + (1 - rho)(1 - MS-SSIM): eq. 12, (b, c, h, w) ->
    (b,).
    """
    error = (image - reconstruction) / setting.data_range
    if kind == "mse":
        return error.square().mean(dim=(1, 2, 3))
    dissimilarity = 1 - ms_ssim(image, reconstruction, setting)
    return rho * error.abs().mean(dim=(1, 2, 3)) + (1 - rho) * dissimilarity


def reconstruction_error_and_map(
    image: Tensor,
    reconstruction: Tensor,
    setting: Similarity,
    *,
    kind: ErrorKind = "ms-ssim+mae",
    rho: float = 0.15,
    product: bool = True,
) -> tuple[Tensor, Tensor]:
    """`reconstruction_error`, and the same at each pixel, mean over channels: eqs. 12 and 17, (b,)
    and (b, h, w).
    """
    error = (image - reconstruction) / setting.data_range
    if kind == "mse":
        anomaly_map = error.square().mean(dim=1)
        return anomaly_map.mean(dim=(1, 2)), anomaly_map
    absolute = error.abs().mean(dim=1)
    similarity, around = ms_ssim_and_map(image, reconstruction, setting, product=product)
    return rho * absolute.mean(dim=(1, 2)) + (1 - rho) * (1 - similarity), rho * absolute + (
        1 - rho
    ) * (1 - around)
