"""Flags of a server that others reach through a proxy: by which names, below which path, how
often.
"""

from __future__ import annotations

import argparse
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from igd.errors import UserError

LOCAL = ("127.0.0.1", "::1", "localhost")


def add_proxy_flags(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that requests may ask for, as a proxy forwards it (Host), such as "
        "inspect.example.com; may be given several times",
    )
    add(
        "--path-prefix",
        default="",
        metavar="PATH",
        help="path of another site below which a proxy has this one, such as /inspect",
    )
    add(
        "--rate-limit",
        type=float,
        metavar="N",
        help="requests a minute that one client may send; further ones get 429 (default: any)",
    )
    add(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="a proxy elsewhere, or a network of them, that says whom it asks for "
        "(X-Forwarded-For); those on this machine are believed",
    )


def proxy_settings(options: argparse.Namespace) -> dict[str, Any]:
    """What the flags say, for `Settings`."""
    allowed = [host_name(each) for each in options.allowed_host]
    local = is_loopback(options.host)
    for each in options.trusted_proxy:
        try:
            ip_network(each)
        except ValueError:
            raise UserError(
                f"--trusted-proxy {each}: give an address such as 10.0.0.5, or a network such as "
                f"10.0.0.0/24"
            ) from None
    return {
        "hosts": (*LOCAL, options.host, *allowed) if local or allowed else (),
        "prefix": options.path_prefix.rstrip("/"),
        "rate_limit": options.rate_limit,
        "proxies": (*LOCAL[:2], *options.trusted_proxy),
    }


def is_reached_by_others(options: argparse.Namespace) -> bool:
    """Whether more than this machine asks, directly or through a proxy on it."""
    return not (is_loopback(options.host) and all(map(is_loopback, options.allowed_host)))


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches an address."""
    try:
        return host in LOCAL or ip_address(host).is_loopback
    except ValueError:  # a name, which may mean any machine
        return False


def host_name(given: str) -> str:
    """A name as a Host header has it, without a port."""
    try:
        return str(ip_address(given))
    except ValueError:
        parts = urlsplit(f"//{given}")
        if parts.netloc != given or not parts.hostname or ":" in given:
            raise UserError(
                f"--allowed-host {given}: give a name alone, such as inspect.example.com, without "
                f"https://, port or path"
            ) from None
        return parts.hostname
