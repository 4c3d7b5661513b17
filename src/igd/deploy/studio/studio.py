"""All parts of a studio, for its routes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fastapi import Request

from igd.deploy.server.service import Service
from igd.deploy.studio.image_sets import ImageSets
from igd.deploy.studio.job_queue import JobQueue
from igd.deploy.studio.job_store import JobStore
from igd.deploy.studio.model_folder import ModelFolder
from igd.deploy.studio.verdicts import Limits, Verdicts
from igd.deploy.studio.workspace import Workspace


@dataclass(frozen=True)
class Studio:
    """A workspace that is being served."""

    workspace: Workspace
    service: Service
    data_root: Path | None
    sets: ImageSets
    jobs: JobStore
    queue: JobQueue
    models: ModelFolder
    verdicts: Verdicts

    @classmethod
    def open(
        cls, workspace: Workspace, service: Service, data_root: Path | None, limits: Limits
    ) -> Studio:
        most = service.settings.max_pixels
        jobs = JobStore(workspace.database)
        verdicts = Verdicts(workspace, limits)
        arguments = ["--max-pixels", str(most)]
        if data_root is not None:
            arguments += ["--data-root", str(data_root)]
        models = ModelFolder(workspace, service, verdicts)
        return cls(
            workspace,
            service,
            data_root,
            ImageSets(workspace, data_root, most),
            jobs,
            JobQueue(workspace, jobs, arguments, models.refresh),
            models,
            verdicts,
        )

    def start(self) -> None:
        """Load the models, then follow their folder and go on with the jobs."""
        self.models.refresh()
        self.models.start()
        self.queue.start()

    def close(self) -> None:
        self.queue.close()
        self.models.close()


def studio_of(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio
