"""Sending what was decided to be delivered, at least once, with the queue's back-off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw
import structlog

from edge.clock import utc_now
from edge.errors import NotFoundError, NotifyError
from edge.memory import Store, jobs
from edge.memory.tiers import procedural
from edge.memory.tiers.procedural import AlertRecord
from edge.notify.notifier import DELIVER, LATE_S, Notifier
from edge.notify.sinks import Message, Sink
from edge.types.records import Kind, public_id

log = structlog.get_logger(__name__)

Tell = Callable[[AlertRecord], None]


class Delivery:
    """Sends to the pages (by `tell`) and to the sinks."""

    def __init__(self, store: Store, notifier: Notifier, sinks: Sequence[Sink], tell: Tell) -> None:
        """Prepare.

        Args:
            store: the memory.
            notifier: knows the decisions.
            sinks: where word is sent to.
            tell: tells whoever has a page open; called once for each notification, and quick.
        """
        self._store = store
        self._notifier = notifier
        self._sinks = tuple(sinks)
        self._tell = tell

    def deliver(self, now: float | None = None) -> int:
        """Send what waits and is due.

        Returns:
            How many notifications were dealt with.
        """
        now = utc_now() if now is None else now
        with self._store.reading() as connection:
            waiting = jobs.next_due(connection, self._store.user, now, kinds=(DELIVER,), limit=32)
        for job in waiting:
            self._one(job, now)
        return len(waiting)

    def digest(self, now: float | None = None) -> int:
        """Tell what waited in one message.

        Returns:
            How many notifications it holds.
        """
        found = self._notifier.digest(now)
        if not found:
            return 0
        text = "\n".join(one.text for one in found)
        first = public_id(Kind.ALERT, found[0].id)
        for one in found:
            self._tell(one)
        for sink in self._sinks:
            try:
                sink.send(Message(first, f"{len(found)} things while it was quiet", text, found[-1].at))
            except NotifyError as error:
                log.warning("notify.digest_failed", sink=sink.name, error=str(error))
        return len(found)

    def _one(self, job: jobs.Job, now: float) -> None:
        try:
            alert = self._notifier.alert(int(job.key))
        except (NotFoundError, ValueError):  # forgotten meanwhile
            self._store.transact(lambda memory: jobs.finish(memory, job))
            return
        failures: list[NotifyError] = []
        results: dict[str, str] = {}
        late = now - alert.at > LATE_S and alert.trace is not None
        if "page" not in alert.sent:
            self._tell(alert)
            results["page"] = "ok"
        for sink in self._sinks:
            if alert.sent.get(sink.name) == "ok":
                continue  # an earlier attempt reached it
            if late:
                results[sink.name] = "too old to be sent"
                continue
            try:
                sink.send(_message(alert))
                results[sink.name] = "ok"
            except NotifyError as error:
                failures.append(error)
                results[sink.name] = str(error)
                log.warning("notify.failed", sink=sink.name, alert=public_id(Kind.ALERT, alert.id), error=str(error))

        def work(memory: apsw.Connection) -> None:
            for sink, result in results.items():
                procedural.note_sent(memory, alert.id, sink, result)
            if failures:
                jobs.fail(memory, job, str(failures[0]), now)
            else:
                jobs.finish(memory, job)

        self._store.transact(work)


def _message(alert: AlertRecord) -> Message:
    title = "Reminder" if alert.text.startswith("Reminder:") else "ReflectWorld"
    rule = None if alert.rule is None else public_id(Kind.RULE, alert.rule)
    return Message(public_id(Kind.ALERT, alert.id), title, alert.text, alert.at, rule)
