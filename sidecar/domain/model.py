"""What makes the vectors of two embedders comparable."""

import hashlib
from dataclasses import astuple, dataclass
from typing import Final

_ID_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class ModelFingerprint:
    """Identity of an embedding space. Vectors of different fingerprints are never mixed.

    Attributes:
        model: Name for a person, such as `all-MiniLM-L6-v2`.
        weights: SHA-256 of the weights file in hexadecimal.
        precision: Such as `int8-weights` or `float32`.
        max_tokens: Longer texts are cut into windows of this many tokens.
    """

    model: str
    weights: str
    dim: int
    pooling: str
    normalised: bool
    max_tokens: int
    precision: str
    query_prefix: str = ""
    document_prefix: str = ""

    @property
    def id(self) -> str:
        """Short stable name, stored beside each vector: the model's name and a digest of all the rest."""
        digest = hashlib.sha256("\x1f".join(str(part) for part in astuple(self)).encode()).hexdigest()
        return f"{self.model}@{digest[:_ID_DIGITS]}"
