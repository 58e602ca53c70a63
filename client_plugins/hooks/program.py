"""What a hook does: read the payload, tell or ask the sidecar, print a briefing. Imports the standard library only.

There is nothing to report failures to: the client would take it for an objection. One that nobody foresaw is noted in
`logs/hooks.log` of the data folder, without a word of the payload.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple

from client_plugins.hooks import calls
from client_plugins.hooks.door import Address, Door
from client_plugins.hooks.payload import JsonObject, decode_object
from client_plugins.hooks.wishes import Briefing, Hook, HookClient

OWN_PROCESS: Final = "MEMORY_SIDECAR_CHILD"
"""Set in all that the sidecar starts: an agent among it must not be remembered by the sidecar that asked it."""

_MAX_PAYLOAD_BYTES: Final = 4 * 1024 * 1024
_MAX_NOTES_BYTES: Final = 64 * 1024
# Less room than that holds no memory beside the fence.
_LEAST_BYTES: Final = 1_000
_STDIN: Final = 0
_STDOUT: Final = 1


class _Options(NamedTuple):
    client: str
    home: Path | None


def run(arguments: Sequence[str]) -> None:
    """Do what the hook is for; prints one JSON document or nothing."""
    options = _parse(arguments)
    client = _client(options.client)
    if client is None or options.home is None or os.environ.get(OWN_PROCESS):
        return
    # Looked at first: with stdout closed, the next file or socket would get its number.
    can_answer = _is_open(_STDOUT)
    try:
        payload = decode_object(_read_payload())
        hook = client.read(payload)
        if hook is not None:
            _serve(hook, client, options.home, can_answer=can_answer)
    except Exception as error:  # noqa: BLE001 - a hook may fail at nothing; noted
        _note(options.client, options.home, error)


def _serve(hook: Hook, client: HookClient, home: Path, *, can_answer: bool) -> None:
    door = _open_door(hook, home)
    if door is None:
        return
    reports = calls.report(hook.session, hook.wishes)
    if reports:
        door.tell(reports)
    for wish in hook.wishes:
        if isinstance(wish, Briefing) and can_answer and hook.session.session:
            _brief(hook, wish, client, door)


def _open_door(hook: Hook, home: Path) -> Door | None:
    address = Address.of(home)
    door = Door.of(address) if address is not None else None
    if door is None and hook.is_start:
        from client_plugins.hooks.late_start import start_in_background  # noqa: PLC0415 - seldom needed

        start_in_background(home)
    return door


def _brief(hook: Hook, wish: Briefing, client: HookClient, door: Door) -> None:
    """Print what there is to tell, then say so: what was not printed must not count as told."""
    asked = [calls.essentials(hook.session, is_retry=bool(wish.prompt))]
    if wish.prompt:
        asked.append(calls.relevant(hook.session, wish.prompt))
    left_bytes = client.max_briefing_bytes
    texts: list[str] = []
    given: list[JsonObject] = []
    for call in asked:
        if left_bytes < _LEAST_BYTES:
            break
        answer = door.ask(call)
        text = calls.markdown(answer, max_bytes=left_bytes)
        if text:
            texts.append(text)
            given.append(answer)
            left_bytes -= len(text.encode("utf-8", "replace"))
    if texts:
        os.write(_STDOUT, json.dumps(client.framed(wish.event, "\n".join(texts))).encode() + b"\n")
        door.tell([calls.printed(answer) for answer in given])


def _client(name: str) -> HookClient | None:
    if name == "claude-code":
        from client_plugins.hooks.claude_code import HOOKS  # noqa: PLC0415 - one of them is enough
    elif name == "codex":
        from client_plugins.hooks.codex import HOOKS  # noqa: PLC0415
    elif name == "cursor":
        from client_plugins.hooks.cursor import HOOKS  # noqa: PLC0415
    else:
        return None
    return HOOKS


def _parse(arguments: Sequence[str]) -> _Options:
    """Return client and data folder; what is not said is empty or None. argparse takes too long, and would exit."""
    words = list(arguments)
    home = ""
    if "--home" in words[:-1]:
        position = words.index("--home")
        home = words[position + 1]
        del words[position : position + 2]
    path = Path(home)
    return _Options(words[0] if words else "", path if path.is_absolute() else None)


def _read_payload() -> bytes:
    """Return what is on stdin; nothing if it is too much, but all is taken: the client may not expect a broken pipe."""
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(_STDIN, 1 << 20):
        size += len(piece)
        if size <= _MAX_PAYLOAD_BYTES:
            pieces.append(piece)
    return b"".join(pieces) if size <= _MAX_PAYLOAD_BYTES else b""


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _note(client: str, home: Path, error: Exception) -> None:
    """Note where something failed, not what was said; best effort, since it may be the disk that failed."""
    note = {"time": time.time(), "client": client, "error": type(error).__name__, "at": [*_places(error.__traceback__)]}
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(home / "logs" / "hooks.log", flags, 0o600)
        if os.fstat(descriptor).st_size < _MAX_NOTES_BYTES:
            os.write(descriptor, json.dumps(note).encode() + b"\n")
    except OSError:
        return


def _places(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        yield f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
