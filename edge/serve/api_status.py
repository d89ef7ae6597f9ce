"""How the device is."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import psutil
from fastapi import APIRouter

from edge.clock import iso, utc_now
from edge.memory import jobs
from edge.memory.tiers import timeline, working
from edge.serve import shapes
from edge.serve.context import Context
from edge.serve.forms import Channel, Jobs, Memory, Status, Working, You
from edge.serve.protocols import Device, Scope, ServiceLike, Vitals


def product_version() -> str:
    """Of this distribution; empty where it runs from a checkout that was not installed."""
    try:
        return version("reflectworld-edge")
    except PackageNotFoundError:
        return ""


def status_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["status"])
    service = context.service
    asks = context.needs(Scope.ASK)
    process = psutil.Process()
    process.cpu_percent()  # the first call only starts the measurement

    @router.get("/status")
    async def status(device: Device = asks) -> Status:
        """How the device, the service and its cameras are, and who you are to it."""
        vitals = service.vitals
        memory, (queue, events), machine = await context.workers.run(
            lambda: (_memory(service), _jobs(service), _machine(process))
        )
        now = utc_now()
        return Status(
            device=vitals.name or platform.node(),
            version=product_version(),
            now=iso(now),
            started=iso(vitals.started),
            uptime_s=round(max(0.0, now - vitals.started), 1),
            memory=memory,
            jobs=queue,
            working=events,
            loop_lag_ms=round(vitals.loop_lag_ms, 2),
            loop_stalls=vitals.loop_stalls,
            channels=_channels(vitals),
            missing=list(vitals.missing),
            networks=vitals.networks,
            cameras=[shapes.camera(one) for one in service.cameras],
            you=You(
                id=device.id, name=device.name, scopes=sorted(str(scope) for scope in device.scopes), local=device.local
            ),
            **machine,
        )

    return router


def _channels(vitals: Vitals) -> dict[str, Channel]:
    return {
        name: Channel(items=fill.items, bound=fill.bound, dropped=fill.dropped)
        for name, fill in vitals.channels.items()
    }


def _memory(service: ServiceLike) -> Memory:
    counts = service.store.counts()
    return Memory(
        traces=counts.traces,
        observations=counts.observations,
        utterances=counts.utterances,
        entities=counts.entities,
        key_frames=counts.key_frames,
        first=shapes.when(counts.first),
        last=shapes.when(counts.last),
        bytes=counts.bytes,
        free_bytes=shutil.disk_usage(service.store.home).free,
        cameras=service.store.cameras(),
    )


def _jobs(service: ServiceLike) -> tuple[Jobs, list[Working]]:
    """What is still made of memories, and what goes on in front of the cameras."""
    store, now = service.store, utc_now()
    with store.reading() as connection:
        queue = jobs.counts(connection, store.user)
        states = working.states(connection, store.user)
        titles = store.titles({who for state in states for who in state.people})
    return Jobs(waiting=dict(queue.waiting), aside=dict(queue.aside)), [
        shapes.working(state, titles, now, timeline.GAP_S) for state in states
    ]


def _machine(process: psutil.Process) -> dict[str, object]:
    return {
        "cpu_percent": round(process.cpu_percent(), 1),
        "load": [round(one, 2) for one in os.getloadavg()],
        "cores": psutil.cpu_count() or 1,
        "rss_bytes": process.memory_info().rss,
        "temperature_c": _temperature(),
    }


def _temperature() -> float | None:
    """The hottest sensor, °C; None: the system shows none."""
    read: Callable[[], dict[str, list[object]]] | None = getattr(psutil, "sensors_temperatures", None)
    if read is None:
        return None
    values = [float(getattr(one, "current", 0.0)) for sensors in read().values() for one in sensors]
    return round(max(values), 1) if values else None
