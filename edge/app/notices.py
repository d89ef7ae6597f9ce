"""The owner's rules at work in the service: one thread fires what is due, and sends word."""

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
    """Fires the rules that time makes due, and sends word; the queue's worker lets rules look at what is seen."""

    def __init__(self, store: Store, settings: NotifySettings, events: Events, embedder: TextEmbedder | None) -> None:
        self.notifier = Notifier(store, settings)
        self.orders = Orders(store, self.notifier, embedder)
        self._events = events
        self._delivery = Delivery(store, self.notifier, sinks(settings), self._tell)

    async def run(self) -> None:
        """Work until cancelled; what waits then is sent after the next start."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="notices") as thread:
            while True:
                wait = _STEP_S
                try:
                    await loop.run_in_executor(thread, self.step)
                except ReflectWorldError as error:
                    wait = _AGAIN_S
                    log.warning("notices.failed", error=str(error))
                await asyncio.sleep(wait)

    def step(self) -> None:
        """Fire what is due, send what waits."""
        self.notifier.tick()
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


def deliver_waiting(store: Store, settings: Settings) -> list[str]:
    """Send word of what the rules have met; for commands without a service, after `work_through`.

    Returns:
        What was told, one text each.
    """
    told: list[str] = []
    notifier = Notifier(store, settings.notify)
    Delivery(store, notifier, sinks(settings.notify), lambda alert: told.append(alert.text)).deliver()
    return told
