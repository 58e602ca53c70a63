"""The quality harness: figures are what they say, and labelled files go through the real recall."""

import json
from pathlib import Path

import pytest

from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.use_cases.recall import RecallPolicy
from tests.bench.quality.baselines import fused
from tests.bench.quality.figures import interval, question_figures
from tests.bench.quality.golden_set import labelled_files
from tests.bench.quality.measuring import OURS, RANKERS, floor_costs, measure
from tests.bench.quality.reporting import document, table, write_answers

MEMORIES = (
    ("m1", "decision", "We deploy on Tuesdays only, because support is fully staffed then.", None),
    ("m2", "gotcha", "pg_dump fails with ERR_VERSION when the client is older than the server.", None),
    ("m3", "convention", "Line length is 100, checked by the formatter in CI.", "m4"),
    ("m4", "convention", "Line length is 120, checked by the formatter in CI.", None),
)
QUERIES: tuple[tuple[str, str, list[str], str], ...] = (
    ("q1", "on which day do we roll out", ["m1"], "vague"),
    ("q2", "pg_dump: ERR_VERSION", ["m2"], "error"),
    ("q3", "how long may a line be", ["m4"], "question"),
    ("q4", "which colour does the logo have", [], "no_answer"),
)


def test_figures_of_a_ranking_worked_out_by_hand() -> None:
    """Two of three right ones, at places 2 and 6."""
    found = question_figures(["x", "a", "y", "z", "v", "b"], {"a": 1, "b": 1, "c": 1})
    assert (found["any@5"], found["all@10"], found["MRR@10"]) == (1.0, 0.0, 0.5)
    assert found["R@5"] == pytest.approx(1 / 3)
    assert found["R@10"] == pytest.approx(2 / 3)
    assert found["nDCG@10"] == pytest.approx((0.63093 + 0.35621) / (1 + 0.63093 + 0.5), abs=1e-4)


def test_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    """A figure that moves by itself could not be compared."""
    found = interval([0.0, 1.0] * 50)
    assert found.low < found.mean == 0.5 < found.high
    assert interval([0.0, 1.0] * 50) == found


def test_fusion_prefers_what_both_rankings_hold() -> None:
    """1/61 + 1/62 is more than 1/61."""
    assert fused([["a", "b"], ["b", "c"]])[0] == "b"


async def test_labelled_file_goes_through_the_real_recall(tmp_path: Path) -> None:
    """Superseded memories do not come back, and a question without an answer counts for the floor alone."""
    path = tmp_path / "shop.jsonl"
    lines: list[dict[str, object]] = [
        {"kind": "memory", "id": i, "type": t, "content": c, "age_days": 3, "superseded_by": s}
        for i, t, c, s in MEMORIES
    ]
    lines += [{"kind": "query", "id": i, "text": t, "answers": a, "style": s} for i, t, a, s in QUERIES]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    asked = await measure(labelled_files([path], name="shop"), OnnxMiniLmEmbedder(), RecallPolicy())
    assert len(asked) == len(QUERIES) * len(RANKERS)
    assert all("m3" not in one.ranked for one in asked)
    ours = {one.question.name: one for one in asked if one.ranker == OURS}
    assert ours["q2"].ranked[0] == "m2"
    assert ours["q4"].figures == {}
    assert floor_costs(asked, cut=5)
    assert "**shop**, 3 questions" in table("shop", asked)
    assert json.loads(json.dumps(document({"shop": asked})))["shop"][OURS]["R@10"]["mean"] > 0.6
    write_answers(tmp_path / "answers.jsonl", {"shop": asked})
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == len(asked)
