"""`sidecar demo`: plays the story and tells it."""

import json
import shutil
import sys
import textwrap
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sidecar.cli.demo.play import Outcome, Ranked, play
from sidecar.cli.invocation import Invocation, JsonOption

_CONTENT_WIDTH = 58


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
        _tell(outcome, Console())


def _tell(outcome: Outcome, console: Console) -> None:
    console.print(f"[bold]1. {len(outcome.story.memories)} memories of a made-up project[/bold]")
    console.print(f"{outcome.story.about}\n")
    console.print("[bold]2. What recorded Claude Code sessions were shown, read from their transcripts[/bold]")
    for number, recall in enumerate(outcome.recalls, 1):
        console.print(_recall_table(number, outcome, recall.query, recall.shown, recall.used))
    console.print("[bold]3. The same questions before and after[/bold]")
    for recall in outcome.recalls:
        if recall.used:
            console.print(_ranking_table(outcome, recall.query))
        else:
            console.print(f'"{recall.query}": nothing was used, so nothing is ranked otherwise.')
    console.print(
        "\nA memory that the agent built on or replaced counts as used; merely being shown changes nothing.\n"
        f"Took {outcome.duration_s:.0f} s. The demo's store is gone; nothing of yours was touched.\n"
    )
    console.print("[bold]Next: give your own Claude Code this memory[/bold]")
    console.print(Text(f"    claude mcp add --scope user memory -- {_own_command()} mcp"))
    console.print("then work as usual, and see what your sessions were shown:")
    console.print("    sidecar sessions")


def _recall_table(number: int, outcome: Outcome, query: str, shown: tuple[str, ...], used: frozenset[str]) -> Table:
    table = Table(title=f'recall {number}: "{query}"', title_justify="left", show_header=True, width=78)
    table.add_column("shown to the agent", ratio=1)
    table.add_column("used", justify="center", width=6)
    for memory_id in shown:
        is_used = memory_id in used
        table.add_row(Text(_short(outcome.contents[memory_id])), Text("used" if is_used else "", style="bold green"))
    return table


def _ranking_table(outcome: Outcome, query: str) -> Table:
    table = Table(title=f'"{query}"', title_justify="left", width=78)
    table.add_column("now", justify="right", width=3)
    table.add_column("before", justify="right", width=6)
    table.add_column("memory", ratio=1)
    table.add_column("score", justify="right", width=13)
    before = {ranked.memory_id: (place, ranked) for place, ranked in enumerate(outcome.before[query], 1)}
    now = {ranked.memory_id for ranked in outcome.after[query]}
    for place, ranked in enumerate(outcome.after[query], 1):
        was_place, was = before.get(ranked.memory_id, (None, None))
        style = "bold green" if ranked.reinforcement > 1 else ""
        table.add_row(
            str(place),
            str(was_place or "new"),
            Text(_short(ranked.content), style=style),
            _score(was, ranked),
        )
    for memory_id, (was_place, was) in before.items():
        if memory_id not in now and was is not None:
            table.add_row("-", str(was_place), Text(_short(was.content), style="dim"), f"{was.score:.2f}")
    return table


def _score(was: Ranked | None, now: Ranked) -> str:
    """Return the score, and the one before if evidence changed it; new neighbours move the others a trifle, too."""
    if was is None or was.reinforcement == now.reinforcement:
        return f"{now.score:.2f}"
    return f"{was.score:.2f} -> {now.score:.2f}"


def _short(content: str) -> str:
    return textwrap.shorten(content, 2 * _CONTENT_WIDTH, placeholder=" ...")


def _own_command() -> str:
    """Return how this command is reached from anywhere: clients start it with a bare search path."""
    return str(Path(shutil.which("sidecar") or sys.argv[0]).absolute())


def _document(outcome: Outcome) -> dict[str, object]:
    return {
        "project": outcome.story.project,
        "memories": len(outcome.story.memories),
        "recalls": [
            {"query": recall.query, "shown": list(recall.shown), "used": sorted(recall.used)}
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
