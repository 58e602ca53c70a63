"""Turns JSON into the classes of the contract and back. Strict: nothing is converted, nothing unknown passed over."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import attrs
from cattrs import ClassValidationError, Converter, ForbiddenExtraKeysError, transform_error
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

Structured = TypeVar("Structured")

# JSON can write half a character, which no other encoding can.
_HALF: Final = re.compile(r"[\ud800-\udfff]")
_KINDS: Final[tuple[tuple[Any, tuple[type, ...], str], ...]] = (
    (str, (str,), "a text"),
    (bool, (bool,), "true or false"),
    (int, (int,), "a whole number"),
    (float, (int, float), "a number"),
)


class ParametersError(ValueError):
    """What an editor sent is not what the contract says. The message names the fields, and quotes no text."""


class _KindError(TypeError):
    """A value is of another kind than its field."""


def structured(value: object, kind: type[Structured]) -> Structured:
    """Return the value as this class.

    Args:
        value: As JSON has it; None counts as an object without fields.
        kind: One of the contract.

    Raises:
        ParametersError: With the fields and what is wrong with each.
    """
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise ParametersError("expected one object")
    try:
        return _CONVERTER.structure(value, kind)
    except (ClassValidationError, ValueError, TypeError) as error:
        told = transform_error(error, path="", format_exception=_told) if isinstance(error, ExceptionGroup) else ()
        raise ParametersError("; ".join(_placed(each) for each in told) or str(error)) from error


def unstructured(value: object) -> object:
    """Return an answer of the contract as JSON has it."""
    return _CONVERTER.unstructure(value)


def _told(error: BaseException, _: type | None) -> str:
    if isinstance(error, KeyError):
        return "is missing"
    if isinstance(error, ForbiddenExtraKeysError):
        return f"there is no field {', '.join(sorted(error.extra_fields))}"
    if isinstance(error, _KindError | ValueError):
        return str(error)
    return "is not as expected"


def _placed(told: str) -> str:
    """Return `query: is missing` for cattrs' `is missing @ .query`."""
    what, separator, place = told.rpartition(" @ ")
    field = _camel(place.strip("."))
    return f"{field}: {what}" if separator and field else what or told


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _strict(kinds: tuple[type, ...], name: str) -> Callable[[Any, Any], Any]:
    def check(value: Any, _: Any) -> Any:
        # A bool is an int to Python, and not to JSON.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise _KindError(f"expected {name}")
        if isinstance(value, str) and _HALF.search(value):
            raise _KindError(f"expected {name} of whole characters; there is half of a surrogate pair in it")
        return value

    return check


def _texts(value: Any, _: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise _KindError("expected a list of texts")
    return list(value)


def _make_converter() -> Converter:
    converter = Converter(detailed_validation=True)
    for kind, kinds, name in _KINDS:
        converter.register_structure_hook(kind, _strict(kinds, name))
    converter.register_structure_hook_func(lambda kind: bool(kind == list[str]), _texts)

    @converter.register_structure_hook_factory(attrs.has)
    def _(kind: Any) -> Any:
        names: Any = {field.name: override(rename=_camel(field.name)) for field in attrs.fields(kind)}
        return make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True, **names)

    @converter.register_unstructure_hook_factory(attrs.has)
    def _(kind: Any) -> Any:
        # Only what is None by default may be left out; a figure without a value says so.
        fields: Any = {
            field.name: override(rename=_camel(field.name), omit_if_default=field.default is None)
            for field in attrs.fields(kind)
        }
        return make_dict_unstructure_fn(kind, converter, **fields)

    return converter


_CONVERTER: Final = _make_converter()
