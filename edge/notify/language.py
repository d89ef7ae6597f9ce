"""From the owner's words to what a rule means. English; pure. What is not understood is refused with an example.

The forms are those in which people ask for such things: "tell me when …", "let me know if …", "remind me to … at …", "if
nobody was in the kitchen by 10, tell me", "don't notify me between 22 and 7", "remember that …".
"""

from __future__ import annotations

import re
from datetime import tzinfo
from typing import Final

from edge.errors import UserError
from edge.notify import clockwork
from edge.notify.program import (
    Absent,
    Alert,
    Condition,
    Hours,
    Moves,
    Place,
    Program,
    Quiet,
    Remember,
    Reminder,
    Said,
    Seen,
    Subject,
    Unusual,
    Way,
    Who,
)
from edge.types.vocabulary import labels_for

MAX_CHARS: Final = 300

_POLITE = re.compile(
    r"^(?:(?:hey|ok|okay|please|could you|can you|would you|will you)[, ]+)+|[, ]+(?:please|thanks|thank you)$",
    re.IGNORECASE,
)
_TELL = (
    r"(?:tell|alert|notify|warn|ping|message|inform|call) me|let me know|give me a (?:shout|call|"
    r"sign)|send me (?:a|an) (?:message|alert|notification)|say (?:so|something)"
)
_WHEN = r"(?:when(?:ever)?|if|as soon as|once|every time|each time|in case)"
_ALERT = re.compile(rf"^(?:{_TELL}),? {_WHEN} (?P<cond>.+)$", re.IGNORECASE)
_ALERT_AFTER = re.compile(rf"^{_WHEN} (?P<cond>.+?),?(?: then)? (?:please )?(?:{_TELL})(?: about it)?$", re.IGNORECASE)
_REMIND = re.compile(r"^remind me(?: again)?,? ?(?P<rest>.+)$", re.IGNORECASE)
_REMIND_AFTER = re.compile(
    r"^(?P<when>(?:in|at|on|every|tomorrow|tonight|when|if|as soon as)\b.+?),? remind me (?P<rest>.+)$", re.IGNORECASE
)
_REMEMBER = re.compile(
    r"^(?:remember|note|memori[sz]e|keep in mind|don['’]t forget|do not forget|take a note)(?: "
    r"down)?(?::|,| that)? (?P<what>.+)$",
    re.IGNORECASE,
)
_QUIET = re.compile(
    r"^(?:(?:don['’]t|do not|never) (?:notify|alert|disturb|message|bother|tell|ping|warn) me(?: "
    r"anything)?|no (?:notifications?|alerts?|messages?)|"
    r"quiet(?: hours)?|be quiet|stay quiet|do not disturb) ?(?:,|:)? ?(?P<rest>.+)$",
    re.IGNORECASE,
)

_ARTICLE = r"(?:the|a|an|my|our|his|her|their|your|some|any|one of the|one of my)"
_RELATIONS: Final = {
    "on": ("on", "on top of", "onto", "up on"),
    "in": ("in", "inside", "into", "within"),
    "at": ("at", "by", "in front of", "before"),
    "near": ("near", "next to", "beside", "close to", "around"),
    "with": ("with", "together with"),
    "holding": ("holding", "carrying"),
    "under": ("under", "underneath", "below"),
}
_RELATION_WORDS = {word: relation for relation, words in _RELATIONS.items() for word in words}
_REL = "|".join(sorted(map(re.escape, _RELATION_WORDS), key=len, reverse=True))
_POSTURE = (
    r"(?:gets?|jumps?|climbs?|sits?|lies?|lays?|stands?|walks?|goes|go|runs?|sleeps?|sitting|lying|"
    r"standing|sleeping|walking|left|put|placed|"
    r"alone|still|seen|there|again|back)"
)
_BE = r"(?:is|am|are|was|were|be|has been|have been|gets|['’]s)"
_NOBODY = r"(?:nobody|no one|no-one|noone|none)"
_SOMEBODY = r"(?:somebody|someone|anybody|anyone|a person|people|a human|a visitor|visitors)"
_STRANGER = (
    r"(?:a stranger|strangers|somebody unknown|someone unknown|an unknown person|someone (?:whom? "
    r")?I do(?:n['’]t| not) know|somebody (?:whom? )?I do(?:n['’]t| not) know|an intruder)"
)

_SAID = re.compile(
    r"^(?:(?P<who>.+?) (?:says?|said|mentions?|mentioned|talks? about|talked about|shouts?|calls? "
    r"out|asks? (?:about|for))|I hear|you hear|(?:the )?words?|there is talk of)"
    r" (?:the words? |something about |anything about )?[\"“”'‘]?(?P<words>[^\"“”]+?)[\"“”'’]?(?: is "
    r"said| are said)?$",
    re.IGNORECASE,
)
_LEAVES = re.compile(
    r"^(?P<who>.+?) (?:leaves?|left|goes? away|goes? out|went out|is gone|walks? away|"
    r"disappears?)(?: (?:the )?(?:room|house|home|view|building))?$",
    re.IGNORECASE,
)
_COMES = re.compile(
    r"^(?P<who>.+?) (?:comes?|came|arrives?|arrived|enters?|entered|returns?|returned|shows? up|"
    r"gets? home|is back|walks? in)"
    r"(?: (?:back|home|in|again|here|to (?:the )?(?:room|house)|(?:the )?(?:room|house)|over))*$",
    re.IGNORECASE,
)
_SEE = re.compile(
    r"^(?:I|you|we|the camera) (?:can |could |ever )?(?:see|sees|spot|meet|notice|detect)s? (?P<what>.+)$",
    re.IGNORECASE,
)
_THERE = re.compile(rf"^there (?:{_BE}) (?P<not>no |not )?(?P<what>.+)$", re.IGNORECASE)
_NEGATED = re.compile(
    r"^(?P<who>.+?) (?:(?:has|have|is|was|were|are|had)(?:n['’]t| not|n[o']t)|did(?:n['’]t| not)|"
    r"does(?:n['’]t| not)) ?(?:been )?(?:seen |be seen |appear(?:ed)? |show(?:n)? up |come |there "
    r")?(?P<rest>.*)$",
    re.IGNORECASE,
)
_HOLDS = re.compile(
    r"^(?P<who>.+?) (?:has|have|holds?|carries|carry|is holding|is carrying|takes?|picks? up|uses?|"
    rf"is using) (?P<what>{_ARTICLE} .+)$",
    re.IGNORECASE,
)
_STATE = re.compile(
    rf"^(?P<who>.+?)(?: (?:{_BE}))?(?: {_POSTURE})*(?: (?P<rel>{_REL}) (?P<place>.+?))?(?: again)?$", re.IGNORECASE
)
_APPEARS = re.compile(
    r"^(?P<who>.+?) (?:appears?|is seen|is visible|is there|is around|is here|is present)(?: again)?$", re.IGNORECASE
)

_ODD = r"(?:unusual|strange|odd|weird|abnormal|suspicious|out of the ordinary|not normal)"
_UNUSUAL = re.compile(
    rf"^(?:there is )?(?:(?:something|anything) (?:\w+ )??{_ODD}|(?:something|anything) happens (?:that is |which is )?{_ODD}"
    rf"|(?:an? |any )?(?:{_ODD} (?:things?|events?|activity|happenings?)|anomal(?:y|ies)))"
    r"(?: (?:happens?|occurs?|goes on|appears?|(?:is|are) (?:going on|happening|seen|there)))?"
    rf"(?: (?:in|at|on|by|around) (?:{_ARTICLE} )?(?P<place>[\w' -]+))?$",
    re.IGNORECASE,
)

_VERB = re.compile(rf"\b(?:{_BE}|does|do|did|not|will|has|have|had)\b", re.IGNORECASE)  # of more than a subject
_SMALL = frozenset({"the", "a", "an", "my", "some"})

EXAMPLES: Final = "“tell me when the dog is on the sofa”, “if nobody was in the kitchen by 10, tell me”, “remind me to call Anna at 5 pm”"


def understand(text: str, now: float, zone: tzinfo | None = None) -> Program | Remember:
    """What the owner asks for.

    Args:
        text: the words.
        now: UTC POSIX seconds at which they were said.
        zone: whose calendar counts; None: the device's.

    Raises:
        UserError: it is not understood; the sentence gives an example that is.
    """
    clean = " ".join(text.split()).strip(" .!?")
    if not clean:
        raise UserError(f"The rule is empty; say something like {EXAMPLES}.")
    if len(clean) > MAX_CHARS:
        raise UserError(f"The rule has {len(clean)} characters; say it with at most {MAX_CHARS}.")
    clean = _POLITE.sub("", clean).strip()
    if match := _QUIET.match(clean):
        hours, rest = clockwork.take_hours(match["rest"])
        if hours == Hours():
            raise UserError(f"“{clean}” names no hours; say for example “don't notify me between 22 and 7”.")
        _nothing_left(rest, clean)
        return Quiet(hours)
    if match := _REMEMBER.match(clean):
        return Remember(match["what"].strip())
    if match := _REMIND_AFTER.match(clean):
        return _reminder(f"{match['rest']} {match['when']}", clean, now, zone)
    if match := _REMIND.match(clean):
        return _reminder(match["rest"], clean, now, zone)
    if match := _ALERT.match(clean) or _ALERT_AFTER.match(clean):
        condition, hours = _condition(match["cond"], clean)
        return Alert(condition, hours)
    raise UserError(f"“{clean}” is not understood as a rule; say something like {EXAMPLES}.")


def command(text: str) -> bool:
    """Whether words are an order to keep something rather than a question."""
    clean = _POLITE.sub("", " ".join(text.split()).strip(" .!?")).strip()
    if text.strip().endswith("?"):
        return False
    return any(pattern.match(clean) for pattern in (_ALERT, _ALERT_AFTER, _REMIND, _REMIND_AFTER, _REMEMBER, _QUIET))


def _reminder(rest: str, whole: str, now: float, zone: tzinfo | None) -> Reminder:
    when = re.search(
        r"(?:^|,? )(?:when(?:ever)?|as soon as|once|next time|the next time|if) (?P<cond>.+)$", rest, re.IGNORECASE
    )
    if when is not None:
        try:
            condition, hours = _condition(when["cond"], whole)
        except UserError:
            condition = None
        if condition is not None:
            what = _thing_to_do(rest[: when.start()])
            if not what:  # "when I see Anna to give her the book"
                inner = re.search(r" (?:to|that|about) (?P<what>.+)$", when["cond"], re.IGNORECASE)
                if inner is not None:
                    condition, hours = _condition(when["cond"][: inner.start()], whole)
                    what = inner["what"]
            if not what:
                raise UserError(
                    f"“{whole}” does not say of what; say for example “remind me to give her the book when I see Anna”."
                )
            return Reminder(what, condition=condition, hours=hours)
    at, rest = clockwork.take_time(rest, now, zone)
    if at is None:
        raise UserError(
            f"“{whole}” does not say when; say for example “remind me to call Anna at 5 pm” or “… when I see Anna”."
        )
    what = _thing_to_do(rest)
    if not what:
        raise UserError(f"“{whole}” does not say of what; say for example “remind me to call Anna at 5 pm”.")
    if at.repeat is None and at.due <= now:
        raise UserError(f"“{whole}” lies in the past; name a time to come.")
    return Reminder(what, due=at.due, repeat=at.repeat)


def _thing_to_do(rest: str) -> str:
    return re.sub(
        r"^(?:,|that|to|about|of|:|I (?:have|need|want) to)\s+", "", rest.strip(" ,"), flags=re.IGNORECASE
    ).strip(" ,")


def _condition(text: str, whole: str) -> tuple[Condition, Hours]:
    text = text.strip(" ,")
    said = _SAID.match(text)
    if said is not None and not re.search(r"\bnot\b|n['’]t\b", text):
        words = tuple(word for word in re.findall(r"[\w'’-]+", said["words"].lower()) if word not in _SMALL)
        speaker = _subject(said["who"]) if said["who"] else None
        if words:
            return Said(words, None if speaker is None or speaker.who is Who.ANYBODY else speaker), Hours()
    by, for_s, rest = clockwork.take_deadline(text)
    absent = _absent(rest)
    if absent is not None:
        if by is None and for_s is None:
            raise UserError(
                f"“{whole}” does not say until when; say for example “if nobody was in the kitchen by 10, tell me”."
            )
        hours, remaining = clockwork.take_hours(rest)
        absent = _absent(remaining) or absent
        return Absent(absent, by, for_s), Hours(days=hours.days)
    hours, rest = clockwork.take_hours(text)
    odd = _UNUSUAL.match(rest.strip(" ,"))
    found = _positive(rest) if odd is None else Unusual(odd["place"].lower().strip() if odd["place"] else None)
    if found is None:
        raise UserError(f"“{whole}” is not understood; say something like {EXAMPLES}.")
    return found, hours


def _absent(text: str) -> Seen | None:
    match = re.match(rf"^{_NOBODY}(?: (?:{_BE}))?(?P<rest>.*)$", text, re.IGNORECASE)
    if match is not None:
        return _seen(f"somebody{match['rest']}")
    match = _THERE.match(text)
    if match is not None and match["not"]:
        return _seen(match["what"])
    match = re.match(
        r"^(?:I|you|we) (?:have(?:n['’]t| not)|did(?:n['’]t| not)|has(?:n['’]t| not)) (?:yet )?(?:seen?|"
        r"see) (?P<what>.+)$",
        text,
        re.IGNORECASE,
    )
    if match is not None:
        return _seen(match["what"])
    match = _NEGATED.match(text)
    return _seen(f"{match['who']} {match['rest']}".strip()) if match is not None else None


def _positive(text: str) -> Condition | None:
    match = _SEE.match(text)
    if match is not None:
        return _seen(match["what"])
    match = _THERE.match(text)
    if match is not None:
        return _seen(match["what"])
    match = _HOLDS.match(text)
    if match is not None and (who := _subject(match["who"])) is not None:
        what = _bare(match["what"])
        return Seen(who, Place("holding", what, _labels(what)))
    for pattern, way in ((_LEAVES, Way.LEAVES), (_COMES, Way.COMES)):
        match = pattern.match(text)
        if match is not None and (who := _subject(match["who"])) is not None:
            return Moves(who, way)
    return _seen(text)


def _seen(text: str) -> Seen | None:
    match = _APPEARS.match(text) or _STATE.match(text)
    if match is None:
        return None
    subject = _subject(match["who"])
    if subject is None:
        return None
    groups = match.groupdict()
    if not groups.get("rel"):
        return Seen(subject)
    place = _bare(groups["place"])
    return (
        Seen(subject, Place(_RELATION_WORDS[" ".join(groups["rel"].lower().split())], place, _labels(place)))
        if place
        else None
    )


def _subject(text: str) -> Subject | None:
    text = text.strip(" ,")
    if re.fullmatch(_STRANGER, text, re.IGNORECASE):
        return Subject(Who.STRANGER, text)
    if re.fullmatch(_SOMEBODY, text, re.IGNORECASE):
        return Subject(Who.ANYBODY, text, ("person",))
    if re.fullmatch(r"I|me|we", text, re.IGNORECASE):
        return Subject(Who.ME, "I")
    had_article = re.match(rf"^{_ARTICLE}\s+", text, re.IGNORECASE) is not None
    words = _bare(text)
    if not words or len(words.split()) > 4 or not re.search(r"\w", words) or _VERB.search(words):
        return None
    labels = _labels(words)
    if not had_article and not labels and words[:1].isupper():
        return Subject(Who.NAMED, words)
    if not had_article and not labels and len(words.split()) <= 2 and re.fullmatch(r"[A-Za-z .'’-]+|\w+", words):
        # "tell me when anna comes home": a name in lower letters, if nothing else goes by it.
        return Subject(Who.NAMED, words)
    return Subject(Who.THING, words, labels)


def _labels(words: str) -> tuple[str, ...]:
    return labels_for(words) or labels_for(words.split()[-1] if words.split() and len(words.split()) <= 2 else words)


def _bare(text: str) -> str:
    return re.sub(rf"^(?:{_ARTICLE})\s+", "", text.strip(" ,"), flags=re.IGNORECASE).strip()


def _nothing_left(rest: str, whole: str) -> None:
    if re.sub(r"\b(?:and|at|on|in|the|between|from|to|anything)\b|[ ,]", "", rest, flags=re.IGNORECASE):
        raise UserError(f"“{whole}” is not understood; say for example “don't notify me between 22 and 7”.")
