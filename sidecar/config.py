"""The settings: what there is, what is allowed, and where a value comes from.

Defaults < `config.toml` in the data folder < environment (`SIDECAR_<NAME>`) < flags. `Settings` is the one table of
them; the table of docs/configuration.md is made from it by `python -m sidecar.config`.
"""

import difflib
import math
import os
import stat
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from sidecar.client.endpoint import HOME_VARIABLE, DataFolder, resolve_home
from sidecar.domain.expansion import DEFAULT_DECAY, DEFAULT_DEPTH
from sidecar.domain.graph_view import DEFAULT_GRAPH_DEPTH
from sidecar.domain.relevance import FLOOR
from sidecar.domain.word_selection import POSTING_BUDGET
from sidecar.errors import InvalidInputError, UntrustedPathError

ENVIRONMENT_PREFIX: Final = "SIDECAR_"
_MAX_FILE_BYTES: Final = 64 * 1024
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})

Value = str | int | float | bool


@dataclass(frozen=True)
class Setting:
    """One line of the table.

    Attributes:
        name: As in the file; in the environment with the prefix and in capitals, as a flag with dashes.
        kind: Type of the value.
        default: Value if nothing else is said.
        unit: Of a number; empty for none.
        description: What it does.
        least: Smallest number allowed.
        most: Largest number allowed.
        choices: Texts allowed; empty means any.
    """

    name: str
    kind: type[str] | type[int] | type[float] | type[bool]
    default: Value
    unit: str
    description: str
    least: float
    most: float
    choices: tuple[str, ...]

    @property
    def variable(self) -> str:
        """Name in the environment."""
        return ENVIRONMENT_PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """Name on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def expected(self) -> str:
        """What a value must be, for messages and the documentation."""
        if self.kind is bool:
            return "true or false"
        if self.choices:
            return "one of " + ", ".join(f"`{choice}`" for choice in self.choices)
        if self.kind is str:
            return "a text"
        kind = "a whole number" if self.kind is int else "a number"
        unit = f" {self.unit}" if self.unit else ""
        if math.isinf(self.most):
            return f"{kind}, {self.least:g} or more{unit}"
        # Not `:g`: that would round a limit such as 67108864.
        return f"{kind}, {_shown(self.least)} to {_shown(self.most)}{unit}"

    def accept(self, given: object, *, source: str) -> Value:
        """Return the value, converted from a text if it is one.

        Raises:
            InvalidInputError: It is not acceptable; names setting, source, value and what is expected.
        """
        value = self._converted(given)
        if value is None or not self._is_allowed(value):
            raise InvalidInputError(f"{self.name} (from {source})", given, self.expected)
        return value

    def _converted(self, given: object) -> Value | None:
        if self.kind is str:
            return given if isinstance(given, str) else None
        if self.kind is bool:
            return _to_bool(given)
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            return None
        try:
            if self.kind is int:
                return int(given) if not isinstance(given, float) or given.is_integer() else None
            return float(given)
        except (ValueError, OverflowError):
            return None

    def _is_allowed(self, value: Value) -> bool:
        if isinstance(value, str):
            return not self.choices or value in self.choices
        return isinstance(value, bool) or (self.least <= value <= self.most and math.isfinite(value))


def _setting(
    default: Value,
    description: str,
    *,
    unit: str = "",
    least: float = 0,
    most: float = math.inf,
    choices: tuple[str, ...] = (),
) -> Any:
    """Describe a setting in the place of its default."""
    details = {"description": description, "unit": unit, "least": least, "most": most, "choices": choices}
    return field(default=default, metadata=details)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of one sidecar, checked. Made by `load_settings`; in tests also directly."""

    home: Path

    # --- how it listens and logs
    transport: str = _setting(
        "auto",
        "How clients reach the sidecar: a Unix socket or a port of 127.0.0.1; `auto` prefers the socket.",
        choices=("auto", "unix", "tcp"),
    )
    max_message_bytes: int = _setting(
        8 * 1024 * 1024, "Most that one message may have, either way.", unit="bytes", least=65536, most=64 * 1024 * 1024
    )
    drain_grace_s: float = _setting(
        5.0, "How long calls under way may take to end when the sidecar stops.", unit="s", most=300
    )
    idle_exit_s: float = _setting(
        0.0, "The sidecar stops after so long without a call; the next client starts it. 0 means never.", unit="s"
    )
    log_level: str = _setting(
        "info", "What is logged to `logs/sidecar.log`.", choices=("debug", "info", "warning", "error")
    )

    # --- embedding
    embedder: str = _setting(
        "minilm-onnx",
        "What turns texts into vectors. `none` leaves recall by words.",
        choices=("minilm-onnx", "sentence-transformers", "none"),
    )
    embedder_model: str = _setting("", "Name or folder of a sentence-transformers model; empty means its default.")
    embed_batch_size: int = _setting(16, "Memories that are embedded at once.", least=1, most=1024)
    embed_max_attempts: int = _setting(5, "Attempts to embed a memory before it is given up.", least=1, most=100)
    embed_backoff_s: float = _setting(2.0, "Wait before the second attempt; doubles with each.", unit="s", most=3600)
    query_cache_size: int = _setting(1024, "Queries whose embedding is kept in memory.", most=1_000_000)

    # --- index
    index_snapshot: bool = _setting(
        default=True, description="Whether the vector index is saved, so that a start need not rebuild it."
    )
    index_save_after_writes: int = _setting(1000, "The vector index is saved after so many changes.", least=1)

    # --- recall
    default_results: int = _setting(5, "Memories that a recall returns unless it says how many.", least=1, most=100)
    recall_floor: float = _setting(FLOOR, "Memories less relevant than this are not returned.", most=1)
    candidates: int = _setting(100, "Memories that each way of finding proposes.", least=1, most=10_000)
    word_posting_budget: int = _setting(
        POSTING_BUDGET, "Memories that the words of a query may touch; commoner words are left out.", least=1
    )
    age_half_life_days: float = _setting(
        180.0, "After so long a memory has lost half of the 15 % that age takes away at most.", unit="days", least=0.01
    )
    machine_weight: float = _setting(0.9, "Factor for memories that a program extracted.", most=1)
    standing_rule_weight: float = _setting(
        0.6, "Factor in recall for memories that are delivered elsewhere as standing rules.", most=1
    )

    # --- relations
    auto_link: bool = _setting(default=True, description="Whether a new memory is related to those near it by itself.")
    auto_link_threshold: float = _setting(
        0.6, "How near, raw cosine, memories must be to be related by themselves.", most=1
    )
    auto_link_max: int = _setting(5, "Most relations that a new memory gets by itself.", most=20)
    expand_depth: int = _setting(
        DEFAULT_DEPTH, "How many relations away a recall looks for related memories.", least=1, most=5
    )
    expand_max: int = _setting(20, "Most related memories that are added to a recall.", least=1, most=100)
    graph_depth: int = _setting(
        DEFAULT_GRAPH_DEPTH, "How many relations away looking at the graph goes.", least=1, most=5
    )
    relation_decay: float = _setting(DEFAULT_DECAY, "What is left of the relevance after each relation.", most=1)

    # --- contexts
    context_tokens: int = _setting(
        4000, "Most tokens of a context, golden rules apart.", unit="tokens", least=100, most=100_000
    )
    context_golden_rules: int = _setting(12, "Most golden rules of a context.", least=1, most=100)
    context_entry_characters: int = _setting(
        2000, "A longer memory is cut in a context.", unit="characters", least=80, most=65536
    )

    # --- whether memories hold
    validation_adjustment: float = _setting(
        0.1, "How far a success lifts a memory's confidence; a failure lowers it one and a half times as far.", most=1
    )
    contradiction_threshold: float = _setting(
        0.7, "How near, raw cosine, memories must be to be looked at for contradictions.", most=1
    )
    same_topic_threshold: float = _setting(
        0.7, "How near, raw cosine, memories must be for one to replace the other by its successes.", most=1
    )
    compared_memories: int = _setting(
        20, "Near memories that are compared for contradictions and replacement.", least=1, most=200
    )
    listed_events: int = _setting(50, "Reports that a memory's history lists.", least=1, most=1000)
    listed_disputes: int = _setting(100, "Disputes that are listed.", least=1, most=1000)

    # --- what is listed and looked for
    forget_similarity_floor: float = _setting(
        0.5, "How near to a query, raw cosine, memories must be to be forgotten by it.", most=1
    )
    page_size: int = _setting(100, "Memories on a page of a listing.", least=1, most=1000)
    stale_days: int = _setting(
        30, "A memory that nobody confirmed for so long needs a look.", unit="days", least=1, most=3650
    )
    recent_files: int = _setting(20, "Files that are listed as touched lately.", least=1, most=1000)
    recent_days: int = _setting(14, "What lately means for files.", unit="days", least=1, most=365)

    # --- how useful memories are
    judging: bool = _setting(default=True, description="Whether sessions are judged for which memories they used.")
    judge_idle_s: float = _setting(
        300.0, "A session is judged once nothing of it was read for so long.", unit="s", least=0.1, most=86_400
    )
    judge_keep_text_s: float = _setting(
        3600.0,
        "Texts of a judged session are deleted once it was quiet for so long; until then it may go on.",
        unit="s",
        most=86_400,
    )
    judge_batch_size: int = _setting(16, "Cases that the judge gets at once.", least=1, most=256)
    judge_max_attempts: int = _setting(5, "Attempts to judge a case before it is given up.", least=1, most=100)
    judge_backoff_s: float = _setting(60.0, "Wait before the second attempt; doubles with each.", unit="s", most=3600)
    hygiene_interval_h: float = _setting(
        6.0, "So often multipliers are computed anew, and what is too old is cleared away.", unit="h", least=0.1
    )
    holdout_share: float = _setting(
        0.0, "Share of sessions whose recalls leave evidence of use out of account, to measure what it does.", most=0.5
    )
    recorded_recalls: int = _setting(
        5000, "Recalls whose candidates are kept for `sidecar replay`, figures only; 0 keeps none.", most=100_000
    )
    metric_days: int = _setting(30, "Days that `sidecar insights` looks at.", unit="days", least=1, most=365)

    # --- watching transcripts
    watcher: bool = _setting(default=True, description="Whether transcripts of clients are read for evidence.")
    watch_clients: str = _setting("claude-code", "Clients whose transcripts are read, separated by commas.")
    claude_config_dir: str = _setting("", "Claude Code's folder; empty means CLAUDE_CONFIG_DIR, else `~/.claude`.")


def _described_settings() -> Iterator[Setting]:
    for each in fields(Settings):
        if each.metadata:
            default: Any = each.default
            yield Setting(name=each.name, kind=type(default), default=default, **each.metadata)


SETTINGS: Final[tuple[Setting, ...]] = tuple(_described_settings())
_BY_NAME: Final[Mapping[str, Setting]] = {setting.name: setting for setting in SETTINGS}


def load_settings(
    *,
    home: Path | str | None = None,
    flags: Mapping[str, Value] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings of a data folder.

    Args:
        home: The data folder; without one SIDECAR_HOME, else the user's own. Need not exist.
        flags: Values from the command line, by name of the setting.
        environment: Instead of that of the process.

    Raises:
        InvalidInputError: A value is not acceptable, or the file names a setting that does not exist.
        UntrustedPathError: The file belongs to another user, or others can change it.
    """
    variables = os.environ if environment is None else environment
    folder = DataFolder(resolve_home(home, variables))
    values: dict[str, Value] = {}
    for name, given in _read_file(folder.settings_path).items():
        values[name] = _known(name, source=str(folder.settings_path)).accept(given, source=str(folder.settings_path))
    for setting in SETTINGS:
        if setting.variable in variables:
            values[setting.name] = setting.accept(variables[setting.variable], source=setting.variable)
    for name, given in (flags or {}).items():
        setting = _known(name, source="flags")
        values[name] = setting.accept(given, source=setting.flag)
    return Settings(home=folder.home, **values)  # type: ignore[arg-type]  # each was checked against its field's type


def unknown_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that look like settings and are none; most likely they are misspelt."""
    known = {HOME_VARIABLE, *(setting.variable for setting in SETTINGS)}
    return tuple(sorted(name for name in environment if name.startswith(ENVIRONMENT_PREFIX) and name not in known))


def settings_table() -> str:
    """Return the table of docs/configuration.md."""
    lines = ["| setting | default | value | what it does |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{each.name}` | {_shown_default(each.default)} | {each.expected} | {each.description} |"
        for each in SETTINGS
    ]
    return "\n".join(lines) + "\n"


def _read_file(path: Path) -> Mapping[str, object]:
    """Return what the settings file says; nothing if there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if not stat.S_ISREG(found.st_mode):
        raise UntrustedPathError(str(path), "is not a regular file")
    # Reading it is harmless; a user may keep it under version control and link to it.
    if sys.platform != "win32" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
        raise UntrustedPathError(str(path), "can be changed by other users")
    if found.st_size > _MAX_FILE_BYTES:
        raise InvalidInputError(str(path), f"{found.st_size} bytes", f"at most {_MAX_FILE_BYTES} bytes")
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(str(path), str(error), "a TOML file of `name = value` lines") from error


def _known(name: str, *, source: str) -> Setting:
    setting = _BY_NAME.get(name)
    if setting is None:
        near = difflib.get_close_matches(name, _BY_NAME, n=1)
        hint = f"; did you mean `{near[0]}`?" if near else "; docs/configuration.md lists them"
        raise InvalidInputError(f"a setting's name (from {source})", name, f"one that exists{hint}")
    return setting


def _to_bool(given: object) -> bool | None:
    if isinstance(given, bool):
        return given
    text = given.strip().lower() if isinstance(given, str) else None
    return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text or "")


def _shown(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _shown_default(value: Value) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value != "" else "empty"


def _main(arguments: Iterable[str]) -> int:
    if list(arguments):
        sys.stderr.write("usage: python -m sidecar.config\n")
        return 2
    sys.stdout.write(settings_table())
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
