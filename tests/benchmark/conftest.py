"""Small data sets in the shape of the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import write_digits


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(
        tmp_path_factory.mktemp("digits") / "mnist.npz", {0: 20, 1: 20}, {0: 10, 1: 10}
    )


@pytest.fixture(scope="session")
def categories(tmp_path_factory: pytest.TempPathFactory, category: Path) -> Path:
    folder = tmp_path_factory.mktemp("mvtec")
    (folder / "bottle").symlink_to(category)
    return folder
