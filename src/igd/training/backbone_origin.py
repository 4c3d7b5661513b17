"""Where the frozen backbone that scales read comes from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from igd.backbones.architectures import Backbone
from igd.backbones.weights import load_backbone
from igd.errors import UserError
from igd.pretraining import contrastive, distillation, rotation
from igd.pretraining.contrastive import Contrast
from igd.pretraining.distillation import Distillation
from igd.pretraining.encoders import load_encoder
from igd.pretraining.rotation import Rotation
from igd.scales.recipes import PRETRAININGS, Recipe
from igd.training.parameters import Parameters


@dataclass(frozen=True)
class Origin:
    """What the backbone starts from, and how it learns, if it does."""

    found: Backbone | None  # with ImageNet weights, or in a file
    # From what was found, or from nothing; None: as it was found.
    learning: Distillation | Contrast | Rotation | None

    @property
    def turned(self) -> bool:
        """Whether it learns, or learnt, to tell how an image is turned."""
        return isinstance(self.learning, Rotation) or bool(self.found and self.found.turned)

    @property
    def described(self) -> dict[str, Any]:
        return {
            "weights": self.found and self.found.identity,
            "pretraining": self.learning and asdict(self.learning),
            **({"turned": True} if self.found and self.found.turned else {}),
            **({"seen_twice": True} if self.found and self.found.seen_twice else {}),
        }


def choose_origin(parameters: Parameters, recipe: Recipe, side: int) -> Origin | None:
    """Where the backbone comes from; None where encoders learn from scratch."""
    wanted, fast = parameters.pretrain or recipe.pretrain, recipe.name == "fast"
    own: dict[str, Any] = {"seed": parameters.seed, "precision": parameters.precision}
    if wanted == "scratch":
        return None
    if wanted == "contrastive":
        return Origin(
            None, replace(contrastive.fast(side, rotated=False) if fast else Contrast(), **own)
        )
    if wanted == "rotation":
        return Origin(None, replace(rotation.fast(side) if fast else Rotation(), **own))
    if wanted in ("imagenet", "distill"):
        found = load_backbone(
            parameters.backbone, Path(parameters.weights) if parameters.weights else None
        )
        if wanted == "imagenet":
            return Origin(found, None)
        return Origin(found, replace(distillation.FAST if fast else Distillation(), **own))
    if not Path(wanted).is_file():
        raise UserError(f"pretrain is {wanted!r}: neither {', '.join(PRETRAININGS)} nor a file")
    return Origin(load_encoder(Path(wanted)), None)
