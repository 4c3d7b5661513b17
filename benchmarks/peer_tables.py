"""Tables of other people's detectors; anomalib's beside ours on the same sets."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean
from typing import Any

from markdown_table import table

from igd.benchmark.comparison import tables_of
from igd.benchmark.field_tables import figures_of
from igd.benchmark.result_tables import markdown
from igd.benchmark.run_store import Record, records_of
from igd.benchmark.series import Series, series_of

PEER_NOTES = """PaDiM (Defard et al., 2021), PatchCore1 (Roth et al., 2022; it keeps one patch in a
hundred, where anomalib's default is one in ten) and MHPatchCore (Ferrari et al., 2026) are those of
anomalib, on a ResNet18 of ImageNet. Ours reads an EfficientNet-Lite0: backbones differ as well as
methods, and the 15 sets are those that ours was developed on, which the peers were not. The
peers get the whole image resized to 256 x 256 pixels; ours reads as many in the image's own
proportions, and enlarges them by a quarter for its backbone. Thresholds of
both come from training images scored by a model that had not learnt from them. Time is CPU time of
one thread on a busy machine, without what the peers' threshold takes, and with a faster selection
of patches than anomalib's; memory is that of the process, with the embeddings of all training
images in it.
"""


def peer_tables(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """Peers beside ours: every set, each peer's distance from ours, then each peer alone."""
    of_peers = [by_anomalib(record) for record in records_of(theirs)]
    both = [*records_of(ours), *of_peers]
    every, *_ = tables_of(both)
    _, *alone = tables_of(of_peers)
    own, *peers = series_of(both, "field")
    rows = [peer_row(own, each) for each in peers]
    names = ("peer", "sets", "ours", "theirs", "ours - theirs", "lowest", "2 points behind on")
    costs = ("training, s", "scoring, ms an image", "peak memory, MB")
    return (
        f"{markdown([replace(every, title='field: anomalib beside ours, image AUROC')])}\n"
        f"{table((*names, *costs), rows)}\n{PEER_NOTES}\n{markdown(alone)}"
    )


def by_anomalib(record: Record) -> Record:
    """What made a peer's run is anomalib; igd read the images and measured, in one version or the
    next.
    """
    assert record.result
    version = record.result["method"]["anomalib"]
    return replace(record, run=replace(record.run, made_by=f"anomalib {version}"))


def peer_row(own: Series, peer: Series) -> list[str]:
    """Image AUROC of ours and of a peer over the sets that both have, and what the peer costs."""
    ours, theirs = figures_of(own, "image_auroc"), figures_of(peer, "image_auroc")
    ahead = {name: ours[name].value - theirs[name].value for name in theirs if name in ours}
    lowest = min(ahead, key=lambda name: ahead[name])
    behind = [name for name, difference in ahead.items() if difference < -0.02]
    results = [record.result or {} for record in peer.records]
    return [
        peer.label,
        str(len(ahead)),
        f"{mean(ours[name].value for name in ahead):.3f}",
        f"{mean(theirs[name].value for name in ahead):.3f}",
        f"{mean(ahead.values()):+.3f}",
        f"{ahead[lowest]:+.3f} ({lowest})",
        ", ".join(behind) or "none",
        f"{mean(each['method']['cpu_seconds_of_training'] for each in results):.0f}",
        f"{mean(each['method']['cpu_ms_an_image'] for each in results):.0f}",
        f"{max(each['peak_memory_mb'] for each in results)}",
    ]


def detectors_table(result: dict[str, Any]) -> str:
    names = [row["category"] for row in result["categories"]]
    rows = [
        [name, *(f"{row['image_auroc'][name]:.3f}" for row in result["categories"]), f"{mean:.3f}"]
        for name, mean in result["means"].items()
    ]
    return f"{table(('detector', *names, 'mean'), rows)}\nPyOD {result['pyod']}.\n"
