"""The shell around the cores: reads rules and segments, keeps decisions, fires what is due, and hands on what is to be sent.

`follow` looks at each segment once, in the transaction that notes so; what is decided to be delivered is a job of its own, sent
at least once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

import apsw

from edge.clock import to_local, utc_now
from edge.errors import NotFoundError, UserError
from edge.memory import Store, jobs, stored_trace, titles_of
from edge.memory.tiers import procedural
from edge.memory.tiers.procedural import AlertRecord, Outcome, RuleKind, RuleRecord, RuleState
from edge.notify import clockwork, language, resolver, signals
from edge.notify.program import Absent, Alert, Condition, Hours, Program, Quiet, Remember, Reminder, Repeat, Said
from edge.notify.resolver import Candidate, Policy
from edge.notify.signals import Scene, Sighting, Text, Utterance
from edge.settings import NotifySettings
from edge.types.records import Kind, mentioned, public_id, render

DELIVER = "deliver"  # kind of job
_BATCH = 64  # segments looked at between two questions whether to stop
LATE_S = 900.0  # what happened longer ago is shown and not pushed: an old recording rings no phone


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with what it means."""

    record: RuleRecord
    program: Program

    @property
    def hours(self) -> Hours:
        """When it holds."""
        return self.program.hours


class Notifier:
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
            if not procedural.rules(memory, self._store.user, RuleState.ACTIVE):
                procedural.note_seen(memory, self._store.user, None)  # a rule is for what comes
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

    def follow(self, *, stop: Callable[[], bool] = lambda: False) -> list[int]:
        """Look at all segments that were remembered since the last time; a kill neither loses nor repeats one.

        Returns:
            Ids of the decisions to deliver.
        """
        delivered: list[int] = []
        user = self._store.user
        while not stop():
            with self._store.reading() as connection:
                waiting = procedural.unseen(connection, user, _BATCH)
                watched = bool(procedural.rules(connection, user, RuleState.ACTIVE))
            if not waiting:
                break
            if not watched:
                self._store.transact(lambda memory: procedural.note_seen(memory, user, None))
                break
            for trace in waiting:
                if stop():
                    break

                def work(memory: apsw.Connection, trace: int = trace) -> list[int]:
                    found = self.look(memory, trace)
                    procedural.note_seen(memory, user, trace)
                    return found

                delivered += self._store.transact(work)
        return delivered

    # -- what happens -----------------------------------------------------------------------------------------------------

    def look(self, memory: apsw.Connection, trace: int) -> list[int]:
        """See which rules a segment meets, and keep what is decided; inside the writer's transaction.

        Returns:
            Ids of the decisions to deliver; a job to do so is in the queue for each.
        """
        records = procedural.rules(memory, self._store.user, RuleState.ACTIVE)
        rules = [rule for rule in map(self._meaning, records) if rule is not None]
        watching = [rule for rule in rules if _condition(rule.program) is not None]
        if not watching:
            return []
        scene = scene_of(memory, self._store.user, trace)
        if scene is None:
            return []
        delivered = []
        for rule in watching:
            condition = _condition(rule.program)
            if condition is None or (rule.record.camera is not None and rule.record.camera != scene.camera):
                continue
            found = signals.match(condition, scene)
            if found is None:
                continue
            procedural.note_true(memory, rule.record.id, found.at)
            if isinstance(condition, Absent):
                continue  # it was seen: nothing to say
            if isinstance(rule.program, Reminder) and found.at < rule.record.created:
                continue  # an old recording is no occasion
            what = _message(rule.program, found, scene, self._zone)
            candidate = Candidate(
                rule.record.id,
                scene.trace,
                found.at,
                signals.topic(condition),
                rule.hours,
                rule.record.cooldown,
                rule.record.urgent,
                asked_for=isinstance(rule.program, Reminder),
            )
            number = self._decide(memory, rules, candidate, what, (*found.ground,))
            if number is not None:
                delivered.append(number)
                if isinstance(rule.program, Reminder):
                    procedural.set_state(memory, rule.record.id, RuleState.DONE)
        return delivered

    def tick(self, now: float | None = None) -> list[int]:
        """Fire what time makes due.

        Returns:
            Ids of the decisions to deliver.
        """
        now = utc_now() if now is None else now
        with self._store.reading() as connection:
            if not procedural.due_rules(connection, self._store.user, now):
                return []
        return self._store.transact(lambda memory: self._tick(memory, now))

    def _tick(self, memory: apsw.Connection, now: float) -> list[int]:
        delivered = []
        records = procedural.rules(memory, self._store.user, RuleState.ACTIVE)
        rules = [rule for rule in map(self._meaning, records) if rule is not None]
        for rule in rules:
            due = rule.record.due
            if due is None or due > now:
                continue
            number: int | None = None
            if isinstance(rule.program, Reminder):
                late = f" (it was due {_clock(due, self._zone)})" if now - due > 120 else ""
                candidate = Candidate(rule.record.id, None, due, f"reminder {rule.record.id}", Hours(), 0.0, True, True)
                number = self._decide(memory, rules, candidate, f"Reminder: {rule.program.what}{late}.", ())
                if rule.program.repeat is None:
                    procedural.set_state(memory, rule.record.id, RuleState.DONE)
                    procedural.note_due(memory, rule.record.id, None)
                else:
                    procedural.note_due(memory, rule.record.id, self._next_due(rule.record, now))
            elif isinstance(rule.program, Alert) and isinstance(rule.program.condition, Absent):
                number = self._absence(memory, rules, rule, rule.program.condition, due, now)
            if number is not None:
                delivered.append(number)
        return delivered

    def _absence(
        self, memory: apsw.Connection, rules: Sequence[Rule], rule: Rule, absent: Absent, due: float, now: float
    ) -> int | None:
        """Something should have been seen by now."""
        record = rule.record
        if absent.for_s is not None:
            since = max(record.created, record.last_true or 0.0)
            if since + absent.for_s > now:  # it was seen meanwhile
                procedural.note_due(memory, record.id, since + absent.for_s)
                return None
            start, again = since, since + absent.for_s + max(absent.for_s, 86_400.0)
        else:
            local = to_local(due, self._zone)
            start = clockwork.midnight(local, self._zone)
            again = self._next_due(record, max(now, due)) or due + 86_400.0
            if record.last_true is not None and record.last_true >= start:
                procedural.note_due(memory, record.id, again)
                return None
        procedural.note_due(memory, record.id, again)
        count = procedural.moments_between(memory, self._store.user, start, due, record.camera)
        what = f"{_sentence(record.text)} This was not seen since {_clock(start, self._zone)}"
        seen = f" ({count} moments were looked at)." if count else ", but no camera was watching in that time."
        candidate = Candidate(record.id, None, due, signals.topic(absent), rule.hours, record.cooldown, record.urgent)
        return self._decide(memory, rules, candidate, what + seen, ())

    def _decide(
        self, memory: apsw.Connection, rules: Sequence[Rule], candidate: Candidate, text: str, ground: Sequence[str]
    ) -> int | None:
        settings = self._settings
        quiet = tuple(rule.program.hours for rule in rules if isinstance(rule.program, Quiet))
        policy = Policy(settings.cooldown_s, settings.topic_s, settings.daily, settings.daily_total, quiet, self._zone)
        span = max(resolver.DAY_S, settings.topic_s, candidate.cooldown_s or settings.cooldown_s)
        recent = procedural.recent(memory, self._store.user, candidate.at - span, candidate.at + span)
        decision = resolver.decide(candidate, recent, policy)
        number = procedural.add_alert(
            memory,
            self._store.user,
            candidate.rule,
            candidate.trace,
            at=candidate.at,
            outcome=decision.outcome,
            reason=decision.reason,
            topic=candidate.topic,
            text=text,
            ground=ground,
        )
        if decision.outcome is not Outcome.DELIVER:
            return None
        jobs.enqueue(memory, self._store.user, DELIVER, number, priority=10)
        return number

    def digest(self, now: float | None = None) -> list[AlertRecord]:
        """What waited, once quiet hours are over and the day allows it; it waits no more.

        Returns:
            The decisions, oldest first, for one message.
        """
        now = utc_now() if now is None else now
        with self._store.reading() as connection:
            waiting = procedural.waiting_digest(connection, self._store.user)
            records = procedural.rules(connection, self._store.user, RuleState.ACTIVE)
        if not waiting or now - waiting[0].at < self._settings.digest_s:
            return []
        local = to_local(now, self._zone)
        programs = [rule.program for rule in map(self._meaning, records) if rule is not None]
        if any(
            isinstance(program, Quiet) and program.hours.hold(local.weekday(), local.hour + local.minute / 60)
            for program in programs
        ):
            return []

        def work(memory: apsw.Connection) -> None:
            for one in waiting:
                procedural.note_sent(memory, one.id, "digest", "ok")

        self._store.transact(work)
        return self._titled(waiting)

    # -- meaning ----------------------------------------------------------------------------------------------------------

    def _meaning(self, record: RuleRecord) -> Rule | None:
        try:
            program = language.understand(record.text, record.created, self._zone)
        except UserError:  # of a version that understood more; shown by `rules`, and never acted on
            return None
        return None if isinstance(program, Remember) else Rule(record, program)

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


def scene_of(connection: apsw.Connection, user: str, trace: int) -> Scene | None:
    """What rules look at in a segment; None: it is not there any more."""
    stored = stored_trace(connection, user, trace)
    if stored is None:
        return None
    titles = titles_of(connection, user, stored.mentioned)

    def told(text: str) -> Text:
        return Text(render(text, lambda who: titles.get(who, "someone")), text)

    lines = stored.lines or ((stored.start, stored.text),)
    return Scene(
        trace,
        public_id(Kind.TRACE, trace),
        stored.camera,
        tuple((at, told(text)) for at, text in lines),
        tuple(
            Sighting(
                public_id(Kind.OBSERVATION, seen.id),
                seen.label,
                seen.entity,
                told(seen.text),
                entered=bool(seen.detail.get("entered")),
                left=bool(seen.detail.get("left")),
                start=seen.start,
                end=seen.end,
            )
            for seen in stored.observations
        ),
        tuple(
            Utterance(public_id(Kind.UTTERANCE, heard.id), heard.speaker, heard.text, heard.start)
            for heard in stored.utterances
        ),
        titles,
    )


def _condition(program: Program) -> Condition | None:
    return program.condition if isinstance(program, Alert | Reminder) else None


def _message(program: Program, found: signals.Match, scene: Scene, zone: tzinfo | None) -> str:
    where = f"{_clock(found.at, zone)}, {scene.camera}"
    if isinstance(program, Reminder):
        return f"Reminder: {program.what}. ({where}: {found.words})"
    said = isinstance(program, Alert) and isinstance(program.condition, Said)
    return f"{where}: “{found.words}”" if said else f"{where}: {found.words}"


def _clock(at: float, zone: tzinfo | None) -> str:
    return to_local(at, zone).strftime("%a %H:%M")


def _sentence(text: str) -> str:
    return f"“{text.strip(' .')}”."
