"""Reflection and health know every service of the contract."""

import importlib
import pkgutil

import sidecar.api.v1
from sidecar.server.lifecycle import SERVICE_NAMES


def test_no_service_is_left_out() -> None:
    """Each service that a file of the contract declares can be asked for by name."""
    names = [module.name for module in pkgutil.iter_modules(sidecar.api.v1.__path__) if module.name.endswith("_pb2")]
    files = [importlib.import_module(f"sidecar.api.v1.{name}").DESCRIPTOR for name in names]
    declared = {service.full_name for file in files for service in file.services_by_name.values()}
    assert set(SERVICE_NAMES) == declared
