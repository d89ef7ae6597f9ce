"""The owner's rules at work in the service: one thread follows the memory, fires what is due, and sends word."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import structlog

from edge.app.events import Event, Events
from edge.app.orders import Orders
from edge.clock import iso
from edge.errors import ReflectWorldError
from edge.infer import TextEmbedder
from edge.memory import Store
from edge.memory.tiers.procedural import AlertRecord
from edge.notify import Delivery, Notifier, sinks
from edge.settings import NotifySettings, Settings
from edge.types.records import Kind, public_id

log = structlog.get_logger(__name__)

_STEP_S = 0.5  # s between looks at what came and what is due
_AGAIN_S = 10.0  # s until the next look after one that failed


class Notices:
    """Follows the memory with the owner's rules."""

    def __init__(self, store: Store, settings: NotifySettings, events: Events, embedder: TextEmbedder | None) -> None:
        self.notifier = Notifier(store, settings)
        self.orders = Orders(store, self.notifier, embedder)
        self._events = events
        self._delivery = Delivery(store, self.notifier, sinks(settings), self._tell)
        self._stop = False
        self.failures = 0

    async def run(self) -> None:
        """Work until cancelled; what is not looked at by then is looked at after the next start."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="notices") as thread:
            try:
                while True:
                    wait = _STEP_S
                    try:
                        await loop.run_in_executor(thread, self.step)
                    except ReflectWorldError as error:
                        self.failures += 1
                        wait = _AGAIN_S
                        log.warning("notices.failed", error=str(error))
                    await asyncio.sleep(wait)
            finally:
                self._stop = True

    def step(self) -> None:
        """Look at what was remembered, fire what is due, send what waits."""
        self.notifier.follow(stop=lambda: self._stop)
        self.notifier.tick()
        if not self._stop:
            self._delivery.deliver()
            self._delivery.digest()

    def _tell(self, alert: AlertRecord) -> None:
        data = {
            "id": public_id(Kind.ALERT, alert.id),
            "text": alert.text,
            "at": iso(alert.at),
            "rule": None if alert.rule is None else public_id(Kind.RULE, alert.rule),
            "ground": list(alert.ground),
        }
        self._events.publish(Event("notice", data=data))


def follow_rules(store: Store, settings: Settings) -> list[str]:
    """Let the rules look at what a command has remembered, and send word; for commands without a service.

    Returns:
        What was told, one text each.
    """
    notifier = Notifier(store, settings.notify)
    told: list[str] = []
    notifier.follow()
    Delivery(store, notifier, sinks(settings.notify), lambda alert: told.append(alert.text)).deliver()
    return told
