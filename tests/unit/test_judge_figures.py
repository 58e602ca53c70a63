"""The figures that docs/judge.md publishes, on the development transcripts where they are at hand."""

import json
from pathlib import Path

import pytest

from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.adapters.judges.local import LocalJudge
from sidecar.adapters.judges.weights_file import WEIGHTS_PATH
from sidecar.domain.judging.labelled import read_labelled
from sidecar.domain.judging.scoring import Asked, Judged, score

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "usage" / "dev.jsonl"
# Least F1 on the transcripts that the weights were fitted on: a change of a signal that forgets to fit again shows.
LEAST = {Asked.USED: 0.80, Asked.RELEVANT: 0.87, Asked.MISLED: 0.78}


@pytest.mark.slow
def test_shipped_weights_fit_the_signals() -> None:
    """Signals and weights belong together; either changed alone makes the judge quietly worse."""
    if not DATA.exists():
        pytest.skip("the labelled transcripts in ../shared are not here")
    cases = list(read_labelled(DATA.read_text(encoding="utf-8").split("\n")))
    verdicts = LocalJudge(OnnxMiniLmEmbedder()).judge_now([entry.case for entry in cases])
    judged = [Judged(entry.label, verdict) for entry, verdict in zip(cases, verdicts, strict=True)]
    for asked, least in LEAST.items():
        f1 = score(judged, asked).f1
        assert f1 is not None
        assert f1 >= least, (asked, f1)


def test_weights_tell_where_they_come_from() -> None:
    """Numbers without data, date and command cannot be made again."""
    document = json.loads(WEIGHTS_PATH.read_text(encoding="utf-8"))
    assert {"data", "data_sha256", "date", "command", "cross_validated_by_project"} <= set(document["fitted"])
