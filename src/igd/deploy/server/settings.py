"""The limits that whoever starts the server decides."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from igd.data.decoding import LARGEST
from igd.deploy.server.roles import Role, RoleToken
from igd.errors import UserError

SHORTEST_TOKEN = 16  # characters
PREFIX = re.compile(r"(/[A-Za-z0-9_-]+)+")


@dataclass(frozen=True)
class Settings:
    """The server's limits; every number has a flag of the same name."""

    token: str | None = None  # that opens everything; None: see `role_tokens`
    role_tokens: tuple[RoleToken, ...] = ()  # each opens what its role may
    hosts: tuple[
        str, ...
    ] = ()  # names that requests may ask for, so that no web page can forge one; none: any
    max_bytes: int = 50_000_000  # of a request's body
    max_pixels: int = 25_000_000  # of an image
    queue: int = 64  # images that are waiting or being scored; further ones are refused
    batch: int = 16  # images that are scored together, at most
    timeout: float = 30.0  # seconds that sending images may take, and that scoring them may take
    connections: int = 256  # open at once; further ones are refused
    header_timeout: float = 10.0  # seconds from the first byte of a request to its last header
    rate_limit: float | None = None  # requests a minute of one client, by its address; None: any
    prefix: str = ""  # path of another site below which this one is, such as /inspect
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")  # whose word for a client's address is taken

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type in ("int", "float") and not 0 < value < float("inf"):
                raise UserError(
                    f"--{each.name.replace('_', '-')} is {value}; it must be a positive number"
                )
        if self.max_pixels > LARGEST:
            raise UserError(
                f"--max-pixels is {self.max_pixels:,}, and igd decodes no image of more than "
                f"{LARGEST:,}; give at most that, and scale larger images down before they are sent"
            )
        if self.rate_limit is not None and not 1 <= self.rate_limit < float("inf"):
            raise UserError(f"--rate-limit is {self.rate_limit:g}; 1 request a minute is the least")
        if self.prefix and not PREFIX.fullmatch(self.prefix):
            raise UserError(
                f"--path-prefix is {self.prefix!r}; give a path such as /inspect, of letters, "
                f"digits, '-', '_' and '/', without one at its end"
            )
        for _, token in self.tokens:
            _check_token(token)

    @property
    def tokens(self) -> tuple[RoleToken, ...]:
        """All of them; none: anyone who reaches the port may ask."""
        own = () if self.token is None else (RoleToken(Role.TRAIN, self.token),)
        return (*own, *self.role_tokens)


def _check_token(token: str) -> None:
    if not (token.isascii() and token.isprintable() and token):
        raise UserError(
            "the token must be visible ASCII characters on one line, as it travels in a header"
        )
    if len(token) < SHORTEST_TOKEN:
        raise UserError(
            f"the token has {len(token)} characters, and fewer than {SHORTEST_TOKEN} can "
            f"be guessed; make one with: python -c 'import secrets; "
            f"print(secrets.token_urlsafe())'"
        )
