"""The calls of the AdminService, for both clients."""

from abc import ABC, abstractmethod

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.client import methods
from sidecar.client.methods import Method, Request, Response


class AdminCalls(ABC):
    """A part of `Sidecar`."""

    @abstractmethod
    def _call(self, method: Method[Request, Response], request: Request, deadline_s: float | None) -> Response: ...

    def get_status(
        self, request: admin.GetStatusRequest | None = None, *, deadline_s: float | None = None
    ) -> admin.GetStatusResponse:
        """Tell how the sidecar is."""
        return self._call(methods.GET_STATUS, request or admin.GetStatusRequest(), deadline_s)

    def shutdown(self, request: admin.ShutdownRequest, *, deadline_s: float | None = None) -> admin.ShutdownResponse:
        """Ask the sidecar to stop; does not wait until it has. `sidecar.client.stop` does."""
        return self._call(methods.SHUTDOWN, request, deadline_s)

    def wait_for_index(
        self, request: admin.WaitForIndexRequest, *, deadline_s: float | None = None
    ) -> admin.WaitForIndexResponse:
        """Wait until all that was stored can be found by meaning."""
        return self._call(methods.WAIT_FOR_INDEX, request, deadline_s)

    def retry_parked(
        self, request: admin.RetryParkedRequest, *, deadline_s: float | None = None
    ) -> admin.RetryParkedResponse:
        """Try again to embed what was given up."""
        return self._call(methods.RETRY_PARKED, request, deadline_s)

    def open_dashboard(
        self, request: admin.OpenDashboardRequest | None = None, *, deadline_s: float | None = None
    ) -> admin.OpenDashboardResponse:
        """Open the dashboard and give a link to it that works once."""
        return self._call(methods.OPEN_DASHBOARD, request or admin.OpenDashboardRequest(), deadline_s)


class AsyncAdminCalls(ABC):
    """A part of `AsyncSidecar`."""

    @abstractmethod
    async def _call(
        self, method: Method[Request, Response], request: Request, deadline_s: float | None
    ) -> Response: ...

    async def get_status(
        self, request: admin.GetStatusRequest | None = None, *, deadline_s: float | None = None
    ) -> admin.GetStatusResponse:
        """Tell how the sidecar is."""
        return await self._call(methods.GET_STATUS, request or admin.GetStatusRequest(), deadline_s)

    async def shutdown(
        self, request: admin.ShutdownRequest, *, deadline_s: float | None = None
    ) -> admin.ShutdownResponse:
        """Ask the sidecar to stop; does not wait until it has. `sidecar.client.stop` does."""
        return await self._call(methods.SHUTDOWN, request, deadline_s)

    async def wait_for_index(
        self, request: admin.WaitForIndexRequest, *, deadline_s: float | None = None
    ) -> admin.WaitForIndexResponse:
        """Wait until all that was stored can be found by meaning."""
        return await self._call(methods.WAIT_FOR_INDEX, request, deadline_s)

    async def retry_parked(
        self, request: admin.RetryParkedRequest, *, deadline_s: float | None = None
    ) -> admin.RetryParkedResponse:
        """Try again to embed what was given up."""
        return await self._call(methods.RETRY_PARKED, request, deadline_s)

    async def open_dashboard(
        self, request: admin.OpenDashboardRequest | None = None, *, deadline_s: float | None = None
    ) -> admin.OpenDashboardResponse:
        """Open the dashboard and give a link to it that works once."""
        return await self._call(methods.OPEN_DASHBOARD, request or admin.OpenDashboardRequest(), deadline_s)
