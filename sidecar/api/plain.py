"""Messages of the contract as plain JSON values, for scripts and people.

Not the protobuf JSON mapping: names are those of the .proto files, every field is always there, whole numbers stay
numbers, enums lose their prefix (`golden_rule`), times are ISO 8601 UTC and durations seconds.
"""

from collections.abc import Iterable
from typing import TypeAlias

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


def plain(message: Message) -> dict[str, JsonValue]:
    """Return the message as a JSON object; a field that is not set and has no default is null."""
    return {field.name: _field(message, field) for field in _fields(message)}


def short_name(enum: EnumDescriptor, number: int) -> str:
    """Return `golden_rule` for MEMORY_TYPE_GOLDEN_RULE, empty for unspecified, the number for an unknown value."""
    value = enum.values_by_number.get(number)
    if value is None:
        return str(number)
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return value.name.removeprefix(prefix).lower() if number else ""


def _fields(message: Message) -> Iterable[FieldDescriptor]:
    # The stubs have two classes of descriptors, of which the runtime knows one.
    return message.DESCRIPTOR.fields  # type: ignore[return-value]


def _field(message: Message, field: FieldDescriptor) -> JsonValue:
    content = getattr(message, field.name)
    if field.is_repeated:
        return _map(field, content) if _is_map(field) else [_value(field, item) for item in content]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(field, content)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _map(field: FieldDescriptor, content: "dict[str, object]") -> dict[str, JsonValue]:
    assert field.message_type is not None
    value = field.message_type.fields_by_name["value"]
    return {str(key): _value(value, content[key]) for key in sorted(content)}


def _value(field: FieldDescriptor, content: object) -> JsonValue:
    if isinstance(content, Message):
        return _message(content)
    if field.enum_type is not None and isinstance(content, int):
        return short_name(field.enum_type, content)
    assert isinstance(content, bool | int | float | str)
    return content


def _message(message: Message) -> JsonValue:
    if isinstance(message, Timestamp):
        return message.ToJsonString()
    if isinstance(message, Duration):
        return message.ToTimedelta().total_seconds()
    if isinstance(message, Struct):
        return {key: _any(message.fields[key]) for key in sorted(message.fields)}
    return plain(message)


def _any(value: Value) -> JsonValue:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _message(value.struct_value)
    if kind == "list_value":
        return _items(value.list_value)
    content: JsonValue = getattr(value, kind) if kind and kind != "null_value" else None
    # A Struct has only doubles; a whole one was most likely meant as such.
    return int(content) if isinstance(content, float) and content.is_integer() else content


def _items(values: ListValue) -> list[JsonValue]:
    content: Iterable[Value] = values.values
    return [_any(value) for value in content]
