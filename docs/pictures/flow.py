"""How an image flows through the rooms, while learning and while judging.

python docs/pictures/flow.py
"""

from __future__ import annotations

from drawing import arrow, box, drawing, text, write

WIDTH, HIGH, STEP, LEFT = 900, 62, 176, 16
BOX = 156

# What happens, and where: in the order of the arrows.
LOOKING = [
    ("a picture", "file, array, upload", "given"),
    ("pixels", "data/images.py", "box"),
    ("the model's square", "data/geometry.py", "box"),
    ("features", "pretraining/features.py", "box"),
    ("terms and maps", "scale.py, pixelscale.py", "box"),
]
JUDGING = [
    ("one score, one map", "combination.py", "box"),
    ("p-value, verdict", "calibration.py", "box"),
    ("map at original size", "data/geometry.py", "box"),
    ("Prediction", "judging.py", "said"),
    ("CSV, page, answer", "evaluation/, deploy/", "said"),
]
LEARNING = [
    ("E-step, M-step", "method/em.py", "box"),
    ("units of each part", "combination.py", "box"),
    ("usual scores", "calibration.py", "box"),
    ("parts.igd", "modelfile.py", "said"),
]


def row(top: float, steps: list[tuple[str, str, str]], first: float = LEFT) -> list[str]:
    """Boxes side by side, with an arrow from each to the next."""
    parts = []
    for number, (what, where, kind) in enumerate(steps):
        x = first + number * STEP
        parts += [box(x, top, BOX, HIGH, kind), text(x + BOX / 2, top + 27, what, "name", "middle")]
        parts.append(text(x + BOX / 2, top + 46, where, "small", "middle"))
        if number:
            parts.append(arrow([(x - STEP + BOX, top + HIGH / 2), (x - 2, top + HIGH / 2)]))
    return parts


def flow() -> str:
    looking, learning, judging = 40, 160, 280
    first, features, last = (LEFT + column * STEP + BOX / 2 for column in (0, 3, 4))
    above_learning, above_judging = learning - 36, judging - 36
    parts = [
        text(LEFT, 26, "every image, to learn from or to judge", "small"),
        *row(looking, LOOKING),
        arrow([(features, looking + HIGH), (features, above_learning), (first, above_learning), (first, learning - 2)]),
        text(first + 16, learning - 11, "learning: IGD.fit; the held-out images are looked at just as new ones are", "small"),
        *row(learning, LEARNING),
        arrow([(last, looking + HIGH), (last, above_judging), (first, above_judging), (first, judging - 2)]),
        text(
            first + 16,
            judging - 11,
            "judging: IGD.predict; an exported graph does all from the square to p-value and map",
            "small",
        ),
        *row(judging, JUDGING),
    ]
    return drawing(WIDTH, judging + HIGH + 16, "How an image flows through the rooms of igd", parts)


if __name__ == "__main__":
    write(__file__, flow())
