"""Labels, scores and the model behind a verdict."""

import json

import pytest

from sidecar.domain.evidence import SliceKind
from sidecar.domain.judgement import Verdict
from sidecar.domain.judging.labelled import Label, read_labelled
from sidecar.domain.judging.model import JudgeModel, Question, SignalWeight, calibrated
from sidecar.domain.judging.scoring import Asked, Judged, by_kind, calibration_error, score
from sidecar.errors import BadLabelledLineError

LINE = {
    "id": "t1",
    "project": "pottery",
    "shown": [
        {"id": "a", "type": "fact", "content": "Cone 6 is 1222 degrees.", "age_days": 2},
        {"id": "b", "type": "gotcha", "content": "Celadon runs.", "age_days": 0.5},
    ],
    "before": [{"role": "user", "text": "Fire it."}],
    "after": [
        {"role": "assistant", "kind": "text", "text": "Firing."},
        {"role": "assistant", "kind": "tool_call", "name": "Bash", "input": {"command": "kiln fire", "args": [1]}},
        {"role": "tool", "text": "ok"},
    ],
    "labels": {
        "a": {"used": True, "relevant": True, "misled": False, "why": "", "kind": "verbatim_citation"},
        "b": {"used": False, "relevant": False, "misled": False},
    },
}


def test_line_gives_a_case_for_each_memory() -> None:
    """Tool calls are rendered as the plugins do; each case knows the other memories."""
    first, second = read_labelled(["", json.dumps(LINE)])
    assert (first.case.memory_id, first.case.others, first.label.kind) == ("a", ("Celadon runs.",), "verbatim_citation")
    assert second.label == Label(used=False, relevant=False, misled=False)
    assert [piece.kind for piece in first.case.after] == [
        SliceKind.AGENT_TEXT,
        SliceKind.TOOL_CALL,
        SliceKind.TOOL_OUTPUT,
    ]
    assert first.case.after[1].text == "Bash command: kiln fire\nargs: [1]"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "Expecting"),
        ("[1]", "the line is no object"),
        (json.dumps(LINE | {"labels": {"a": {}}}), "`used`"),
        (json.dumps(LINE | {"labels": 3}), "`labels` is no object"),
        (json.dumps(LINE | {"shown": "x"}), "`shown` is no list"),
        (json.dumps(LINE | {"after": [{"role": "ghost", "text": ""}]}), "ghost"),
        (json.dumps(LINE | {"shown": [{"id": "a", "type": "fct", "content": "", "age_days": 1}]}), "fct"),
        (json.dumps(LINE | {"shown": [{"id": "a", "type": "fact", "content": "", "age_days": -1}]}), "age_days"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_bad_line_is_told_by_number(line: str, problem: str) -> None:
    """Whoever labels by hand needs to find the line."""
    with pytest.raises(BadLabelledLineError) as caught:
        list(read_labelled([json.dumps(LINE), line]))
    assert caught.value.metadata["line"] == "2"
    assert problem in caught.value.message


def judged(*, used: bool, chance: float, kind: str = "") -> Judged:
    """Return a case of which only `used` matters."""
    return Judged(Label(used=used, relevant=used, misled=False, kind=kind), Verdict("a", chance, chance, 0.0))


def test_score_counts_and_never_divides_by_nothing() -> None:
    """No yes at all has no precision, rather than one of 0."""
    entries = [judged(used=True, chance=0.9), judged(used=True, chance=0.1), judged(used=False, chance=0.7)]
    counts = score(entries, Asked.USED)
    assert (counts.tp, counts.fp, counts.fn, counts.tn) == (1, 1, 1, 0)
    assert (counts.precision, counts.recall, counts.f1) == (0.5, 0.5, 0.5)
    nothing = score([judged(used=False, chance=0.1)], Asked.USED)
    assert (nothing.precision, nothing.recall, nothing.f1) == (None, None, None)


def test_missing_verdict_counts_as_no() -> None:
    """A judge that gives no answer must not look better for it."""
    entry = Judged(Label(used=True, relevant=True, misled=False), None)
    assert score([entry], Asked.USED).fn == 1
    assert calibration_error([entry], Asked.USED) is None


def test_calibration_error_is_the_gap() -> None:
    """Nine times 0.9 of which five are so miss by what lies between."""
    entries = [judged(used=number < 5, chance=0.9) for number in range(10)]
    assert calibration_error(entries, Asked.USED) == pytest.approx(0.4)


def test_kinds_are_listed_in_order() -> None:
    """Cases without a kind belong to none."""
    entries = [judged(used=True, chance=1, kind=kind) for kind in ("b", "", "a", "b")]
    assert {kind: len(found) for kind, found in by_kind(entries).items()} == {"a": 1, "b": 2}


def test_curve_is_straight_between_its_points() -> None:
    """Readable: anybody can compute it."""
    curve = ((0.0, 0.0), (0.4, 0.6), (1.0, 1.0))
    assert [calibrated(raw, curve) for raw in (0.0, 0.2, 0.4, 0.7, 1.0)] == pytest.approx([0.0, 0.3, 0.6, 0.8, 1.0])


def question(bias: float) -> Question:
    """Return a question with one signal."""
    return Question(bias, {"x": SignalWeight(1.0, 0.0, 1.0)}, ((0.0, 0.0), (1.0, 1.0)))


@pytest.mark.parametrize("x", [-1e308, -3.0, 0.0, 3.0, 1e308])
def test_what_misled_was_not_used_and_either_was_relevant(x: float) -> None:
    """The three probabilities of a verdict never contradict each other."""
    verdict = JudgeModel("t", question(2.0), question(-9.0), question(1.0)).verdict("a", {"x": x})
    assert 0 <= verdict.used <= 1 - verdict.misled
    assert verdict.relevant >= max(verdict.used, verdict.misled)
    assert not (verdict.is_used and verdict.is_misled)
