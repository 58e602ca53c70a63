"""Makes the judge that the settings name. The only place that picks one."""

from sidecar.config import Settings
from sidecar.ports import Judge


def build_judge(settings: Settings) -> Judge | None:
    """Return the judge; None if judging is off, or none is installed: jobs then wait, and the status says so."""
    del settings
    return None
