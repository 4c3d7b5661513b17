"""How an image goes through the rooms: what is computed, the steps of a training, those of a
prediction.

python docs/pictures/flow.py
"""

from __future__ import annotations

from drawing import arrow, box, drawing, text, write

WIDTH, HIGH, STEP, BOX, LEFT = 1100, 62, 153, 140, 16

# What happens, and where: in the order of the arrows.
COMPUTED = [
    ("image", "file, array, upload", "given"),
    ("pixels", "data/decoding.py", "box"),
    ("model's size", "data/geometry.py", "box"),
    ("features", "backbones/features.py", "box"),
    ("parts, map", "scales/", "box"),
    ("score, map", "scales/fusion.py", "box"),
    ("p-value", "inference/conformal.py", "said"),
]
TRAINING = [
    ("plan", "plan.py", "box"),
    ("decode", "data/image_set.py", "box"),
    ("split", "split.py", "box"),
    ("extract features", "extract.py", "box"),
    ("EM", "autoencoders.py", "box"),
    ("fuse, calibrate", "calibrate.py", "box"),
    ("FittedState", "fitted.py", "said"),
]
PREDICTION = [
    ("predictions", "inference/predictor.py", "box"),
    ("predicted", "inference/predictor.py", "box"),
    ("score_batch", "detector.py", "box"),
    ("FittedState.score", "training/fitted.py", "box"),
    ("Scale.score", "scales/", "box"),
    ("Fusion.score", "scales/fusion.py", "box"),
    ("Prediction", "inference/predictor.py", "said"),
]


def row(top: float, heading: str, steps: list[tuple[str, str, str]]) -> list[str]:
    """Boxes side by side under a heading, with an arrow from each to the next."""
    parts = [text(LEFT, top - 12, heading, "small")]
    for number, (what, where, kind) in enumerate(steps):
        x = LEFT + number * STEP
        parts += [box(x, top, BOX, HIGH, kind), text(x + BOX / 2, top + 27, what, "name", "middle")]
        parts.append(text(x + BOX / 2, top + 46, where, "small", "middle"))
        if number:
            parts.append(arrow([(x - STEP + BOX, top + HIGH / 2), (x - 2, top + HIGH / 2)]))
    return parts


def flow() -> str:
    parts = [
        *row(36, "What is computed from every image, in training, prediction and export", COMPUTED),
        *row(
            144, "IGD.fit: the steps of training/fit.py; files of training/ unless named", TRAINING
        ),
        *row(252, "IGD.predict: the calls, in order", PREDICTION),
    ]
    return drawing(WIDTH, 252 + HIGH + 16, "How an image goes through the rooms of igd", parts)


if __name__ == "__main__":
    write(__file__, flow())
