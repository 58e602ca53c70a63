"""What the tests of this folder share."""

from tests.e2e.running import home

__all__ = ["home"]
