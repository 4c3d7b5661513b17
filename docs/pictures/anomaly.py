"""l_h against the distance from the centre, as igd.method.gaussian computes it, and where latents
of normal images lie.

python docs/pictures/anomaly.py
"""

from __future__ import annotations

import torch
from drawing import area, drawing, line, text, write

from igd.method.gaussian import anomaly

WIDTH, HEIGHT = 640, 330
LEFT, RIGHT, TOP, BOTTOM = 60, 610, 30, 270
FARTHEST = 3.0  # sigma
DIMENSIONS = 128  # Z
CURVE = torch.linspace(0, FARTHEST, 121, dtype=torch.float64)  # distances in sigma


def at(distance: float, value: float) -> tuple[float, float]:
    return LEFT + (RIGHT - LEFT) * distance / FARTHEST, BOTTOM - (BOTTOM - TOP) * value


def losses() -> list[float]:
    """l_h at each distance, of a latent that lies so far along one axis."""
    latent = torch.zeros(len(CURVE), DIMENSIONS, dtype=torch.float64)
    latent[:, 0] = CURVE
    return anomaly(latent, torch.zeros(DIMENSIONS), torch.tensor(1.0)).tolist()


def normal_distances() -> list[float]:
    """How often an isotropic Gaussian in Z dimensions has each distance, the largest being 1."""
    radii = CURVE.clamp(min=1e-9)
    logarithm = (
        DIMENSIONS - 1
    ) * radii.log() - DIMENSIONS * radii.square() / 2  # sigma^2 is the sum over dimensions
    return (logarithm - logarithm.max()).exp().tolist()


def picture() -> str:
    distances = CURVE.tolist()
    curve = [at(d, v) for d, v in zip(distances, losses(), strict=True)]
    normal = [at(d, 0.8 * v) for d, v in zip(distances, normal_distances(), strict=True)]
    parts = []
    for value in (0, 0.5, 1):
        parts += [
            line([at(0, value), at(FARTHEST, value)], "faint"),
            text(LEFT - 8, at(0, value)[1] + 4, f"{value:g}", "small", "end"),
        ]
    for distance in (0, 1, 2, 3):
        parts.append(
            text(
                at(distance, 0)[0],
                BOTTOM + 18,
                f"{distance} σ" if distance else "μ",
                "small",
                "middle",
            )
        )
    parts += [
        area([at(0, 0), *normal, at(FARTHEST, 0)]),
        line(curve, "curve"),
        text(at(1, 0)[0], at(1, 0.83)[1], "normal latents", "small", "middle"),
        text(at(1.5, 0)[0] + 6, at(0, 0.87)[1] + 14, "ℓ_h = 1 − exp(−‖z − μ‖² / σ²)", "name"),
        text(
            at(1.5, 0)[0] + 6,
            at(0, 0.87)[1] + 34,
            "beyond 2 σ it is flat: no gradient leads back",
            "small",
        ),
        text(
            (LEFT + RIGHT) / 2,
            BOTTOM + 40,
            "distance of a latent from the centre",
            "small",
            "middle",
        ),
    ]
    return drawing(
        WIDTH,
        HEIGHT,
        "The anomaly score l_h against the distance of a latent from the centre",
        parts,
    )


if __name__ == "__main__":
    write(__file__, picture())
