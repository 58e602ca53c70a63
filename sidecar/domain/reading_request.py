"""What a request to read a transcript says. Nothing in it is to be trusted: whoever reads checks the path."""

from dataclasses import dataclass
from typing import Final

from sidecar.errors import InvalidInputError

MAX_CLIENT_CHARACTERS: Final = 64
MAX_PATH_CHARACTERS: Final = 4_096


@dataclass(frozen=True, slots=True)
class ReadingRequest:
    """A wish that a transcript be read now.

    Attributes:
        client: Such as `claude-code`.
        transcript_path: As the client named it.
        session: The client's session id; empty if not known.

    Raises:
        InvalidInputError: If client or path is missing or cannot be one.
    """

    client: str
    transcript_path: str
    session: str = ""

    def __post_init__(self) -> None:
        if not 1 <= len(self.client) <= MAX_CLIENT_CHARACTERS or not self.client.isprintable():
            raise InvalidInputError("client", self.client[:MAX_CLIENT_CHARACTERS], "a client's name")
        if not 1 <= len(self.transcript_path) <= MAX_PATH_CHARACTERS or "\0" in self.transcript_path:
            expected = f"an absolute path of at most {MAX_PATH_CHARACTERS} characters"
            raise InvalidInputError("transcript_path", self.transcript_path[:80], expected)
