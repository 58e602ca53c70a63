"""The figures for Prometheus: one page, on this machine only, and never a 0 made of nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sidecar.domain.metrics import ClientCounts, MetricCounts, make_metrics, window_of
from sidecar.domain.metrics_text import metrics_text
from sidecar.errors import StorageError
from sidecar.server.metrics_endpoint import MetricsEndpoint

WINDOW = window_of(7, now=datetime(2026, 3, 1, tzinfo=UTC))
COUNTS = MetricCounts(4, 1, 0, 0, 0, 0, 0, 0, clients=(ClientCounts('od"d', recalls=4, known=3), ClientCounts("none")))


def test_text_has_rates_with_what_they_rest_on() -> None:
    """And leaves out what has no value; names of clients cannot break a line."""
    lines = metrics_text(make_metrics(COUNTS, WINDOW)).splitlines()
    assert 'memory_sidecar_hit_rate{days="7"} 0.25' in lines
    assert 'memory_sidecar_hit_rate_denominator{days="7"} 4' in lines
    assert 'memory_sidecar_context_precision_denominator{days="7"} 0' in lines
    assert not [line for line in lines if line.startswith("memory_sidecar_context_precision{")]
    assert [line for line in lines if line.startswith("memory_sidecar_coverage")] == [
        r'memory_sidecar_coverage{client="od\"d",days="7"} 0.75'
    ]


@asynccontextmanager
async def serving(*, is_failing: bool = False) -> AsyncIterator[MetricsEndpoint]:
    async def text() -> str:
        if is_failing:
            raise StorageError("the disk refuses")
        return metrics_text(make_metrics(replace(COUNTS), WINDOW))

    endpoint = MetricsEndpoint(port=0, text=text)
    task = asyncio.create_task(endpoint.run())
    await endpoint.is_listening.wait()
    yield endpoint
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def ask(endpoint: MetricsEndpoint, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
    writer.write(request.encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("request_line", "host", "status"),
    [
        ("GET /metrics HTTP/1.1", "127.0.0.1:9", "200 OK"),
        ("GET /metrics HTTP/1.1", "localhost", "200 OK"),
        ("GET / HTTP/1.1", "localhost", "404"),
        ("POST /metrics HTTP/1.1", "localhost", "405"),
        ("GET /metrics HTTP/1.1", "evil.example", "403"),
        ("nonsense", "localhost", "405"),
    ],
)
async def test_one_page_is_served_to_this_machine(request_line: str, host: str, status: str) -> None:
    """A page in a browser that names our address as its own gets nothing."""
    async with serving() as endpoint:
        answer = await ask(endpoint, f"{request_line}\r\nHost: {host}\r\n\r\n")
    assert answer.startswith(f"HTTP/1.1 {status}")
    assert ("memory_sidecar_hit_rate" in answer) == (status == "200 OK")


async def test_disk_that_refuses_is_told() -> None:
    """As an error of the page, not as figures of 0."""
    async with serving(is_failing=True) as endpoint:
        answer = await ask(endpoint, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith("HTTP/1.1 503")
