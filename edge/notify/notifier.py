"""What the owner's rules do: they look at each new segment, fire by time, and keep each decision with its reason.

`look` is a step of the queue's job for a new segment, in its transaction, so that a kill neither loses nor repeats a message.
What is decided to be delivered is a job of its own, sent at least once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo

import apsw

from edge.clock import to_local, utc_now
from edge.memory import StoredTrace, jobs, titles_of
from edge.memory.tiers import procedural
from edge.memory.tiers.procedural import AlertRecord, Outcome, RuleState
from edge.memory.tiers.scene import reads as scene_reads
from edge.memory.tiers.scene import words as scene_words
from edge.notify import clockwork, resolver, signals
from edge.notify.book import Rule, RuleBook
from edge.notify.program import Absent, Alert, Condition, Hours, Program, Quiet, Reminder, Said, Unusual
from edge.notify.resolver import Candidate, Policy
from edge.notify.signals import Scene, scene_of

DELIVER = "deliver"  # kind of job
LATE_S = 900.0  # what happened longer ago is shown and not pushed: an old recording rings no phone


class Notifier(RuleBook):
    """The rules of one user at work."""

    def look(self, memory: apsw.Connection, trace: StoredTrace, user: str) -> None:
        """See which rules a new segment meets, and keep what is decided: a step of the queue's job for each segment."""
        rules = self._meanings(procedural.rules(memory, user, RuleState.ACTIVE))
        watching = [
            (rule, condition)
            for rule in rules
            if (condition := _condition(rule.program)) is not None
            and rule.record.after < trace.id
            and rule.record.camera in (None, trace.camera)
        ]
        if not watching:
            return
        scene = scene_of(trace, titles_of(memory, user, trace.mentioned))
        if any(isinstance(condition, Unusual) for _, condition in watching):
            odd = scene_reads.of_trace(memory, user, trace)
            told = tuple((one.start, scene_words.sentence(one, self._zone)) for one in odd)
            kind = scene_reads.kind_of(memory, user, trace.camera, trace.start) if odd else None
            scene = replace(scene, unusual=told, kind=kind)
        for rule, condition in watching:
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
            outcome, _ = self._decide(memory, rules, candidate, what, (*found.ground,))
            if outcome is not Outcome.DROP and isinstance(rule.program, Reminder):  # told now, or with the digest
                procedural.set_state(memory, rule.record.id, RuleState.DONE)

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
        rules = self._meanings(procedural.rules(memory, self._store.user, RuleState.ACTIVE))
        for rule in rules:
            due = rule.record.due
            if due is None or due > now:
                continue
            number: int | None = None
            if isinstance(rule.program, Reminder):
                late = f" (it was due {_clock(due, self._zone)})" if now - due > 120 else ""
                candidate = Candidate(rule.record.id, None, due, f"reminder {rule.record.id}", Hours(), 0.0, True, True)
                _, number = self._decide(memory, rules, candidate, f"Reminder: {rule.program.what}{late}.", ())
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
        return self._decide(memory, rules, candidate, what + seen, ())[1]

    def _decide(
        self, memory: apsw.Connection, rules: Sequence[Rule], candidate: Candidate, text: str, ground: Sequence[str]
    ) -> tuple[Outcome, int | None]:
        """Decide and keep it: what was decided, and the id of what is to be delivered now."""
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
            return decision.outcome, None
        jobs.enqueue(memory, self._store.user, DELIVER, number, priority=10)
        return decision.outcome, number

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
        programs = [rule.program for rule in self._meanings(records)]
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
