"""What people say of a region: boxes, files and arrays, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from conftest import Heard
from PIL import Image

from igd.data.roi import Roi
from igd.data.roi_arguments import described, make_roi
from igd.errors import UserError

FRAME = (60, 40)


def region(roi=None, ignore=None, heard: Heard | None = None) -> Roi:
    made = make_roi(roi, ignore, FRAME, heard or Heard())
    assert made is not None
    return made


def mask_file(path: Path, size: tuple[int, int] = FRAME) -> Path:
    image = Image.new("L", size)
    image.paste(255, (size[0] // 6, size[1] // 4, size[0] // 2, size[1]))
    image.save(path)
    return path


def test_one_region_said_in_five_ways(tmp_path: Path) -> None:
    path = mask_file(tmp_path / "mask.png")
    array = np.asarray(Image.open(path)) > 0
    said = ["10,10,20,30", " 10, 10, 20, 30", (10, 10, 20, 30), path, str(path), array]
    regions = {region(each) for each in said}
    assert regions == {Roi(FRAME, (10, 10, 30, 40))}
    assert make_roi(None, None, FRAME, Heard()) is None
    assert make_roi(None, [], FRAME, Heard()) is None


def test_what_is_ignored_is_taken_away_wherever_it_is(tmp_path: Path) -> None:
    path = mask_file(tmp_path / "mask.png")
    assert region("10,0,40,40", "10,0,40,10").box == (10, 10, 50, 40)
    inside = region(None, ["0,0,5,5", (50, 30, 10, 10), path])
    outside = inside.outside(FRAME)
    assert outside[:5, :5].all()
    assert outside[30:, 50:].all()
    assert outside[10:40, 10:30].all()
    assert outside.sum() == 25 + 100 + 600


def test_a_mask_of_another_scale_is_scaled_and_that_is_said(tmp_path: Path) -> None:
    heard = Heard()
    made = region(mask_file(tmp_path / "mask.png", (120, 80)), heard=heard)
    assert made == Roi(FRAME, (10, 10, 30, 40))
    assert "is 120x80 and is scaled to 60x40" in heard.messages[0]


@pytest.mark.parametrize(
    ("roi", "ignore", "says"),
    [
        ("10,10,60,10", None, r"roi: 10,10,60,10: reaches beyond the images, which are 60x40"),
        ("-1,0,10,10", None, "reaches beyond"),
        ("1,1,0,10", None, "width and height must be positive"),
        (None, "0,0,60,40", "nothing is left to read: ignore covers all of the image"),
        ("5,5,10,10", "0,0,30,30", "covers all of the region of interest"),
        ("nowhere.png", None, "roi: nowhere.png: no such file; give x,y,width,height"),
        ("1,2,3", None, "no such file; give x,y,width,height"),
        (7, None, "roi: 7 is neither a box nor a mask"),
        (np.zeros((40, 60)), None, "the mask marks no pixel"),
        (np.ones((40, 40)), None, "is 40x40, the images 60x40; make it of their size"),
        (np.ones((40, 60, 3)), None, r"shape \(40, 60, 3\)"),
    ],
)
def test_what_can_not_be_meant_is_refused(roi, ignore, says: str) -> None:
    with pytest.raises(UserError, match=says):
        region(roi, ignore)


def test_an_unreadable_mask_is_named(tmp_path: Path) -> None:
    (tmp_path / "mask.png").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"mask\.png: not an image"):
        region(tmp_path / "mask.png")


def test_a_model_file_holds_no_folders() -> None:
    assert described(None) is None
    assert described("/home/me/mask.png") == "mask.png"
    assert described(Path("a/b.png")) == "b.png"
    assert described((1, 2, 3, 4)) == described("1,2,3,4") == "1,2,3,4"
    assert described(["1,2,3,4", "a/b.png"]) == ["1,2,3,4", "b.png"]
    assert described(np.ones((2, 2))) == "array"
