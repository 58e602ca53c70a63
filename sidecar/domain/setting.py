"""One setting: its type, its default and its limits, and how a text becomes its value. Knows no setting by name."""

import math
from dataclasses import dataclass, field
from typing import Any, Final

from sidecar.errors import InvalidInputError

ENVIRONMENT_PREFIX: Final = "SIDECAR_"
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})

Value = str | int | float | bool


@dataclass(frozen=True)
class Setting:
    """One line of the table.

    Attributes:
        name: As in the file; in the environment with the prefix and in capitals, as a flag with dashes.
        kind: Type of the value.
        default: Value if nothing else is said.
        unit: Of a number; empty for none.
        description: What it does.
        least: Smallest number allowed.
        most: Largest number allowed.
        choices: Texts allowed; empty means any.
    """

    name: str
    kind: type[str] | type[int] | type[float] | type[bool]
    default: Value
    unit: str
    description: str
    least: float
    most: float
    choices: tuple[str, ...]

    @property
    def variable(self) -> str:
        """Name in the environment."""
        return ENVIRONMENT_PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """Name on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def expected(self) -> str:
        """What a value must be, for messages and the documentation."""
        if self.kind is bool:
            return "true or false"
        if self.choices:
            return "one of " + ", ".join(f"`{choice}`" for choice in self.choices)
        if self.kind is str:
            return "a text"
        kind = "a whole number" if self.kind is int else "a number"
        unit = f" {self.unit}" if self.unit else ""
        if math.isinf(self.most):
            return f"{kind}, {self.least:g} or more{unit}"
        # Not `:g`: that would round a limit such as 67108864.
        return f"{kind}, {_shown(self.least)} to {_shown(self.most)}{unit}"

    def accept(self, given: object, *, source: str) -> Value:
        """Return the value, converted from a text if it is one.

        Raises:
            InvalidInputError: It is not acceptable; names setting, source, value and what is expected.
        """
        value = self._converted(given)
        if value is None or not self._is_allowed(value):
            raise InvalidInputError(f"{self.name} (from {source})", given, self.expected)
        return value

    def _converted(self, given: object) -> Value | None:
        if self.kind is str:
            return given if isinstance(given, str) else None
        if self.kind is bool:
            return _to_bool(given)
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            return None
        try:
            if self.kind is int:
                return int(given) if not isinstance(given, float) or given.is_integer() else None
            return float(given)
        except (ValueError, OverflowError):
            return None

    def _is_allowed(self, value: Value) -> bool:
        if isinstance(value, str):
            return not self.choices or value in self.choices
        return isinstance(value, bool) or (self.least <= value <= self.most and math.isfinite(value))


def described(
    default: Value,
    description: str,
    *,
    unit: str = "",
    least: float = 0,
    most: float = math.inf,
    choices: tuple[str, ...] = (),
) -> Any:
    """Describe a setting in the place of its default, as a field of a dataclass; see `Setting`."""
    details = {"description": description, "unit": unit, "least": least, "most": most, "choices": choices}
    return field(default=default, metadata=details)


def _to_bool(given: object) -> bool | None:
    if isinstance(given, bool):
        return given
    text = given.strip().lower() if isinstance(given, str) else None
    return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text or "")


def _shown(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)
