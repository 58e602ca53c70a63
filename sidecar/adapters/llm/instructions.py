"""Tells a model in words which form its answer must have; servers that enforce no schema still show it to the model."""

import json
from typing import Final

from sidecar.domain.llm import LlmRequest

_FORM: Final = "Answer with one JSON object of this JSON schema and nothing else:"


def with_form(request: LlmRequest) -> str:
    """Return the request's system text, followed by the form of the answer."""
    schema = json.dumps(request.schema, ensure_ascii=False, separators=(",", ":"), default=dict)
    return f"{request.system}\n\n{_FORM}\n{schema}".lstrip()
