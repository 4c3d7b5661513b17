"""CIFAR-10's pickles: read to the pixel, and nothing in them is run."""

import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from igd.data.formats.cifar import TEST, TRAINING, read_batch
from igd.data.reading import read_dataset
from igd.errors import UserError

IMAGES = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
LABELS = [3, 8, 8, 0]


def as_published(images: np.ndarray, labels: list[int]) -> bytes:
    """A batch as Python 2 and the numpy of 2009 pickled it, opcode by opcode: its texts are byte
    strings.
    """
    values = images.transpose(0, 3, 1, 2).tobytes()
    return b"".join(
        [
            b"\x80\x02}(U\x04data",
            b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR",
            b"(K\x01",
            b"K" + bytes([len(images)]) + b"M\x00\x0c\x86",  # the shape: (n, 3072)
            b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb",
            b"\x89T" + struct.pack("<I", len(values)) + values + b"tb",
            b"U\x06labels](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e",
            b"u.",
        ]
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (*TRAINING, TEST):
        (tmp_path / name).write_bytes(as_published(IMAGES, LABELS))
    return tmp_path


def test_the_hand_made_batch_is_what_pickle_understands(folder: Path) -> None:
    batch = pickle.loads((folder / TEST).read_bytes(), encoding="bytes")  # noqa: S301
    np.testing.assert_array_equal(
        batch[b"data"].reshape(4, 3, 32, 32).transpose(0, 2, 3, 1), IMAGES
    )
    assert batch[b"labels"] == LABELS


def test_images_and_labels(folder: Path) -> None:
    dataset = read_dataset(folder)
    assert (len(dataset.train), len(dataset.test)) == (20, 4)
    assert dataset.classes == ("0", "3", "8")
    for sample, image, label in zip(dataset.test, IMAGES, LABELS, strict=True):
        np.testing.assert_array_equal(np.asarray(sample.read()), image)
        assert sample.kind == str(label)


def test_batches_pickled_by_python_3(folder: Path) -> None:
    data = IMAGES.transpose(0, 3, 1, 2).reshape(4, -1).copy()
    (folder / TEST).write_bytes(pickle.dumps({b"data": data, b"labels": LABELS}, protocol=4))
    images, labels = read_batch(folder / TEST)
    np.testing.assert_array_equal(images, IMAGES)
    assert labels.tolist() == LABELS


def test_the_folder_that_the_archive_unpacks_to(folder: Path) -> None:
    inside = folder / "cifar-10-batches-py"
    inside.mkdir()
    for path in [path for path in folder.iterdir() if path.is_file()]:
        path.rename(inside / path.name)
    assert len(read_dataset(folder).samples) == 24
    (inside / "data_batch_4").unlink()
    with pytest.raises(
        UserError, match="cifar-10-batches-py: data_batch_4 missing; unpack the whole archive"
    ):
        read_dataset(folder)


class Attack:
    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[object, ...]:
        return os.unlink, (str(self.victim),)


def test_a_pickle_that_calls_something_is_refused_and_nothing_is_called(folder: Path) -> None:
    victim = folder / "victim"
    victim.touch()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (folder / TEST).write_bytes(pickle.dumps({b"data": Attack(victim)}, protocol=protocol))
        with pytest.raises(
            UserError, match=r"test_batch: not a batch .*it asks for [\w.]+, .*may be an attack"
        ):
            read_dataset(folder)
        assert victim.exists()


@pytest.mark.parametrize(
    "call",
    [b"cbuiltins\neval\n(U\x011tR.", b"cnumpy\nload\n(U\x011tR.", b"cos\nsystem\n(U\x04truetR."],
)
def test_only_what_arrays_need_can_be_named(folder: Path, call: bytes) -> None:
    (folder / TEST).write_bytes(b"\x80\x02" + call)
    with pytest.raises(UserError, match="may be an attack"):
        read_batch(folder / TEST)


def test_cut_off_and_other_contents(folder: Path) -> None:
    whole = as_published(IMAGES, LABELS)
    objects = pickle.dumps({b"data": np.array([[None]]), b"labels": [1]}, protocol=4)
    wrong = whole.replace(b"M\x00\x0c\x86", b"M\x00\x0b\x86")
    for spoilt in (
        whole[:-100],
        b"",
        pickle.dumps([1, 2]),
        pickle.dumps({b"data": 3}),
        objects,
        wrong,
    ):
        (folder / TEST).write_bytes(spoilt)
        with pytest.raises(
            UserError, match=r"test_batch: not a batch of CIFAR-10, or damaged .*download it again"
        ):
            read_dataset(folder)
