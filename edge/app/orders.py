"""What the owner tells the device to keep: rules, reminders, and things to remember."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import tzinfo

from edge.clock import to_local, utc_now
from edge.infer import TextEmbedder
from edge.memory import Store, read_units, search_units, trace_vector
from edge.memory.tiers.procedural import RuleRecord
from edge.notify import Notifier, Remember, understand
from edge.notify.program import Absent, Alert, Quiet, Reminder
from edge.types.drafts import CommitDraft, TraceDraft
from edge.types.media import Mode
from edge.types.records import Kind, LineDraft, public_id

NOTES = "notes"  # the camera under which things to remember are kept


@dataclass(frozen=True, slots=True)
class Order:
    """An order that was carried out."""

    text: str  # one sentence for the owner
    item: str  # id of the rule or of the note


class Orders:
    """Carries out what the owner asks to be kept."""

    def __init__(
        self, store: Store, notifier: Notifier, embedder: TextEmbedder | None, zone: tzinfo | None = None
    ) -> None:
        self._store = store
        self._notifier = notifier
        self._embedder = embedder
        self._zone = zone

    def take(self, text: str, now: float | None = None) -> Order:
        """Keep a rule, a reminder or something to remember.

        Raises:
            UserError: it is not understood.
            StoreError: it cannot be written.
        """
        now = utc_now() if now is None else now
        meaning = understand(text, now, self._zone)
        if isinstance(meaning, Remember):
            return self.remember(meaning.what, now)
        rule = self._notifier.add(text, now=now)
        return Order(
            f"{said_back(rule, now, self._zone)} ({public_id(Kind.RULE, rule.id)})", public_id(Kind.RULE, rule.id)
        )

    def remember(self, what: str, now: float | None = None) -> Order:
        """Keep something that the owner says, as a moment of its own that questions find.

        Raises:
            StoreError: it cannot be written.
        """
        now = utc_now() if now is None else now
        words = what.strip(" .")
        text = f"You asked me to remember: {words}."
        draft = CommitDraft(
            camera=NOTES,
            trace=TraceDraft(
                start=now - 1.0,
                end=now,
                text=text,
                mode=Mode.LIVE_LATENCY,
                reason=None,
                lines=(LineDraft(now - 1.0, text),),
                detail={"note": True, "dated": True},
            ),
        )
        if self._embedder is not None:
            units = search_units(draft, lambda _: "someone").units
            vectors, signs = read_units(self._embedder, units)
            draft = replace(
                draft,
                vector=trace_vector(vectors),
                line_vectors=tuple(vectors),
                word_signs=b"".join(signs),
                embedder=self._embedder.key,
            )
        committed = self._store.commit(draft)
        item = public_id(Kind.TRACE, committed.trace or 0)
        return Order(f"I will remember that {words[:1].lower()}{words[1:]}. ({item})", item)


def said_back(rule: RuleRecord, now: float, zone: tzinfo | None = None) -> str:
    """What a rule was understood as, in one sentence, so that a misunderstanding shows at once."""
    meaning = understand(rule.text, rule.created, zone)
    if isinstance(meaning, Quiet):
        return "I will send nothing in those hours, except for urgent rules; what waits is told afterwards."
    if isinstance(meaning, Reminder):
        if meaning.due is None:
            return f"I will remind you of “{meaning.what}” when that is so."
        at = to_local(meaning.due, zone)
        today = at.date() == to_local(now, zone).date()
        when = at.strftime("%H:%M") if today else at.strftime("%A %d %B, %H:%M")
        again = ", and then again and again" if meaning.repeat is not None else ""
        return f"I will remind you of “{meaning.what}” at {when}{again}."
    if isinstance(meaning, Alert) and isinstance(meaning.condition, Absent):
        return "I will tell you if that was not seen in time."
    return "I will tell you when I see or hear that."
