"""What people say of themselves: "I work at …", "I'm a nurse", "we moved to …", "my sister is called …". Pure.

A sentence is taken apart into clauses, and a clause has to fit as a whole: it begins with its "I", "we" or "my", after words that
only open it ("well", "you know", "these days"). Everything unsure gives nothing:

* questions, what is imagined or intended ("if", "would", "maybe"), and what others say or think are nobody's statement;
* a value is a few words that name something; "it", "your shoes" or "how you did that" do not;
* "I'm a …" says what somebody does only when its last word names an occupation or another lasting trait.

Statements have a stance: something is so, is so no more, or was so once. What follows from them in time is in `runs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from edge.memory.tiers.facts.words import LASTING, is_occupation

WORK, JOB, HOME, ORIGIN, BIRTHDAY = "work", "job", "home", "origin", "birthday"
LIKES, DISLIKES, ALLERGY, TRAIT, SPEAKS, STUDIES = "likes", "dislikes", "allergy", "trait", "speaks", "studies"
FAVOURITE: Final = "favourite "  # with what it is of: "favourite colour"

ONE_OF_A_KIND: Final = frozenset(
    ["mother", "father", "wife", "husband", "partner", "girlfriend", "boyfriend", "fiancé", "fiancée", "boss"]
)
RELATIVES: Final = {
    **{one: one for one in ONE_OF_A_KIND},
    **{
        one: one
        for one in (
            "sister", "brother", "son", "daughter", "uncle", "aunt", "cousin", "grandmother", "grandfather", "niece", "nephew",
            "friend", "best friend", "colleague", "roommate", "flatmate", "neighbour", "dog", "cat", "horse", "doctor",
        )
    },
    "mum": "mother", "mom": "mother", "dad": "father", "grandma": "grandmother", "grandpa": "grandfather",
    "neighbor": "neighbour", "co-worker": "colleague", "coworker": "colleague", "kid": "child", "child": "child",
}  # fmt: skip


class Stance(StrEnum):
    """What a statement says of its value."""

    IS = "is"
    NOT = "not"  # not, or no more
    WAS = "was"  # once, and not now


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that somebody says of themselves."""

    kind: str
    value: str  # as it was said, without what is around it; empty: whatever it was ("I quit my job")
    stance: Stance


def norm(value: str) -> str:
    """The same for values that name the same thing: "the Bakery", "a bakery"."""
    words = re.sub(r"[^\w'’&-]+", " ", value.casefold().replace("’", "'")).split()
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words)


def statements(text: str) -> tuple[Said, ...]:
    """What a speaker says of themselves.

    Args:
        text: words as they were heard.

    Returns:
        Each once, in the order in which they stand.
    """
    found: dict[Said, None] = {}
    for sentence in _SENTENCE.findall(text.replace("’", "'").replace("‘", "'")):
        if len(sentence) > _LONGEST or _UNMEANT.search(sentence) or _QUOTED.search(sentence):
            continue
        parts = [_LEAD.sub("", part.strip(" ,;:.!—–-")) for part in _CLAUSE.split(sentence)]
        told = [said for part in parts for said in _clause(part)]
        if any(one.kind in (WORK, JOB) for one in told):  # "I don't work there any more, I'm at …"
            told += [said for part in parts for said in _matches(part, _CONTEXT)]
        if match := _WHOSE_NAME.search(sentence):
            told += _relation(match)
        found |= dict.fromkeys(told)
    return tuple(found)


# -- pieces of patterns -----------------------------------------------------------------------------------------------

_LONGEST: Final = 300  # characters of a sentence: longer ones are no plain statement
_ARTICLES: Final = frozenset(("the", "a", "an", "some", "my", "our"))
_SENTENCE: Final = re.compile(r"[^.!?]+[.!?]*")
_QUOTED: Final = re.compile('["“”«»„]')
_I: Final = r"(?:i|we|my (?:family|wife|husband|partner) and i)"
_UNMEANT: Final = re.compile(
    r"\?\s*$|^\W*(?:do|does|did|is|are|was|were|have|has|can|who|what|where|when|why|how)\b"
    r"|\b(?:if|would|wish|imagine|pretend|suppose|supposing|maybe|perhaps|might|(?-i:may)|could|should|hope|want|wanted|going to|gonna"
    r"|nearly|almost|dream|dreamt|dreamed|planning|plan to|thinking of|unless|whether|as though|when i was|when we were)\b"
    r"|\b(?:i|we)'(?:d|ll)\b|\bwill\b"
    r"|\b(?:said|says?(?! (?:hello|hi|goodbye|bye)\b)|told|tells|thinks?|thought|claims?|claimed|believes?|heard|asked|asks|wrote|writes|reads)\b"
    r"|\b(?:he|she|they|people) know\b",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"(?:\s*[,;:—–]+\s*(?:(?:and|but|so|then)\s+)?|\s+(?:and|but|so|because|since|as)\s+)"
    rf"(?=(?:now|then|these days|nowadays|today|currently|actually)?\s*,?\s*(?:{_I}|i'm|i've|we're|we've|my|our|this is my)\b)",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(
    r"^(?:(?:well|oh|ah|um|uh|yes|yeah|yep|no|nope|so|and|but|now|look|listen|hey|hi|hello|sorry|careful|actually|honestly|frankly"
    r"|anyway|besides|also|plus|please|right|okay|ok|you know(?: what)?|you see|guess what|i mean|by the way|to be honest|in fact"
    r"|of course|these days|nowadays|at the moment|at present|currently|today|finally|from now on|as you know|believe it or not"
    r"|for the record|just so you know|since (?:\w+ ?){1,3}?(?= ?,? ?(?:i|we)\b)|(?:as of|from) \w+day|meanwhile|luckily|sadly)\b"
    r"[\s,:!.-]*)+",
    re.IGNORECASE,
)
_ADVERB: Final = (
    r"(?:now|just|really|also|still|actually|currently|always|truly|absolutely|recently|finally|already|mainly|mostly|usually|only"
    r"|both|simply|quite|honestly|personally|do|kind of|sort of|even|normally|officially|particularly|especially)"
)
_TAIL: Final = (
    r"(?:now|these days|nowadays|any ?more|any longer|at the moment|right now|at present|currently|today|again|too|as well|either"
    r"|a lot|a great deal|very much|so much|most of all|the most|really|though|actually|originally|by profession|by trade|you know"
    r"|for (?:a|an|some|many|\w+)(?: \w+)? (?:years?|months?|weeks?|while|time)|for (?:years|ages|months|weeks|now|good|ever)"
    r"|(?:last|this|next|every) (?:week|month|year|spring|summer|autumn|fall|winter|monday|tuesday|wednesday|thursday|friday|"
    r"saturday|sunday|weekend|morning|evening|day)|on (?:mon|tues|wednes|thurs|fri|satur|sun)days?|yesterday|recently|lately"
    r"|since\b.*|because\b.*|when\b.*|while\b.*|where\b.*|which\b.*|who\b.*|until\b.*|though\b.*|with (?:my|our|a|an|the)\b.*"
    r"|in the (?:office|kitchen|back|morning|evening|centre|center)\b.*|as (?:a|an) [\w -]+|from (?:home|monday)\b.*|by the [\w ]+"
    r"|near\b.*|next to\b.*|in (?:19|20)\d\d|\w+ years ago|(?:a|some) \w+ ago|all the time|(?:but )?not (?:any ?more|now|any longer)|every\b.*|sometimes|often|so far)"
)
_REST: Final = r"(?:[\w'&.-]*[\w&])?"
_WORD_IN: Final = rf"[^\W_]{_REST}"
_CAPITAL: Final = rf"(?P<x>(?-i:[^\W\d_a-z]){_REST}(?: {_WORD_IN}){{0,3}}?)"
_VALUE: Final = rf"(?P<x>{_WORD_IN}(?: {_WORD_IN}){{0,5}}?)"
_END: Final = rf"(?:[, ]+{_TAIL})*\W*$"
_NAME: Final = r"(?P<x>(?-i:[^\W\d_a-z][\w'-]+)(?: (?-i:[^\W\d_a-z][\w'-]+))?)"
_AM: Final = rf"(?:{_I} (?:am|are)|i'm|we're)"
_HAVE: Final = rf"(?:{_I} (?:have|had)|i've|we've|{_I})"
_REL: Final = rf"(?P<rel>{'|'.join(sorted(RELATIVES, key=len, reverse=True))})"

Make = Callable[[re.Match[str]], list[Said]]
_Rule = tuple[re.Pattern[str], Make]


def _rule(pattern: str, make: Make) -> _Rule:
    return re.compile(rf"{pattern}{_END}", re.IGNORECASE), make


def _fact(kind: str, stance: Stance = Stance.IS) -> Make:
    def make(match: re.Match[str]) -> list[Said]:
        value = _tidy(match["x"])
        return [Said(kind, value, stance)] if _names(kind, value) else []

    return make


def _both(first: Make, second: Make) -> Make:
    return lambda match: [*first(match), *second(match)]


def _no_more(*kinds: str) -> Make:
    return lambda _match: [Said(kind, "", Stance.NOT) for kind in kinds]


def _being(stance: Stance) -> Make:
    """Of "I'm a …": an occupation, or another lasting trait; nothing where the last word says neither."""

    def make(match: re.Match[str]) -> list[Said]:
        value = _tidy(match["x"])
        head = value.split()[-1].lower() if value else ""
        if is_occupation(head):
            return [Said(JOB, value, stance)]
        return [Said(TRAIT, value, stance)] if head in LASTING else []

    return make


def _relation(match: re.Match[str]) -> list[Said]:
    kind = RELATIVES[match["rel"].lower()]
    name = match["x"].strip(" '")
    return [Said(kind, name, Stance.IS)] if _proper(name) else []


def _favourite(match: re.Match[str]) -> list[Said]:
    of, value = re.sub(r"\bcolor\b", "colour", match["of"].lower()), _tidy(match["x"])
    return [Said(f"{FAVOURITE}{of}", value, Stance.IS)] if _names(LIKES, value) else []


# -- values -----------------------------------------------------------------------------------------------------------

# What no value begins with: it points at something that only the moment knows.
_POINTING: Final = frozenset(
    """it its that this these those you your yours him his her hers them their theirs me us i we he she they what how why when where
    who whom there here everything something nothing anything everyone everybody someone somebody to not so such myself ourselves
    one ones all both each every any""".split()  # noqa: SIM905 -- a list of words reads better as text
)
_NO_PLACE: Final = frozenset(
    """moment home night nights least all once first last weekend weekends work fear hope hurry room door window table end back
    bed front same time day days danger general peace pain love trouble town""".split()  # noqa: SIM905
)
_SMALL: Final = frozenset(
    ("to", "and", "or", "of", "in", "at", "for", "with", "by", "on", "the", "a", "an", "that", "but", "as")
)


def _tidy(value: str) -> str:
    words = value.strip(" .,'").split()
    while words and words[-1].lower() in _SMALL | {"now", "just", "really", "anymore", "too"}:
        words = words[:-1]
    return " ".join(words)


def _names(kind: str, value: str) -> bool:
    """Whether a value names something."""
    words = value.lower().split()
    if not words or words[0] in _POINTING or any(word in _POINTING - {"one", "all", "to"} for word in words[:3]):
        return False
    bare = norm(value)
    if kind in (HOME, ORIGIN) and not any(word[0].isupper() for word in value.split()):
        return False  # "in a flat", "in the middle of nowhere"
    if kind in (WORK, HOME, ORIGIN):
        return bare.split()[0] not in _NO_PLACE and not bare.isdigit() and not words[0].endswith("ing")
    if kind in (LIKES, DISLIKES, ALLERGY):
        return words[0] not in ("the", "a", "an", "my", "our") or len(words) > 2
    return True


def _proper(name: str) -> bool:
    return bool(name) and name.split()[0].lower() not in _POINTING | {"is", "was", "has", "and"}


# -- what fits --------------------------------------------------------------------------------------------------------

_AT: Final = r"(?:at|for|in|with)"
_GERUND_WORK: Final = rf"(?:working|employed) {_AT}"
_RULES: Final[tuple[_Rule, ...]] = (
    # Work.
    _rule(rf"{_I} (?:{_ADVERB} )*work (?:{_ADVERB} )*(?:at|for) {_VALUE}", _fact(WORK)),
    _rule(rf"{_AM} (?:{_ADVERB} )*{_GERUND_WORK} {_VALUE}", _fact(WORK)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*been (?:{_ADVERB} )*{_GERUND_WORK} {_VALUE}", _fact(WORK)),
    _rule(rf"{_I} (?:{_ADVERB} )*(?:got|found|took|accepted|landed|have) (?:a|the|my) (?:new )?(?:job|position) (?:at|with) {_VALUE}", _fact(WORK)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:got|found|taken|accepted|landed) (?:a|the|my) (?:new )?(?:job|position) (?:at|with) {_VALUE}", _fact(WORK)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:started|begun|began) (?:a (?:new )?job |work |working )?(?:at|for|with) {_VALUE}", _fact(WORK)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:switched|changed|transferred) (?:jobs? |companies )?(?:over )?to {_VALUE}", _fact(WORK)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*joined {_VALUE}", _fact(WORK)),
    _rule(rf"my (?:new )?(?:job|work|office|employer|company|workplace) is (?:at |with |in )?{_VALUE}", _fact(WORK)),
    _rule(rf"{_I} (?:{_ADVERB} )*(?:don't|do not|no longer) (?:{_ADVERB} )*work (?:at|for) {_VALUE}", _fact(WORK, Stance.NOT)),
    _rule(rf"{_AM} (?:no longer|not) (?:{_ADVERB} )*(?:(?:working|employed) )?(?:at|for|with) {_VALUE}", _fact(WORK, Stance.NOT)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:quit|left|lost|resigned from) (?:my|our|the) (?:old )?(?:job|position) at {_VALUE}", _fact(WORK, Stance.NOT)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:stopped working|resigned|quit) (?:at|for|from) {_VALUE}", _fact(WORK, Stance.NOT)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:quit|lost|left|given up|gave up) (?:my|our|the) (?:old )?job", _no_more(WORK)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:left|quit) {_VALUE}", _both(_fact(WORK, Stance.NOT), _fact(HOME, Stance.NOT))),
    _rule(rf"(?:{_AM}|{_HAVE}|i got|i was) (?:{_ADVERB} )*(?:retired|unemployed|out of work|between jobs|fired|laid off)", _no_more(WORK, JOB)),
    _rule(rf"{_I} (?:{_ADVERB} )*used to work (?:at|for) {_VALUE}", _fact(WORK, Stance.WAS)),
    # What they do and are.
    _rule(rf"{_I} (?:{_ADVERB} )*work (?:{_ADVERB} )*as (?:an?|the) {_VALUE}", _fact(JOB)),
    _rule(rf"{_AM} (?:{_ADVERB} )*(?:working|employed) as (?:an?|the) {_VALUE}", _fact(JOB)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*been (?:{_ADVERB} )*working as (?:an?|the) {_VALUE}", _fact(JOB)),
    _rule(rf"{_I} (?:{_ADVERB} )*(?:earn|make) (?:my|our|a) (?:living|money) as an? {_VALUE}", _fact(JOB)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:become|became|turned into|qualified as|trained as) an? {_VALUE}", _being(Stance.IS)),
    _rule(rf"{_AM} (?:{_ADVERB} )*(?:an?|the) {_VALUE}", _being(Stance.IS)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*been an? {_VALUE}", _being(Stance.IS)),
    _rule(rf"my (?:job|profession|occupation|trade) is (?:being |that of )?(?:an? )?{_VALUE}", _being(Stance.IS)),
    _rule(rf"{_AM} (?:not|no longer) (?:{_ADVERB} )*an? {_VALUE}", _being(Stance.NOT)),
    _rule(rf"{_I} (?:{_ADVERB} )*used to (?:be|work as) an? {_VALUE}", _being(Stance.WAS)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*stopped (?:being|working as) an? {_VALUE}", _being(Stance.NOT)),
    _rule(rf"{_AM} (?:{_ADVERB} )*(?P<x>vegetarian|vegan|married|divorced|engaged|single|retired|pregnant|diabetic|left-handed|colou?r-?blind)",
          _fact(TRAIT)),
    _rule(rf"{_AM} (?:{_ADVERB} )*studying {_VALUE}", _fact(STUDIES)),
    _rule(rf"{_I} (?:{_ADVERB} )*study {_VALUE}", _fact(STUDIES)),
    _rule(rf"{_I} (?:{_ADVERB} )*(?:can )?speak (?:{_ADVERB} )*(?P<x>(?-i:[A-Z])\w+)(?: fluently| at home)?", _fact(SPEAKS)),
    # Where they live and come from.
    _rule(rf"{_I} (?:{_ADVERB} )*(?:live|reside) (?:{_ADVERB} )*(?:in|at) {_VALUE}", _fact(HOME)),
    _rule(rf"{_AM} (?:{_ADVERB} )*(?:living|based|settled|at home) (?:{_ADVERB} )*(?:in|at) {_VALUE}", _fact(HOME)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:been living|lived|settled|settled down) in {_VALUE}", _fact(HOME)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:moved|relocated) (?:house |away |back |over |here )?(?:from {_VALUE.replace('<x>', '<y>')} )?to {_VALUE}", _fact(HOME)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:bought|rented|found) an? (?:new )?(?:house|flat|apartment|place) in {_VALUE}", _fact(HOME)),
    _rule(rf"(?:my|our) (?:new )?(?:house|flat|apartment|home|place) is in {_VALUE}", _fact(HOME)),
    _rule(rf"{_I} (?:{_ADVERB} )*(?:don't|do not|no longer) (?:{_ADVERB} )*live in {_VALUE}", _fact(HOME, Stance.NOT)),
    _rule(rf"{_AM} (?:no longer|not) living in {_VALUE}", _fact(HOME, Stance.NOT)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*moved (?:out of|away from|out from) {_VALUE}", _fact(HOME, Stance.NOT)),
    _rule(rf"{_I} (?:{_ADVERB} )*used to live in {_VALUE}", _fact(HOME, Stance.WAS)),
    _rule(rf"(?:{_AM}|{_I} (?:{_ADVERB} )*come) (?:{_ADVERB} |originally )*from {_CAPITAL}", _fact(ORIGIN)),
    _rule(rf"(?:i was (?:born|raised)|{_I} grew up|i was born and raised) in {_CAPITAL}", _fact(ORIGIN)),
    _rule(rf"my birthday is (?:on )?{_VALUE}", _fact(BIRTHDAY)),
    _rule(rf"(?:it's|it is|i have|we have) my birthday (?:on )?{_VALUE}", _fact(BIRTHDAY)),
    _rule(r"i was born on (?P<x>(?:the )?[\w ]+)", _fact(BIRTHDAY)),
    # What they like.
    _rule(rf"(?:you know )?{_I} (?:{_ADVERB} )*(?:like|love|enjoy|adore|prefer) {_VALUE}", _fact(LIKES)),
    _rule(rf"{_AM} (?:{_ADVERB} |very |so |totally )*(?:into|fond of|keen on|crazy about|mad about|obsessed with|an? (?:\w+ )?(?:fan|lover) of) {_VALUE}", _fact(LIKES)),
    _rule(rf"there's nothing {_I} like (?:more|better) than {_VALUE}", _fact(LIKES)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:come|started|begun|learned|learnt) to (?:like|love|enjoy) {_VALUE}", _fact(LIKES)),
    _rule(rf"{_I} (?:{_ADVERB} )*(?:don't|do not|no longer|never) (?:{_ADVERB} )*(?:like|liked|love|enjoy|enjoyed) {_VALUE} (?:any ?more|any longer)", _fact(LIKES, Stance.NOT)),
    _rule(rf"{_I} no longer (?:{_ADVERB} )*(?:like|love|enjoy) {_VALUE}", _fact(LIKES, Stance.NOT)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*(?:gone off|stopped (?:liking|loving|enjoying)|lost interest in|given up|gave up|had enough of) {_VALUE}", _fact(LIKES, Stance.NOT)),
    _rule(rf"{_AM} (?:{_ADVERB} |so )*(?:tired|sick|bored) (?:of|with) {_VALUE}", _fact(LIKES, Stance.NOT)),
    _rule(rf"{_I} (?:{_ADVERB} )*used to (?:like|love|enjoy) {_VALUE}", _fact(LIKES, Stance.WAS)),
    _rule(rf"{_I} (?:{_ADVERB} )*(?:hate|dislike|detest|loathe|can't stand|cannot stand|can't bear) {_VALUE}", _fact(DISLIKES)),
    _rule(rf"{_I} (?:{_ADVERB} )*(?:don't|do not|never|didn't ever) (?:{_ADVERB} )*(?:like|liked|love|enjoy|enjoyed) {_VALUE}", _fact(DISLIKES)),
    _rule(rf"{_AM} not (?:{_ADVERB} |very )*(?:into|fond of|keen on|an? (?:\w+ )?fan of) {_VALUE}", _fact(DISLIKES)),
    _rule(rf"{_AM} (?:{_ADVERB} )*allergic to {_VALUE}", _fact(ALLERGY)),
    _rule(rf"{_HAVE} (?:{_ADVERB} )*been allergic to {_VALUE}", _fact(ALLERGY)),
    _rule(rf"{_HAVE} (?:{_ADVERB} |got )*an allergy to {_VALUE}", _fact(ALLERGY)),
    _rule(rf"{_HAVE} (?:{_ADVERB} |got )*an? {_VALUE} allergy", _fact(ALLERGY)),
    _rule(rf"{_AM} (?:not|no longer) allergic to {_VALUE}", _fact(ALLERGY, Stance.NOT)),
    _rule(rf"my favou?rite (?P<of>\w+(?: \w+)?) is {_VALUE}", _favourite),
    _rule(rf"the (?P<of>\w+) {_I} like (?:best|most) is {_VALUE}", _favourite),
    _rule(rf"{_VALUE} is my favou?rite (?P<of>\w+(?: \w+)?)", _favourite),
    # Whom they have.
    _rule(rf"my {_REL} is (?:called|named) {_NAME}", _relation),
    _rule(rf"my {_REL}'s name is {_NAME}", _relation),
    _rule(rf"(?:this|that|she|he|it|here) is my {_REL},? {_NAME}", _relation),
    _rule(rf"(?:meet )?my {_REL},? {_NAME}(?: (?:is|was|has|says|said|lives|works|comes|came|likes|loves|sends|and|will|always|just)\b.*)?", _relation),
    _rule(rf"{_NAME} is my {_REL}", _relation),
    _rule(rf"{_HAVE} (?:got )?(?:an?|one) (?:\w+ )?{_REL} (?:called|named|whose name is) {_NAME}", _relation),
)  # fmt: skip
_CONTEXT: Final[tuple[_Rule, ...]] = (_rule(rf"{_AM} (?:{_ADVERB} )*(?:at|with) {_VALUE}", _fact(WORK)),)
_WHOSE_NAME: Final = re.compile(
    rf"{_HAVE} (?:got )?an? (?:\w+ )?{_REL}[,;]? (?:and )?(?:his|her|its) name(?: is|'s) {_NAME}", re.IGNORECASE
)


def _clause(part: str) -> list[Said]:
    # "I like jazz and hate spinach": what comes after goes on with the same subject; "I like fish and chips" does not.
    first, found, second = part.partition(" and ")
    opening = re.match(rf"{_I}\b", first, re.IGNORECASE)
    if found and opening is not None:
        more = _matches(f"{opening[0]} {second}", _RULES)
        if more:
            return [*_matches(first, _RULES), *more]
    return _matches(part, _RULES)


def _matches(part: str, rules: tuple[_Rule, ...]) -> list[Said]:
    for pattern, make in _fitting(part, rules):
        found = make(pattern)
        if found:
            return found
    return []


def _fitting(part: str, rules: tuple[_Rule, ...]) -> Iterator[tuple[re.Match[str], Make]]:
    for pattern, make in rules:
        match = pattern.match(part)
        if match is not None:
            yield match, make
