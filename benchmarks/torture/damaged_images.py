"""Damaged images through every entrance: library, command, exported runtime, server.

A PNG has checksums, so any damage that is accepted must leave the score as it was. Of the other
formats a changed byte that still decodes can't be told; what docs/security.md promises can: a file
that ends too early, also where an end was put behind it.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from serving import serving

from torture.materials import Materials, encoded
from torture.mutations import chance, changed_image
from torture.tally import Tally
from torture.worker import Worker

BATCH = 250  # images of one command
SAME = 1e-4  # between scores of one model
EXPORTED = 2e-3  # between a model and its export
DEADLINE = 30.0
CLOSING = 16  # bytes at the end of a JPEG whose loss docs/security.md says goes unnoticed


@dataclass(frozen=True)
class Case:
    """A damaged image, and whether its format lets one tell."""

    path: Path
    described: str
    undamaged: int  # number of the image it was made from
    noticeable: bool


def torture(materials: Materials, count: int, seed: int) -> list[Tally]:
    originals = encoded()
    folder = materials.folder / "damaged"
    rows = [
        Tally(f"images: {name}") for name in ("library", "command", "exported runtime", "server")
    ]
    library, command, runtime, server = rows
    with Worker() as worker, serving(materials.igd) as (url, process):
        whole = []
        for number, (suffix, contents) in enumerate(originals):
            path = materials.folder / f"whole-{number}.{suffix}"
            path.write_bytes(contents)
            job = {"do": "predict", "image": str(path)}
            whole.append(
                [worker.ask({**job, "model": str(m)}) for m in (materials.igd, materials.onnx)]
            )
        connection = Connection(url)
        for start in range(0, count, BATCH):
            cases = make_cases(folder, originals, range(start, min(start + BATCH, count)), seed)
            answers = []
            for case in cases:
                job = {"do": "predict", "image": str(case.path)}
                answers.append(worker.ask({**job, "model": str(materials.igd)}, DEADLINE))
                count_answer(library, case, answers[-1], whole[case.undamaged][0], None, SAME)
                answer = worker.ask({**job, "model": str(materials.onnx)}, DEADLINE)
                own = whole[case.undamaged][1]
                count_answer(runtime, case, answer, own, answers[-1], EXPORTED)
                answer = connection.ask(case.path.read_bytes())
                count_answer(server, case, answer, whole[case.undamaged][0], answers[-1], SAME)
            found = by_command(worker, materials.igd, folder, command)
            for case, answer in zip(cases, answers, strict=True):
                printed = found.get(str(case.path))
                if printed is not None:
                    count_answer(command, case, printed, whole[case.undamaged][0], answer, SAME)
            for case in cases:
                case.path.unlink()
        server.remember(peak(process.pid))
    return rows


def make_cases(
    folder: Path, originals: list[tuple[str, bytes]], numbers: range, seed: int
) -> list[Case]:
    folder.mkdir(exist_ok=True)
    cases = []
    for number in numbers:
        rng, undamaged = chance(seed, number), number % len(originals)
        suffix, contents = originals[undamaged]
        kind, changed = changed_image(suffix, contents, rng)
        path = folder / f"{number:06d}.{suffix}"
        path.write_bytes(changed)
        lost = len(contents) - len(changed)
        noticeable = (
            (suffix == "png" and kind != "resealed")
            or (kind == "truncate" and (suffix != "jpg" or lost > CLOSING))
            or kind == "closed"
        )
        cases.append(Case(path, f"{path.name} {kind}, seed {seed}", undamaged, noticeable))
    return cases


def count_answer(
    row: Tally,
    case: Case,
    answer: dict[str, Any],
    whole: dict[str, Any],
    library: dict[str, Any] | None,
    tolerance: float,
) -> None:
    row.remember(answer.get("peak_mb", 0))
    for outcome in ("crashed", "hung"):
        if outcome in answer:
            return row.add(outcome, f"{case.described}: {answer[outcome]}")
    if "refused" in answer:
        return row.add("refused")
    score = answer["score"]
    if not (isinstance(score, float) and 0 <= score <= 1):
        return row.add("wrong", f"{case.described}: score {score}")
    if library is not None and abs(library.get("score", -9) - score) > tolerance:
        return row.add("wrong", f"{case.described}: score {score:g}, but the library: {library}")
    same = abs(score - whole["score"]) <= tolerance
    if not same and case.noticeable:
        return row.add("wrong", f"{case.described}: {score:g}, undamaged {whole['score']:g}")
    return row.add("survived", unnoticed=not same)


def by_command(worker: Worker, model: Path, folder: Path, row: Tally) -> dict[str, dict[str, Any]]:
    """What `igd predict` says about each image of a folder; a call that breaks off is one crash."""
    job = {"do": "command", "cwd": str(folder), "whole": True, "kill_after": 300}
    arguments = ["predict", str(model), str(folder), "--json", "--quiet"]
    ended = worker.ask({**job, "command": arguments}, 400)
    if "code" not in ended or ended["killed"]:
        row.add("hung" if ended.get("killed") else next(iter(ended)), f"{folder.name}: {ended}")
        return {}
    row.remember(ended["peak_mb"])
    found: dict[str, dict[str, Any]] = {}
    for line in ended["out"].splitlines():
        told = json.loads(line)
        found[told["path"]] = {"refused": told["error"]} if told.get("error") else told
    if ended["code"] not in (0, 1, 2) or "Traceback" in ended["err"] or not found:
        row.add("crashed", ended["err"][-200:])
    return found


class Connection:
    """One client of the server, which connects again where it must."""

    def __init__(self, url: str) -> None:
        self.address = urlsplit(url)
        self.open: http.client.HTTPConnection | None = None

    def ask(self, body: bytes) -> dict[str, Any]:
        for _ in range(2):  # a connection may have been closed after a refusal
            if self.open is None:
                self.open = http.client.HTTPConnection(
                    str(self.address.hostname), self.address.port, timeout=DEADLINE
                )
            try:
                self.open.request("POST", self.address.path, body)
                answer = self.open.getresponse()
                told = answer.read()
                if answer.status == 200:
                    first: dict[str, Any] = json.loads(told)["images"][0]
                    return first if "score" in first else {"refused": str(first)}
                if 400 <= answer.status < 500:
                    return {"refused": f"{answer.status}"}
                return {"crashed": f"status {answer.status}: {told[:200]!r}"}
            except TimeoutError:
                self.open = None
                return {"hung": f"no answer in {DEADLINE:.0f} s"}
            except (OSError, http.client.HTTPException) as error:
                self.open = None
                failure = f"{type(error).__name__}: {error}"
        return {"crashed": failure}


def peak(pid: int) -> float:
    """The largest resident memory that a process ever had, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
