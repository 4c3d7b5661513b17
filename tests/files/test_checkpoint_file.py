"""A checkpoint belongs to one run, and says what another differs in."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from igd.errors import UserError
from igd.files.checkpoint_file import FORMAT, KIND, Checkpoint
from igd.files.tensors import write_tensors
from igd.progress import Progress


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


def begun(path: Path) -> Checkpoint:
    """A run of which a part has begun."""
    saved = Checkpoint(path, "this one", {"parameters": {}})
    saved.keep("a", lambda: {"step": torch.tensor(3)}, Progress(), at_once=True)
    return saved


def test_a_part_goes_on_where_it_was_and_one_that_had_not_begun_from_its_start(
    tmp_path: Path,
) -> None:
    told: list[dict[str, torch.Tensor]] = []
    saved = begun(tmp_path / "run.checkpoint")
    saved.restore("b", told.append)
    assert not told
    saved.restore("a", told.append)
    assert told == [{"step": torch.tensor(3)}]


@pytest.mark.parametrize(
    "take_up", [torch.nn.Linear(2, 2).load_state_dict, lambda begun: begun["losses"]]
)
def test_what_does_not_fit_is_named_with_the_way_out(
    tmp_path: Path, take_up: Callable[[dict[str, torch.Tensor]], None]
) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(UserError, match=r"run\.checkpoint: .* delete it to start anew"):
        begun(path).restore("a", take_up)
