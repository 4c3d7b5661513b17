"""Images as the networks read them: normalised, cut into patches; and maps of patches laid over the
image.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from igd.data.store import Pixels, take
from igd.ops.filters import halve

# ImageNet's, as MS-SSIM's pixel range assumes.
RGB_MEAN, RGB_STD = (
    (0.485, 0.456, 0.406),
    (0.229, 0.224, 0.225),
)
GREY_MEAN, GREY_STD = (0.449,), (0.226,)  # their means


def normalise(pixels: Tensor, downsampling: int = 0) -> Tensor:
    """8-bit pixels (b, c, h, w) as the float images the networks see, in the memory layout they are
    fastest in.

    Each halving makes them half as high and wide.
    """
    mean, std = (GREY_MEAN, GREY_STD) if pixels.shape[1] == 1 else (RGB_MEAN, RGB_STD)
    scale = torch.tensor(std).view(1, -1, 1, 1) * 255
    shift = torch.tensor(mean).view(1, -1, 1, 1) * 255
    image = (pixels.float() - shift) / scale
    for _ in range(downsampling):
        image = halve(image)
    return image.contiguous(memory_format=torch.channels_last)


class PatchSamples:
    """Every patch of every image as one long list of training samples, cut out only when asked for.

    With `side` equal to the image's, a 'patch' is the whole image: the global model is the case of
    one patch an image.
    """

    def __init__(self, pixels: Pixels, side: int, stride: int, downsampling: int = 0) -> None:
        self.pixels, self.side, self.stride, self.downsampling = pixels, side, stride, downsampling
        self.rows, self.columns = ((length - side) // stride + 1 for length in pixels.shape[2:])

    def __len__(self) -> int:
        return len(self.pixels) * self.rows * self.columns

    def __getitem__(self, indices: Tensor) -> Tensor:
        row = indices // self.columns % self.rows
        column = indices % self.columns
        # Only the images that the batch needs, each read once however many of its patches are in
        # it.
        numbers, image = (indices // (self.rows * self.columns)).unique(return_inverse=True)
        # A view.
        patches = (
            take(self.pixels, numbers)
            .unfold(2, self.side, self.stride)
            .unfold(3, self.side, self.stride)
        )
        return normalise(patches[image, :, row, column], self.downsampling)


def all_patches(pixels: Tensor, side: int, stride: int, downsampling: int = 0) -> Tensor:
    """Every patch of 8-bit images (b, c, h, w), halved so many times: (b, rows, columns, c, side,
    side) / 2^downsampling.
    """
    patches = pixels.unfold(2, side, stride).unfold(3, side, stride).permute(0, 2, 3, 1, 4, 5)
    images: Tensor = normalise(patches.flatten(0, 2), downsampling).unflatten(0, patches.shape[:3])
    return images


def mirrored(pixels: Tensor, margin: int) -> Tensor:
    """Images (b, c, h, w) with a margin of their own mirror image around them."""
    for dim in (2, 3):
        length = pixels.shape[dim]
        inside = torch.arange(-margin, length + margin).abs()
        pixels = pixels.index_select(dim, (length - 1) - ((length - 1) - inside).abs())
    return pixels


def lay_over(maps: Tensor, stride: int) -> Tensor:
    """Maps of an image's patches (b, rows, columns, side, side) as one map of the image, the mean
    where they overlap.
    """
    count, rows, columns, side, _ = maps.shape
    if stride == side or rows == columns == 1:  # none overlaps another
        return maps.transpose(2, 3).reshape(count, rows * side, columns * side)
    size = (side + stride * (rows - 1), side + stride * (columns - 1))
    stacked = maps.permute(0, 3, 4, 1, 2).reshape(count, side * side, rows * columns)
    total = F.fold(stacked, size, side, stride=stride)
    times = F.fold(torch.ones_like(stacked[:1]), size, side, stride=stride)
    return (total / times)[:, 0]


def cut_patches(pixels: Pixels, side: int, seed: int, most: int = 20_000) -> Tensor:
    """Random patches of images, 8-bit (n, c, side, side): as many as there are places half a patch
    apart, `most` at most.
    """
    rng = torch.Generator().manual_seed(seed)
    height, width = pixels.shape[2:]
    count = min(most, len(pixels) * max(1, 2 * height // side - 1) * max(1, 2 * width // side - 1))
    numbers = torch.randint(len(pixels), (count,), generator=rng).sort().values
    rows = torch.randint(height - side + 1, (count,), generator=rng).tolist()
    columns = torch.randint(width - side + 1, (count,), generator=rng).tolist()
    patches = torch.empty(count, pixels.shape[1], side, side, dtype=torch.uint8)
    for place, (number, row, column) in enumerate(
        zip(numbers.split(1), rows, columns, strict=True)
    ):
        patches[place] = take(pixels, number)[0, :, row : row + side, column : column + side]
    return patches
