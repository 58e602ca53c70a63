"""Types into a client's terminal UI, as a user would."""

import time
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path

import pexpect

from tests.lab.client_run import Finished

_ROWS_COLUMNS = (50, 140)
_QUIET_S = 2.0
"""A client that has printed nothing for so long waits for its user."""
_KEY_PAUSE_S = 0.5
"""Between a line and its Enter; a client takes both at once for a paste."""

_ANSWERS = {
    "\x1b[6n": "\x1b[1;1R",
    "\x1b]10;?": "\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    "\x1b]11;?": "\x1b]11;rgb:0000/0000/0000\x1b\\",
    "\x1b[c": "\x1b[?1;2c",
}
"""What a terminal says when it is asked for cursor, colours and kind. Clients wait for it."""


def run_in_terminal(
    argv: Sequence[str], lines: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout_s: float
) -> Finished:
    """Type each line when the client is idle. The last one must end it, and is repeated until it does.

    Raises:
        TimeoutError: If the whole takes longer than `timeout_s`.
    """
    deadline_s = time.monotonic() + timeout_s
    child = pexpect.spawn(
        argv[0],
        list(argv[1:]),
        env={**env, "TERM": "xterm-256color"},
        cwd=str(cwd),
        dimensions=_ROWS_COLUMNS,
        encoding="utf-8",
    )
    screen = ""
    try:
        for line in chain(lines, repeat(lines[-1])):
            screen += _read_until_quiet(child, deadline_s)
            if not child.isalive():
                break
            child.send(line)
            time.sleep(_KEY_PAUSE_S)
            child.send("\r")
    finally:
        child.close(force=True)
    return Finished(child.exitstatus if child.exitstatus is not None else -1, screen, "")


def _read_until_quiet(child: "pexpect.spawn[str]", deadline_s: float) -> str:
    """Return what the client prints until it has been quiet for a while, or has ended."""
    screen = ""
    while time.monotonic() < deadline_s:
        try:
            text = child.read_nonblocking(size=65_536, timeout=_QUIET_S)
        except pexpect.TIMEOUT:
            if screen:
                return screen
            continue
        except pexpect.EOF:
            child.wait()
            return screen
        screen += text
        for question, answer in _ANSWERS.items():
            if question in text:
                child.send(answer)
    raise TimeoutError(f"the client is still running; its screen: {screen[-2_000:]}")
