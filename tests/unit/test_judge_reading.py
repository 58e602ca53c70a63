"""How the local judge takes transcripts and memories apart."""

import pytest

from sidecar.domain.evidence import SliceKind
from sidecar.domain.judgement import JudgeCase, TranscriptPiece
from sidecar.domain.judging.cues import negated_keys
from sidecar.domain.judging.reading import Reading
from sidecar.domain.judging.terms import Spoken, figures_of, spoken, terms_of
from sidecar.domain.judging.traces import Traces
from sidecar.domain.judging.utterances import Source, Utterance, utterances_of
from sidecar.domain.memory import MemoryType

ID = "mem_01KVZ6A3B4C5D6E7F8G9H0J1K2"


def case(content: str, *after: tuple[SliceKind, str], before: str = "", others: tuple[str, ...] = ()) -> JudgeCase:
    """Return a case of one memory; `before` is what the user asked."""
    context = (TranscriptPiece(SliceKind.USER_TEXT, before),) if before else ()
    pieces = tuple(TranscriptPiece(kind, text) for kind, text in after)
    return JudgeCase(ID, content, MemoryType.FACT, 3.0, others, context, pieces)


def said_by(source: Source, *after: tuple[SliceKind, str]) -> list[str]:
    """Return the texts of one source."""
    return [utterance.text for utterance in utterances_of(case("x", *after)) if utterance.source is source]


def traces(case_: JudgeCase) -> Traces:
    """Return a memory's traces, every word being as rare as can be."""
    return Traces(case_.content, case_.others, Reading(case_), lambda _word: 1.0)


def test_edit_says_what_is_new_and_quotes_what_was_there() -> None:
    """The text that an edit replaces stood in the file; only the new text is the agent's."""
    edit = (SliceKind.TOOL_CALL, "Edit file_path: src/kiln.py\nold_string: heat = 900\nnew_string: heat = 1040")
    assert said_by(Source.QUOTED, edit) == ["heat = 900"]
    assert said_by(Source.DONE, edit) == ["src/kiln.py\nheat = 1040"]


def test_patch_is_split_into_old_and_new_lines() -> None:
    """Lines with a minus or a blank were there before."""
    patch = (
        "*** Begin Patch\n*** Update File: oven/kiln.py\n@@\n ready = True\n-heat = 900\n+heat = 1040\n*** End Patch"
    )
    call = (SliceKind.TOOL_CALL, f"apply_patch input: {patch}")
    assert said_by(Source.QUOTED, call) == ["ready = True\nheat = 900"]
    assert said_by(Source.DONE, call)[0].endswith("oven/kiln.py\nheat = 1040")


def test_several_edits_in_one_call_are_read() -> None:
    """An array of edits is as good as one edit."""
    call = (SliceKind.TOOL_CALL, 'MultiEdit file_path: a.py\nedits: [{"old_string":"tin","new_string":"brass"}]')
    assert said_by(Source.QUOTED, call) == ["tin"]
    assert "brass" in said_by(Source.DONE, call)[0]


def test_cut_array_of_edits_is_taken_as_new_text() -> None:
    """A long input arrives cut, and is then no JSON any more."""
    call = (SliceKind.TOOL_CALL, 'MultiEdit edits: [{"old_string":"tin","new_string":"bra…')
    assert "bra" in said_by(Source.DONE, call)[0]


def test_shell_wrapper_is_taken_off() -> None:
    """Codex runs commands through a shell that says nothing about them."""
    call = (SliceKind.TOOL_CALL, 'shell command: ["bash","-lc","fire \\"kiln 3\\"\\nwait"]')
    assert said_by(Source.DONE, call)[0].endswith('fire "kiln 3"\nwait')


@pytest.mark.parametrize(
    "call", ["Bash command: grep -rn glaze src", "Read file_path: src/glaze.py", "Bash command: kiln --help"]
)
def test_looking_is_no_deed(call: str) -> None:
    """To search for a value is not to use it."""
    assert said_by(Source.LOOKED, (SliceKind.TOOL_CALL, call))
    assert not said_by(Source.DONE, (SliceKind.TOOL_CALL, call))


def test_comments_and_commit_messages_are_words_too() -> None:
    """They are often the only trace of a reason."""
    call = (SliceKind.TOOL_CALL, 'Bash command: git commit -m "Cool the kiln slowly"')
    assert said_by(Source.NOTED, call) == ["Cool the kiln slowly"]
    written = (SliceKind.TOOL_CALL, "Write file_path: k.py\ncontent: heat = 1040  # above that the glaze runs")
    assert said_by(Source.NOTED, written) == ["above that the glaze runs"]


def test_printed_recall_is_nobodys_words() -> None:
    """A result or a list with memory ids repeats the memories and shows no use."""
    printed = (SliceKind.TOOL_OUTPUT, f'{{"memories":[{{"id":"{ID}","content":"The glaze runs above 1040."}}]}}')
    listed = (SliceKind.AGENT_TEXT, f"1. {ID}: The glaze runs above 1040.\nShall I go on?")
    assert [u.text for u in utterances_of(case("x", printed, listed))] == ["Shall I go on?"]


def test_turns_before_the_recall_are_negative() -> None:
    """What was known before explains what is said later."""
    assert utterances_of(case("x", before="Fire it. Now.")) == (
        Utterance(Source.CONTEXT, "Fire it", -1),
        Utterance(Source.CONTEXT, "Now", -1),
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("300 s", "five minutes"),
        ("1 400 rows", "1400 rows"),
        ("60_000", "60,000"),
        ("6 h", "six hours"),
        ("16,8 Tage", "16.8 days"),
    ],
)
def test_figures_are_the_same_in_other_units_and_spellings(one: str, other: str) -> None:
    """People and code write one figure in many ways."""
    assert figures_of(one) & figures_of(other)


@pytest.mark.parametrize(("one", "other"), [("port 8088", "port 8080"), ("3.14", "3.41"), ("30 s", "30 min")])
def test_near_misses_are_other_figures(one: str, other: str) -> None:
    """A digit makes the difference; only the bare number of a time is shared."""
    assert not {key for key in figures_of(one) & figures_of(other) if not key.startswith("n:30")}


def test_names_match_whole_and_filled_in() -> None:
    """A path is found in a longer one, a scheme in what follows it, and neither within another word."""
    terms = {
        term.key: term for term in terms_of("Store under ash/<batch>/glaze.toml, run `kiln fire --slow`, see cone6.")
    }
    assert spoken("cp x ash/b12/glaze.toml").says(terms["ash/*/glaze.toml"])
    assert not spoken("cp x ash/glaze.toml").says(terms["ash/*/glaze.toml"])
    assert spoken("sudo kiln  fire --slow now").says(terms["kiln fire --slow"])
    assert not spoken("acone6x").says(terms["cone6"])


def test_what_is_warned_of_is_known() -> None:
    """`never X` does not recommend X; what is named elsewhere as well is not denied."""
    denied = negated_keys("Use brass, never tin or zinc; zinc is fine outside.")
    assert {"tin"} <= denied
    assert not {"brass", "zinc"} & denied


def test_first_speaker_gets_the_credit() -> None:
    """What the user or a file said first is not the memory's doing."""
    content = "Kiln three must stay below 1040 degrees because the celadon runs."
    alone = traces(
        case(content, (SliceKind.AGENT_TEXT, "I keep it below 1040 so the celadon holds."), before="Fire it.")
    )
    told = traces(
        case(content, (SliceKind.AGENT_TEXT, "I keep it below 1040."), before="Keep it below 1040, the celadon runs.")
    )
    assert any(trace.term.key == "celadon" for trace in alone.novel)
    assert not any(trace.is_strong for trace in told.novel)


def test_terms_of_several_memories_tell_little() -> None:
    """A word that all shown memories share points to none of them."""
    after = (SliceKind.AGENT_TEXT, "Checking the celadon.")
    alone = traces(case("The celadon runs.", after))
    shared = traces(case("The celadon runs.", after, others=("The celadon is dear.",)))
    assert sum(trace.weight for trace in shared.novel) < sum(trace.weight for trace in alone.novel)


def test_undone_deed_is_seen() -> None:
    """The agent replaces its own text: what it had put there is taken back."""
    put = (SliceKind.TOOL_CALL, "Edit file_path: k.py\nold_string: heat = 900\nnew_string: heat = celadon_limit")
    back = (SliceKind.TOOL_CALL, "Edit file_path: k.py\nold_string: heat = celadon_limit\nnew_string: heat = 900")
    assert Reading(case("x", put, back)).undone_turns == (0,)
    assert Reading(case("x", put)).undone_turns == ()


def test_spoken_reads_no_more_than_it_must() -> None:
    """A huge text is cut before the costly part."""
    assert isinstance(spoken("glaze " * 1_000_000), Spoken)
