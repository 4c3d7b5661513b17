"""A checkpoint belongs to one run, and says what another differs in."""

from pathlib import Path

import pytest
import torch

from igd.errors import UserError
from igd.files.checkpoint_file import FORMAT, KIND, Checkpoint
from igd.files.tensors import write_tensors


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ({"made_by": "0.1", "parameters": {"seed": 0}}, r"other images; give"),
        ({"made_by": "0.1", "parameters": {"seed": 1}}, r"other settings \(seed was 1\); give"),
        ({"made_by": "0.0", "parameters": {"seed": 0}}, r"other settings \(made_by\); give"),
        (None, r"other images or settings; give"),
        ({"parameters": []}, r"other images or settings; give"),
    ],
)
def test_what_differs_is_said_and_nothing_else(tmp_path: Path, before: object, says: str) -> None:
    path = tmp_path / "run.checkpoint"
    write_tensors(
        path,
        {"kind": KIND, "format": FORMAT, "run": "another", "settings": before},
        {"a/step": torch.tensor(1)},
    )
    with pytest.raises(UserError, match=says):
        Checkpoint(path, "this one", {"made_by": "0.1", "parameters": {"seed": 0}}).load()
