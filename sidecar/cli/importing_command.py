"""The command `import`: takes in an export, or the notes that a user has already. A dry run stores nothing."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sidecar.cli import completing
from sidecar.cli.exit_codes import ExitCode
from sidecar.cli.exporting import STDIO
from sidecar.cli.importing.exports import looks_like_export, show_contents, take_export
from sidecar.cli.importing.files import (
    Source,
    claude_memory_folder,
    claude_memory_sources,
    named_source,
    project_sources,
)
from sidecar.cli.importing.notes import show_plan, store_plan
from sidecar.cli.importing.plan import plan_import
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.domain.importing import SkippedPart, SourceFormat
from sidecar.domain.namespace import PROJECT_PREFIX, parse_namespace
from sidecar.errors import InvalidInputError

_CLAUDE_VARIABLE = "CLAUDE_CONFIG_DIR"
_BY_NAME = {
    "CLAUDE.md": SourceFormat.CLAUDE_MEMORY,
    "CLAUDE.local.md": SourceFormat.CLAUDE_MEMORY,
    "MEMORY.md": SourceFormat.CLAUDE_MEMORY,
    "AGENTS.md": SourceFormat.AGENTS_MD,
    ".cursorrules": SourceFormat.CURSOR_RULES,
}
_BY_SUFFIX = {
    ".mdc": SourceFormat.CURSOR_RULES,
    ".jsonl": SourceFormat.JSON_LINES,
    ".ndjson": SourceFormat.JSON_LINES,
}


class ImportFormat(StrEnum):
    """What is imported."""

    AUTO = "auto"
    EXPORT = "export"
    CLAUDE_MEMORY = "claude-memory"
    CURSOR_RULES = "cursor-rules"
    AGENTS_MD = "agents-md"
    JSON_LINES = "json-lines"


def import_(
    context: typer.Context,
    *,
    file: Annotated[str, typer.Argument(help="A file, a project's folder, or `-` for stdin.", metavar="FILE|-")],
    import_format: Annotated[
        ImportFormat, typer.Option("--format", "-f", help="What it is; `auto` goes by name and content.")
    ] = ImportFormat.AUTO,
    claude_notes: Annotated[
        bool, typer.Option("--claude-notes", help="With a folder: also what Claude Code noted on that project.")
    ] = False,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAME",
            autocompletion=completing.namespaces,
            help="For notes: `global` or `project:<name>`.",
            show_default="the folder's project, or this folder's",
        ),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be stored.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in what `sidecar export` wrote, or notes: CLAUDE.md, MEMORY.md, AGENTS.md, Cursor rules, JSON Lines.

    Doing it again stores nothing twice, and what is there already stays as it is. What was imported by mistake,
    `sidecar forget` takes out again.
    """
    call = Invocation.of(context, home, is_json=as_json)
    path = Path(file).expanduser()
    if _is_export(file, path, import_format):
        if namespace or claude_notes:
            raise InvalidInputError("--namespace or --claude-notes", "given", "nothing: an export says whose it is")
        is_whole = show_contents(call.output, file) if dry_run else take_export(call, file)
    else:
        sources = _sources(file, path, import_format, with_claude_notes=claude_notes)
        plan = plan_import(sources)
        chosen = parse_namespace(namespace) if namespace else _namespace_of(path)
        is_whole = show_plan(call.output, plan) if dry_run else store_plan(call, plan, namespace=chosen)
    if not is_whole:
        raise typer.Exit(ExitCode.FAILED)


def _is_export(file: str, path: Path, import_format: ImportFormat) -> bool:
    if import_format is not ImportFormat.AUTO:
        return import_format is ImportFormat.EXPORT
    return file == STDIO or (path.is_file() and looks_like_export(path))


def _sources(
    file: str, path: Path, import_format: ImportFormat, *, with_claude_notes: bool
) -> list[Source | SkippedPart]:
    """Return the files to read."""
    if file == STDIO:
        raise InvalidInputError("FILE", STDIO, "a file: only an export can be read from stdin")
    if path.is_dir():
        return _sources_in(path, import_format, with_claude_notes=with_claude_notes)
    if with_claude_notes:
        raise InvalidInputError("--claude-notes", file, "the folder of a project")
    if not path.exists():
        raise InvalidInputError("FILE", file, "a file or folder that exists")
    return [named_source(path, _format_of(path, import_format))]


def _sources_in(folder: Path, import_format: ImportFormat, *, with_claude_notes: bool) -> list[Source | SkippedPart]:
    root = folder.absolute()
    if import_format is ImportFormat.CLAUDE_MEMORY:
        found = claude_memory_sources(root)
    elif import_format is ImportFormat.AUTO:
        found = project_sources(root)
    else:
        raise InvalidInputError("--format", import_format.value, "`auto` or `claude-memory` for a folder")
    if with_claude_notes:
        config_folder = Path(os.environ.get(_CLAUDE_VARIABLE) or Path.home() / ".claude")
        found += claude_memory_sources(claude_memory_folder(config_folder, root))
    return found


def _format_of(path: Path, import_format: ImportFormat) -> SourceFormat:
    if import_format is not ImportFormat.AUTO:
        return SourceFormat(import_format.value)
    known = _BY_NAME.get(path.name) or _BY_SUFFIX.get(path.suffix.lower())
    if known is None:
        expected = "a name that tells what it is, such as CLAUDE.md, AGENTS.md, *.mdc or *.jsonl; or say `--format`"
        raise InvalidInputError("FILE", str(path), expected)
    return known


def _namespace_of(path: Path) -> str:
    """Return the namespace of a project's folder; empty for a file, which goes to the project one works in."""
    from client_plugins.kit.project import project_name  # noqa: PLC0415

    name = project_name(str(path.resolve())) if path.is_dir() else ""
    return f"{PROJECT_PREFIX}{name}" if name else ""
