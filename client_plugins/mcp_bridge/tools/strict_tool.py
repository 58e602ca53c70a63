"""A tool as every client takes it: flat schema, no unknown arguments, errors that an agent can act on."""

import difflib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, cast

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, ValidationError

if TYPE_CHECKING:
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase

_REFERENCE: Final = "$ref"
_DEFINITIONS: Final = "$defs"
_EITHER: Final = "anyOf"
_MAX_PROBLEMS: Final = 5


class StrictModel(BaseModel):
    """An object whose unknown keys are errors: a mistyped option must not be taken for its default."""

    model_config = ConfigDict(extra="forbid")


class StrictTool(Tool):
    """Refuses unknown arguments, and says what is wrong with an argument in one line."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:  # noqa: FBT001, FBT002 - as the SDK has it
        """See `Tool.run`."""
        try:
            return await super().run(arguments, context, convert_result)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_problems(error.__cause__, list(self.parameters["properties"]))) from error.__cause__
            raise


def strict_tool(
    function: Callable[..., Awaitable[Any]],
    *,
    name: str,
    title: str,
    description: str,
    annotations: ToolAnnotations,
    meta: dict[str, Any] | None = None,
) -> Tool:
    """Return the tool that calls this function; its schemas come from the function's annotations."""
    tool = StrictTool.from_function(
        function, name=name, title=title, description=description, annotations=annotations, meta=meta
    )
    loose = tool.fn_metadata.arg_model
    forbidding = {"model_config": ConfigDict(extra="forbid"), "__module__": __name__}
    strict = cast("type[ArgModelBase]", type(loose.__name__, (loose,), forbidding))
    tool.fn_metadata.arg_model = strict
    tool.parameters = flat_schema(strict.model_json_schema(by_alias=True))
    if tool.fn_metadata.output_schema is not None:
        output = _lean(flat_schema(tool.fn_metadata.output_schema))
        tool.fn_metadata.output_schema = {key: value for key, value in output.items() if value != {}}
    return tool


def flat_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with definitions put in where they are named, and without titles: some clients know neither."""
    definitions = schema.get(_DEFINITIONS, {})

    def flatten(node: Any, *, is_schema: bool) -> Any:
        if isinstance(node, list):
            return [flatten(item, is_schema=is_schema) for item in node]
        if not isinstance(node, dict):
            return node
        if is_schema and _EITHER in node:
            # First: what may be left out may be a definition.
            node = _without_null(node)
        if is_schema and _REFERENCE in node:
            target = definitions[node[_REFERENCE].rpartition("/")[2]]
            if "enum" in target:
                # The argument is described; what an enumeration says of itself is not for agents.
                target = {key: value for key, value in target.items() if key != "description"}
            node = {**target, **{key: value for key, value in node.items() if key != _REFERENCE}}
        # Below `properties` a key is a name of ours, and `title` could be one.
        dropped = {"title", _DEFINITIONS} if is_schema else set()
        return {
            key: flatten(value, is_schema=not (is_schema and key == "properties"))
            for key, value in node.items()
            if key not in dropped
        }

    flat = flatten(schema, is_schema=True)
    assert isinstance(flat, dict)
    return flat


def _lean(output: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an answer without what nobody needs of it: all schemas together must stay small.

    What an object is, the tool's own description says; what a field has by default is for those who fill it in.
    """
    dropped = {"default", "description"} if "properties" in output else {"default"}
    lean = {key: value for key, value in output.items() if key not in dropped}
    if "properties" in lean:
        lean["properties"] = {name: _lean(field) for name, field in lean["properties"].items()}
    if isinstance(lean.get("items"), dict):
        lean["items"] = _lean(lean["items"])
    return lean


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that may be left out as that of the value: what is left out needs no null."""
    (value,) = (choice for choice in node[_EITHER] if choice != {"type": "null"})
    return {**value, **{key: told for key, told in node.items() if key != _EITHER and told is not None}}


def _problems(error: ValidationError, names: list[str]) -> str:
    told = []
    for problem in error.errors(include_url=False)[:_MAX_PROBLEMS]:
        where = ".".join(str(part) for part in problem["loc"]) or "arguments"
        if problem["type"] == "extra_forbidden":
            told.append(f"{where}: there is no such argument{_suggestion(problem['loc'], names)}")
        else:
            told.append(f"{where}: {problem['msg']}")
    return f"{'; '.join(told)}. Nothing was done. Arguments are {', '.join(names)}."


def _suggestion(where: tuple[int | str, ...], names: list[str]) -> str:
    """Return which argument was meant; only for one of the call itself, whose names are known."""
    if len(where) != 1:
        return ""
    given = str(where[0])
    # Agents drop or add a word: `type` for `memory_type`.
    akin = [name for name in names if given in name.split("_") or name in given.split("_")]
    meant = akin or difflib.get_close_matches(given, names, n=1)
    return f"; did you mean {meant[0]}?" if meant else ""
