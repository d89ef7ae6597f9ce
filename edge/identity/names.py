"""What they are called: names that people say of themselves or call each other. Pure.

A name is earned. Somebody says it of themselves once ("I'm Sam", "my name is Sam", "Sam here"), or one other person
calls them so in two different utterances ("hi Sam", "Sam, can you …", "thanks, Sam") while it is clear whom they speak
to. The recogniser writes capitals and commas as it likes, so everything unsure gives no claim.

Invariants (each has a property test):

* quoted and reported speech, negations, questions about who somebody is, and requests ("call Sam") give no claim;
* a word that is also a plain word counts only with its capital, and one that is hardly ever a name never;
* a name told by the user is never changed; a name said of oneself is never changed by being called otherwise, nor by a
  second name; a name that others gave yields to what somebody says of themselves;
* a claim needs a speaker who is certain; a name that somebody is called needs exactly one person who can be meant;
* two people may have one name: it is accepted, and the decision says who else has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edge.identity.people import People
from edge.identity.sights import PERSON
from edge.identity.state import GalleryState, HeardName
from edge.identity.vocabulary import is_given_name, is_plain_word, may_describe
from edge.identity.voices import Voices
from edge.types.drafts import DecisionDraft, EntityKey, NameClaim
from edge.types.evidence import SegmentEvidence, Utterance
from edge.types.frequency import zipf
from edge.types.records import NameSource, Outcome

CALLED_TO_BELIEVE = 2  # different utterances in which others call somebody so
# A word that the lists do not have may be a name after "my name is" when English hardly uses it (Zipf scale of
# wordfreq).
_RARE_ZIPF = 3.6

_WORD = r"[^\W\d_]+(?:[-'][^\W\d_]+)*"
_NAME = rf"(?P<name>{_WORD})(?: (?P<last>{_WORD}))?"
_FILLER = (
    r"(?:(?:hi|hello|hey|yes|yeah|yep|well|okay|ok|oh|um|uh|so|and|good (?:morning|afternoon|evening)|nice to meet you|"
    r"pleased to meet you|welcome|sorry|there|everyone|everybody|all|guys|by the way|thanks|thank you)[, ]+)*"
)
_END = r"(?=\s*(?:$|[,.!;]|and\b|from\b|speaking\b|by the way\b|nice to\b|pleased to\b|- ))"
_STRONG = re.compile(
    rf"{_FILLER}(?:my name is|my name's|my first name is|the name's|i am called|i'm called) {_NAME}", re.IGNORECASE
)
_CALL_ME = re.compile(
    rf"{_FILLER}(?:(?:you can|you may|just|please|people|they|everyone|everybody) )*calls? me {_NAME}", re.IGNORECASE
)
_WEAK = re.compile(rf"{_FILLER}(?:i'm|i am|it's me,?) {_NAME}", re.IGNORECASE)
_SPEAKING = re.compile(rf"{_FILLER}(?:this is|it's|it is) (?P<name>{_WORD}) speaking\b(?P<last>)", re.IGNORECASE)
_HERE = re.compile(rf"{_FILLER}(?P<name>{_WORD}) here(?P<last>)(?=\s*(?:$|[,.!]))", re.IGNORECASE)


def _any(*phrases: str) -> str:
    return "|".join(phrases)


_HELLO = _any(
    *("hi", "hello", "hey", "good morning", "good afternoon", "good evening", "good night", "bye", "goodbye"),
    *("thanks", "thank you", "welcome back", "happy birthday"),
)
_GREETING = _any(
    _HELLO,
    *("morning", "bye bye", "see you", "thank you so much", "thanks a lot", "welcome", "congratulations", "sorry"),
    *("excuse me", "nice to meet you", "good to see you", "come on", "please", "okay", "ok", "yes", "no", "yeah"),
    *("well done", "oh", "well", "look", "listen"),
)
# Without a comma only a true greeting calls somebody: "okay Sam" may go on as anything.
_GREETED = re.compile(
    rf"(?:(?:oh|well|okay|ok|yes|yeah),? )*(?:(?P<hello>{_HELLO}),? |(?:{_GREETING}), ?)(?P<name>{_WORD})(?P<after>.*)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"(?:for|you|i|i'm|it's|how|what|can|could|please)(?![\w'])", re.IGNORECASE)
_TO_YOU = _any(
    *("can", "could", "would", "will", "do", "did", "don't", "are", "have", "what", "where", "when", "why", "how"),
    *("who", "please", "come", "look", "listen", "wait", "you", "you're", "your", "let's", "let me", "give", "take"),
    *("pass", "tell", "show", "stop", "hurry", "help", "thank you", "thanks", "i need you", "i want you"),
    *("is your", "it's your"),
)
_STARTS = re.compile(rf"(?P<name>{_WORD}), (?P<after>(?:{_TO_YOU})\b.*)", re.IGNORECASE)
_ENDS = re.compile(
    r"(?P<before>.*\b(?:you|your|you're|yours)\b.*|(?:come|look|listen|wait|stop|help me|hurry up)\b.*), "
    rf"(?P<name>{_WORD})",
    re.IGNORECASE,
)
_WAKE = re.compile(r"(?:hey|ok|okay) ", re.IGNORECASE)  # often said to a machine

_QUOTES = re.compile('["“”«»„]')
_SAYS = "(?:{})".format(
    _any(
        *("said", "says", "say", "saying", "goes", "go", "was like", "were like", "is like", r"told \w+", r"tells \w+"),
        *("asked", "asks", "replied", "answered", "shouted", "wrote", "writes", "reads", "sang", "sings", "announced"),
        *("thought", "called", "quote"),
    )
)
_REPORTS_AT_END = re.compile(rf"\b{_SAYS}\W*$", re.IGNORECASE)
_REPORTED_AFTER = re.compile(
    rf"[,;] ?(?:(?:he|she|they|it|{_WORD}) {_SAYS}|{_SAYS} (?:he|she|they|the|{_WORD}))\b", re.IGNORECASE
)
_SENTENCE = re.compile(r"[^.!?]+[.!?]*")


@dataclass(frozen=True, slots=True)
class Said:
    """A name found in one utterance."""

    name: str
    source: NameSource  # SELF: of the speaker; ADDRESSED: of whom they speak to


def names_in(text: str) -> tuple[Said, ...]:
    """The names that an utterance claims, of the speaker or of whom they speak to; none when in doubt.

    Args:
        text: as the recogniser wrote it.

    Returns:
        At most one of each source.
    """
    text = " ".join(text.replace("’", "'").replace("‘", "'").split())
    selves: list[str] = []
    called: list[str] = []
    before = ""
    for match in _SENTENCE.finditer(text):
        sentence = match.group().strip()
        reported = bool(_REPORTS_AT_END.search(before)) or bool(_REPORTED_AFTER.search(sentence))
        before = sentence
        if _QUOTES.search(sentence) or reported:
            continue
        own = _self(sentence)
        if own:
            selves.append(own)
        elif other := _called(sentence):
            called.append(other)
    found = []
    if len({_key(name) for name in selves}) == 1:
        found.append(Said(selves[0], NameSource.SELF))
    if len({_key(name) for name in called}) == 1:
        found.append(Said(called[0], NameSource.ADDRESSED))
    # Quotes that span sentences make all of it doubtful.
    return () if len(_QUOTES.findall(text)) % 2 else tuple(found)


def _self(sentence: str) -> str | None:
    if sentence.endswith("?"):
        return None
    for pattern, strong in ((_STRONG, True), (_CALL_ME, False), (_SPEAKING, False), (_HERE, False), (_WEAK, False)):
        match = pattern.match(sentence)
        if match is None:
            continue
        name, last = match.group("name"), match.group("last") or ""
        if strong and not is_given_name(name):
            if not _rare(name):
                continue
        elif not strong and (not _capital(name) or not is_given_name(name) or may_describe(name)):
            continue
        end = match.end("name")
        if (
            last
            and _capital(last)
            and not is_plain_word(last)
            and not last.endswith("'s")
            and _stops(sentence, match.end("last"))
        ):
            return f"{_titled(name)} {_titled(last)}"
        if pattern in (_SPEAKING, _HERE) or _stops(sentence, end):
            return _titled(name)
    return None


def _called(sentence: str) -> str | None:
    if match := _GREETED.fullmatch(sentence):
        name, after = match.group("name"), match.group("after").strip()
        wake = bool(_WAKE.match(sentence)) and "," not in sentence[: match.start("name")]
        # "hi Sam and Kim", "thanks Sam's mother", "yeah, Sam can't" and "hey Google" are out; "thanks Sam for …" is in.
        stops = not after or after[0] in ",.!?" or (match.group("hello") and _GOES_ON.match(after))
        several = re.match(r"(?:,? ?and\b|, [A-Z]\w+[,.!]?(?: and\b|$))", after)
        if stops and not several and _vocative(name) and not (wake and not after):
            return _titled(name)
    if (match := _STARTS.fullmatch(sentence)) and _vocative(match.group("name")):
        return _titled(match.group("name"))
    match = _ENDS.fullmatch(sentence.rstrip(".!?"))
    if match and _vocative(match.group("name")) and not _third(match.group("before")):
        return _titled(match.group("name"))
    return None


def _third(before: str) -> bool:
    """Whether a name before the last one makes it a list: "you know Kim, Pat, Sam"."""
    return bool(re.search(rf", {_WORD}$", before)) and is_given_name(before.rsplit(", ", 1)[-1])


def _vocative(name: str) -> bool:
    return _capital(name) and is_given_name(name)


def _stops(sentence: str, end: int) -> bool:
    """Whether the name is over there: not "Sam's brother", "Mark my words", "Grace under pressure"."""
    return re.match(_END, sentence[end:], re.IGNORECASE) is not None


def _capital(word: str) -> bool:
    """A capital that means something: not all letters are."""
    return word[:1].isupper() and not (len(word) > 1 and word.isupper())


def _rare(word: str) -> bool:
    plain = is_plain_word(word) or may_describe(word)
    return _capital(word) and not plain and 2 < len(word) <= 20 and zipf(word) < _RARE_ZIPF


def _titled(word: str) -> str:
    return word if word[:1].isupper() and not word.isupper() else word.capitalize()


def _key(name: str) -> str:
    """What makes two names one: the first word, without case."""
    return name.split(maxsplit=1)[0].casefold()


@dataclass(frozen=True, slots=True)
class Bearer:
    """What somebody is called now."""

    name: str | None
    source: NameSource


def name_claims(
    utterances: Sequence[Utterance],
    speakers: Sequence[EntityKey | None],
    listeners: Sequence[EntityKey | None],
    bearers: Mapping[EntityKey, Bearer],
    heard: Sequence[HeardName] = (),
) -> tuple[NameClaim, ...]:
    """The names heard in a segment, and which of them are now believed.

    Args:
        utterances: what was said, in order.
        speakers: of each utterance, who certainly says it, or None.
        listeners: of each utterance, the one person who can be meant by a name that is called, or None.
        bearers: what everybody who matters is called now; whoever is absent has no name.
        heard: claims of earlier segments.

    Returns:
        One claim for each name that is new for its bearer and each utterance.
    """
    claims: list[NameClaim] = []
    now = dict(bearers)
    for index, utterance in enumerate(utterances):
        for said in names_in(utterance.text) if speakers[index] is not None else ():
            of_self = said.source is NameSource.SELF
            entity = speakers[index] if of_self else listeners[index]
            if entity is None or (not of_self and entity == speakers[index]):
                continue
            bearer = now.get(entity, Bearer(None, NameSource.NONE))
            if _known_already(said, bearer):
                continue
            before = [(name.name, name.source) for name in heard if name.entity == entity]
            before += [(claim.name, claim.source) for claim in claims if claim.entity == entity]
            accepted = believed(said, bearer, before)
            claims.append(NameClaim(entity, said.name, said.source, index, accepted))
            if accepted:
                now[entity] = Bearer(said.name, said.source)
    return tuple(claims)


def believed(said: Said, bearer: Bearer, heard: Sequence[tuple[str, NameSource]]) -> bool:
    """Whether a name that is heard becomes the bearer's name.

    Args:
        said: the name.
        bearer: what they are called until then.
        heard: names heard for them before, with their sources.
    """
    if bearer.source in (NameSource.USER, NameSource.SELF) or _known_already(said, bearer):
        return False
    if said.source is NameSource.SELF:
        return True
    times = sum(source is NameSource.ADDRESSED and _key(name) == _key(said.name) for name, source in heard)
    return bearer.name is None and times + 1 >= CALLED_TO_BELIEVE


def _known_already(said: Said, bearer: Bearer) -> bool:
    """Whether it is their name already, and nothing is new about that."""
    same = bearer.name is not None and _key(bearer.name) == _key(said.name)
    return same and (bearer.source is not NameSource.ADDRESSED or said.source is not NameSource.SELF)


def claims_of_segment(
    evidence: SegmentEvidence, state: GalleryState, people: People, voices: Voices
) -> tuple[tuple[NameClaim, ...], tuple[DecisionDraft, ...]]:
    """The name claims of a segment whose people and voices are decided, and a decision for each that is believed."""
    speakers = [
        voices.assigned.get(said.voice) if said.voice is not None and said.voice in voices.sure else None
        for said in evidence.utterances
    ]
    listeners = [_listener(evidence, people, voices, speaker) for speaker in speakers]
    bearers = {known.id: Bearer(known.name, known.name_source) for known in state.entities.values() if known.name}
    claims = name_claims(evidence.utterances, speakers, listeners, bearers, state.heard)
    notes = []
    for claim in claims:
        if not claim.accepted:
            continue
        said = evidence.utterances[claim.utterance]
        shared = sorted(
            known.id
            for known in state.entities.values()
            if known.name and _key(known.name) == _key(claim.name) and known.id != claim.entity
        )
        found: dict[str, object] = {
            "name": claim.name,
            "source": claim.source.value,
            "utterance": claim.utterance,
            "words": said.text,
        }
        if shared:
            found["also_called_so"] = shared
        reason = (
            "They said that this is their name."
            if claim.source is NameSource.SELF
            else "Somebody called them so again."
        )
        if shared:
            reason = reason[:-1] + "; somebody else has the same name."
        notes.append(DecisionDraft(said.voice or "", Outcome.SAME, claim.entity, reason, found))
    return claims, tuple(notes)


def _listener(evidence: SegmentEvidence, people: People, voices: Voices, speaker: EntityKey | None) -> EntityKey | None:
    """The only other person in the segment, or None when there are more, or somebody unknown."""
    if speaker is None:
        return None
    there = {people.assigned.get(track.anchor) for track in evidence.tracks if track.label == PERSON}
    there |= {voices.assigned.get(voice.anchor) for voice in evidence.voices}
    others = there - {speaker}
    return next(iter(others)) if len(others) == 1 else None
