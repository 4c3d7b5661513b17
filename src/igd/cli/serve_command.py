"""`igd serve`: score images over HTTP, with a page to look at."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from igd.cli.common import DONE, add_command
from igd.cli.proxy_flags import add_proxy_flags, is_reached_by_others, proxy_settings
from igd.errors import UserError

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
    add(
        "--host",
        default="127.0.0.1",
        help="address to listen at (default: %(default)s, this machine alone)",
    )
    add("--port", type=int, default=8000, help="default: %(default)s; 0: any that is free")
    add(
        "--token-file",
        type=Path,
        help="file with the token that requests must carry (default: $IGD_TOKEN, or none)",
    )
    add("--max-bytes", type=int, help="of a request's body (default: 50,000,000)")
    add("--max-pixels", type=int, help="of an image (default: 25,000,000)")
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
    limits = {name: getattr(options, name) for name in LIMITS if getattr(options, name) is not None}
    settings = Settings(token=_token(options.token_file), **proxy_settings(options), **limits)
    if settings.token is None and is_reached_by_others(options) and not options.insecure:
        raise UserError(
            f"anyone who reaches {', '.join([*options.allowed_host, options.host])} could ask; "
            f"give --token-file FILE (or IGD_TOKEN), or --insecure if that is meant"
        )
    inherited = inherited_socket()
    listener = inherited or listen(options.host, options.port)
    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"

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


def _token(path: Path | None) -> str | None:
    """The token of a file, or of the environment; never of the command line, which every user of
    the machine can read.
    """
    if path is None:
        return os.environ.get("IGD_TOKEN") or None
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise UserError(
            f"{path}: the token can't be read ({reason}); name a file that holds it on one line"
        ) from None
