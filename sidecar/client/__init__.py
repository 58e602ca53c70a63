"""The thin client. Importing it loads no faiss, torch, numpy, onnxruntime or sqlite."""

from sidecar.client.async_client import AsyncSidecar
from sidecar.client.control import restart, stop
from sidecar.client.endpoint import DataFolder, Endpoint, resolve_home
from sidecar.client.launch import Launch, find_or_start, find_running
from sidecar.client.sync_client import Sidecar

__all__ = [
    "AsyncSidecar",
    "DataFolder",
    "Endpoint",
    "Launch",
    "Sidecar",
    "find_or_start",
    "find_running",
    "resolve_home",
    "restart",
    "stop",
]
