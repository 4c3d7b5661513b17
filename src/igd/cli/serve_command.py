"""`igd serve`: score images over HTTP, with a page to look at."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.cli.common import DONE, add_command
from igd.cli.proxy_flags import add_proxy_flags, is_reached_by_others, proxy_settings
from igd.errors import UserError

if TYPE_CHECKING:
    import socket

    from igd.deploy.server.roles import RoleToken

LIMITS = (
    "max_bytes",
    "max_pixels",
    "queue",
    "batch",
    "timeout",
    "connections",
    "header_timeout",
)


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "serve",
        run,
        "score images over HTTP, with a page to look at",
        "igd serve parts.igd",
    )
    add = command.add_argument
    add(
        "models",
        type=Path,
        nargs="+",
        help="model files; each is served under its name without suffix",
    )
    add_server_flags(command)


def add_server_flags(command: argparse.ArgumentParser) -> None:
    """Where a server listens, who may ask, and how much."""
    add = command.add_argument
    add(
        "--host",
        default="127.0.0.1",
        help="address to listen at (default: %(default)s, this machine alone)",
    )
    add("--port", type=int, default=8000, help="default: %(default)s; 0: any that is free")
    add(
        "--token-file",
        type=Path,
        help="file with the token that requests must carry (default: $IGD_TOKEN, or none), or "
        "with a line 'ROLE TOKEN' for each of several: view, inspect, train",
    )
    add("--max-bytes", type=int, help="of a request's body (default: 50,000,000)")
    add("--max-pixels", type=int, help="of an image, at most 100,000,000 (default: 25,000,000)")
    add(
        "--queue",
        type=int,
        help="images that may wait; further ones are refused with 429 (default: 64)",
    )
    add("--batch", type=int, help="images to score together, at most (default: 16)")
    add(
        "--timeout",
        type=float,
        help="seconds that sending images, and that scoring them, may take (default: 30)",
    )
    add("--connections", type=int, help="open at once; further ones get 503 (default: 256)")
    add(
        "--header-timeout",
        type=float,
        help="seconds that a request's headers may take (default: 10)",
    )
    add_proxy_flags(command)
    add(
        "--insecure",
        action="store_true",
        help="let anyone who reaches --host, or a proxy in front of it, ask without a token",
    )


def run(options: argparse.Namespace) -> int:
    from igd.deploy.loading import load_predictor, named

    try:
        from igd.deploy.server.lifecycle import inherited_socket, listen, serve
        from igd.deploy.server.settings import Settings
    except ModuleNotFoundError as error:
        raise UserError(
            f"serving needs the package {error.name}; install it with: pip install "
            f"'igd-anomaly[serve]'"
        ) from None

    paths = named(options.models)
    settings = Settings(**asked_settings(options))
    inherited = inherited_socket()
    listener = inherited or listen(options.host, options.port)
    url = url_of(listener)

    def say() -> None:
        if options.json:
            print(json.dumps({"url": url, "models": list(paths)}), flush=True)
        else:
            print(f"{url} serves {', '.join(paths)}; Ctrl-C ends it", flush=True)

    serve(
        lambda: {name: load_predictor(path) for name, path in paths.items()},
        settings,
        listener,
        say,
        waits=inherited is not None,
    )
    return DONE


def asked_settings(options: argparse.Namespace) -> dict[str, Any]:
    """What the flags of `add_server_flags` say, for `Settings`; refuses to let strangers in."""
    limits = {name: getattr(options, name) for name in LIMITS if getattr(options, name) is not None}
    tokens, reached = _tokens(options.token_file), proxy_settings(options)
    if not tokens and is_reached_by_others(options) and not options.insecure:
        raise UserError(
            f"anyone who reaches {', '.join([*options.allowed_host, options.host])} could ask; "
            f"give --token-file FILE (or IGD_TOKEN), or --insecure if that is meant"
        )
    return {"role_tokens": tokens, **reached, **limits}


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _tokens(path: Path | None) -> tuple[RoleToken, ...]:
    """The tokens of a file, or the one of the environment; never of the command line, which every
    user of the machine can read.
    """
    from igd.deploy.server.roles import Role, RoleToken, read_tokens

    if path is None:
        token = os.environ.get("IGD_TOKEN")
        return (RoleToken(Role.TRAIN, token),) if token else ()
    try:
        return read_tokens(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise UserError(
            f"{path}: the token can't be read ({reason}); name a file that holds it on one line"
        ) from None
