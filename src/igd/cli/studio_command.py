"""`igd studio`: train, inspect and look after models in the browser."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from igd.cli.common import DONE, add_command
from igd.cli.serve_command import add_server_flags, asked_settings, url_of
from igd.errors import UserError
from igd.text import visible


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "studio",
        run,
        "train, inspect and look after models in the browser",
        "igd studio line-3/",
    )
    command.add_argument(
        "workspace",
        type=Path,
        help="folder for models, images and history; created where it is missing",
    )
    command.add_argument(
        "--data-root",
        type=Path,
        metavar="FOLDER",
        help="folder of this machine whose images the page may use (default: none)",
    )
    command.add_argument(
        "--history",
        type=int,
        default=5000,
        metavar="N",
        help="verdicts to keep; the oldest go first (default: %(default)s)",
    )
    command.add_argument(
        "--history-bytes",
        type=int,
        default=2_000_000_000,
        metavar="N",
        help="of inspected images to keep beside their verdicts; 0: none (default: %(default)s)",
    )
    add_server_flags(command)


def run(options: argparse.Namespace) -> int:
    try:
        from igd.deploy.server.lifecycle import listen, serve
        from igd.deploy.server.settings import Settings
        from igd.deploy.studio.studio import Studio
        from igd.deploy.studio.studio_app import create_studio_app
        from igd.deploy.studio.verdicts import Limits
        from igd.deploy.studio.workspace import Workspace
    except ModuleNotFoundError as error:
        raise UserError(
            f"the studio needs the package {error.name}; install it with: pip install "
            f"'igd-anomaly[export,serve]'"
        ) from None
    from igd.files import locked

    if options.history < 1 or options.history_bytes < 0:
        raise UserError("--history must be at least 1, and --history-bytes not negative")
    if options.data_root is not None and not options.data_root.is_dir():
        raise UserError(f"{options.data_root}: no such folder (--data-root)")
    settings = Settings(**asked_settings(options))
    workspace = Workspace(options.workspace)
    opened: list[Studio] = []

    def make_app(service: Any) -> Any:
        limits = Limits(options.history, options.history_bytes)
        root = options.data_root and options.data_root.resolve()
        opened.append(Studio.open(workspace, service, root, limits))
        return create_studio_app(opened[0])

    def load() -> dict[str, Any]:
        if opened[0].service.state == "loading":
            opened[0].start()
        else:  # asked to by SIGHUP
            opened[0].models.refresh()
        return {}

    with locked(workspace.folder / "studio", "using"):
        listener = listen(options.host, options.port)
        url = url_of(listener)

        def say() -> None:
            if options.json:
                print(json.dumps({"url": url, "workspace": str(workspace.folder)}), flush=True)
            else:
                print(
                    f"open {url} in a browser; {visible(workspace.folder)} keeps everything; "
                    f"Ctrl-C ends it",
                    flush=True,
                )

        serve(load, settings, listener, say, make_app)
    return DONE
