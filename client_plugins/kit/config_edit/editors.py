"""What of ours goes into a client's configuration file, and how it is put in and taken out again. Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from client_plugins.kit.config_edit.json_text import JsonText
from client_plugins.kit.config_edit.toml_text import toml_value, with_table, without_table
from sidecar.api.plain import JsonValue

Recognizer: TypeAlias = Callable[[JsonValue], bool]
"""Tells whether an entry is one of ours, also one that an older version or another installation wrote."""

_INNER: Final = "hooks"
# Stands in `created` for the file itself.
_ROOT: Final[tuple[str, ...]] = ()


class OccupiedError(Exception):
    """Something that is not ours has the name that ours needs; the argument says what."""


class InvalidEntryError(Exception):
    """The user's own entries would void the file; the argument says what is wrong with them."""


@dataclass(frozen=True)
class Edited:
    """A file's text with ours in it.

    Attributes:
        text: All of it.
        created: Paths of what had to be made around our entries, outermost first; to be taken out again if empty.
    """

    text: str
    created: tuple[tuple[str, ...], ...] = ()


class Editor(Protocol):
    """Puts what is ours into one file's text. Raises `JsonSyntaxError`, `TomlSyntaxError` and `UneditableError`."""

    def put(self, text: str | None) -> Edited:
        """Return the text with ours in it, the same if it is there already; None stands for no file.

        Raises:
            OccupiedError: Something that is not ours is in its place.
            InvalidEntryError: The rest of the file would void it.
        """
        ...

    def take_out(self, text: str, created: Collection[tuple[str, ...]]) -> str | None:
        """Return the text without ours, None if nothing is left of it.

        Args:
            text: The file's present text.
            created: What `put` made around ours.
        """
        ...


class JsonPart(Protocol):
    """One thing of ours in a JSON document."""

    def put(self, document: JsonText) -> JsonText:
        """Return the document with it; raises `OccupiedError`."""
        ...

    def take_out(self, document: JsonText) -> JsonText:
        """Return the document without it."""
        ...

    @property
    def containers(self) -> Mapping[tuple[str, ...], JsonValue]:
        """What must be there for it, and how it is made, outermost first."""
        ...


@dataclass(frozen=True)
class JsonMember:
    """One member of an object, such as a server. What the user added to it is kept.

    Attributes:
        path: Where.
        value: Its own members.
        owned: Names of members that are ours to set or take out.
        is_ours: Tells ours from another's.
        what: What it is, for a message.
    """

    path: tuple[str, ...]
    value: Mapping[str, JsonValue]
    owned: Collection[str]
    is_ours: Recognizer
    what: str

    @property
    def containers(self) -> Mapping[tuple[str, ...], JsonValue]:
        """See `JsonPart.containers`."""
        return {self.path[:length]: {} for length in range(1, len(self.path))}

    def put(self, document: JsonText) -> JsonText:
        """See `JsonPart.put`."""
        found = document.get(self.path)
        if document.has(self.path) and not (isinstance(found, dict) and self.is_ours(found)):
            raise OccupiedError(self.what)
        wanted = merged(self.value, found, self.owned) if isinstance(found, dict) else dict(self.value)
        return document if found == wanted else document.with_value(self.path, wanted)

    def take_out(self, document: JsonText) -> JsonText:
        """See `JsonPart.take_out`."""
        return document.without(self.path) if self.is_ours(document.get(self.path)) else document


@dataclass(frozen=True)
class JsonHooks:
    """Hooks of ours, one for each event, beside those of the user.

    Attributes:
        path: Of the object that has an array for each event.
        events: Event -> the entry that is to be in its array.
        is_ours: Tells one command of ours from another's.
        is_grouped: Whether an entry holds commands in an array of its own.
    """

    path: tuple[str, ...]
    events: Mapping[str, JsonValue]
    is_ours: Recognizer
    is_grouped: bool

    @property
    def containers(self) -> Mapping[tuple[str, ...], JsonValue]:
        """See `JsonPart.containers`."""
        return {self.path: {}, **{(*self.path, event): [] for event in self.events}}

    def put(self, document: JsonText) -> JsonText:
        """See `JsonPart.put`."""
        if self._present(document) == {event: [entry] for event, entry in self.events.items()}:
            return document
        document = self.take_out(document)
        for event, entry in self.events.items():
            path = (*self.path, event)
            entries = document.get(path)
            if not isinstance(entries, list):
                raise OccupiedError(f"something else than a list in {'.'.join(path)}")
            document = document.with_value((*path, len(entries)), entry)
        return document

    def take_out(self, document: JsonText) -> JsonText:
        """See `JsonPart.take_out`."""
        for path in reversed(self._commands(document)):
            document = document.without(path)
            if self.is_grouped and document.get(path[:-1]) == []:
                document = document.without(path[:-2])
        return document

    def _present(self, document: JsonText) -> dict[str, list[JsonValue]]:
        """Return the entries that hold a command of ours, by event."""
        present: dict[str, list[JsonValue]] = {}
        length = len(self.path) + 2
        for path in dict.fromkeys(command[:length] for command in self._commands(document)):
            present.setdefault(str(path[-2]), []).append(document.get(path))
        return present

    def _commands(self, document: JsonText) -> list[tuple[str | int, ...]]:
        """Return the paths of our commands, in the order of the document."""
        events = document.get(self.path)
        paths: list[tuple[str | int, ...]] = []
        for event, entries in events.items() if isinstance(events, dict) else ():
            for number, entry in enumerate(entries) if isinstance(entries, list) else ():
                path: tuple[str | int, ...] = (*self.path, event, number)
                if not self.is_grouped:
                    paths += [path] if self.is_ours(entry) else []
                    continue
                commands = entry.get(_INNER) if isinstance(entry, dict) else None
                inner = enumerate(commands) if isinstance(commands, list) else ()
                paths += [(*path, _INNER, at) for at, command in inner if self.is_ours(command)]
        return paths


@dataclass(frozen=True)
class JsonEditor:
    """See `Editor`. A JSON file.

    Attributes:
        parts: What is ours in it.
        allows_comments: Whether its client accepts comments and commas before a closing bracket.
        fixed: Members that the file must have beside ours, set only where they are missing.
        check: Returns what is wrong with the whole file in the eyes of its client, empty if nothing.
    """

    parts: Sequence[JsonPart]
    allows_comments: bool = False
    fixed: Mapping[str, JsonValue] = field(default_factory=dict)
    check: Callable[[JsonValue], str] = lambda _document: ""

    def put(self, text: str | None) -> Edited:
        """See `Editor.put`."""
        before = document = JsonText.parse(text or "", allows_comments=self.allows_comments)
        if not isinstance(before.get(()), dict):
            raise OccupiedError("something else than an object as its outermost value")
        wanted = {(name,): value for name, value in self.fixed.items()}
        created: list[tuple[str, ...]] = [_ROOT] if text is None else []
        for part in self.parts:
            for path, value in (wanted | dict(part.containers)).items():
                if not document.has(path):
                    document = document.with_value(path, value)
                    created.append(path)
            document = part.put(document)
        problem = self.check(document.get(()))
        if problem:
            raise InvalidEntryError(problem)
        return Edited(text if text is not None and document is before else document.text, tuple(created))

    def take_out(self, text: str, created: Collection[tuple[str, ...]]) -> str | None:
        """See `Editor.take_out`."""
        before = document = JsonText.parse(text, allows_comments=self.allows_comments)
        for part in self.parts:
            document = part.take_out(document)
        for path in sorted(created, key=len, reverse=True):
            if path and document.get(path) in ({}, []):
                document = document.without(path)
        made = {name: value for name, value in self.fixed.items() if (name,) in created}
        if document.get(()) == made:
            for name in made:
                document = document.without((name,))
        if _ROOT in created and document.get(()) == {}:
            return None
        return text if document is before else document.text


@dataclass(frozen=True)
class TomlEditor:
    """See `Editor`. One table in a TOML file; what the user added to it is kept.

    Attributes:
        path: Of the table.
        table: Its values.
        owned: Names of values that are ours to set or take out.
        is_ours: Tells ours from another's.
        what: What it is, for a message.
        comment: Lines above it.
    """

    path: tuple[str, ...]
    table: Mapping[str, JsonValue]
    owned: Collection[str]
    is_ours: Recognizer
    what: str
    comment: str = ""

    def put(self, text: str | None) -> Edited:
        """See `Editor.put`."""
        found = toml_value(text or "", self.path)
        if found is not None and not self.is_ours(found):
            raise OccupiedError(self.what)
        if isinstance(found, dict) and found == merged(self.table, found, self.owned):
            return Edited(text or "")
        changed = with_table(text or "", self.path, self.table, owned=self.owned, comment=self.comment)
        return Edited(changed, (_ROOT,) if text is None else ())

    def take_out(self, text: str, created: Collection[tuple[str, ...]]) -> str | None:
        """See `Editor.take_out`."""
        if not self.is_ours(toml_value(text, self.path)):
            return text
        left = without_table(text, self.path, comment=self.comment)
        return left if left.strip() or _ROOT not in created else None


@dataclass(frozen=True)
class WholeFile:
    """See `Editor`. A file that is ours from end to end, as long as nobody else wrote into it.

    Attributes:
        content: All of it.
        mark: A text in it by which an older version of it is known.
        what: What it is, for a message.
    """

    content: str
    mark: str
    what: str

    def put(self, text: str | None) -> Edited:
        """See `Editor.put`."""
        if text is not None and self.mark not in text:
            raise OccupiedError(self.what)
        return Edited(self.content)

    def take_out(self, text: str, created: Collection[tuple[str, ...]]) -> str | None:  # noqa: ARG002
        """See `Editor.take_out`. What the user changed in it is the user's, and stays."""
        return None if text.replace("\r\n", "\n") == self.content else text


def merged(
    ours: Mapping[str, JsonValue], found: Mapping[str, JsonValue], owned: Collection[str]
) -> dict[str, JsonValue]:
    """Return an entry of ours with what the user added to or changed in the one that is there, owned values aside."""
    return dict(ours) | {name: value for name, value in found.items() if name not in owned}
