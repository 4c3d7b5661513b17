"""What decoders would say on standard error is in the error that names the file."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from igd.data.decoding import UnreadableImage, read_image


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A TIFF whose compressed data make no sense to libtiff."""
    buffer, path = io.BytesIO(), tmp_path / "damaged.tif"
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(buffer, "TIFF", compression="tiff_lzw")
    contents = bytearray(buffer.getvalue())
    contents[200:900] = b"\xff" * 700
    path.write_bytes(contents)
    return path


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux alone tells where it is")
def test_libtiff_is_silent(damaged: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnreadableImage):
        read_image(damaged)
    assert capfd.readouterr().err == ""


def test_records_of_pillow_go_where_logging_was_configured() -> None:
    program = (
        "import logging, sys; import igd.data.decoding; log = logging.getLogger('PIL.Plugin')\n"
        "log.error('unseen'); logging.basicConfig(); log.error('seen')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stderr == "ERROR:PIL.Plugin:seen\n"
