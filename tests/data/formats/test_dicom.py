"""DICOM files through their windows."""

import sys
from pathlib import Path

import numpy as np
import pytest

from igd.data.decoding import PAGES, UnreadableImage, find_images, read_image
from igd.data.formats.dicom import read_dicom
from igd.data.sources import as_source
from igd.errors import UserError

VALUES = np.arange(-1024, 1024, 2, dtype=np.int16).reshape(32, 32)  # Hounsfield units


def write_dicom(path: Path, values: np.ndarray = VALUES, **changes: object) -> Path:
    pydicom = pytest.importorskip("pydicom", reason="DICOM needs the extra 'dicom'")
    stored = (values + 1024).astype(np.uint16)
    dataset = pydicom.Dataset()
    dataset.SOPClassUID = pydicom.uid.CTImageStorage
    dataset.SOPInstanceUID = pydicom.uid.generate_uid()
    dataset.Rows, dataset.Columns = values.shape[-2:]
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 16, 12, 11
    dataset.PixelRepresentation = 0
    dataset.RescaleSlope, dataset.RescaleIntercept = 1, -1024
    dataset.PixelData = stored.tobytes()
    for name, value in changes.items():
        setattr(dataset, name, value)
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    dataset.save_as(path, enforce_file_format=True)
    return path


def grey(path: Path, **named: object) -> np.ndarray:
    image = read_dicom(path, **named)
    assert image.mode == "RGB"
    return np.asarray(image)[..., 0].astype(float)


def test_the_files_own_window_decides(tmp_path: Path) -> None:
    window = {"WindowCenter": [40, 300], "WindowWidth": [400, 1500]}
    path = write_dicom(tmp_path / "scan.dcm", **window)
    expected = 255 * np.clip((VALUES - (40 - 0.5 - 399 / 2)) / 399, 0, 1)
    np.testing.assert_allclose(grey(path), expected, atol=0.51)
    np.testing.assert_array_equal(np.asarray(read_image(path))[..., 0], grey(path))
    wide = 255 * np.clip((VALUES - (0 - 0.5 - 1999 / 2)) / 1999, 0, 1)
    np.testing.assert_allclose(grey(path, window=(0, 2000)), wide, atol=0.51)


def test_without_a_window_it_is_the_range_of_the_bits_not_of_the_pixels(tmp_path: Path) -> None:
    path = write_dicom(tmp_path / "scan.dcm")
    np.testing.assert_allclose(grey(path), 255 * (VALUES + 1024.0) / 4095, atol=0.51)


def test_the_lowest_value_may_be_white(tmp_path: Path) -> None:
    usual = grey(write_dicom(tmp_path / "a.dcm"))
    path = write_dicom(tmp_path / "b.dcm", PhotometricInterpretation="MONOCHROME1")
    np.testing.assert_allclose(grey(path), 255 - usual, atol=1)


def test_of_several_frames_the_first(tmp_path: Path) -> None:
    path = write_dicom(tmp_path / "a.dcm", np.stack([VALUES, VALUES[::-1]]), NumberOfFrames=2)
    np.testing.assert_array_equal(grey(path), grey(write_dicom(tmp_path / "b.dcm")))
    assert read_image(path).info[PAGES] == 2


def test_folders_of_scans_and_damaged_ones(tmp_path: Path) -> None:
    path = write_dicom(tmp_path / "scan.dcm")
    assert find_images(tmp_path) == [path]
    assert as_source(tmp_path).read(0).size == (32, 32)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(UnreadableImage, match=r"scan\.dcm: can't be decoded as DICOM"):
        read_image(path)
    path.write_text("nothing")
    with pytest.raises(UnreadableImage, match=r"scan\.dcm: can't be decoded as DICOM"):
        read_image(path)


def test_without_pydicom_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(UserError, match=r"pip install 'igd-anomaly\[dicom\]' brings it"):
        read_image(tmp_path / "scan.dcm")
