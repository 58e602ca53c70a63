"""The settings: what there is, what is allowed, and where a value comes from.

Defaults < `config.toml` in the data folder < environment (`SIDECAR_<NAME>`) < flags. `Settings` is the one table of
them; the table of docs/configuration.md is made from it by `python -m sidecar.config`.
"""

import difflib
import os
import stat
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from sidecar.client.endpoint import HOME_VARIABLE, DataFolder, resolve_home
from sidecar.domain.confidence import FAILURE_FACTOR, FALL_BACK_BELOW
from sidecar.domain.context import CHARACTERS_PER_TOKEN, HALF_LIFE_DAYS, OWN_PROJECT_FACTOR
from sidecar.domain.edge_paths import RELATION_WEIGHTS
from sidecar.domain.expansion import DEFAULT_DECAY, DEFAULT_DEPTH
from sidecar.domain.graph_view import DEFAULT_GRAPH_DEPTH
from sidecar.domain.health_report import LOW_CONFIDENCE
from sidecar.domain.judgement import JudgeKind
from sidecar.domain.llm import LlmProvider
from sidecar.domain.memory import DEFAULT_CONFIDENCE, DEFAULT_IMPORTANCE, GOLDEN_CONFIDENCE, MemoryType, Relation
from sidecar.domain.relevance import FLOOR
from sidecar.domain.setting import ENVIRONMENT_PREFIX, Setting, Value
from sidecar.domain.setting import described as _setting
from sidecar.domain.supersession import LEAST_FAILURES, LEAST_SUCCESSES
from sidecar.domain.word_selection import POSTING_BUDGET
from sidecar.errors import InvalidInputError, UntrustedPathError

LLM_KEY_VARIABLE: Final = "SIDECAR_LLM_API_KEY"
"""Holds a key rather than a setting."""

_MAX_FILE_BYTES: Final = 64 * 1024


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
    max_calls: int = _setting(
        256,
        "Calls that are answered at once, and as many standing streams beside them; others are told to come again.",
        unit="calls",
        least=8,
        most=10_000,
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

    # --- what is stored where the caller says nothing
    remember_type: str = _setting(
        "session", "Type of a memory that is stored without one.", choices=tuple(sorted(MemoryType))
    )
    remember_importance: float = _setting(
        DEFAULT_IMPORTANCE, "Importance of a memory that is stored without one.", most=1
    )
    remember_confidence: float = _setting(
        DEFAULT_CONFIDENCE, "Confidence of a memory that is stored without one.", most=1
    )

    # --- recall
    # An agent must be shown all of what it gets, with related memories, within what its client does not cut.
    default_results: int = _setting(5, "Memories that a recall returns unless it says how many.", least=1, most=20)
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

    weight_supersedes: float = _setting(
        RELATION_WEIGHTS[Relation.SUPERSEDES], "What `supersedes` passes on of a memory's relevance.", most=1
    )
    weight_caused_by: float = _setting(
        RELATION_WEIGHTS[Relation.CAUSED_BY], "What `caused_by` passes on of a memory's relevance.", most=1
    )
    weight_derived_from: float = _setting(
        RELATION_WEIGHTS[Relation.DERIVED_FROM], "What `derived_from` passes on of a memory's relevance.", most=1
    )
    weight_relates_to: float = _setting(
        RELATION_WEIGHTS[Relation.RELATES_TO], "What `relates_to` passes on of a memory's relevance.", most=1
    )
    weight_contradicts: float = _setting(
        RELATION_WEIGHTS[Relation.CONTRADICTS], "What `contradicts` passes on of a memory's relevance.", most=1
    )
    relate_weight: float = _setting(1.0, "Weight of a relation that is made without one.", most=1)

    # --- contexts
    context_tokens: int = _setting(
        4000, "Most tokens of a context, golden rules apart.", unit="tokens", least=100, most=100_000
    )
    context_golden_rules: int = _setting(12, "Most golden rules of a context.", least=1, most=100)
    context_entry_characters: int = _setting(
        2000, "A longer memory is cut in a context.", unit="characters", least=80, most=65536
    )

    context_half_life_days: float = _setting(
        HALF_LIFE_DAYS,
        "After so long without being read a memory counts half as much in a context.",
        unit="days",
        least=0.01,
    )
    context_own_project_factor: float = _setting(
        OWN_PROJECT_FACTOR, "How much more a project's own memories count in its contexts.", least=1, most=100
    )
    characters_per_token: int = _setting(
        CHARACTERS_PER_TOKEN, "How many characters count as one token of a context.", unit="characters", least=1, most=8
    )

    # --- whether memories hold
    validation_adjustment: float = _setting(0.1, "How far a success lifts a memory's confidence.", most=1)
    failure_factor: float = _setting(
        FAILURE_FACTOR, "How much further a failure lowers a memory's confidence than a success lifts it.", most=10
    )
    golden_confidence: float = _setting(
        GOLDEN_CONFIDENCE, "From this confidence on a memory is a golden rule.", least=0.01, most=1
    )
    golden_fall_back: float = _setting(
        FALL_BACK_BELOW,
        "Below this confidence a failure turns a promoted golden rule back into what it was.",
        most=1,
    )
    low_confidence: float = _setting(LOW_CONFIDENCE, "A memory less sure than this needs a look.", most=1)
    contradiction_threshold: float = _setting(
        0.7, "How near, raw cosine, memories must be to be looked at for contradictions.", most=1
    )
    same_topic_threshold: float = _setting(
        0.7, "How near, raw cosine, memories must be for one to replace the other by its successes.", most=1
    )
    supersede_successes: int = _setting(
        LEAST_SUCCESSES, "Successes that a memory needs to replace another by them.", least=1, most=1000
    )
    supersede_failures: int = _setting(
        LEAST_FAILURES, "Failures that a memory needs to be replaced by another's successes.", least=1, most=1000
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
    prometheus_port: int = _setting(
        0, "Port of 127.0.0.1 on which Prometheus may read the figures, at `/metrics`; 0 serves none.", most=65_535
    )
    dashboard_idle_s: float = _setting(
        1800.0, "The dashboard stops listening once nobody has used it for so long.", unit="s", least=1, most=86_400
    )
    metric_days: int = _setting(30, "Days that `sidecar insights` looks at.", unit="days", least=1, most=365)

    # --- language model, see docs/llm.md
    llm: str = _setting(
        "off",
        "Which interface a language model is asked through; while `off`, none is asked.",
        choices=tuple(LlmProvider),
    )
    llm_base_url: str = _setting("", "Where it is asked, such as `http://127.0.0.1:11434/v1`; there is no default.")
    llm_model: str = _setting("", "Name of the model, as its provider knows it.")
    llm_api_key_file: str = _setting("", "File that holds the key and nothing else, readable by you alone (mode 600).")
    llm_api_key_variable: str = _setting(
        "", f"Environment variable that holds the key instead; a client hands `{LLM_KEY_VARIABLE}` on, and no other."
    )
    llm_timeout_s: float = _setting(
        30.0, "How long one question may take, from first byte to last.", unit="s", least=1, most=600
    )
    llm_wait_s: float = _setting(
        20.0, "How long a call that a person or agent waits for is held up by a question.", unit="s", least=1, most=25
    )
    llm_calls_a_day: int = _setting(200, "Most questions in a day (UTC).", most=1_000_000)
    llm_tokens_a_day: int = _setting(
        500_000, "Most tokens in a day (UTC), in and out.", unit="tokens", most=1_000_000_000
    )
    llm_classification: bool = _setting(
        default=True, description="Whether the language model may refine relations that were made by themselves."
    )
    llm_contradictions: bool = _setting(
        default=True, description="Whether the language model is asked about what no rule on contradictions decides."
    )
    llm_veto: bool = _setting(
        default=True,
        description="Whether the language model may object to one memory replacing another by its successes.",
    )
    judge: str = _setting(
        "local", "What judges whether memories were of use; `llm` asks the language model.", choices=tuple(JudgeKind)
    )
    judge_llm_bytes: int = _setting(
        24_000, "Most text of one question of the judge `llm`.", unit="bytes", least=4_000, most=1_000_000
    )

    # --- watching transcripts
    watcher: bool = _setting(default=True, description="Whether transcripts of clients are read for evidence.")
    watch_clients: str = _setting(
        "claude-code,codex,cursor", "Clients whose transcripts are read, separated by commas."
    )
    claude_config_dir: str = _setting("", "Claude Code's folder; empty means CLAUDE_CONFIG_DIR, else `~/.claude`.")
    codex_home: str = _setting("", "Codex's folder; empty means CODEX_HOME, else `~/.codex`.")


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


def client_environment(settings: Settings) -> dict[str, str]:
    """Return the variables by which the clients' own folders are found, those that a setting decides."""
    folders = {"CLAUDE_CONFIG_DIR": settings.claude_config_dir, "CODEX_HOME": settings.codex_home}
    return {name: folder for name, folder in folders.items() if folder}


def unknown_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that look like settings and are none; most likely they are misspelt."""
    known = {HOME_VARIABLE, LLM_KEY_VARIABLE, *(setting.variable for setting in SETTINGS)}
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
