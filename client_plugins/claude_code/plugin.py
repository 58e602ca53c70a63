"""Claude Code's transcripts as a `ClientPlugin`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from client_plugins.claude_code import locate, reader
from client_plugins.kit.plugin import LineReading, TranscriptContext
from client_plugins.kit.project import ProjectFinder


class ClaudeCodePlugin:
    """See `ClientPlugin`."""

    name = reader.CLIENT
    parser_version = reader.PARSER_VERSION

    def roots(self, environment: Mapping[str, str]) -> Sequence[Path]:
        """See `ClientPlugin.roots`."""
        return locate.transcript_roots(environment)

    def transcript_at(self, parts: Sequence[str]) -> TranscriptContext | None:
        """See `ClientPlugin.transcript_at`."""
        return locate.transcript_at(parts)

    def may_hold_transcripts(self, parts: Sequence[str]) -> bool:
        """See `ClientPlugin.may_hold_transcripts`."""
        return locate.may_hold_transcripts(parts)

    def read_line(self, line: bytes, context: TranscriptContext, state: str, project_of: ProjectFinder) -> LineReading:
        """See `ClientPlugin.read_line`; every record tells all there is to know, so nothing is carried."""
        return replace(reader.read_line(line, context, project_of), state=state)
