"""The seams. Each has an adapter for real use and a light twin, and both pass one contract suite (tests/contract).

Embeddings are `(dim,)` or `(n, dim)` float32 arrays, rows L2-normalised. Keys are the dense int64 row numbers that the
memory store gives out. Ports named `...Store` are asynchronous; the index and the embedder block, and are called from
worker threads only.
"""

from sidecar.ports.graph import GraphStore
from sidecar.ports.insights import InsightsStore
from sidecar.ports.judging import Judge
from sidecar.ports.language_model import LanguageModel, LlmLedger
from sidecar.ports.maintenance import ActivityStore, MaintenanceStore
from sidecar.ports.memories import Clock, EvidenceStore, MemoryStore, Redactor
from sidecar.ports.usefulness import JudgeStore, ReinforcementStore
from sidecar.ports.validation import ValidationStore
from sidecar.ports.vectors import Embedder, Embedding, KeyMask, Keys, VectorIndex

__all__ = [
    "ActivityStore",
    "Clock",
    "Embedder",
    "Embedding",
    "EvidenceStore",
    "GraphStore",
    "InsightsStore",
    "Judge",
    "JudgeStore",
    "KeyMask",
    "Keys",
    "LanguageModel",
    "LlmLedger",
    "MaintenanceStore",
    "MemoryStore",
    "Redactor",
    "ReinforcementStore",
    "ValidationStore",
    "VectorIndex",
]
