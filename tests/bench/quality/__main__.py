"""Measures how well memories are found, ours beside plain baselines.

Run: python -m tests.bench.quality [--set locomo --set cranfield ...] [--labelled FILE] [--json] [--answers FILE]
"""

import argparse
import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from sidecar.use_cases.recall import RecallPolicy
from tests.bench.quality import golden_set, public_sets
from tests.bench.quality.collections import DataSet
from tests.bench.quality.embedding_cache import CachedEmbedder, cache_path
from tests.bench.quality.measuring import Asked, measure
from tests.bench.quality.reporting import document, table, write_answers


def _public(read: Callable[[], DataSet]) -> Callable[[], Iterator[DataSet]]:
    def sets() -> Iterator[DataSet]:
        # They lie beside the project and are not shipped.
        if public_sets.DATA.exists():
            yield read()

    return sets


SETS: Final[dict[str, Callable[[], Iterator[DataSet]]]] = {
    "locomo": _public(public_sets.locomo),
    "cranfield": _public(public_sets.cranfield),
    "cosqa": _public(public_sets.cosqa),
    "golden": golden_set.golden,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.quality", description=__doc__.splitlines()[0])
    parser.add_argument("--set", action="append", choices=list(SETS), help="only this one; may be repeated")
    parser.add_argument("--labelled", type=Path, action="append", default=[], help="a JSONL file of your own")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--answers", type=Path, help="write one line for each question and ranker to this file")
    chosen = parser.parse_args()
    names = chosen.set or ([] if chosen.labelled else list(SETS))
    data_sets = [data_set for name in names for data_set in SETS[name]()]
    if chosen.labelled:
        data_sets.append(golden_set.labelled_files(chosen.labelled, name="labelled"))
    embedder = CachedEmbedder(cache_path())
    asked: dict[str, list[Asked]] = {}
    try:
        for data_set in data_sets:
            asked[data_set.name] = asyncio.run(measure(data_set, embedder, RecallPolicy()))
            if not chosen.json:
                print(table(data_set.name, asked[data_set.name]), end="\n\n", flush=True)
    finally:
        embedder.close()
    if chosen.json:
        print(json.dumps(document(asked), indent=2))
    if chosen.answers:
        write_answers(chosen.answers, asked)


if __name__ == "__main__":
    main()
