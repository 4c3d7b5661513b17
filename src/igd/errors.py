"""What can go wrong through no fault of the program."""


class UserError(ValueError):
    """Something the user gave can't be used; the message names it and the way out. The command line exits with 2."""


class TrainingWarning(UserWarning):
    """A training ended, but something about it needs a look."""


class Interrupted(Exception):
    """Stopped on request, between two steps; the message says how to go on."""
