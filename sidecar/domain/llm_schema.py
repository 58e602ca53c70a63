"""The part of JSON Schema that we ask language models to keep to, and the check of what they made of it.

Not a general validator: a keyword it does not know is refused when the schema is written, never ignored.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sidecar.errors import InvalidInputError

_MAX_DEPTH: Final = 8
_PLAIN_KEYWORDS: Final = frozenset({"type", "description", "title", "enum"})
_LIMITS: Final[Mapping[str, frozenset[str]]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength"}),
    "number": frozenset({"minimum", "maximum"}),
    "integer": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
}
# What providers refuse in a schema that they enforce; we check it ourselves.
_NOT_SENT: Final = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"})


class MisfitError(ValueError):
    """A value does not fit its schema. The text names the place and the rule, and never quotes the value."""


def check_schema(schema: Mapping[str, object]) -> None:
    """Check that a schema is an object's and uses only what we can check.

    Raises:
        InvalidInputError: Names the place.
    """
    if schema.get("type") != "object":
        raise InvalidInputError("schema", schema.get("type"), "one of type `object`")
    _check_node(schema, "schema", depth=0)


def fit(value: object, schema: Mapping[str, object]) -> object:
    """Return the value without properties that the schema does not name.

    Args:
        value: As `json` made it.
        schema: One that `check_schema` let pass.

    Raises:
        MisfitError: If it does not fit.
    """
    return _fit(value, schema, "answer")


def enforceable(schema: Mapping[str, object]) -> dict[str, object]:
    """Return the schema as providers enforce it: without limits of size, and closed to other properties."""
    sent = {key: value for key, value in schema.items() if key not in _NOT_SENT}
    if schema["type"] == "object":
        sent["properties"] = {name: enforceable(part) for name, part in _properties(schema).items()}
        sent["additionalProperties"] = False
    elif schema["type"] == "array":
        sent["items"] = enforceable(_mapping(schema["items"]))
    return sent


def requires_all(schema: Mapping[str, object]) -> bool:
    """Tell whether every property at every level is required, which strict modes ask for."""
    if schema["type"] == "array":
        return requires_all(_mapping(schema["items"]))
    properties = _properties(schema)
    return set(properties) == set(_texts(schema.get("required", ()))) and all(map(requires_all, properties.values()))


def _check_node(schema: Mapping[str, object], place: str, *, depth: int) -> None:
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _LIMITS:
        raise InvalidInputError(f"{place}.type", kind, f"one of {', '.join(_LIMITS)}")
    unknown = sorted(set(schema) - _PLAIN_KEYWORDS - _LIMITS[kind])
    if unknown or depth > _MAX_DEPTH:
        raise InvalidInputError(place, unknown, f"keywords of a plain {kind}, at most {_MAX_DEPTH} levels deep")
    if kind == "object":
        properties = _properties(schema)
        strange = sorted(set(_texts(schema.get("required", ()))) - set(properties))
        if strange:
            raise InvalidInputError(f"{place}.required", strange, "names of properties")
        for name, part in properties.items():
            _check_node(part, f"{place}.{name}", depth=depth + 1)
    elif kind == "array":
        items = schema.get("items")
        if not isinstance(items, Mapping):
            raise InvalidInputError(f"{place}.items", items, "a schema")
        _check_node(items, f"{place}[]", depth=depth + 1)


def _fit(value: object, schema: Mapping[str, object], place: str) -> object:
    kind = str(schema["type"])
    fitted = _FITTERS[kind](value, schema, place)
    choices = schema.get("enum")
    if isinstance(choices, Sequence) and fitted not in choices:
        raise MisfitError(f"{place} is none of the allowed values")
    return fitted


def _fit_object(value: object, schema: Mapping[str, object], place: str) -> object:
    if not isinstance(value, Mapping):
        raise MisfitError(f"{place} is no object")
    missing = [name for name in _texts(schema.get("required", ())) if name not in value]
    if missing:
        raise MisfitError(f"{place} lacks {', '.join(missing)}")
    return {
        name: _fit(value[name], part, f"{place}.{name}") for name, part in _properties(schema).items() if name in value
    }


def _fit_array(value: object, schema: Mapping[str, object], place: str) -> object:
    if not isinstance(value, list):
        raise MisfitError(f"{place} is no list")
    _check_limits(len(value), schema, ("minItems", "maxItems"), f"the length of {place}")
    items = _mapping(schema["items"])
    return [_fit(part, items, f"{place}[{number}]") for number, part in enumerate(value)]


def _fit_string(value: object, schema: Mapping[str, object], place: str) -> object:
    if not isinstance(value, str):
        raise MisfitError(f"{place} is no text")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise MisfitError(f"{place} holds half a character")
    _check_limits(len(value), schema, ("minLength", "maxLength"), f"the length of {place}")
    return value


def _fit_number(value: object, schema: Mapping[str, object], place: str) -> object:
    # To Python, true is a number; to JSON it is not.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MisfitError(f"{place} is no number")
    if isinstance(value, float) and not math.isfinite(value):
        raise MisfitError(f"{place} is not finite")
    _check_limits(value, schema, ("minimum", "maximum"), place)
    return value


def _fit_integer(value: object, schema: Mapping[str, object], place: str) -> object:
    number = _fit_number(value, schema, place)
    if isinstance(number, float):
        # JSON does not tell 3.0 from 3.
        if not number.is_integer():
            raise MisfitError(f"{place} is no whole number")
        return int(number)
    return number


def _fit_boolean(value: object, schema: Mapping[str, object], place: str) -> object:
    del schema
    if not isinstance(value, bool):
        raise MisfitError(f"{place} is neither true nor false")
    return value


_FITTERS: Final[Mapping[str, Callable[[object, Mapping[str, object], str], object]]] = {
    "object": _fit_object,
    "array": _fit_array,
    "string": _fit_string,
    "number": _fit_number,
    "integer": _fit_integer,
    "boolean": _fit_boolean,
}


def _check_limits(size: float, schema: Mapping[str, object], names: tuple[str, str], what: str) -> None:
    least, most = (schema.get(name) for name in names)
    if isinstance(least, int | float) and size < least:
        raise MisfitError(f"{what} is below {least}")
    if isinstance(most, int | float) and size > most:
        raise MisfitError(f"{what} is above {most}")


def _properties(schema: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return {}
    return {str(name): _mapping(part) for name, part in properties.items()}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(part) for part in value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
