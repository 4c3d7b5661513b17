"""A shifted and turned image is brought back, and its map returns to where the part lies."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from PIL import Image

from igd.data.alignment import (
    REACH,
    Alignment,
    Pose,
    aligned,
    best_pose,
    brought_back,
    drawn_shift,
    forgotten,
    is_at_the_limit,
    make_reference,
    small,
    small_size,
)
from igd.data.geometry import Geometry
from igd.errors import UserError
from igd.inference.header import read_as

FRAME = (240, 180)
WHOLE = (0, 0, *FRAME)


def part(x: float = 0, y: float = 0, angle: float = 0, seed: int = 0) -> Image.Image:
    """A dark L on a light ground at a pose, with noise."""
    far = Image.new("L", (4 * FRAME[0], 4 * FRAME[1]), 200)
    middle = far.width // 2, far.height // 2
    far.paste(60, (middle[0] - 240, middle[1] - 120, middle[0] - 140, middle[1] + 160))
    far.paste(90, (middle[0] - 140, middle[1] + 60, middle[0] + 200, middle[1] + 160))
    turned = far.rotate(-angle, Image.Resampling.BILINEAR, fillcolor=200)
    shifted = Image.new("L", far.size, 200)
    shifted.paste(turned, (round(4 * x), round(4 * y)))
    pixels = np.asarray(shifted.resize(FRAME, Image.Resampling.BOX), dtype=float)
    noisy = pixels + np.random.default_rng(seed).normal(0, 3, pixels.shape)
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).convert("RGB")


@pytest.fixture(scope="module")
def alignment() -> Alignment:
    size = small_size(WHOLE)
    images = [small(part(seed=seed), WHOLE, size) for seed in range(6)]
    reference, agreement = make_reference(images)
    assert agreement > 0.95
    return Alignment.of(FRAME, WHOLE, reference)


@pytest.mark.parametrize(
    "pose", [(0, 0, 0), (12, -7, 0), (-20, 9, 0), (0, 0, 4), (0, 0, -3), (9, 11, -5), (-6, 4, 2)]
)
def test_a_pose_is_found_to_the_pixel(alignment: Alignment, pose: tuple[float, ...]) -> None:
    found = alignment.pose(part(*pose, seed=9))
    assert abs(found.x - pose[0]) < 1.2
    assert abs(found.y - pose[1]) < 1.2
    assert abs(found.angle - pose[2]) < 0.8
    back = np.asarray(aligned(part(*pose, seed=9), found), dtype=float)
    usual = np.asarray(part(), dtype=float)
    assert np.abs(back - usual)[25:-25, 25:-25].mean() < 6


def test_the_window_turns_about_its_own_middle() -> None:
    """Of a part far from the middle, in an image of twice the size."""
    area = (40, 40, 200, 175)
    images = [small(part(seed=seed), area, small_size(area)) for seed in range(6)]
    alignment = Alignment.of(FRAME, area, make_reference(images)[0])
    moved = part(5, -4, 3, seed=9).resize((480, 360))
    found = alignment.pose(moved)
    assert abs(found.x - 10) < 2.5
    assert abs(found.y + 8) < 2.5
    assert abs(found.angle - 3) < 0.8


def test_a_map_returns_to_the_part() -> None:
    pose = Pose(14, -9, 5)
    marked = np.zeros(FRAME[::-1], dtype=np.float32)
    marked[60:66, 150:156] = 1
    there = aligned(Image.fromarray(marked), pose)  # where the mark lies in the aligned image
    again = brought_back(np.asarray(there), pose)
    rows, columns = np.nonzero(again > again.max() / 2)
    assert abs(rows.mean() - 62.5) < 1
    assert abs(columns.mean() - 152.5) < 1
    assert brought_back(marked, Pose()) is marked


def test_geometry_aligns_and_returns(alignment: Alignment) -> None:
    geometry = Geometry(96, align=alignment)
    moved = part(16, 10, seed=3)
    pose = geometry.pose(moved)
    usual, found = (
        geometry.to_model(each, pose) for each, pose in ((part(seed=3), None), (moved, pose))
    )
    middle = slice(12, -12)
    difference = np.abs(usual[middle, middle].astype(float) - found[middle, middle])
    assert difference.mean() < 6
    mark = np.zeros((96, 96), dtype=np.float32)
    mark[48, 48] = 1
    row, column = np.unravel_index(
        int(geometry.to_original(mark, *FRAME, pose).argmax()), (180, 240)
    )
    assert abs(row - 90 - 10) <= 2
    assert abs(column - 120 - 16) <= 3
    assert Geometry(96).pose(moved) is None
    with pytest.raises(UserError, match=r"have another aspect ratio.*without --align"):
        geometry.check("a.png", (100, 100))


def test_noise_is_left_where_it_is() -> None:
    rng = np.random.default_rng(0)
    images = [rng.normal(128, 30, (96, 128)) for _ in range(8)]
    reference, agreement = make_reference(images)
    assert agreement < 0.3
    assert best_pose(rng.normal(128, 30, (96, 128)), reference)[0] == Pose()
    assert best_pose(np.full((96, 128), 7.0), np.full((96, 128), 7.0))[0] == Pose()


def test_what_a_shift_would_have_hidden_is_forgotten() -> None:
    image = part()
    for shift in ((5, -3), (-4, 0), (0, 7), (0, 0)):
        pixels, kept = np.asarray(image), np.asarray(forgotten(image, *shift))
        assert kept.shape == pixels.shape
        x, y = shift
        seen = (slice(max(0, y), 180 + min(0, y)), slice(max(0, x), 240 + min(0, x)))
        np.testing.assert_array_equal(kept[seen], pixels[seen])
    shifts = [drawn_shift(number, FRAME) for number in range(50)]
    assert shifts == [drawn_shift(number, FRAME) for number in range(50)]
    assert max(abs(each) for shift in shifts for each in shift) <= 12
    assert len(set(shifts)) > 30


def test_it_survives_a_header_and_nonsense_does_not(alignment: Alignment) -> None:
    geometry = Geometry(64, align=alignment)
    described = json.loads(json.dumps(asdict(geometry)))
    assert read_as(Geometry, described) == geometry
    for wrong in ({"size": [9, 9]}, {"area": [0, 0, 999, 5]}, {"reference": "!"}, {"size": [0, 0]}):
        with pytest.raises(ValueError, match=r"impossible|base64|Only|padding"):
            read_as(Alignment, {**described["align"], **wrong})


def test_what_is_too_far_is_told() -> None:
    assert is_at_the_limit(Pose(REACH * 240), FRAME)
    assert is_at_the_limit(Pose(angle=8.0), FRAME)
    assert not is_at_the_limit(Pose(10, 10, 5), FRAME)
