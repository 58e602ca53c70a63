"""What editors' plugins ask and are answered beyond LSP itself; docs/editors/protocol.md says it in words.

In JSON the names are camelCase, and a field whose value is None is left out; `structuring` does both.
"""

from typing import Any, Final

import attrs
from attrs import validators

from sidecar.domain.memory import MemoryType

STATUS_CHANGED: Final = "sidecar/statusChanged"

MAX_RECALLED: Final = 100
MAX_LISTED: Final = 1_000
MAX_QUERY_CHARACTERS: Final = 4_096
MAX_REASON_CHARACTERS: Final = 1_000

RUNNING: Final = "running"
STARTING: Final = "starting"
AWAY: Final = "away"


def _whole(low: int, high: int) -> Any:
    return validators.and_(validators.ge(low), validators.le(high))


def _type(_: object, __: object, value: str | None) -> None:
    if value is not None and value not in set(MemoryType):
        raise ValueError(f"'type' must be one of {', '.join(MemoryType)}")


def _not_blank(_: object, attribute: "attrs.Attribute[str]", value: str) -> None:
    if not value.strip():
        raise ValueError(f"'{attribute.name}' must not be blank")


@attrs.frozen(kw_only=True)
class InitializationOptions:
    """What an editor may say at the start.

    Attributes:
        namespace: In place of the project that the folder tells: `global`, `project:<name>`, or the name alone.
        home: The data folder.
    """

    namespace: str | None = None
    hover: bool = True
    code_lens: bool = True
    file_activity: bool = True
    home: str | None = None


@attrs.frozen(kw_only=True)
class Parameters:
    """Of any request or command.

    Attributes:
        quiet: Of commands: the result is returned only, and nothing is shown.
    """

    quiet: bool = False


@attrs.frozen(kw_only=True)
class RecallParameters(Parameters):
    """`sidecar/recall`. Without `namespace`: the project of `uri`, else of the workspace, and `global`."""

    query: str = attrs.field(validator=_not_blank)
    limit: int = attrs.field(default=10, validator=_whole(1, MAX_RECALLED))
    namespace: str | None = None
    uri: str | None = None


@attrs.frozen(kw_only=True)
class ListParameters(Parameters):
    """`sidecar/list`: active memories, newest first."""

    namespace: str | None = None
    uri: str | None = None
    type: str | None = attrs.field(default=None, validator=_type)
    limit: int = attrs.field(default=100, validator=_whole(1, MAX_LISTED))


@attrs.frozen(kw_only=True)
class FileParameters(Parameters):
    """`sidecar/memoriesForFile`."""

    uri: str
    limit: int = attrs.field(default=20, validator=_whole(1, MAX_RECALLED))


@attrs.frozen(kw_only=True)
class MemoryParameters(Parameters):
    """`sidecar/get`, `sidecar/forget` and `sidecar/restore`."""

    id: str = attrs.field(validator=_not_blank)


@attrs.frozen(kw_only=True)
class RememberParameters(Parameters):
    """`sidecar/remember`. The file of `uri` is noted as what the memory is about."""

    content: str = attrs.field(validator=_not_blank)
    type: str | None = attrs.field(default=None, validator=_type)
    namespace: str | None = None
    importance: float | None = attrs.field(default=None, validator=validators.optional(_whole(0, 1)))
    uri: str | None = None
    related_to: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class ChallengeParameters(Parameters):
    """`sidecar/challenge`."""

    id: str = attrs.field(validator=_not_blank)
    reason: str = attrs.field(validator=validators.and_(_not_blank, validators.max_len(MAX_REASON_CHARACTERS)))


@attrs.frozen(kw_only=True)
class ValidateParameters(Parameters):
    """`sidecar/validate`. A `note` says what went wrong, so it goes with `holds` false only."""

    id: str = attrs.field(validator=_not_blank)
    holds: bool
    note: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.note and self.holds:
            raise ValueError("'note' says what went wrong, and is for 'holds' false only")


@attrs.frozen(kw_only=True)
class ContextParameters(Parameters):
    """`sidecar/context`: what an agent should know for a task, as text."""

    task: str = attrs.field(validator=_not_blank)
    max_tokens: int = attrs.field(default=4_000, validator=_whole(100, 100_000))
    uri: str | None = None


@attrs.frozen(kw_only=True)
class InsightsParameters(Parameters):
    """`sidecar/insights`, over UTC days up to and including today."""

    days: int = attrs.field(default=30, validator=_whole(1, 365))


@attrs.frozen(kw_only=True)
class Usefulness:
    """What is known of a memory's use, within the window in which evidence counts.

    Attributes:
        used: Statements that it helped and that count.
        misled: Statements that it misled and that count.
        shown: How often agents were shown it.
        multiplier: Factor of its score, 0.5 to 1.4; 1 without evidence.
    """

    used: int
    misled: int
    shown: int
    multiplier: float


@attrs.frozen(kw_only=True)
class Memory:
    """One memory.

    Attributes:
        created_at: RFC 3339.
        age: For people, such as `3 d`.
        relevance: To what was asked, 0 to 1; None where nothing was.
        files: Paths that it names; None for none.
    """

    id: str
    content: str
    type: str
    namespace: str
    importance: float
    created_at: str
    age: str
    golden: bool
    disputed: bool
    superseded: bool
    usefulness: Usefulness
    relevance: float | None = None
    files: list[str] | None = None


@attrs.frozen(kw_only=True)
class Status:
    """How the sidecar is, as seen from here.

    Attributes:
        state: `running`, `starting` or `away`.
        memories: Active ones of the user, as of the last look; None before the first.
        namespace: Where memories of this workspace go.
        message: Why it is away.
    """

    state: str
    namespace: str
    memories: int | None = None
    version: str | None = None
    message: str | None = None


@attrs.frozen(kw_only=True)
class Memories:
    """Answer of `sidecar/memoriesForFile`, the surest first."""

    memories: list[Memory]


@attrs.frozen(kw_only=True)
class Recalled(Memories):
    """Answer of `sidecar/recall`, best first.

    Attributes:
        degraded: Which way of finding did not take part, and why; None if all did.
        recall_id: Always empty: what a person looks at in an editor is not recorded as shown to an agent.
    """

    recall_id: str = ""
    degraded: str | None = None


@attrs.frozen(kw_only=True)
class Listed(Memories):
    """Answer of `sidecar/list`. `total`: how many there are without the limit."""

    total: int


@attrs.frozen(kw_only=True)
class Got:
    """Answer of `sidecar/get`."""

    memory: Memory


@attrs.frozen(kw_only=True)
class Remembered:
    """Answer of `sidecar/remember`. `created` is false if it was known already; nothing was changed then."""

    id: str
    created: bool
    namespace: str
    redacted: list[str] | None = None


@attrs.frozen(kw_only=True)
class Forgotten:
    """Answer of `sidecar/forget`."""

    forgotten: list[str]


@attrs.frozen(kw_only=True)
class Restored:
    """Answer of `sidecar/restore`."""

    restored: list[str]


@attrs.frozen(kw_only=True)
class Challenged:
    """Answer of `sidecar/challenge`."""

    id: str
    disputed: bool


@attrs.frozen(kw_only=True)
class Validated:
    """Answer of `sidecar/validate`, with the confidence as it is now."""

    id: str
    confidence: float | None = None


@attrs.frozen(kw_only=True)
class Context:
    """Answer of `sidecar/context`. Stored text in it is quoted; see docs/clients/mcp.md."""

    text: str
    memory_ids: list[str]


@attrs.frozen(kw_only=True)
class Figure:
    """One figure of `sidecar/insights`.

    Attributes:
        label: What it says.
        value: None where there is nothing to compute it from; in JSON it is null then, never left out.
        proxy: What it is only a proxy for, and why there is no value.
    """

    name: str
    label: str
    value: float | None
    numerator: int
    denominator: int
    proxy: str | None = None


@attrs.frozen(kw_only=True)
class Insights:
    """Answer of `sidecar/insights`."""

    figures: list[Figure]
