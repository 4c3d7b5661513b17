"""`igd predict --engine ray`: score images on a cluster, into shards."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from igd.cli.common import progress_of
from igd.cli.engine_flags import ray_cluster
from igd.cli.predict_command import conclude
from igd.cli.verdict_lines import made_from
from igd.engines.shard_scoring import score_shards
from igd.engines.shards import MANIFEST, ScoredShard, ShardFolder
from igd.errors import UserError
from igd.inference.mismatch import check_mismatch, counted_lines
from igd.inference.predictor import Predictor


def predict_shards(options: argparse.Namespace, predictor: Predictor, names: list[str]) -> int:
    """Score the images that the folder's manifest does not have yet."""
    folder = ShardFolder(
        options.out,
        options.format,
        made_from(options.model, predictor),
        resume=options.resume,
        overwrite=options.overwrite,
    )
    shards, output = folder.plan(names, predictor.batch_), sys.stdout
    total, differing, lost = sum(len(shard.names) for shard in shards), Counter[str](), set[str]()
    if len(names) > total:
        print(f"igd: {len(names) - total} of {len(names)} images have scores", file=sys.stderr)
    if shards:
        with ray_cluster(options) as workers:
            scored = score_shards(
                options.model, predictor.false_alarm_rate_, shards, min(workers, len(shards))
            )
            progress = progress_of(options)
            for shard in progress.track(scored, total, "scoring", lambda each: len(each.rows)):
                if shard.restarted and shard.worker not in lost:
                    lost.add(shard.worker)
                    progress.say(
                        f"a worker was lost; {shard.worker} took its place, and what it was "
                        f"scoring was scored again"
                    )
                if options.strict:
                    _refuse(shard)
                folder.write(shard)
                differing.update(each for some in shard.mismatches.values() for each in some)
                if options.json:
                    output.write("".join(json.dumps(row) + "\n" for row in shard.rows))
    written = f"scores-*.{options.format}, and {MANIFEST}, which says which of them count"

    def close() -> None:
        for line in counted_lines(differing, total):
            print(f"igd: {line}", file=sys.stderr)
        print(f"igd: {folder.tally}", file=sys.stderr)

    return conclude(options, folder.tally, close, written)


def _refuse(shard: ScoredShard) -> None:
    """What --strict refuses."""
    for row in shard.rows:
        if row["error"]:
            raise UserError(row["error"])
    for name, found in shard.mismatches.items():
        check_mismatch(name, tuple(found))
