"""Images that a model file keeps, so that whatever is made of the model can be tried on them."""

from __future__ import annotations

from torch import Tensor

from igd.data.image_set import ImageSet
from igd.data.tile_set import TileSet

EXAMPLES = 8


def examples_of(images: ImageSet, numbers: Tensor) -> tuple[Tensor, Tensor | None]:
    """Some of these images at the model's size or, of those in tiles, a tile of each and its
    place.
    """
    chosen = numbers[:EXAMPLES]
    if not isinstance(images, TileSet):
        return images.pixels[chosen], None
    rows = chosen * images.each
    return images.pixels[rows], images.places[rows]
