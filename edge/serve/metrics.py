"""Figures for Prometheus, in its text format."""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil
from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edge.clock import utc_now
from edge.memory import jobs
from edge.reason import Ledger, Totals
from edge.serve.context import Context
from edge.serve.protocols import CameraState
from edge.serve.protocols import Scope as DeviceScope
from edge.serve.sse import Hub

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class _Service(Collector):
    """Reads the service whenever it is asked. Runs in a worker thread."""

    def __init__(self, context: Context, hub: Hub) -> None:
        self._context = context
        self._hub = hub
        self._process = psutil.Process()

    def collect(self) -> Iterable[Metric]:
        """All figures as they are now."""
        service = self._context.service
        vitals, counts = service.vitals, service.store.counts()
        yield _gauge("uptime_seconds", "Since the service started", max(0.0, utc_now() - vitals.started))
        yield _gauge("loop_lag_seconds", "Lag of the event loop, p99 of a minute", vitals.loop_lag_ms / 1000)
        yield _counter("loop_stalls", "Times the event loop was held up for more than 200 ms", vitals.loop_stalls)
        yield _gauge("resident_bytes", "Memory of the process", self._process.memory_info().rss)
        yield _gauge("memory_bytes", "Size of the memory on disk", counts.bytes)
        yield _gauge("moments", "Moments remembered", counts.traces)
        yield _gauge("people", "People and voices known", counts.entities)
        yield _gauge("pages", "Pages that listen to events", self._hub.pages)
        yield _counter("page_events_dropped", "Events that slow pages lost", self._hub.dropped)
        yield _gauge("requests_waiting", "Requests that read the memory or wait for it", self._context.workers.waiting)
        with service.store.reading() as connection:
            queue = jobs.counts(connection, service.store.user)
        waiting = GaugeMetricFamily("reflectworld_jobs_waiting", "Jobs in the queue", labels=["kind"])
        aside = GaugeMetricFamily("reflectworld_jobs_aside", "Jobs that failed too often", labels=["kind"])
        for family, numbers in ((waiting, queue.waiting), (aside, queue.aside)):
            for kind, number in numbers.items():
                family.add_metric([kind], number)
        yield from (waiting, aside)
        yield from _reason(Ledger(service.store.home).totals())
        items = GaugeMetricFamily("reflectworld_channel_items", "Fill of a bounded channel", labels=["channel"])
        bound = GaugeMetricFamily("reflectworld_channel_bound", "Bound of a channel", labels=["channel"])
        dropped = CounterMetricFamily("reflectworld_channel_dropped", "Dropped by a channel", labels=["channel"])
        for name, fill in vitals.channels.items():
            items.add_metric([name], fill.items)
            bound.add_metric([name], fill.bound)
            dropped.add_metric([name], fill.dropped)
        yield from (items, bound, dropped)
        state = GaugeMetricFamily("reflectworld_camera_state", "1 for the state it is in", labels=["camera", "state"])
        fps = GaugeMetricFamily("reflectworld_camera_fps", "Pictures looked at a second", labels=["camera"])
        segments = CounterMetricFamily("reflectworld_camera_segments", "Moments remembered", labels=["camera"])
        lost = CounterMetricFamily("reflectworld_camera_dropped", "Pictures dropped to keep up", labels=["camera"])
        oldest = GaugeMetricFamily(
            "reflectworld_camera_oldest_seconds", "Greatest age of a live picture when looked at", labels=["camera"]
        )
        for camera in service.cameras:
            oldest.add_metric([camera.name], camera.oldest)
            for one in CameraState:
                state.add_metric([camera.name, one.value], float(camera.state == one))
            fps.add_metric([camera.name], camera.fps)
            segments.add_metric([camera.name], camera.segments)
            lost.add_metric([camera.name], camera.dropped)
        yield from (state, fps, segments, lost, oldest)

    def describe(self) -> Iterable[Metric]:
        """Nothing in advance: it would read the memory before anybody asks."""
        return ()


class Metrics:
    """The figures of one server."""

    def __init__(self, context: Context, hub: Hub) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Service(context, hub))
        self.requests = Counter(
            "reflectworld_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "reflectworld_request_seconds",
            "Until the answer began",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )


class Measured:
    """ASGI: counts and times what the app answers, by route (never by path: that would be endless)."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", None) or "other"
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self._metrics.requests.labels(method, route, str(message["status"])).inc()
                self._metrics.seconds.labels(route).observe(time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, measured)


_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def metrics_router(context: Context, metrics: Metrics) -> APIRouter:
    """The route."""
    router = APIRouter(tags=["status"], dependencies=[context.needs(DeviceScope.ASK)])

    @router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def figures() -> Response:
        """Figures for Prometheus."""
        text = await context.workers.run(generate_latest, metrics.registry)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    return router


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(f"reflectworld_{name}", words, value=value)


def _counter(name: str, words: str, value: float) -> Metric:
    return CounterMetricFamily(f"reflectworld_{name}", words, value=value)


def _reason(totals: Totals) -> Iterable[Metric]:
    """What language models were asked."""
    families = {
        "requests": "Requests to the language model",
        "answered": "Requests that it answered in the form asked for",
        "retries": "Tries after the first",
        "repairs": "Answers that were sent back",
        "tokens_in": "Tokens of questions",
        "tokens_out": "Tokens of answers",
        "cost": "In the currency of the prices in the settings",
        "seconds": "That answers took, with all tries",
    }
    for figure, words in families.items():
        family = CounterMetricFamily(f"reflectworld_reason_{figure}", words, labels=["purpose"])
        for purpose, tally in totals.purposes.items():
            family.add_metric([purpose], getattr(tally, figure))
        yield family
    refusals = CounterMetricFamily("reflectworld_reason_refusals", "Requests that were not answered", labels=["reason"])
    for why, number in totals.refusals.items():
        refusals.add_metric([why], number)
    yield refusals
    dropped = CounterMetricFamily("reflectworld_reason_dropped", "Parts of answers that broke a rule", labels=["rule"])
    for rule, number in totals.dropped.items():
        dropped.add_metric([rule], number)
    yield dropped
