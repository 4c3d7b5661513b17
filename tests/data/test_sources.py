"""What people have, and what is wrong with it."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from igd.data.geometry import Geometry
from igd.data.sources import as_source, check_one_size, decode, labelled_samples, training_folder
from igd.errors import UserError
from igd.progress import Progress

IMAGES = np.random.default_rng(0).integers(0, 255, (4, 20, 30, 3), dtype=np.uint8)


def write(folder: Path, images: np.ndarray = IMAGES) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number}.png")
    return folder


def test_folder_list_and_array_give_the_same_pixels(tmp_path: Path) -> None:
    folder = write(tmp_path / "good")
    given = [folder, str(folder), sorted(folder.iterdir()), IMAGES, list(IMAGES), IMAGES / 255.0]
    decoded = [decode(as_source(each), Geometry(32), progress=Progress()) for each in given]
    for images in decoded:
        assert images.pixels.shape == (4, 3, 32, 32)
        assert images.sizes == [(30, 20)] * 4
        assert (images.pixels == decoded[0].pixels).all()


def test_grey_arrays_have_one_channel() -> None:
    images = decode(as_source(IMAGES[..., 0]), Geometry(32), progress=Progress())
    assert images.pixels.shape == (4, 1, 32, 32)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (np.zeros((4, 9)), "reshape your data"),
        (np.zeros((4, 9, 9, 5)), "is not"),
        (np.full((4, 9, 9), 300.0), "between 0 and 1"),
        (np.full((4, 9, 9), np.nan), "NaN"),
        (np.zeros((4, 9, 9), dtype=np.int64), "ambiguous"),
        ([np.zeros((9, 9)), np.zeros((9, 9, 3))], "grey and colour"),
        (42, "give a folder"),
    ],
)
def test_arrays_that_are_not_images(wrong, says: str) -> None:
    with pytest.raises(UserError, match=says):
        decode(as_source(wrong), Geometry(32), progress=Progress())


def test_an_unreadable_image_is_left_out_or_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "good")
    (folder / "1.png").write_bytes((folder / "1.png").read_bytes()[:200])
    images = decode(as_source(folder), Geometry(32), progress=Progress())
    assert [Path(name).name for name in images.names] == ["0.png", "2.png", "3.png"]
    assert "1.png" in images.skipped[0]
    with pytest.raises(UserError, match=r"1\.png"):
        decode(as_source(folder), Geometry(32), strict=True, progress=Progress())


def test_different_sizes_are_named() -> None:
    source = as_source([IMAGES[0], IMAGES[1], IMAGES[2, :10]])
    with pytest.raises(UserError, match=r"2 are 30x20, but 2 is 30x10.*letterbox"):
        check_one_size(decode(source, Geometry(32), progress=Progress()), source)


def test_mvtec_layout(tmp_path: Path) -> None:
    write(tmp_path / "train" / "good")
    assert training_folder(tmp_path) == tmp_path / "train" / "good"
    with pytest.raises(UserError, match=r"looked for .*good"):
        labelled_samples(tmp_path)
    write(tmp_path / "test" / "good")
    with pytest.raises(UserError, match="AUC needs both"):
        labelled_samples(tmp_path)
    write(tmp_path / "test" / "dent")
    write(tmp_path / "ground_truth" / "dent", IMAGES[:1])
    (tmp_path / "ground_truth" / "dent" / "0.png").rename(tmp_path / "ground_truth" / "dent" / "0_mask.png")
    samples = labelled_samples(tmp_path)
    assert [(sample.kind, sample.label, sample.mask is not None) for sample in samples] == (
        [("dent", 1, True)] + [("dent", 1, False)] * 3 + [("good", 0, False)] * 4
    )
    assert samples[0].read_mask((30, 20)).shape == (20, 30)
    with pytest.raises(UserError, match="must be of one size"):
        samples[0].read_mask((31, 20))


def test_masks_of_zeros_and_ones_and_folders_without_test(tmp_path: Path) -> None:
    for kind in ("good", "dent"):
        write(tmp_path / kind)
    masks = write(tmp_path / "ground_truth" / "dent", np.ones((4, 20, 30), dtype=np.uint8))
    for path in list(masks.iterdir()):
        path.rename(path.with_name(f"{path.stem}_mask.png"))
    samples = labelled_samples(tmp_path)
    assert {sample.kind for sample in samples} == {"good", "dent"}
    assert samples[0].mask is not None
    assert samples[0].read_mask((30, 20)).all()
    Image.fromarray(np.zeros((20, 30), dtype=np.uint8)).save(samples[0].mask)
    with pytest.raises(UserError, match="marks no pixel"):
        samples[0].read_mask((30, 20))
