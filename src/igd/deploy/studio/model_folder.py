"""The model files of a workspace: served under their names, loaded again when they change."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from igd.deploy.loading import load_predictor
from igd.deploy.model_info import predictor_info
from igd.deploy.server.http_errors import RequestError
from igd.deploy.server.service import Service
from igd.deploy.studio.realised_rates import realised
from igd.deploy.studio.verdicts import Verdicts, version_of
from igd.deploy.studio.workspace import Workspace
from igd.errors import UserError
from igd.inference.drift import DriftMonitor
from igd.inference.predictor import Predictor

EVERY = 0.5  # seconds between two looks at the folder
State = tuple[int, int, int]  # when a file was changed, its length and its number


@dataclass
class ModelFile:
    """A file, as it was when it was last read."""

    path: Path
    state: State
    predictor: Predictor | None = None  # the last that could be read
    fault: str | None = None  # why the file that is there can't be


class ModelFolder:
    """A thread that follows the folder. Who asks gets the model of before until the new one is
    loaded; images on their way are scored by the model that they were taken for.
    """

    def __init__(self, workspace: Workspace, service: Service, verdicts: Verdicts) -> None:
        self.workspace, self.service, self.verdicts = workspace, service, verdicts
        self.files: dict[str, ModelFile] = {}
        self._closed = threading.Event()
        self._reading = threading.Lock()
        self._thread = threading.Thread(target=self._follow, name="models", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def refresh(self) -> None:
        """Read what is new or changed, forget what is gone."""
        with self._reading:
            found = self._found()
            for name, (path, state) in found.items():
                known = self.files.get(name)
                if known is None or (known.path, known.state) != (path, state):
                    self.files = {**self.files, name: self._read(name, path, state, known)}
            for name in self.files.keys() - found.keys():
                self.files = {n: each for n, each in self.files.items() if n != name}
                if name in self.service.predictors:
                    self.service.remove(name)

    def path_of(self, name: str) -> Path:
        """The file of a model that is there: names of strangers never become paths."""
        if name not in self.files:
            raise RequestError(404, f"there is no model '{name}'; it may have been deleted")
        return self.files[name].path

    def describe(self) -> list[dict[str, Any]]:
        return [self._described(name, each) for name, each in sorted(self.files.items())]

    def describe_one(self, name: str) -> dict[str, Any]:
        self.path_of(name)
        described = self._described(name, self.files[name])
        if predictor := self.files[name].predictor:
            described["info"] = predictor_info(predictor)
        return described

    def export_of(self, name: str) -> Path | None:
        """The .onnx file of a model, unless the model was changed since."""
        path = self.path_of(name)
        exported = path.with_suffix(".onnx")
        if path == exported:
            return path
        try:
            current = exported.stat().st_mtime_ns >= path.stat().st_mtime_ns
        except OSError:
            return None
        return exported if current else None

    def delete(self, name: str) -> None:
        path = self.path_of(name)
        for each in (path, path.with_suffix(".onnx")):
            each.unlink(missing_ok=True)
        self.refresh()

    def _found(self) -> dict[str, tuple[Path, State]]:
        """Every .igd file, and .onnx files that are not made from one of them."""
        found = {}
        for suffix in (".onnx", ".igd"):
            for path in sorted(self.workspace.models.glob(f"*{suffix}")):
                try:
                    about = path.stat()
                except OSError:  # gone meanwhile
                    continue
                if path.is_file() and path.resolve().is_relative_to(self.workspace.models):
                    found[path.stem] = path, (about.st_mtime_ns, about.st_size, about.st_ino)
        return found

    def _read(self, name: str, path: Path, state: State, known: ModelFile | None) -> ModelFile:
        former = known.predictor if known else None
        try:
            predictor = load_predictor(path)
        except (UserError, OSError) as error:
            return ModelFile(path, state, former, str(error).removeprefix(f"{path}: "))
        drift = DriftMonitor(predictor.calibration_)
        for score, is_anomalous in self.verdicts.scores(name, version_of(predictor)):
            drift.update(score, is_anomalous)
        self.service.put(name, predictor, drift)
        return ModelFile(path, state, predictor)

    def _described(self, name: str, file: ModelFile) -> dict[str, Any]:
        told: dict[str, Any] = {"name": name, "bytes": file.state[1], "fault": file.fault}
        predictor = file.predictor
        if predictor is None:
            return told
        made, drift = predictor.provenance_, self.service.drift.get(name)
        counts = self.verdicts.counts(name, version_of(predictor))
        return {
            **told,
            "made_at": made.get("made_at"),
            "calibrated_at": made.get("calibrated_at"),
            "source": made.get("source"),
            "images": made.get("images"),
            "image_size": made.get("image_size"),
            "groups": made.get("groups"),
            "calibration_images": len(predictor.calibration_.scores),
            "rate": predictor.false_alarm_rate_,
            "drift": drift.notice if drift else None,
            "recent_alarms": drift.alarm_share if drift and drift.images else None,
            "exported": self.export_of(name) is not None,
            "can_change": file.path.suffix == ".igd",
            "realised": realised(counts, predictor.false_alarm_rate_),
        }

    def _follow(self) -> None:
        while not self._closed.wait(EVERY):
            self.refresh()
