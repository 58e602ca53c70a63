"""Waits for what a sidecar loads in the background after its start, for whoever wants a full answer the first time."""

import time
from typing import Final

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.client.sync_client import Sidecar

_POLL_S: Final = 0.1


def wait_for_model(sidecar: Sidecar, *, wait_s: float = 10.0) -> bool:
    """Wait until recall by meaning can take part, and return whether it can; at once if there is no model to wait for.

    Args:
        sidecar: Connected.
        wait_s: How long at most, seconds.

    Raises:
        UnavailableError: The sidecar cannot be reached.
    """
    deadline = time.monotonic() + wait_s
    while True:
        answer = sidecar.get_status()
        states = (answer.embedder.state, answer.index.state)
        if admin.PART_STATE_LOADING not in states or time.monotonic() >= deadline:
            return admin.PART_STATE_LOADING not in states and admin.PART_STATE_OFF not in states
        time.sleep(_POLL_S)
