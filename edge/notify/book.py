"""The owner's rules as a book: kept, listed, paused, removed, explained. What they mean is read from the owner's own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import lru_cache

import apsw
import structlog

from edge.clock import utc_now
from edge.errors import NotFoundError, UserError
from edge.memory import Store
from edge.memory.tiers import procedural
from edge.memory.tiers.procedural import AlertRecord, Outcome, RuleKind, RuleRecord, RuleState
from edge.notify import clockwork, language
from edge.notify.program import Absent, Alert, Hours, Program, Quiet, Remember, Reminder, Repeat
from edge.settings import NotifySettings
from edge.types.records import Kind, mentioned, public_id, render

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with what it means."""

    record: RuleRecord
    program: Program

    @property
    def hours(self) -> Hours:
        """When it holds."""
        return self.program.hours


class RuleBook:
    """The rules of one user. Thread-safe: it keeps nothing but what it was made of."""

    def __init__(self, store: Store, settings: NotifySettings, *, zone: tzinfo | None = None) -> None:
        """Prepare.

        Args:
            store: the memory.
            settings: how much the owner wants to hear.
            zone: whose calendar counts; None: the device's.
        """
        self._store = store
        self._settings = settings
        self._zone = zone

    # -- rules ----------------------------------------------------------------------------------------------------------

    def add(
        self,
        text: str,
        *,
        camera: str | None = None,
        urgent: bool = False,
        cooldown_s: float | None = None,
        now: float | None = None,
    ) -> RuleRecord:
        """Keep a rule.

        Raises:
            UserError: it is not understood, is one already, or there are too many.
        """
        now = utc_now() if now is None else now
        program = language.understand(text, now, self._zone)
        if isinstance(program, Remember):
            raise UserError("That is something to remember, not a rule; use `reflectworld remember`.")
        text = " ".join(text.split())
        kinds = {Alert: RuleKind.ALERT, Reminder: RuleKind.REMINDER, Quiet: RuleKind.QUIET}
        kind = kinds[type(program)]

        def work(memory: apsw.Connection) -> int:
            known = [one for one in procedural.rules(memory, self._store.user) if one.state is not RuleState.DONE]
            if len(known) >= self._settings.max_rules:
                raise UserError(f"There are {len(known)} rules, as many as there may be; remove one first.")
            same = [
                one for one in known if one.text.casefold() == text.casefold() and one.kind is not RuleKind.REMINDER
            ]
            if same:
                raise UserError(f"That is rule {public_id(Kind.RULE, same[0].id)} already.")
            return procedural.add_rule(
                memory,
                self._store.user,
                kind,
                text,
                created=now,
                camera=camera,
                urgent=urgent,
                cooldown=cooldown_s,
                due=self._first_due(program, now),
            )

        return self.rule(self._store.transact(work))

    def rules(self) -> list[RuleRecord]:
        """All rules, oldest first; reminders that were given are left out."""
        with self._store.reading() as connection:
            return [one for one in procedural.rules(connection, self._store.user) if one.state is not RuleState.DONE]

    def rule(self, number: int) -> RuleRecord:
        """One rule.

        Raises:
            NotFoundError: there is none of this id.
        """
        with self._store.reading() as connection:
            found = procedural.rule(connection, self._store.user, number)
        if found is None:
            who = public_id(Kind.RULE, number)
            raise NotFoundError(who, f"There is no rule {who}; `reflectworld rules` lists them.")
        return found

    def remove(self, number: int) -> RuleRecord:
        """Forget a rule and all that was decided about it.

        Raises:
            NotFoundError: there is none of this id.
        """
        found = self.rule(number)
        self._store.transact(lambda memory: procedural.remove_rule(memory, number))
        return found

    def pause(self, number: int, *, paused: bool) -> RuleRecord:
        """Let a rule rest, or count again.

        Raises:
            NotFoundError: there is none of this id.
        """
        found = self.rule(number)
        state = RuleState.PAUSED if paused else RuleState.ACTIVE
        now = utc_now()

        def work(memory: apsw.Connection) -> None:
            procedural.set_state(memory, number, state)
            if not paused:  # what fell into the pause is not made up for
                procedural.note_due(memory, number, self._next_due(found, now))

        self._store.transact(work)
        return self.rule(number)

    def why(self, number: int, *, limit: int = 20) -> list[AlertRecord]:
        """The latest decisions about a rule, newest first, with titles put in.

        Raises:
            NotFoundError: there is no such rule.
        """
        self.rule(number)
        with self._store.reading() as connection:
            return self._titled(procedural.alerts(connection, self._store.user, rule_id=number, limit=limit))

    def alerts(self, *, before: int | None = None, limit: int = 50, unread: bool = False) -> list[AlertRecord]:
        """What was delivered or waits for the digest, newest first."""
        outcomes = (Outcome.DELIVER, Outcome.DIGEST)
        with self._store.reading() as connection:
            found = procedural.alerts(connection, self._store.user, outcomes=outcomes, before=before, limit=limit)
        return self._titled([one for one in found if not (unread and one.read)])

    def alert(self, number: int) -> AlertRecord:
        """One decision.

        Raises:
            NotFoundError: there is none of this id.
        """
        with self._store.reading() as connection:
            found = procedural.alert(connection, self._store.user, number)
        if found is None:
            who = public_id(Kind.ALERT, number)
            raise NotFoundError(who, f"There is no notification {who}; `reflectworld alerts` lists them.")
        return self._titled([found])[0]

    def read(self, number: int) -> None:
        """Note that the owner saw a notification.

        Raises:
            NotFoundError: there is none of this id.
        """
        self.alert(number)
        self._store.transact(lambda memory: procedural.note_read(memory, self._store.user, number))

    def _titled(self, found: Sequence[AlertRecord]) -> list[AlertRecord]:
        titles = self._store.titles({entity for one in found for entity in mentioned(one.text)})
        return [replace(one, text=render(one.text, lambda who: titles.get(who, "someone"))) for one in found]

    # -- meaning ----------------------------------------------------------------------------------------------------------

    def _meaning(self, record: RuleRecord) -> Rule | None:
        program = _understood(record.text, record.created, self._zone)
        return None if program is None else Rule(record, program)

    def _meanings(self, records: Sequence[RuleRecord]) -> list[Rule]:
        return [rule for rule in map(self._meaning, records) if rule is not None]

    def _first_due(self, program: Program, now: float) -> float | None:
        if isinstance(program, Reminder):
            return program.due
        if isinstance(program, Alert) and isinstance(program.condition, Absent):
            return self._deadline(program.condition, program.hours, now)
        return None

    def _next_due(self, record: RuleRecord, now: float) -> float | None:
        rule = self._meaning(record)
        if rule is None:
            return None
        if isinstance(rule.program, Reminder):
            if rule.program.repeat is not None:
                first = rule.program.due or now
                every = rule.program.repeat.every_s
                if every is not None:  # in step with the first time
                    return first + every * (max(0, (now - first) // every) + 1)
                return clockwork.next_time(rule.program.repeat, now, self._zone)
            return rule.program.due
        if isinstance(rule.program, Alert) and isinstance(rule.program.condition, Absent):
            return self._deadline(rule.program.condition, rule.program.hours, now)
        return None

    def _deadline(self, absent: Absent, hours: Hours, now: float) -> float | None:
        if absent.for_s is not None:
            return now + absent.for_s
        return clockwork.next_time(Repeat(absent.by, hours.days), now, self._zone)


@lru_cache(maxsize=512)  # every segment asks for every rule
def _understood(text: str, created: float, zone: tzinfo | None) -> Program | None:
    """What a kept rule means; None: only an older version of this program understood it, and it is never acted on."""
    try:
        program = language.understand(text, created, zone)
    except UserError as error:
        log.warning("rule.not_understood", text=text, reason=str(error))  # once, thanks to the cache
        return None
    return None if isinstance(program, Remember) else program
