"""The calls of the InsightsService, for both clients."""

from abc import ABC, abstractmethod

from sidecar.api.v1 import insights_service_pb2 as insights
from sidecar.client import methods
from sidecar.client.methods import Method, Request, Response


class InsightsCalls(ABC):
    """A part of `Sidecar`."""

    @abstractmethod
    def _call(self, method: Method[Request, Response], request: Request, deadline_s: float | None) -> Response: ...

    def export_metrics(
        self, request: insights.ExportMetricsRequest | None = None, *, deadline_s: float | None = None
    ) -> insights.ExportMetricsResponse:
        """Tell how useful memories were."""
        return self._call(methods.EXPORT_METRICS, request or insights.ExportMetricsRequest(), deadline_s)

    def explain_memory(
        self, request: insights.ExplainMemoryRequest, *, deadline_s: float | None = None
    ) -> insights.ExplainMemoryResponse:
        """Tell why a memory ranks as it does."""
        return self._call(methods.EXPLAIN_MEMORY, request, deadline_s)

    def list_review_items(
        self, request: insights.ListReviewItemsRequest | None = None, *, deadline_s: float | None = None
    ) -> insights.ListReviewItemsResponse:
        """List memories that somebody should look at."""
        return self._call(methods.LIST_REVIEW_ITEMS, request or insights.ListReviewItemsRequest(), deadline_s)

    def run_hygiene(
        self, request: insights.RunHygieneRequest | None = None, *, deadline_s: float | None = None
    ) -> insights.RunHygieneResponse:
        """Compute every multiplier anew."""
        return self._call(methods.RUN_HYGIENE, request or insights.RunHygieneRequest(), deadline_s)

    def get_judge_queue(
        self, request: insights.GetJudgeQueueRequest | None = None, *, deadline_s: float | None = None
    ) -> insights.GetJudgeQueueResponse:
        """Tell how far judging has come."""
        return self._call(methods.GET_JUDGE_QUEUE, request or insights.GetJudgeQueueRequest(), deadline_s)

    def retry_judge_jobs(
        self, request: insights.RetryJudgeJobsRequest | None = None, *, deadline_s: float | None = None
    ) -> insights.RetryJudgeJobsResponse:
        """Have what was given up judged again."""
        return self._call(methods.RETRY_JUDGE_JOBS, request or insights.RetryJudgeJobsRequest(), deadline_s)

    def replay_recalls(
        self, request: insights.ReplayRecallsRequest, *, deadline_s: float | None = None
    ) -> insights.ReplayRecallsResponse:
        """Rank recorded recalls anew under other constants."""
        return self._call(methods.REPLAY_RECALLS, request, deadline_s)


class AsyncInsightsCalls(ABC):
    """A part of `AsyncSidecar`."""

    @abstractmethod
    async def _call(
        self, method: Method[Request, Response], request: Request, deadline_s: float | None
    ) -> Response: ...

    async def export_metrics(
        self, request: insights.ExportMetricsRequest | None = None, *, deadline_s: float | None = None
    ) -> insights.ExportMetricsResponse:
        """Tell how useful memories were."""
        return await self._call(methods.EXPORT_METRICS, request or insights.ExportMetricsRequest(), deadline_s)

    async def explain_memory(
        self, request: insights.ExplainMemoryRequest, *, deadline_s: float | None = None
    ) -> insights.ExplainMemoryResponse:
        """Tell why a memory ranks as it does."""
        return await self._call(methods.EXPLAIN_MEMORY, request, deadline_s)

    async def list_review_items(
        self, request: insights.ListReviewItemsRequest | None = None, *, deadline_s: float | None = None
    ) -> insights.ListReviewItemsResponse:
        """List memories that somebody should look at."""
        return await self._call(methods.LIST_REVIEW_ITEMS, request or insights.ListReviewItemsRequest(), deadline_s)

    async def run_hygiene(
        self, request: insights.RunHygieneRequest | None = None, *, deadline_s: float | None = None
    ) -> insights.RunHygieneResponse:
        """Compute every multiplier anew."""
        return await self._call(methods.RUN_HYGIENE, request or insights.RunHygieneRequest(), deadline_s)

    async def get_judge_queue(
        self, request: insights.GetJudgeQueueRequest | None = None, *, deadline_s: float | None = None
    ) -> insights.GetJudgeQueueResponse:
        """Tell how far judging has come."""
        return await self._call(methods.GET_JUDGE_QUEUE, request or insights.GetJudgeQueueRequest(), deadline_s)

    async def retry_judge_jobs(
        self, request: insights.RetryJudgeJobsRequest | None = None, *, deadline_s: float | None = None
    ) -> insights.RetryJudgeJobsResponse:
        """Have what was given up judged again."""
        return await self._call(methods.RETRY_JUDGE_JOBS, request or insights.RetryJudgeJobsRequest(), deadline_s)

    async def replay_recalls(
        self, request: insights.ReplayRecallsRequest, *, deadline_s: float | None = None
    ) -> insights.ReplayRecallsResponse:
        """Rank recorded recalls anew under other constants."""
        return await self._call(methods.REPLAY_RECALLS, request, deadline_s)
