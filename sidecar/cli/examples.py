"""The examples, exit codes and related commands of every command: words only. A test parses each example."""

from collections.abc import Mapping
from typing import Final

from sidecar.cli.command_help import ANY, ASKING, CommandHelp, Example
from sidecar.cli.exit_codes import ExitCode

_ID: Final = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"
_OTHER: Final = "mem_01J8ZQ5A2C4E6G8J0M2P4R6T8W"
_ABOUT_ONE: Final = (*ASKING, ExitCode.NOT_FOUND)
_MAY_CONFLICT: Final = (*_ABOUT_ONE, ExitCode.CONFLICT)
_WITHOUT_SIDECAR: Final = (*ANY, ExitCode.NOT_ALLOWED, ExitCode.STORAGE)


def _help(related: str, *examples: tuple[str, str], exits: tuple[ExitCode, ...] = ASKING) -> CommandHelp:
    names = tuple(name.strip() for name in related.split(","))
    return CommandHelp(tuple(Example(f"sidecar {line}", does) for line, does in examples), exits, names)


_MEMORIES: Final = {
    "remember": _help(
        "recall, forget, import",
        ('remember "Deploys go out on Tuesday, never on Friday." --type convention', "for this folder's project"),
        ('remember "I prefer small commits." -t preference -n global', "for every project"),
        (f'remember "Deploys moved to Wednesday." --supersedes {_ID}', "in the place of an older memory"),
        ("remember - --metadata '{\"ticket\": 7}'", "the text from stdin, with what belongs to it"),
        exits=_ABOUT_ONE,
    ),
    "recall": _help(
        "list, why, context",
        ("recall when do we deploy", "what bears on it in this project and in `global`"),
        ("recall 'berth cache' --namespace '*' --limit 10", "in every project"),
        ("recall deploy --related --depth 2", "also what hangs together with it"),
        ("recall deploy --explain", "how each score came about"),
    ),
    "get": _help("why, graph, history", (f"get {_ID}", "the whole text, with relations and use"), exits=_ABOUT_ONE),
    "list": _help(
        "recall, count",
        ("list", "this project's, newest first"),
        ("list --type decision --order-by importance -l 10", "the ten most important decisions"),
        ("list --namespace '*' --state forgotten", "what `sidecar restore` can bring back"),
    ),
    "count": _help("list, health", ("count", "everything"), ("count --namespace shop --type gotcha", "some")),
    "forget": _help(
        "restore, challenge",
        (f"forget {_ID}", "one, at once; `sidecar restore` undoes it"),
        ("forget 'old staging host'", "shows what these words find, and asks"),
        (f"forget {_ID} --purge", "for good, after asking"),
        exits=_MAY_CONFLICT,
    ),
    "restore": _help("forget, list", (f"restore {_ID}", "brings it back"), exits=_MAY_CONFLICT),
    "context": _help(
        "recall, promote",
        ("context", "what an agent is given at its start"),
        ("context 'release notes' --budget 800", "for this work, short"),
        ("context --session 0b0e7a54 --client claude-code --once", "from a script that briefs an agent, once"),
    ),
}
_RELATIONS: Final = {
    "relate": _help(
        "unrelate, graph", (f"relate {_ID} caused_by {_OTHER}", "reads as a sentence"), exits=_MAY_CONFLICT
    ),
    "unrelate": _help(
        "relate, graph",
        ("unrelate 12", "one, by the number that `sidecar graph` shows"),
        (f"unrelate {_ID} {_OTHER} --relation supersedes", "from the first to the second; it asks"),
        exits=_ABOUT_ONE,
    ),
    "graph": _help(
        "relate, get",
        (f"graph {_ID}", "what is related, up to two relations away"),
        (f"graph {_ID} --depth 3 --mermaid", "a drawing for a Markdown file"),
        exits=_ABOUT_ONE,
    ),
}
_HOLDING: Final = {
    "apply": _help("outcome, history", (f"apply {_ID} --context 'release 1.4'", "before acting"), exits=_ABOUT_ONE),
    "outcome": _help(
        "apply, validate",
        (f"outcome {_ID} succeeded", "it held"),
        (f"outcome {_ID} failed", "it did not; its confidence falls"),
        exits=_ABOUT_ONE,
    ),
    "validate": _help(
        "outcome, history", (f"validate {_ID} succeeded", "say outright that it holds"), exits=_ABOUT_ONE
    ),
    "history": _help("outcome, why", (f"history {_ID} --kind failed", "only the failures"), exits=_ABOUT_ONE),
    "challenge": _help(
        "disputes, resolve",
        (f"challenge {_ID} Deploys moved to Wednesday", "it ranks lower from now on"),
        exits=_ABOUT_ONE,
    ),
    "disputes": _help(
        "challenge, resolve",
        ("disputes", "the open ones"),
        (f"disputes {_ID} --all", "all about one"),
        exits=_ABOUT_ONE,
    ),
    "resolve": _help(
        "disputes, review",
        ("resolve 3 keep", "the memory was right"),
        ("resolve 3 retire", "it is forgotten"),
        (f"resolve 3 supersede --by {_OTHER}", "another takes its place"),
        exits=_MAY_CONFLICT,
    ),
    "promote": _help("demote, context", (f"promote {_ID}", "it stands in CLAUDE.md now"), exits=_ABOUT_ONE),
    "demote": _help("promote", (f"demote {_ID}", "it is a memory like any other again"), exits=_ABOUT_ONE),
    "review": _help(
        "disputes, why",
        ("review", "what waits for a decision"),
        (f"review {_ID} dismiss", "it holds: clear it of what was said against it"),
        (f"review {_ID} accept --by {_OTHER}", "it misleads, and the other one takes its place"),
        exits=_MAY_CONFLICT,
    ),
    "contradictions": _help(
        "challenge, supersedes",
        (f"contradictions {_ID} --no-edges", "only look"),
        exits=_ABOUT_ONE,
    ),
    "supersedes": _help("contradictions, outcome", (f"supersedes {_ID} --no-edge", "only look"), exits=_MAY_CONFLICT),
    "health": _help("review, contradictions", ("health --namespace '*' --limit 5", "the five most urgent findings")),
}
_USE: Final = {
    "insights": _help(
        "why, sessions", ("insights --days 7", "the last week"), ("insights --json", "the same for a program")
    ),
    "dashboard": _help(
        "insights, status",
        ("dashboard", "opens it in the browser"),
        ("dashboard --no-browser", "only prints the link, which works once"),
    ),
    "why": _help(
        "insights, recall",
        (f"why {_ID}", "its evidence and the arithmetic"),
        (f"why {_ID} --query 'when do we deploy'", "and what that changed for a question"),
        exits=_ABOUT_ONE,
    ),
    "judge": _help("judge-eval, sessions", ("judge", "how far it is"), ("judge --retry", "again what was given up")),
    "hygiene": _help("why, insights", ("hygiene", "now instead of within hours")),
    "replay": _help(
        "insights, hygiene",
        ("replay", "what reinforcement does"),
        ("replay --useful-gain 0.3 --days 30", "whether a stronger one would be better"),
    ),
}
_COPIES: Final = {
    "export": _help(
        "import, backup",
        ("export memories.jsonl", "everything that is remembered"),
        ("export - --include-forgotten", "to stdout, with what was forgotten"),
    ),
    "import": _help(
        "export, remember",
        ("import . --dry-run", "what CLAUDE.md, AGENTS.md and Cursor rules hold"),
        ("import memories.jsonl", "an export"),
        ("import notes.md --format agents-md -n shop", "a file of notes, for a project"),
    ),
    "backup": _help("restore-backup, export", ("backup ~/memories-2026-12-01.db", "a copy while it is in use")),
    "restore-backup": _help(
        "backup, stop", ("restore-backup ~/memories-2026-12-01.db", "after `sidecar stop`"), exits=_WITHOUT_SIDECAR
    ),
}
_CLIENTS: Final = {
    "connect": _help(
        "disconnect, connections",
        ("connect all", "Claude Code, Codex and Cursor, those that are there"),
        ("connect codex --dry-run", "only show the change"),
        ("connect claude-code --scope project", "for whoever works on this project"),
        exits=(*_WITHOUT_SIDECAR, ExitCode.NOT_FOUND, ExitCode.CONFLICT),
    ),
    "disconnect": _help(
        "connect, connections",
        ("disconnect all", "everything of ours, out again"),
        exits=(*_WITHOUT_SIDECAR, ExitCode.NOT_FOUND, ExitCode.CONFLICT),
    ),
    "connections": _help(
        "connect, doctor",
        ("connections", "starts each configured server once"),
        ("connections --no-probe", "only reads files"),
        exits=_WITHOUT_SIDECAR,
    ),
}
_RUNNING: Final = {
    "status": _help("doctor, sessions", ("status", "every part"), ("status --json", "the same for a program")),
    "doctor": _help(
        "status, restart",
        ("doctor", "what may be wrong, and how to mend it"),
        ("doctor --deep", "also every page of the database"),
    ),
    "start": _help("stop, status", ("start", "in the background; clients do it by themselves")),
    "stop": _help("start, restart", ("stop", "after what it accepted"), ("stop --force", "one that does not answer")),
    "restart": _help("start, doctor", ("restart", "after a change of settings")),
    "serve": _help(
        "start, status",
        ("serve --log-level debug", "in the foreground; there is a flag for each setting"),
        exits=(*_WITHOUT_SIDECAR, ExitCode.ALREADY_RUNNING),
    ),
    "mcp": _help("connect, hook", ("mcp --tools all", "as a client starts it"), exits=ASKING),
    "lsp": _help("mcp, connect", ("lsp", "as an editor starts it"), exits=ASKING),
    "hook": _help(
        "connect, mcp", ("hook claude-code", "as a client calls it, its payload on stdin"), exits=(ExitCode.OK,)
    ),
}
_SHOWING: Final = {
    "ingest": _help(
        "sessions, status",
        ("ingest --since 90d", "the sessions of the last 90 days"),
        ("ingest --client codex ~/old/rollouts", "some transcripts"),
    ),
    "sessions": _help(
        "insights, why",
        ("sessions", "the latest"),
        ("sessions 0b0e7a54", "one, recall by recall"),
        exits=_ABOUT_ONE,
    ),
    "files": _help("activity add", ("files --project shop --days 3", "touched in the last three days")),
    "activity add": _help("files", ("activity add src/app.py edit", "from a hook or a script of yours")),
    "judge-eval": _help(
        "judge",
        ("judge-eval labelled.jsonl", "the local judge on your sessions"),
        ("judge-eval labelled.jsonl --judge llm --max-calls 50", "the language model, at most 50 questions"),
        exits=(*_WITHOUT_SIDECAR, ExitCode.UNAVAILABLE),
    ),
    "demo": _help("connect, insights", ("demo", "the whole loop, offline"), exits=ASKING),
    "bench": _help("status", ("bench --sizes 1000", "with one small store"), exits=ASKING),
}

HELP: Final[Mapping[str, CommandHelp]] = (
    _MEMORIES | _RELATIONS | _HOLDING | _USE | _COPIES | _CLIENTS | _RUNNING | _SHOWING
)
"""By command, as it is typed."""
