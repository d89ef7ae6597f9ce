"""`reflectworld run`: the service."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import structlog
import typer

from edge.app import CameraConfig, Service, camera_config, open_service
from edge.cli.console import HomeOption, complain, settings_for
from edge.errors import ReflectWorldError
from edge.serve.local import RunFile, remove_run_file, write_run_file
from edge.settings import Settings

_NAMED = re.compile(r"(\w[\w .-]*)=(.+)", re.DOTALL)


def run(
    camera: Annotated[
        list[str] | None,
        typer.Option(
            help="URI or NAME=URI of a camera beside those of `reflectworld cameras`; may be given more than once. "
            "A file is watched once.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Address at which paired devices of the network are let in; default: all of this device's."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port for this device itself; default: serve.port.")
    ] = None,
    home: HomeOption = None,
) -> None:
    """Watch all cameras, remember, and serve the page, until Ctrl-C or SIGTERM; the open segments are finished.

    Only this device is served (http://localhost:8420) until another one is paired with `reflectworld pair`.
    """
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    settings = settings_for(home)
    if port is not None:
        settings = settings.model_copy(update={"serve": settings.serve.model_copy(update={"port": port})})
    cameras = [_camera(text) for text in camera or ()]
    with open_service(settings) as service:
        for sentence in service.rooms.missing:
            complain(f"Note: {sentence}")
        with _run_file(settings) as run_file:
            try:
                asyncio.run(_main(service, settings, cameras, host, run_file))
            except BaseExceptionGroup as group:
                raise _first(group) from group


def _camera(text: str) -> CameraConfig:
    named = _NAMED.fullmatch(text)
    if named is not None and not Path(text).exists():
        return camera_config(named[1], named[2])
    return camera_config(None, text)


@contextmanager
def _run_file(settings: Settings) -> Iterator[RunFile]:
    """Tell this device's commands where the service listens, while it does."""
    run_file = write_run_file(settings.home, f"http://127.0.0.1:{settings.serve.port}")
    try:
        yield run_file
    finally:
        remove_run_file(settings.home, run_file)


async def _main(
    service: Service, settings: Settings, cameras: Sequence[CameraConfig], host: str | None, run_file: RunFile
) -> None:
    # Only this command needs the web and WebRTC stacks: the others start without them.
    from edge.serve import build_app, phone_router, whep_router, whip_router
    from edge.serve.listeners import Access, Listeners

    access = Access(settings.home, settings.serve, run_token=run_file.token)
    auth = access.auth
    routers = [
        access.router(),
        phone_router(auth),
        whip_router(service, auth, devices=access.devices),
        whep_router(service, auth, devices=access.devices),
    ]
    app = build_app(service, auth, settings.serve, routers=routers)
    listeners = Listeners(access.guard(app), access, lan_host=host)
    url = listeners.bind()
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        complain("Finishing the open segments … (again to stop at once)")
        app.state.hub.close()  # else the server waits for pages that listen
        service.stop()
        loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)

    async def serve(_service: Service) -> None:
        try:
            await listeners.run()
        finally:
            app.state.hub.close()

    complain(f"Watching; the page is at {url}/ (pair a phone: `reflectworld pair`; Ctrl-C ends).")
    await service.run([("server", serve)], cameras=cameras)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What ended the service: an error of ours if there is one, as the sentence that it is."""
    leaves = list(_leaves(group))
    return next((leaf for leaf in leaves if isinstance(leaf, ReflectWorldError)), leaves[0])


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
