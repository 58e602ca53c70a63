"""The InsightsService: convert, call, convert."""

import grpc

from sidecar.api.v1 import insights_service_pb2 as pb
from sidecar.api.v1 import insights_service_pb2_grpc
from sidecar.rpc import convert, convert_insights
from sidecar.rpc.credentials import current_owner
from sidecar.use_cases.explain_memory import ExplainMemory
from sidecar.use_cases.export_metrics import ExportMetrics
from sidecar.use_cases.judge_queue import JudgeQueue
from sidecar.use_cases.replay_recalls import ReplayRecalls
from sidecar.use_cases.run_hygiene import RunHygiene


class InsightsServicer(insights_service_pb2_grpc.InsightsServiceServicer):
    """Tells what the evidence of use comes to. Errors travel through the interceptor."""

    def __init__(
        self,
        *,
        metrics: ExportMetrics,
        explain: ExplainMemory,
        hygiene: RunHygiene,
        queue: JudgeQueue,
        replay: ReplayRecalls,
    ) -> None:
        self._metrics = metrics
        self._explain = explain
        self._hygiene = hygiene
        self._queue = queue
        self._replay = replay

    async def ExportMetrics(
        self,
        request: pb.ExportMetricsRequest,
        context: grpc.aio.ServicerContext[pb.ExportMetricsRequest, pb.ExportMetricsResponse],
    ) -> pb.ExportMetricsResponse:
        """Tells how useful the caller's memories were."""
        return convert_insights.metrics_response(await self._metrics.run(current_owner(), days=request.days))

    async def ExplainMemory(
        self,
        request: pb.ExplainMemoryRequest,
        context: grpc.aio.ServicerContext[pb.ExplainMemoryRequest, pb.ExplainMemoryResponse],
    ) -> pb.ExplainMemoryResponse:
        """Tells why a memory ranks as it does."""
        caller = convert.caller(current_owner(), request.context)
        found = await self._explain.run(caller, request.memory_id, query=request.query, namespace=request.namespace)
        return convert_insights.explanation(request.memory_id, found)

    async def ListReviewItems(
        self,
        request: pb.ListReviewItemsRequest,
        context: grpc.aio.ServicerContext[pb.ListReviewItemsRequest, pb.ListReviewItemsResponse],
    ) -> pb.ListReviewItemsResponse:
        """Lists memories that somebody should look at."""
        items = await self._explain.review_items(convert.owner_only(current_owner()), limit=request.limit)
        return pb.ListReviewItemsResponse(items=[convert_insights.review_item(item) for item in items])

    async def RunHygiene(
        self,
        request: pb.RunHygieneRequest,
        context: grpc.aio.ServicerContext[pb.RunHygieneRequest, pb.RunHygieneResponse],
    ) -> pb.RunHygieneResponse:
        """Computes every multiplier anew."""
        report = await self._hygiene.run_once()
        return pb.RunHygieneResponse(
            looked_at=report.looked_at,
            changed=report.changed,
            dropped_recalls=report.dropped_recalls,
            already_running=report.is_refused,
        )

    async def GetJudgeQueue(
        self,
        request: pb.GetJudgeQueueRequest,
        context: grpc.aio.ServicerContext[pb.GetJudgeQueueRequest, pb.GetJudgeQueueResponse],
    ) -> pb.GetJudgeQueueResponse:
        """Tells how far judging has come."""
        report = await self._queue.run(current_owner())
        oldest_at = report.counts.oldest_at
        return pb.GetJudgeQueueResponse(
            judge=report.status.name,
            waiting=report.counts.waiting,
            done=report.counts.done,
            parked=report.counts.parked,
            oldest_time=None if oldest_at is None else convert.timestamp(oldest_at),
            parked_jobs=[convert_insights.parked_job(job) for job in report.parked],
            problem=report.status.problem,
        )

    async def RetryJudgeJobs(
        self,
        request: pb.RetryJudgeJobsRequest,
        context: grpc.aio.ServicerContext[pb.RetryJudgeJobsRequest, pb.RetryJudgeJobsResponse],
    ) -> pb.RetryJudgeJobsResponse:
        """Has what was given up judged again."""
        return pb.RetryJudgeJobsResponse(retried=await self._queue.retry(current_owner()))

    async def ReplayRecalls(
        self,
        request: pb.ReplayRecallsRequest,
        context: grpc.aio.ServicerContext[pb.ReplayRecallsRequest, pb.ReplayRecallsResponse],
    ) -> pb.ReplayRecallsResponse:
        """Ranks recorded recalls anew under other constants."""
        report = await self._replay.run(
            current_owner(),
            proposed=convert_insights.constants(request.proposed),
            baseline=convert_insights.constants(request.baseline),
            days=request.days,
        )
        return convert_insights.replay_response(report)
