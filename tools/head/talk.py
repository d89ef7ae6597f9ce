"""What is said at home and is no question to the memory: talk between people, orders, small talk, questions of knowledge.

Talk comes from three places: sentences made up from the same words as lives and questions (so that words alone do not give a
question away), real chat of pairs of people (PyPI chitchat-dataset, MIT) and a small corpus of dialogue (PyPI
chatterbot-corpus, BSD). Conversations are parted by a hash of their id: one in five is held out.
"""

# ruff: noqa: E501 - forms of sentences are read one beside the other

from __future__ import annotations

import hashlib
import json
import random
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import yaml
from wordfreq import zipf_frequency

from tools.head.lexicon import Lexicon, is_plural, one_of
from tools.head.lives import life

_QUESTION_OF_KNOWLEDGE = (
    "trivia.yml",
    "science.yml",
    "history.yml",
    "literature.yml",
    "sports.yml",
    "computers.yml",
    "money.yml",
)
_TALK = (
    "conversations.yml",
    "emotion.yml",
    "food.yml",
    "gossip.yml",
    "humor.yml",
    "movies.yml",
    "psychology.yml",
    "health.yml",
)


_PASTS = """
    went:go got:get had:have made:make took:take came:come saw:see ate:eat drank:drink bought:buy thought:think
    found:find gave:give told:tell left:leave felt:feel kept:keep heard:hear met:meet ran:run paid:pay sat:sit
    spoke:speak read:read lost:lose won:win wrote:write wore:wear woke:wake brought:bring broke:break built:build
    caught:catch chose:choose drove:drive fell:fall flew:fly forgot:forget grew:grow held:hold knew:know
    learned:learn lent:lend lived:live rode:ride sang:sing sent:send slept:sleep spent:spend stole:steal
    taught:teach threw:throw understood:understand
"""
_IRREGULAR = dict(pair.split(":") for pair in _PASTS.split())
_TOLD = re.compile(r"^(I|we|he|she|they|my \w+) (\w+) (.+?)[.!]?$", re.IGNORECASE)
_MINE = {"i": "I", "we": "we", "he": "he", "she": "she", "they": "they"}


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence of real talk about what somebody did."""

    who: str
    past: str
    base: str  # of the verb
    rest: str
    line: str


@dataclass(frozen=True, slots=True)
class Corpora:
    """Real text of one half: for training, or held out."""

    chat: tuple[tuple[str, ...], ...]  # conversations
    knowledge: tuple[str, ...]  # questions that no memory of a home answers
    packages: tuple[str, ...]  # descriptions of packages
    told: tuple[Told, ...]


def read_corpora(*, held_out: bool) -> Corpora:
    """Read what the packages of this environment ship.

    Raises:
        ModuleNotFoundError: `pip install '.[head]'` brings the corpora.
    """
    raw = json.loads((files("chitchat_dataset") / "dataset.json").read_text(encoding="utf-8"))
    chat = []
    for name in sorted(raw):
        if is_held_out(name) is held_out:
            lines = [_plain(one["text"]) for turn in raw[name]["messages"] for one in turn]
            lines = [line for line in lines if 1 <= len(line.split()) <= 40 and line.isascii()]
            if len(lines) >= 4:
                chat.append(tuple(lines))
    knowledge = []
    folder = files("chatterbot_corpus") / "data" / "english"
    for part in (*_TALK, *_QUESTION_OF_KNOWLEDGE):
        pairs = yaml.safe_load((folder / part).read_text(encoding="utf-8"))["conversations"]
        for place, pair in enumerate(pairs):
            lines = [_plain(str(line)) for line in (pair if isinstance(pair, list) else [pair])]
            if is_held_out(f"{part} {place}") is not held_out:
                continue
            if part in _TALK:
                chat.append(tuple(lines))
            elif lines[0].endswith("?"):
                knowledge.append(lines[0])
    told = tuple(one for lines in chat for line in lines if (one := _told(line)) is not None)
    return Corpora(tuple(chat), tuple(knowledge), package_descriptions(held_out=held_out), told)


def _told(line: str) -> Told | None:
    match = _TOLD.match(line)
    if match is None or not 4 <= len(line.split()) <= 16 or "?" in line:
        return None
    base = base_of(match[2].lower())
    return None if base is None else Told(_MINE.get(match[1].lower(), match[1]), match[2], base, match[3], line)


def base_of(past: str) -> str | None:
    """The base of a verb in the past tense; None: it is not known to be one."""
    if past in _IRREGULAR:
        return _IRREGULAR[past]
    if not past.endswith("ed") or len(past) < 5:
        return None
    stems = [past[:-2], past[:-1]]
    if past.endswith("ied"):
        stems = [past[:-3] + "y"]
    elif past[-3] == past[-4]:
        stems.append(past[:-3])
    best = max(stems, key=lambda stem: float(zipf_frequency(stem, "en")))
    return best if zipf_frequency(best, "en") > 3.3 else None


def is_held_out(name: str) -> bool:
    """One in five, for ever the same."""
    return hashlib.sha256(name.encode()).digest()[0] % 5 == 0


def package_descriptions(*, held_out: bool) -> tuple[str, ...]:
    """Paragraphs of the descriptions of the installed packages, in the order of their names."""
    site = Path(yaml.__file__).resolve().parent.parent
    found = []
    for path in sorted(site.glob("*.dist-info/METADATA")):
        name = path.parent.name.split("-")[0].lower()
        if is_held_out(name) is not held_out:
            continue
        head, _, body = path.read_text(encoding="utf-8", errors="replace").partition("\n\n")
        summary = re.search(r"^Summary: (.+)$", head, re.MULTILINE)
        texts = [summary[1]] if summary else []
        body = re.sub(r"```.*?```|<[^>]*>|\[!\[.*?\)\]\(.*?\)", " ", body, flags=re.DOTALL)
        texts += re.split(r"\n\s*\n", body)
        for text in texts:
            plain = _plain(re.sub(r"\[([^\]]*)\]\([^)]*\)|[*_`#>|=~]+|https?://\S+|:\w+:", r"\1", text))
            words = plain.split()
            if len(words) >= 6 and sum(word.isalpha() for word in words) > 0.6 * len(words):
                found.append(plain)
    return tuple(found)


def _plain(text: str) -> str:
    return " ".join(text.split())


# -- made up ------------------------------------------------------------------------------------------------------------


def household(random_: random.Random, lexicon: Lexicon) -> str:
    """One sentence of talk at home that asks nothing of a memory."""
    choice = random_.choice
    if random_.random() < 0.25:
        return one_of(random_, life(random_, lexicon, 1).told)  # a statement, in the very words of a memory
    verb = one_of(random_, (*lexicon.using, *lexicon.eating, *lexicon.getting, *lexicon.placing))
    food, thing = one_of(random_, lexicon.food), one_of(random_, lexicon.things)
    place, spot = one_of(random_, lexicon.places), one_of(random_, lexicon.spots)
    name, topic, time = one_of(random_, lexicon.names), one_of(random_, lexicon.topics), one_of(random_, lexicon.times)
    moving = one_of(random_, lexicon.moving)
    these = "these" if is_plural(thing) else "this"
    call = choice(("", "", f"{name}, ", "hey, ", "mum, ", "so ", "okay, ", "oh, "))
    tag = choice(("", "", ", right", f", {name}", ", or not", ", okay"))
    asks = [
        f"do you want {choice(('some', 'more', 'any'))} {food}", f"would you like {food}", f"can you {verb.base} the {thing}",
        f"could you pass me the {thing}", f"can I have the {food}", f"shall we {verb.base} the {thing}", f"should I {verb.base} it now",
        f"are you {one_of(random_, lexicon.adjectives)}", "are you ready", "are you coming", "are you okay", "how are you",
        f"how was your {choice(('day', 'trip', 'exam', 'night', 'weekend'))}", f"how was {topic}", "did you sleep well", "what do you think",
        f"what do you think about {topic}", "what are you doing", "where are you going", "who are you talking to", "why are you laughing",
        f"what would you like {choice(('to eat', 'to drink', 'for dinner', 'to do'))}", "what shall we cook", f"which {thing} do you like better",
        f"is this your {thing}", f"is that {these} {thing}", "isn't it lovely", "is it good", "does it taste good", "do you like it",
        f"have you {verb.participle} {choice(('it', 'your homework', 'enough'))}", f"did you {verb.base} {choice(('it', 'that', 'yours'))}",
        f"who wants {food}", "who is next", "who's there", "whose turn is it", "what's the matter", "what's up", "what's wrong", "what is this",
        "what does that mean", "what did you say", "what", "really", "right", "why not", "why", "how come", "how does this work",
        f"how do I {verb.base} this", f"where should I {verb.base} {choice(('it', 'this', 'them'))}", "when do we leave", "what time shall we go",
        f"will you {verb.base} the {thing} {choice(('later', 'tomorrow', 'please'))}", f"can somebody {verb.base} the {thing}", "can you hear me",
        f"do you have {choice(('a', 'your', 'any'))} {thing}", f"don't you {choice(('think so', 'like ' + food, 'want to come'))}",
        f"how much is the {food}", "how many do you want", f"is there any {food} left for me", "may I sit here", "can you wait a minute",
        f"aren't you going to {moving.base}", f"why don't we {moving.base}", f"why don't you {verb.base} the {thing}", f"have you ever tried {food}",
        f"do you know {name}", f"what about {topic}", f"how about some {food}", "is everything all right", "are we late", "can I help you",
        f"have you heard about {topic}", f"do you still {verb.base} the {thing}", "is this enough", "is that all", "like this",
    ]  # fmt: skip
    says = [
        f"{verb.base} the {thing} {spot}", f"pass me the {thing}", f"please {verb.base} it", f"let's {moving.base}", f"let's {verb.base} the {thing}",
        f"I want {food}", f"I like this {thing}", f"I don't know where the {thing} is", "I don't remember", "I know what you mean",
        "that's what I said", f"I told you about {topic} {time}", f"{name} said that {topic} was fine", f"don't {verb.base} it", "wait a moment",
        f"I think we should {verb.base} the {thing} {choice(('first', 'now', 'later'))}", f"this is for {name}", "thank you", "good morning", "see you later",
        f"I'll {verb.base} the {thing} when you are back", f"when I was at the {place}, I {verb.past} the {thing}", f"you know who {verb.past} it, don't you",
        f"the {thing} is {spot}", "that is how it works", f"what a nice {thing}", "how nice", "whatever you like", "who knows", f"what I mean is {topic}",
        f"{name} is the one who {verb.past} the {thing}", f"I remember when we {verb.past} the {thing}", f"tell {name} that the {food} is ready",
        f"tell me more about {topic}", f"show me your {thing}", f"give me the {thing}", "I wonder", f"I forgot the {thing}", f"look at this {thing}",
        f"we were talking about {topic}", f"that was {time}", f"it is {choice(('raining', 'late', 'cold', 'hot', 'too expensive', 'broken'))}",
        f"I have to {verb.base} the {thing} {choice(('today', 'tomorrow', 'first'))}", f"turn {choice(('left', 'right', 'it up', 'it off'))}", "hurry up", "come here",
        f"the {food} smells good", f"more {food}, please", f"{name} will {moving.base} at five", f"I'm going to {moving.base}", "no, that's not what I meant",
        "yeah", "okay", "no way", "uh huh", "ha ha", "one, two, three", f"happy birthday, {name}", "careful", "never mind", "all right then",
    ]  # fmt: skip
    if random_.random() < 0.5:
        text = f"{call}{choice(asks)}{tag}"
        return f"{text[:1].upper()}{text[1:]}{choice(('?', '?', '?', '?', '.'))}"
    text = f"{call}{choice(says)}"
    return f"{text[:1].upper()}{text[1:]}{choice(('.', '.', '.', '!'))}"


def to_the_assistant(random_: random.Random, lexicon: Lexicon) -> str:
    """Said to the device, and nothing that the memory must be searched for."""
    choice = random_.choice
    verb, thing = one_of(random_, lexicon.using), one_of(random_, lexicon.things)
    moving, name = one_of(random_, lexicon.moving), one_of(random_, lexicon.names)
    n = random_.randint(2, 90)
    text = choice((
        "hello", "hi there", "good morning", "good night", "thank you", "thanks", "what can you do", "who are you", "what are you",
        "are you listening", "how do you work", "stop", "stop recording", "be quiet", "pause", "go on", "repeat that", "say that again", "louder, please",
        f"remind me to {verb.base} the {thing} {choice(('tomorrow', 'at five', 'in ten minutes', 'when I am home'))}", f"tell me when {name} {_comes(moving.base)}",
        f"let me know if somebody {verb.past} the {thing}", f"remember that the {thing} is {one_of(random_, lexicon.spots)}", f"remember that I {verb.past} the {thing}",
        "forget the last ten minutes", f"forget {name}", f"this is {name}", f"call this person {name}", "set a timer for five minutes",
        f"what is {n} times {random_.randint(2, 30)}", f"what is {n} plus {random_.randint(2, 90)}", "tell me a joke", "sing a song", "turn on the light",
        "play some music", "what is the capital of France", "how tall is that mountain", "translate this into German", "how do you spell that",
        f"don't notify me between {random_.randint(8, 11)} and {random_.randint(1, 7)}", "never mind", "that is wrong", "good answer", "you are wrong",
    ))  # fmt: skip
    lead = choice(("", "", "", "hey, ", "okay, ", "please, "))
    return f"{lead}{text}{choice(('', '.', '?', '!'))}"


def _comes(base: str) -> str:
    head, *rest = base.split(" ")
    return " ".join([head + ("es" if head.endswith(("s", "sh", "ch", "x", "o")) else "s"), *rest])


def talk(random_: random.Random, lexicon: Lexicon, corpora: Corpora, words: int) -> str:
    """Talk of at least so many words: a piece of one conversation, or sentences made up."""
    if random_.random() < 0.5:
        lines = one_of(random_, corpora.chat)
        at = random_.randrange(len(lines))
        taken, size = [], 0
        while size < words:
            line = lines[at % len(lines)]
            taken.append(line if line.endswith((".", "?", "!")) or random_.random() < 0.3 else f"{line}.")
            size += len(line.split())
            at += 1
            if at - len(lines) > 3 * len(lines):
                break
        return " ".join(taken)
    taken, size = [], 0
    while size < words:
        line = household(random_, lexicon)
        taken.append(line)
        size += len(line.split())
    return " ".join(taken)
