"""What can go wrong through no fault of the program."""

from __future__ import annotations

from igd.text import visible


class UserError(ValueError):
    """Something the user gave can't be used; the message names it and the way out. The command line
    exits with 2.
    """

    def __str__(self) -> str:
        """On one line: names of files and headers of models are other people's text."""
        return visible(super().__str__())


class TrainingWarning(UserWarning):
    """A training ended, but something about it needs a look."""


class ModelWarning(UserWarning):
    """A model was read, but not all of it could be checked."""


class DataWarning(UserWarning):
    """Data were read, but not all of it could be used, or not as it may have been meant."""


class Interrupted(Exception):
    """Stopped on request, between two steps; the message says how to go on."""


class DamagedModel(UserError):
    """A model whose numbers can't be right; nothing it says may be taken for an answer."""
