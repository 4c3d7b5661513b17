"""Who may do what: view < inspect < train. A token has one role, and each role may what those below
it may.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from igd.errors import UserError


class Role(IntEnum):
    """What someone may do, each with all that is less."""

    VIEW = 1  # models, jobs, verdicts and metrics
    INSPECT = 2  # score images, say what they really are
    TRAIN = 3  # whatever changes models, and all else

    @property
    def label(self) -> str:
        return self.name.lower()


class RoleToken(NamedTuple):
    """A token, and what it opens."""

    role: Role
    token: str


# What takes images or a person's word of them; anything else that changes something is for TRAIN.
INSPECTING = re.compile(r"POST /v1/models/[^/]+/(score|inspect)|PATCH /v1/verdicts/\d+", re.ASCII)


def role_needed(method: str, path: str) -> Role:
    """The least role that a request needs.

    >>> role_needed("POST", "/v1/models/nuts/score").label
    'inspect'
    >>> role_needed("DELETE", "/v1/models/nuts").label
    'train'
    """
    if method in ("GET", "HEAD"):
        return Role.VIEW
    return Role.INSPECT if INSPECTING.fullmatch(f"{method} {path}") else Role.TRAIN


def role_of(tokens: Sequence[RoleToken], authorization: str) -> Role | None:
    """The role of whoever sends this header, None for a stranger; where there are no tokens,
    everyone may everything. The time this takes says nothing about how much of a token was right.
    """
    if not tokens:
        return Role.TRAIN
    scheme, _, given = authorization.partition(" ")
    found = [
        each.role
        for each in tokens
        if hmac.compare_digest(given.strip().encode(), each.token.encode())
    ]
    return max(found) if found and scheme.lower() == "bearer" else None


def read_tokens(text: str) -> tuple[RoleToken, ...]:
    """The tokens of a file: one alone, which opens everything, or a line 'ROLE TOKEN' for each.

    >>> [(each.role.label, each.token) for each in read_tokens("view abc\\ntrain def")]
    [('view', 'abc'), ('train', 'def')]
    """
    roles = {role.label: role for role in Role}
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    read = []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word in roles and rest.strip():
            read.append(RoleToken(roles[word], rest.strip()))
        elif len(lines) == 1:
            read.append(RoleToken(Role.TRAIN, line))
        else:
            raise UserError(
                f"a token file of several lines has a role and a token on each, and a line begins "
                f"with something else; write one of {', '.join(roles)} before each token"
            )
    if len({each.token for each in read}) < len(read):
        raise UserError("the token file has one token twice; give each role its own")
    return tuple(read)
