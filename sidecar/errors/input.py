"""Errors of what the caller asked: a field's value is not acceptable."""

from sidecar.errors.base import SidecarError, shown


class InvalidInputError(SidecarError):
    """A field's value is not acceptable; the metadata names the field."""

    reason = "INVALID_INPUT"

    def __init__(self, field: str, value: object, expected: str) -> None:
        super().__init__(f"{field} is {shown(value)}; expected {expected}", field=field)


class EmptyQueryError(InvalidInputError):
    """The query is blank."""

    reason = "EMPTY_QUERY"

    def __init__(self) -> None:
        SidecarError.__init__(self, "the query is blank; say in a few words what you want to know", field="query")


class InvalidNamespaceError(InvalidInputError):
    """The namespace is neither `global`, `project:<name>` nor, where reading, `*`."""

    reason = "INVALID_NAMESPACE"

    def __init__(self, value: str) -> None:
        super().__init__(
            "namespace",
            value,
            "`global` or `project:<name>`, the name of 1 to 200 letters, digits and . _ - /",
        )


class UnknownMemoryTypeError(InvalidInputError):
    """No memory type has this name."""

    reason = "UNKNOWN_MEMORY_TYPE"

    def __init__(self, value: str, valid: tuple[str, ...]) -> None:
        super().__init__("memory_type", value, f"one of {', '.join(valid)}")


class UnknownRelationError(InvalidInputError):
    """No relation between memories has this name."""

    reason = "UNKNOWN_RELATION"

    def __init__(self, field: str, value: str, valid: tuple[str, ...]) -> None:
        super().__init__(field, value, f"one of {', '.join(valid)}")


class ContentTooLargeError(InvalidInputError):
    """A text is longer than is stored."""

    reason = "CONTENT_TOO_LARGE"

    def __init__(self, field: str, size_bytes: int, limit_bytes: int) -> None:
        SidecarError.__init__(
            self,
            f"{field} has {size_bytes} bytes of UTF-8; at most {limit_bytes} are stored: split it, or keep the gist",
            field=field,
            size_bytes=str(size_bytes),
            limit_bytes=str(limit_bytes),
        )


class RequestKeyReusedError(InvalidInputError):
    """A request key came again with other content."""

    reason = "REQUEST_KEY_REUSED"

    def __init__(self, key: str) -> None:
        SidecarError.__init__(
            self, f"request key {key!r} was used for another request; make a new key for each", field="request_key"
        )


class BadLabelledLineError(InvalidInputError):
    """A line of a file with labelled transcripts is not of the form that it should have."""

    reason = "BAD_LABELLED_LINE"

    def __init__(self, line: int, problem: str) -> None:
        SidecarError.__init__(
            self, f"line {line} is no labelled transcript: {problem}; docs/judge.md shows the form", line=str(line)
        )
