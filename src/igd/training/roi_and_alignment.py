"""Which part of images is read, where the part they show usually lies, and in which proportions:
known before any of them is brought to the model's size.
"""

from __future__ import annotations

from dataclasses import replace

from PIL import Image

from igd.data.alignment import REACH, Alignment, make_reference, small, small_size
from igd.data.decoding import UnreadableImage
from igd.data.geometry import Geometry
from igd.data.roi import Box, Roi, Size, same_aspect, scaled
from igd.data.roi_arguments import make_roi
from igd.data.sources import Source
from igd.errors import UserError
from igd.progress import Progress
from igd.training.parameters import Parameters

MOST = 60  # images that the reference is made of
SIZES_READ = 25  # images whose sizes tell the usual proportions
LEAST_AGREEMENT = 0.3  # of images with their reference, in the median


def aimed(
    geometry: Geometry, parameters: Parameters, source: Source, progress: Progress | None
) -> Geometry:
    """The geometry with the region of interest and the alignment that were asked for, in images of
    the size of the first.
    """
    if parameters.roi is None and not parameters.ignore and not parameters.align:
        return geometry
    frame, progress = first_readable(source).size, progress or Progress()
    roi = make_roi(parameters.roi, parameters.ignore, frame, progress)
    align = make_alignment(source, frame, roi, progress) if parameters.align else None
    return replace(geometry, roi=roi, align=align)


def make_alignment(source: Source, frame: Size, roi: Roi | None, progress: Progress) -> Alignment:
    """A reference of some of the images: of the region of interest and as much around it as it may
    be shifted, or of all.
    """
    window = _around(roi.box, frame) if roi else (0, 0, *frame)
    size, images = small_size(window), []
    numbers = range(0, len(source), max(1, len(source) // MOST))
    for number in progress.track(numbers, len(numbers), "finding the usual place"):
        image = readable(source, number)
        if image and same_aspect(image.size, frame):
            images.append(small(image, scaled(window, frame, image.size), size))
    if not images:
        raise UserError(f"{source.described}: too few images can be read to align others with")
    reference, agreement = make_reference(images)
    if agreement < LEAST_AGREEMENT:
        raise UserError(
            f"{source.described}: align has no effect: the images have no layout in common that "
            f"they could be aligned by (their correlation with the mean image is {agreement:.2f}); "
            f"leave it out"
        )
    return Alignment.of(frame, window, reference)


def usual_size(source: Source, differ: bool) -> Size:
    """Width and height of the first image or, where sizes may differ, of the one whose proportions
    are in the middle of some.
    """
    first = first_readable(source).size
    if not differ:
        return first
    numbers = range(0, len(source), -(-len(source) // SIZES_READ))
    sizes = [image.size for image in (readable(source, number) for number in numbers) if image]
    return sorted(sizes or [first], key=lambda size: size[0] / size[1])[len(sizes) // 2]


def readable(source: Source, number: int) -> Image.Image | None:
    """An image; None if it can't be read: it is named when all images are read, as is one of
    another shape.
    """
    try:
        return source.read(number)
    except UnreadableImage:
        return None


def first_readable(source: Source) -> Image.Image:
    for number in range(len(source)):
        try:
            return source.read(number)
        except UnreadableImage as error:
            last = error
    raise UserError(
        f"{source.described}: none of the {len(source)} images can be read; the last: {last}"
    )


def _around(box: Box, frame: Size) -> Box:
    left, upper, right, lower = box
    margin = round(REACH * max(right - left, lower - upper))
    return (
        max(0, left - margin),
        max(0, upper - margin),
        min(frame[0], right + margin),
        min(frame[1], lower + margin),
    )
