"""`sidecar demo`: plays the story and tells it."""

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import typer
from rich.console import Console

from sidecar.cli.demo.play import Outcome, Ranked, RecallShown, play
from sidecar.cli.invocation import Invocation, JsonOption

_WIDEST = 80


def demo(
    context: typer.Context,
    as_json: JsonOption = False,  # noqa: FBT002 - typer's way
) -> None:
    """Show the main job in under a minute: memories are recalled, what a session used is recognised and ranks higher.

    Plays recorded sessions of the real Claude Code through the real watcher into a store of its own, which is removed
    afterwards. Needs no network; your own memories and transcripts are not touched.
    """
    console = Console(stderr=True)
    with console.status("starting a sidecar") as status:
        outcome = play(status.update)
    if Invocation.of(context, None, is_json=as_json).output.is_json:
        json.dump(_document(outcome), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        # Plainly, so that the commands at the end can be copied whole.
        for line in _tell(outcome, min(Console().width, _WIDEST)):
            typer.echo(line)


def _tell(outcome: Outcome, width: int) -> Iterator[str]:
    """Yield the story, line by line."""
    story = outcome.story
    yield from _wrapped(f"{len(story.memories)} memories of a made-up project. {story.about}", width)
    yield from _wrapped(
        f"{len(outcome.recalls)} recorded sessions of the real Claude Code were just played through the watcher. What "
        "each recall had shown the agent was read from the transcript, and so was what the agent made of it.",
        width,
    )
    for number, recall in enumerate(outcome.recalls, 1):
        yield f'{number}. The agent asks: "{recall.query}"'
        yield f"   It was shown {len(recall.shown)} memories and {_used_in_words(len(recall.used))}:"
        for memory_id in recall.shown:
            yield from _shown(outcome.contents[memory_id], is_used=memory_id in recall.used, width=width)
        yield from _ranked_now(outcome, recall, width)
        yield ""
    yield from _wrapped(
        "A memory that the agent built on or replaced counts as used; being shown changes nothing. A score is "
        "relevance, 0 to 1, times small factors for type, age and use.",
        width,
    )
    yield f"Took {outcome.duration_s:.0f} s. The demo's store is gone again; nothing of yours was touched."
    yield ""
    yield "Next: give your own agents this memory (`disconnect all` undoes it exactly),"
    yield ""
    yield f"    {_own_command()} connect all"
    yield ""
    yield "work as usual, and see what your sessions were shown:"
    yield ""
    yield f"    {_own_command()} sessions"


def _used_in_words(count: int) -> str:
    return f"used {count}" if count else "used none"


def _shown(content: str, *, is_used: bool, width: int) -> Iterator[str]:
    if is_used:
        yield from textwrap.wrap(
            content, width, initial_indent="   * used: ", subsequent_indent="     ", break_on_hyphens=False
        )
    else:
        yield f"     {textwrap.shorten(content, width - 5, placeholder=' ...')}"


def _ranked_now(outcome: Outcome, recall: RecallShown, width: int) -> Iterator[str]:
    """Tell what became of this question's ranking, naming only what evidence moved."""
    before = {ranked.memory_id: place for place, ranked in enumerate(outcome.before[recall.query], 1)}
    after = {ranked.memory_id: place for place, ranked in enumerate(outcome.after[recall.query], 1)}
    if not recall.used:
        yield "   Asked again: the same, since nothing was used."
        return
    yield "   Asked again:"
    scores = {ranked.memory_id: ranked.score for ranked in outcome.before[recall.query]}
    for ranked in outcome.after[recall.query]:
        if ranked.reinforcement <= 1:
            continue
        told = f"new at place {after[ranked.memory_id]}, score {ranked.score:.2f}, it replaces the one that was used"
        if ranked.memory_id in before:
            moved = f"from place {before[ranked.memory_id]} to {after[ranked.memory_id]}"
            told = f"{moved}, score {scores[ranked.memory_id]:.2f} -> {ranked.score:.2f}"
        line = f"{told} (use x {ranked.reinforcement:.2f}): {ranked.content}"
        yield from textwrap.wrap(line, width, initial_indent="   * ", subsequent_indent="     ", break_on_hyphens=False)


def _wrapped(text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(text, width)
    yield ""


def _own_command() -> str:
    """Return how this command is reached from anywhere: clients start it with a bare search path."""
    return str(Path(shutil.which("sidecar") or sys.argv[0]).absolute())


def _document(outcome: Outcome) -> dict[str, object]:
    return {
        "project": outcome.story.project,
        "memories": len(outcome.story.memories),
        "recalls": [
            {
                "query": recall.query,
                "shown": [{"memory_id": shown, "content": outcome.contents[shown]} for shown in recall.shown],
                "used": sorted(recall.used),
            }
            for recall in outcome.recalls
        ],
        "before": {query: [_line(ranked) for ranked in ranking] for query, ranking in outcome.before.items()},
        "after": {query: [_line(ranked) for ranked in ranking] for query, ranking in outcome.after.items()},
        "duration_s": outcome.duration_s,
    }


def _line(ranked: Ranked) -> dict[str, object]:
    return {
        "memory_id": ranked.memory_id,
        "content": ranked.content,
        "score": ranked.score,
        "reinforcement": ranked.reinforcement,
    }
