"""Finds the one answer in what a language model wrote, whatever it put around it. Nothing in it is ever run."""

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from sidecar.domain.llm_schema import MisfitError, fit

MAX_TEXT_CHARACTERS: Final = 256 * 1024
"""Longer texts are no answer to anything we ask."""

# Each start costs a scan of the rest; a text of braces must not cost the square of its length.
_MAX_STARTS: Final = 64
_THOUGHT_END: Final = "</think>"
_BRACE: Final = re.compile(r"\{")


class UnreadableAnswerError(ValueError):
    """No answer, or more than one, is in the text. Never quotes the text."""


def read_answer(text: str, schema: Mapping[str, object]) -> Mapping[str, object]:
    """Return the answer's fields.

    Fences, chat around it, and thoughts that end in `</think>` are passed over. Objects that do not fit the schema
    are too, as long as exactly one fits; repeating it does not harm.

    Args:
        text: What the model wrote.
        schema: One that `check_schema` let pass.

    Raises:
        UnreadableAnswerError: Says what is wrong, without quoting.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise UnreadableAnswerError(f"it has over {MAX_TEXT_CHARACTERS} characters")
    fitting: list[dict[str, object]] = []
    problem = "it holds no JSON object"
    for value in _objects(text.rpartition(_THOUGHT_END)[2]):
        try:
            fitted = fit(value, schema)
        except MisfitError as error:
            problem = str(error)
            continue
        if isinstance(fitted, dict) and fitted not in fitting:
            fitting.append(fitted)
    if len(fitting) > 1:
        raise UnreadableAnswerError("it holds several answers that differ")
    if not fitting:
        raise UnreadableAnswerError(problem)
    return MappingProxyType(fitting[0])


def fit_answer(value: object, schema: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of an answer that the provider decoded already.

    Raises:
        UnreadableAnswerError: See `read_answer`.
    """
    try:
        fitted = fit(value, schema)
    except MisfitError as error:
        raise UnreadableAnswerError(str(error)) from error
    assert isinstance(fitted, dict), "the schema is an object's"
    return MappingProxyType(fitted)


def _objects(text: str) -> Iterator[object]:
    """Yield the JSON objects in a text that lie in no other one, in order; what cannot be decoded is passed over."""
    position = 0
    for _ in range(_MAX_STARTS):
        start = _BRACE.search(text, position)
        if start is None:
            return
        try:
            value, position = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            # The brace may belong to the chat before the answer, as in "{like this}".
            position = start.end()
            continue
        yield value


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_without_repeats)
