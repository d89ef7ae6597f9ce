"""Lives made up by code: what happens in them as a memory would tell it, and what somebody may ask about it.

A life is a few dozen events of a few people with their things in a few places. Each event has statements (captions in the
first and third person, lines that were said) and questions of many forms: who, what, where, when, how, why, yes or no, “tell
me”, “do you remember”, with a clause or a sentence before it, about what is usual, what will be, what things are like.
"""

# ruff: noqa: E501 - forms of sentences are read one beside the other

from __future__ import annotations

import random
from dataclasses import dataclass

from tools.head.lexicon import Lexicon, Verb, is_plural, one_of


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happens."""

    way: str  # placing, getting, using, eating, doing, about, moving, trait
    who: str  # as the subject of a sentence: "I", "Anna", "my wife"
    verb: Verb
    thing: str  # with its article or possessive; "" for moving
    bare: str  # the thing without them
    place: str  # "in the kitchen"
    spot: str  # where it is put
    time: str
    topic: str
    companion: str
    purpose: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and what answers it."""

    text: str
    answer: Event
    answered: bool  # the event answers it; else it only sounds like such a life
    deictic: bool = False  # it points at what is on camera now


@dataclass(frozen=True, slots=True)
class Life:
    """A few dozen events."""

    events: tuple[Event, ...]
    told: tuple[str, ...]  # one statement an event


def life(random_: random.Random, lexicon: Lexicon, size: int = 24) -> Life:
    """Make up a life."""
    people = [
        "I",
        "I",
        "we",
        *random_.sample(lexicon.names, min(5, len(lexicon.names))),
        *random_.sample(lexicon.kin, 2),
    ]
    things = random_.sample(lexicon.things, min(8, len(lexicon.things)))
    food = random_.sample(lexicon.food, min(5, len(lexicon.food)))
    places = random_.sample(lexicon.places, min(4, len(lexicon.places)))
    events = tuple(_event(random_, lexicon, people, things, food, places) for _ in range(size))
    return Life(events, tuple(statement(random_, event) for event in events))


def _event(
    random_: random.Random, lexicon: Lexicon, people: list[str], things: list[str], food: list[str], places: list[str]
) -> Event:
    way = random_.choices(("placing", "getting", "using", "eating", "doing", "about", "moving"), (4, 3, 4, 4, 2, 4, 2))[
        0
    ]
    verbs = {
        "placing": lexicon.placing, "getting": lexicon.getting, "using": lexicon.using, "eating": lexicon.eating,
        "doing": lexicon.doing, "about": lexicon.about, "moving": lexicon.moving,
    }[way]  # fmt: skip
    who = one_of(random_, people)
    bare = one_of(random_, food if way == "eating" else things)
    if way == "doing":
        bare = one_of(random_, ("a game", "a film", "the piano", "a song", "a letter", "the news", "a poem", "a book"))
    elif random_.random() < 0.2 and way != "eating":
        bare = f"{one_of(random_, lexicon.colours)} {bare}"
    thing = bare if way == "doing" else f"{_article(random_, who, way)}{bare}"
    others = [one for one in people if one not in {"I", "we", who}]
    return Event(
        way=way,
        who=who,
        verb=one_of(random_, verbs),
        thing="" if way in {"moving", "about"} else thing,
        bare="" if way in {"moving", "about"} else bare,
        place=_place(random_, one_of(random_, places)),
        spot=one_of(random_, lexicon.spots),
        time=one_of(random_, lexicon.times),
        topic=one_of(random_, lexicon.topics),
        companion=one_of(random_, others),
        purpose=one_of(random_, lexicon.purposes),
    )


def _article(random_: random.Random, who: str, way: str) -> str:
    if way == "eating":
        return random_.choice(("", "some ", "the "))
    mine = {"I": "my ", "we": "our "}.get(who, random_.choice(("his ", "her ")))
    return random_.choice(("the ", "the ", mine, "a " if way == "getting" else "the "))


def _place(random_: random.Random, place: str) -> str:
    return random_.choice(("in the ", "in the ", "at the ")) + place


# -- as a memory tells it -----------------------------------------------------------------------------------------------


def statement(random_: random.Random, event: Event) -> str:
    """The event as a caption or as something said."""
    style = random_.random()
    who = event.who
    verb = event.verb
    if style < 0.4:
        first = f"{_subject(random_, who)} {verb.past}"
    elif style < 0.7:
        first = f"{_subject(random_, who)} {_be(who)} {verb.ing}"
    else:
        present = verb.base if who in {"I", "we"} else _third(verb.base)
        first = f"{_subject(random_, who)} {present}"
    parts = [first, event.thing]
    if event.way == "about":
        parts.append(event.topic)
        if random_.random() < 0.5:
            parts.append(f"with {event.companion}")
    if event.way == "placing":
        parts.append(event.spot)
    if random_.random() < 0.5:
        parts.append(event.place)
    if event.way in {"getting", "using", "eating"} and random_.random() < 0.3:
        parts.append(random_.choice((event.purpose, f"with {event.companion}")))
    text = " ".join(part for part in parts if part)
    if style > 0.92:
        return f"{event.companion}: {text[:1].upper()}{text[1:]}."
    return f"{text[:1].upper()}{text[1:]}."


def shown(random_: random.Random, event: Event) -> str:
    """What the camera sees when the event's thing (or person) is before it."""
    what = event.bare.removeprefix("a ").removeprefix("the ") if event.bare else event.companion
    are = "are" if event.bare and is_plural(event.bare) else "is"
    lead = f"The {what}" if event.bare else f"{what[:1].upper()}{what[1:]}"
    return random_.choice(
        (f"{lead} {are} in view.", f"{lead} {are} on a table.", f"{lead} {are} in the middle of the view, near.")
    )


def _subject(random_: random.Random, who: str) -> str:
    return who if random_.random() < 0.9 else f"{who}, {random_.choice(('smiling', 'standing up', 'in a hurry'))},"


def _be(who: str) -> str:
    return {"I": "am", "we": "are"}.get(who, "are" if is_plural(who) and who[:1].islower() else "is")


def _third(base: str) -> str:
    head, *rest = base.split(" ")
    if head.endswith(("s", "sh", "ch", "x", "o")):
        head += "es"
    elif head.endswith("y") and head[-2] not in "aeiou":
        head = head[:-1] + "ies"
    else:
        head += "s"
    return " ".join([head, *rest])


# -- as people ask --------------------------------------------------------------------------------------------------------


def ask(random_: random.Random, lexicon: Lexicon, event: Event) -> Asked:
    """A question that the event answers."""
    if event.thing and random_.random() < 0.06:
        return Asked(_deictic(random_, event), event, answered=True, deictic=True)
    core, answered = _core(random_, lexicon, event)
    core = _adjuncts(random_, lexicon, event, core)
    return Asked(_framed(random_, lexicon, event, core), event, answered=answered)


def _deictic(random_: random.Random, event: Event) -> str:
    did = _did(event.who)
    return random_.choice((
        f"when {did} last {event.verb.base} this", f"where {did} {event.verb.base} this", f"who {event.verb.past} this",
        "whose is this", "where did I get this", "have I seen this before", "when did I last see this",
        "who is this", "have I met this person before", "what is this person's name", "when did I last meet him",
        "where do I know her from", "what did she tell me last time", "what happened to this",
    )) + "?"  # fmt: skip


def _did(who: str) -> str:
    return f"did {who}"


def _was(who: str) -> str:
    return {"I": "was I", "we": "were we"}.get(
        who, f"were {who}" if is_plural(who) and who[:1].islower() else f"was {who}"
    )


def _has(who: str) -> str:
    plural = who in {"I", "we"} or (is_plural(who) and who[:1].islower())
    return f"{'have' if plural else 'has'} {who}"


def _does(who: str) -> str:
    plural = who in {"I", "we"} or (is_plural(who) and who[:1].islower())
    return f"{'do' if plural else 'does'} {who}"


def _core(random_: random.Random, lexicon: Lexicon, event: Event) -> tuple[str, bool]:
    """A question without its frame, its sign or a capital, and whether the event answers it."""
    if random_.random() < 0.72:
        forms = _of_the_event(random_, event)
        if event.thing:
            forms += _of_the_thing(random_, event)
        elif event.way == "about":
            forms += _of_the_topic(random_, event) * 3
        return one_of(random_, forms), True
    return one_of(random_, _beside_it(random_, lexicon, event)), False


def _of_the_event(random_: random.Random, event: Event) -> list[str]:
    who, verb, choice = event.who, event.verb, random_.choice
    did, was, has, does = _did(who), _was(who), _has(who), _does(who)
    tail = event.spot if event.way == "placing" else event.place
    obj = f" {event.topic}" if event.way == "about" else f" {event.thing}" if event.thing else ""
    return [
        f"when {did} {verb.base}{obj}", f"when was the last time {who} {verb.past}{obj}", f"what time {did} {verb.base}{obj}",
        f"who {verb.past}{obj} {tail}", f"who was {verb.ing}{obj}", f"who {verb.past}{obj} first", f"who {verb.past}{obj}",
        f"who else {verb.past}{obj}", f"which of us {verb.past}{obj}", f"why {did} {verb.base}{obj}",
        f"{did} {verb.base}{obj} {tail}", f"{has} {verb.participle}{obj} {choice(('yet', 'already', 'before', 'today'))}",
        f"{was} {verb.ing}{obj} {event.time}", f"how often {did} {verb.base}{obj}", f"how many times {has} {verb.participle}{obj}",
        f"how long ago {did} {verb.base}{obj}", f"how long {was} {verb.ing}{obj}", f"what {was} doing {tail}",
        f"what {did} do {choice(('before', 'after', 'while'))} {choice(('I', 'we', event.companion))} {verb.past}{obj}",
        f"who {choice(('usually', 'always', 'often', 'normally'))} {_third(verb.base)}{obj}", f"where {did} {verb.base}{obj}",
        f"how {did} {verb.base}{obj}", f"for whom {did} {verb.base}{obj}", f"who helped {_me(who)} {verb.base}{obj}",
        f"what made {_me(who)} {verb.base}{obj}", f"who was the first to {verb.base}{obj}", f"with whom {did} {verb.base}{obj}",
        f"did anyone {verb.base}{obj} {event.time}", f"{does} {choice(('ever', 'usually', 'often'))} {verb.base}{obj}",
        f"what reason did {event.companion} give for {verb.ing}{obj}", f"whose idea was it to {verb.base}{obj}",
        f"who {choice(('suggested', 'proposed', 'agreed to', 'refused to', 'forgot to', 'wanted to', 'offered to'))} {verb.base}{obj}",
        f"what was {choice(('needed', 'used', 'missing'))} to {verb.base}{obj}", f"which tool {did} use to {verb.base}{obj}",
    ]  # fmt: skip


def _of_the_thing(random_: random.Random, event: Event) -> list[str]:
    who, verb, thing, choice = event.who, event.verb, event.thing, random_.choice
    did, has = _did(who), _has(who)
    tail = event.spot if event.way == "placing" else event.place
    are, were = ("are", "were") if is_plural(event.bare) else ("is", "was")
    bare = event.bare.removeprefix("a ").removeprefix("the ")
    own = choice(("the ", "my ", "our ", f"{event.companion}'s "))
    return [
        f"where {did} {verb.base} {thing}", f"where {are} {own}{bare}", f"where {were} {own}{bare} {event.time}",
        f"where did I last see {own}{bare}", f"where {has} {choice(('put', 'left', 'seen', 'kept'))} {own}{bare}",
        f"what {did} {verb.base} {tail}", f"what {did} {verb.base} {event.time}", f"what else {did} {verb.base}",
        f"which {bare} {did} {verb.base}", f"what kind of {bare} {did} {verb.base}", f"what brand of {bare} {did} {verb.base}",
        f"what colour {are} {own}{bare}", f"how many {_many(bare)} {choice(('did I see', 'are there', 'were there'))} {tail}",
        f"what {did} use to {verb.base} {thing}", f"what {did} {verb.base} {thing} {choice(('with', 'for', 'on', 'in'))}",
        f"who {did} {verb.base} {thing} {choice(('with', 'for', 'to'))}", f"who has {own}{bare}", f"whose {bare} {are} {tail}",
        f"who gave {choice(('me', 'us', event.companion))} {own}{bare}", f"how much did {own}{bare} cost",
        f"{are} {own}{bare} {tail}", f"{were} there {choice(('any', 'some', 'no'))} {_many(bare)} {tail}",
        f"in which {choice(('room', 'drawer', 'shop', 'bag', 'box'))} {are} {own}{bare}",
        f"what is {choice(('in', 'next to', 'under', 'on'))} {own}{bare}",
        f"did I {choice(('lock', 'forget', 'bring', 'turn off', 'lose', verb.base))} {own}{bare}",
        f"when {were} {own}{bare} last {choice(('seen', 'used', 'moved', verb.participle))}",
        f"what was the first thing {who} {verb.past}", f"how many {_many(bare)} {has} {verb.participle}",
        f"which {choice(('day', 'shop', 'person', 'room'))} did {own}{bare} come from",
        f"what did {event.companion} do with {own}{bare}", f"how much {bare} {choice(('is', 'are'))} left",
    ]  # fmt: skip


def _of_the_topic(random_: random.Random, event: Event) -> list[str]:
    who, choice = event.who, random_.choice
    did = _did(who)
    return [
        f"what {did} say about {event.topic}", f"what {did} tell {event.companion} about {event.topic}",
        f"who {choice(('mentioned', 'brought up', 'talked about', 'asked about'))} {event.topic}",
        f"what was the conversation about {event.topic} about", f"when did we {choice(('talk about', 'discuss', 'agree on'))} {event.topic}",
        f"what {choice(('was decided', 'was said', 'did we decide', 'is the plan', 'did I hear'))} about {event.topic}",
        f"where were we when {event.companion} talked about {event.topic}", f"who did {choice(('I', 'we'))} discuss {event.topic} with",
    ]  # fmt: skip


def _beside_it(random_: random.Random, lexicon: Lexicon, event: Event) -> list[str]:
    """Of people, places, habits and plans: nothing that this one event answers."""
    who, choice = event.who, random_.choice
    did, was, does = _did(who), _was(who), _does(who)
    other = who if who not in {"I", "we"} else event.companion
    verb = one_of(random_, (*lexicon.using, *lexicon.eating, *lexicon.doing))
    what = one_of(random_, (*lexicon.things, *lexicon.food))
    return [
        f"what {was} doing {event.time}", f"what happened {event.place} {event.time}", f"who was {event.place} {event.time}",
        f"who was with {_me(who)} {event.time}", f"where {was} {event.time}", f"what happened {event.time}",
        f"who {did} {choice(('meet', 'see', 'talk to', 'help', 'call', 'visit'))} {event.time}",
        f"what {does} {choice(('usually', 'often', 'normally', 'like to'))} do {event.place}",
        f"what {was} {event.verb.ing} when {event.companion} {choice(('arrived', 'left', 'called', 'came in'))}",
        f"what was the last thing {who} did {event.place}", f"who is {other}", f"how does {event.companion} feel about {event.topic}",
        f"what is {other} {choice(('like', 'good at', 'afraid of', 'interested in', 'responsible for', 'known for'))}",
        f"is {event.companion} {one_of(random_, lexicon.adjectives)}", f"which of {other} and {event.companion} {choice(('came', 'spoke', 'left', 'paid'))} first",
        f"what does {event.companion} {choice(('like', 'dislike', 'want', 'need', 'prefer'))} {choice(('most', 'for breakfast', 'to do', 'to eat'))}",
        f"what will {event.companion} do {choice(('tomorrow', 'next', 'next week', event.purpose))}", f"what did {event.companion} say {event.time}",
        f"what {choice(('are we going to', 'do we plan to', 'do we still have to', 'did we forget to'))} {choice(('do', 'buy', 'bring', verb.base))} {event.purpose}",
        f"what does {event.companion} think of {event.topic}", f"what did {other} {choice(('promise', 'suggest', 'ask for', 'complain about', 'laugh about'))} {event.time}",
        f"how many people {choice(('were', 'did I meet', 'sat', 'spoke'))} {event.place}", f"when did I last {choice(('see', 'meet', 'hear', 'talk to'))} {event.companion}",
        f"what is the relationship between {other} and {event.companion}", f"how do I know {event.companion}", f"who lives with {event.companion}",
        f"what {choice(('song', 'film', 'game', 'book', 'dish', 'language', 'sport'))} does {event.companion} like {choice(('', 'best', 'to talk about'))}".strip(),
        f"who is {choice(('responsible for', 'in charge of', 'going to bring', 'allergic to', 'the owner of'))} the {what}",
        f"what should be {verb.participle} {event.purpose}", f"who {choice(('paid for', 'likes', 'needs', 'wants', 'is using'))} the {what}",
        f"what is {event.companion}'s {choice(('favourite food', 'job', 'name', 'hobby', 'plan', 'nickname', 'phone number', 'opinion on ' + event.topic))}",
        f"what was the {choice(('reason', 'purpose', 'result', 'topic', 'plan', 'problem'))} {choice(('of', 'behind', 'with'))} {choice(('the ' + what, event.topic))}",
        f"in what order did we {verb.base} things", f"what was the weather like {event.time}", f"how did {event.companion} get {choice(('home', 'here', 'to the ' + one_of(random_, lexicon.places)))}",
    ]  # fmt: skip


def _many(bare: str) -> str:
    return bare if is_plural(bare) or " " in bare else f"{bare}s"


def _me(who: str) -> str:
    return {"I": "me", "we": "us"}.get(who, who)


def _adjuncts(random_: random.Random, lexicon: Lexicon, event: Event, core: str) -> str:
    if random_.random() < 0.3 and event.time not in core:
        core = f"{core} {random_.choice((event.time, event.place if event.place not in core else event.time))}"
    if random_.random() < 0.08:
        core = f"{core} {event.purpose}"
    if random_.random() < 0.08:
        other = one_of(random_, lexicon.moving)
        core = f"{core} {random_.choice(('before', 'after', 'when', 'while'))} {event.companion} {other.past}"
    return core


def _framed(random_: random.Random, lexicon: Lexicon, event: Event, core: str) -> str:
    style = random_.random()
    choice = random_.choice
    if style < 0.58:
        return f"{core[:1].upper()}{core[1:]}?"
    if style < 0.68:  # a clause before it
        other = one_of(random_, (*lexicon.using, *lexicon.eating))
        thing = one_of(random_, lexicon.things)
        clause = choice((
            f"when {choice(('I', 'we', event.companion))} {other.past} the {thing}", f"after {event.companion} {other.past} the {thing}",
            f"while we were {event.place}", f"before {event.companion} left", f"during the conversation about {event.topic}",
            f"besides {event.companion}", f"of all the {thing}", f"the last time we were {event.place}", event.time,
            f"apart from the {thing}", f"among the people {event.place}", f"in the {choice(('morning', 'evening', 'afternoon'))}",
        ))  # fmt: skip
        text = f"{clause}, {core}?"
        return f"{text[:1].upper()}{text[1:]}"
    if style < 0.76:  # a sentence before it
        thing = event.bare or "bag"
        before = choice((
            f"I am looking for the {thing}.", f"{event.companion} talked about {event.topic} {event.time}.", f"We were {event.place}.",
            f"I need the {thing} {event.purpose}.", f"{event.companion} wants to know this.", f"I forgot something about {event.topic}.",
            f"I think we were {event.place} {event.time}.", f"{event.companion} {event.verb.past} {event.thing or 'something'} {event.place}.",
        ))  # fmt: skip
        return f"{before} {core[:1].upper()}{core[1:]}?"
    if style < 0.92:
        return _indirect(random_, core)
    lead = choice(
        ("hey, ", "so ", "um, ", "okay, ", "and ", "excuse me, ", "please, ", "quick question: ", "well, ", "now, ")
    )
    text = f"{lead}{core}{choice(('?', '?', ', please?', ' again?'))}"
    return f"{text[:1].upper()}{text[1:]}"


_WH = ("when", "what", "who", "where", "why", "which", "how", "whose", "in which", "for whom")


def _indirect(random_: random.Random, core: str) -> str:
    """“Tell me where I put the keys”: with the word order of a statement where that is simple, else as it is."""
    choice = random_.choice
    words = core.split(" ")
    if not core.startswith(_WH):
        lead = choice(
            (
                "can you tell me if",
                "do you know if",
                "I wonder whether",
                "could you check whether",
                "tell me whether",
                "do you remember whether",
                "I would like to know if",
            )
        )
        return _ended(random_, f"{lead} {_straight(words)}", lead)
    lead = choice((
        "tell me", "can you tell me", "do you remember", "do you know", "I wonder", "I would like to know", "I want to know",
        "please tell me", "could you tell me", "I forgot", "I can't remember", "any idea", "remind me", "show me", "look up",
        "find out", "let me know", "can you remember", "I need to know", "help me remember", "can you check",
    ))  # fmt: skip
    return _ended(random_, f"{lead} {_straight(words)}", lead)


def _ended(random_: random.Random, text: str, lead: str) -> str:
    asks = lead.split(" ")[0] in {"can", "could", "do", "any"}
    text = f"{text[:1].upper()}{text[1:]}"
    return text + ("?" if asks else random_.choice((".", ".", "?")))


def _straight(words: list[str]) -> str:
    """Undo the inversion: “where did I put it” → “where I put it” (the verb stays in its base form after “did”: dropped or kept)."""
    for place, word in enumerate(words[:6]):
        if word == "did" and place + 1 < len(words):
            return " ".join([*words[:place], *words[place + 1 :]])
        if word in {"is", "are", "was", "were", "has", "have"} and place + 1 < len(words):
            size = 2 if words[place + 1].lower() in {"the", "my", "our", "his", "her", "person", "voice"} else 1
            subject = words[place + 1 : place + 1 + size]
            return " ".join([*words[:place], *subject, word, *words[place + 1 + size :]])
    return " ".join(words)
