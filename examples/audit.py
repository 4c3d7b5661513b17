"""Which 'normal' images are not? Hide defects among the training images and see whether the audit
finds them.

python examples/audit.py           # bricks that come with igd
python examples/audit.py bottle    # a data set in MVTec's layout
"""

import sys
from pathlib import Path

from igd import IGD
from igd.data.demo import make_demo
from igd.data.reading import read_dataset
from igd.evaluation.audit import audit, write_audit_page

PLANTED = 6
OUT = Path("igd-examples")


def main(folder: Path) -> None:
    dataset = read_dataset(folder)
    defects = [sample for sample in dataset.test if sample.label][::3][:PLANTED]
    ranked = audit([*dataset.train, *defects], IGD(image_size=128), folds=2)
    planted = {sample.identifier for sample in defects}
    for rank, image in enumerate(ranked[: 2 * PLANTED], start=1):
        note = "planted" if image.name in planted else ""
        print(
            f"{rank:>3}  deviation {image.deviation:6.1f}  "
            f"{Path(image.name).parent.name}/{Path(image.name).name}  {note}"
        )
    found = sum(image.name in planted for image in ranked[:PLANTED])
    OUT.mkdir(exist_ok=True)
    write_audit_page(
        OUT / "audit.html",
        ranked,
        f"Audit of {folder}",
        f"{len(ranked)} images, {PLANTED} of them planted",
    )
    print(
        f"{found} of {PLANTED} planted defects are among the first {PLANTED} of {len(ranked)}; "
        f"look: {OUT / 'audit.html'}"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else make_demo(OUT / "bricks"))
