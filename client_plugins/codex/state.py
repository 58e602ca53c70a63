"""What the reader of a Codex transcript carries from line to line: whose thread it is, and which calls are open.

Ids and names only, never words of the conversation. Everything is bounded, so that the state always fits.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson

from client_plugins.kit.json_line import JsonObject
from sidecar.domain.evidence import MAX_READER_STATE_BYTES
from sidecar.domain.ids import MEMORY_PREFIX

_MAX_OPEN: Final = 32
_MAX_REPORTED: Final = 8
_MAX_NESTED: Final = 64
_MAX_IDS: Final = 250
_MAX_TEXT_CHARACTERS: Final = 200
_MAX_FOLDER_CHARACTERS: Final = 1_000
MARK_FORM: Final = re.compile(r"[0-9a-f]{8}")
_ID_FORM: Final = re.compile(r"[0-9A-Z]{26}")


@dataclass(slots=True)
class NestedCall:
    """A recall that a script made, while it is not known yet what of its result the model gets to see.

    Attributes:
        call_id: As in events.
        script: The script that made it, or the last that was open; empty once that goes on in the background.
        memory_ids: What the server returned.
        seen: Those of them that a script has printed since, in order.
        seen_at_ms: When it printed the first, or else ended without, Unix milliseconds; 0 if neither.
        is_cut: The result, or what a script printed, was cut, so that ids may be missing.
        marks: Of texts in the result; see `marks_of`.
        is_quoted: A script printed such a text, so the model was shown something even if no id was among it.
    """

    call_id: str
    script: str
    memory_ids: list[str]
    seen: list[str] = field(default_factory=list)
    seen_at_ms: int = 0
    is_cut: bool = False
    marks: list[str] = field(default_factory=list)
    is_quoted: bool = False

    @property
    def is_seen_whole(self) -> bool:
        """Whether everything that was returned was printed."""
        return len(self.seen) == len(self.memory_ids) and not self.is_cut

    def to_json(self) -> list[object]:
        """Return it as short JSON: of what was seen, only the place in what was returned."""
        ids = "".join(memory_id.removeprefix(MEMORY_PREFIX) for memory_id in self.memory_ids)
        places = [self.memory_ids.index(one) for one in self.seen]
        marks = "".join(self.marks)
        return [self.call_id, self.script, ids, places, self.seen_at_ms, self.is_cut, marks, self.is_quoted]

    @classmethod
    def from_json(cls, value: object) -> "NestedCall":
        """Return what `to_json` returned.

        Raises:
            ValueError: If it is something else, as IndexError and TypeError are.
        """
        if not isinstance(value, list):
            raise TypeError(value)
        call_id, script, ids, places, seen_at_ms, is_cut, marks, is_quoted = value
        memory_ids = [MEMORY_PREFIX + ulid for ulid in _ID_FORM.findall(ids)]
        seen = [memory_ids[place] for place in places]
        return cls(
            call_id=str(call_id),
            script=str(script),
            memory_ids=memory_ids,
            seen=seen,
            seen_at_ms=int(seen_at_ms),
            is_cut=bool(is_cut),
            marks=MARK_FORM.findall(marks),
            is_quoted=bool(is_quoted),
        )


@dataclass(slots=True)
class RolloutState:
    """The state.

    Attributes:
        thread: Id of the file's own thread; empty while its head was not read.
        origin: Thread that the lines come from: the last head's, so the same in every copy of a line.
        turn: Id of the turn that is under way; empty if unknown.
        turn_number: Messages of the user so far.
        last_said: Digest of the last of them.
        direct: Calls of the model without an output yet: `open`, a reason why there will be no result, or the name of a
            tool that was cut, behind `cut:`.
        scripts: Scripts without an end yet; whether a recall was made meanwhile.
        nested: Recalls of this turn's scripts that are not settled.
        has_recalled: A script of this turn has made a recall.
        reported: Calls that an event told of last; some versions write two events of each.
        is_one_shot: See `Head`.
    """

    thread: str = ""
    origin: str = ""
    session: str = ""
    agent_id: str = ""
    cwd: str = ""
    version: str = ""
    turn: str = ""
    turn_number: int = 0
    last_said: str = ""
    direct: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, bool] = field(default_factory=dict)
    nested: list[NestedCall] = field(default_factory=list)
    has_recalled: bool = False
    reported: list[str] = field(default_factory=list)
    is_one_shot: bool = False

    @classmethod
    def from_text(cls, text: str) -> "RolloutState":
        """Return what `to_text` returned; the beginning for an empty text, or one that cannot be read."""
        try:
            value = orjson.loads(text) if text else None
            return _read(value) if isinstance(value, Mapping) else cls()
        except (ValueError, TypeError, IndexError):
            return cls()

    def to_text(self) -> str:
        """Return the state as text, the oldest open calls left out if there are too many."""
        _keep_newest(self.direct, _MAX_OPEN)
        _keep_newest(self.scripts, _MAX_OPEN)
        del self.reported[:-_MAX_REPORTED]
        del self.nested[:-_MAX_NESTED]
        self._keep_ids(_MAX_IDS)
        text = self._to_json()
        while len(text) > MAX_READER_STATE_BYTES and self.nested:
            del self.nested[0]
            text = self._to_json()
        return text.decode()

    def _keep_ids(self, limit: int) -> None:
        """Leave out the oldest nested calls until no more ids than that are kept; of a single one, those behind it."""
        while len(self.nested) > 1 and sum(len(call.memory_ids) for call in self.nested) > limit:
            del self.nested[0]
        for call in self.nested:
            if len(call.memory_ids) > limit:
                call.is_cut = True
                call.memory_ids = call.memory_ids[:limit]
                call.seen = [memory_id for memory_id in call.seen if memory_id in set(call.memory_ids)]

    def _to_json(self) -> bytes:
        head = (self.thread, self.origin, self.session, self.agent_id, self.version, self.turn)
        value = {
            "head": [text[:_MAX_TEXT_CHARACTERS] for text in head],
            "cwd": self.cwd if len(self.cwd) <= _MAX_FOLDER_CHARACTERS else "",
            "turn_number": self.turn_number,
            "last_said": self.last_said,
            **({"direct": self.direct} if self.direct else {}),
            **({"scripts": self.scripts} if self.scripts else {}),
            **({"nested": [call.to_json() for call in self.nested]} if self.nested else {}),
            **({"has_recalled": True} if self.has_recalled else {}),
            **({"reported": self.reported} if self.reported else {}),
            **({"is_one_shot": True} if self.is_one_shot else {}),
        }
        try:
            return orjson.dumps(value)
        except orjson.JSONEncodeError:
            # Lone surrogates, of which the sidecar's store takes none either.
            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _read(value: object) -> RolloutState:
    if not isinstance(value, Mapping):
        raise TypeError(value)
    thread, origin, session, agent_id, version, turn = map(str, _list(value, "head"))
    return RolloutState(
        thread=thread,
        origin=origin,
        session=session,
        agent_id=agent_id,
        version=version,
        turn=turn,
        cwd=str(value.get("cwd", "")),
        turn_number=int(str(value.get("turn_number", 0))),
        last_said=str(value.get("last_said", "")),
        direct={str(key): str(mark) for key, mark in _mapping(value, "direct").items()},
        scripts={str(key): bool(mark) for key, mark in _mapping(value, "scripts").items()},
        nested=[NestedCall.from_json(call) for call in _list(value, "nested")],
        has_recalled=bool(value.get("has_recalled")),
        reported=[str(key) for key in _list(value, "reported")],
        is_one_shot=bool(value.get("is_one_shot")),
    )


def _list(value: JsonObject, key: str) -> list[object]:
    found = value.get(key, [])
    if not isinstance(found, list):
        raise TypeError(key)
    return found


def _mapping(value: JsonObject, key: str) -> Mapping[str, object]:
    found = value.get(key, {})
    if not isinstance(found, Mapping):
        raise TypeError(key)
    return found


def _keep_newest(entries: dict[str, str] | dict[str, bool], limit: int) -> None:
    for key in list(entries)[: max(0, len(entries) - limit)]:
        del entries[key]
