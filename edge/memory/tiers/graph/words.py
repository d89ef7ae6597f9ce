"""The words by which texts say how people and things are to each other: verbs in families, and what is no thing. Pure.

General lists of everyday English, made by hand as the other lists of the product. A verb stands in its base form; its
regular forms are made, its irregular ones are listed.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from edge.types.vocabulary import labels_for


class Relation(StrEnum):
    """How a subject is to an object, in the words that say so after "… is often seen to"."""

    WITH = "with"  # person and person, whichever comes first
    TALKS = "talks with"  # likewise
    HOLDS = "has"  # in the hands, carries, takes
    USES = "uses"
    PUTS = "puts"
    EATS = "eats or drinks"
    GIVES = "gives"
    GIVES_TO = "gives something to"
    BUYS = "buys or chooses"
    LOOKS = "looks at"
    SAYS = "speaks of"
    ASKS = "asks about"
    AT = "is at"  # a table, a seat
    NEAR = "is near"
    ON = "is on"  # thing and thing
    IN = "is in"  # a kind of place
    SEEN = "is seen by"  # a camera


SYMMETRIC: Final = frozenset({Relation.WITH, Relation.TALKS})
HANDLING: Final = frozenset(
    {Relation.HOLDS, Relation.USES, Relation.PUTS, Relation.EATS, Relation.GIVES, Relation.BUYS}
)
TALKING: Final = frozenset({Relation.TALKS, Relation.SAYS, Relation.ASKS})
COMPANY: Final = frozenset({Relation.WITH, Relation.TALKS, Relation.GIVES_TO})
PLACED: Final = frozenset({Relation.AT, Relation.NEAR, Relation.ON, Relation.IN, Relation.SEEN})

_FAMILIES: Final = {
    Relation.HOLDS: """
        hold carry grab take pick lift grip clutch grasp bring fetch catch receive wear pull drag collect gather own keep
        possess have""",
    Relation.PUTS: """
        put place lay set drop hang leave throw toss insert store pack stack pour spread stick stuff dump hide lower""",
    Relation.USES: """
        use open close shut press push turn switch tap swipe type click write draw paint cut chop slice peel stir cook fry
        boil bake roast wash clean wipe rinse dry sweep mop fold iron repair fix plug unplug charge play read scan ride drive
        operate adjust move shake wrap unwrap tear tie untie sew screw assemble build connect fill empty light unlock lock
        brush scrub scoop mix season squeeze knead grill steam water feed decorate arrange tidy install remove unscrew unpack
        tighten loosen measure weigh print load unload start stop handle""",
    Relation.EATS: "eat drink taste bite chew sip swallow lick nibble",
    Relation.GIVES: "give hand pass offer lend show send serve deliver",
    Relation.BUYS: "buy order purchase pay sell choose select order",
    Relation.LOOKS: "look watch see glance stare examine check inspect observe view face",
    Relation.TALKS: "talk chat speak discuss call greet ask tell answer reply thank say mention explain whisper shout",
    Relation.IN: """
        enter go walk come arrive run return sit stand stay move step rush head rest lie sleep dance sing work wait gather
        climb jog stroll live""",
    Relation.WITH: "help follow meet visit hug kiss join accompany assist",
}
_IRREGULAR: Final = {
    "hold": "held", "take": "took taken", "bring": "brought", "catch": "caught", "wear": "wore worn", "keep": "kept",
    "have": "has had having", "lay": "laid", "put": "putting", "set": "setting", "hang": "hung", "leave": "left",
    "throw": "threw thrown", "spread": "spreading", "stick": "stuck", "hide": "hid hidden", "shut": "shutting",
    "write": "wrote written writing", "draw": "drew drawn", "cut": "cutting", "read": "reading", "ride": "rode ridden riding",
    "drive": "drove driven driving", "shake": "shook shaken shaking", "tear": "tore torn", "tie": "tying", "untie": "untying",
    "sew": "sewn", "build": "built", "light": "lit", "feed": "fed", "sweep": "swept", "eat": "ate eaten",
    "drink": "drank drunk", "bite": "bit bitten", "give": "gave given", "lend": "lent", "show": "shown", "send": "sent",
    "buy": "bought", "pay": "paid", "sell": "sold", "choose": "chose chosen", "see": "saw seen", "speak": "spoke spoken",
    "tell": "told", "say": "said", "go": "goes went gone", "come": "came", "run": "ran running", "sit": "sat sitting",
    "stand": "stood", "lie": "lay lain lying", "sleep": "slept", "sing": "sang sung", "meet": "met",
}  # fmt: skip
_SAME_PAST: Final = frozenset({"put", "set", "cut", "shut", "spread", "read", "come", "run"})  # no form in -ed
_DOUBLED: Final = frozenset(
    "grab grip drag drop stop tap chop plug unplug wrap unwrap mop scan sip chat hug step jog scrub".split()  # noqa: SIM905
)


def _forms(base: str) -> set[str]:
    irregular = set(_IRREGULAR.get(base, "").split())
    third = re.sub(r"y$", "ie", base) if re.search(r"[^aeiou]y$", base) else base
    forms = {base, *irregular, f"{third}es" if re.search(r"(s|x|z|ch|sh|o)$", third) else f"{third}s"}
    stem = base[:-1] if re.search(r"[^eoy]e$", base) else base + base[-1] if base in _DOUBLED else base
    if not any(form.endswith("ing") for form in irregular):
        forms.add(f"{stem}ing")
    if base not in _SAME_PAST and not {one for one in irregular if not one.endswith(("ing", "s"))}:
        past = re.sub(r"y$", "i", base) if re.search(r"[^aeiou]y$", base) else stem
        forms.add(f"{past}ed")
    return forms


def _verbs() -> dict[str, Relation]:
    found: dict[str, Relation] = {}
    for relation, words in _FAMILIES.items():
        for base in words.split():
            for form in _forms(base):
                found.setdefault(form, relation)
    return found | {"lay": Relation.PUTS, "left": Relation.PUTS, "lying": Relation.IN, "plays": Relation.USES}


VERBS: Final = _verbs()
BASES: Final = frozenset(base for words in _FAMILIES.values() for base in words.split())
ASKING: Final = frozenset(_forms("ask"))
SELF_HELP: Final = frozenset({"have", "has", "had", "having"})  # also helps other verbs

AUXILIARIES: Final = frozenset(
    "am is are was were be been being do does did can could will would shall should may might must 's 're 'm 've 'd 'll".split()  # noqa: SIM905
)
DETERMINERS: Final = frozenset(
    """
    a an the my your his her its our their this that these those some any another other each every both all several many few
    more no one two three four five six seven eight nine ten own
    """.split()  # noqa: SIM905
)
PREPOSITIONS: Final = {
    "at": Relation.AT,
    "on": Relation.ON,
    "onto": Relation.ON,
    "in": Relation.IN,
    "into": Relation.IN,
    "inside": Relation.IN,
    "to": Relation.IN,
    "toward": Relation.IN,
    "towards": Relation.IN,
    "from": Relation.IN,
    "near": Relation.NEAR,
    "beside": Relation.NEAR,
    "by": Relation.NEAR,
    "behind": Relation.NEAR,
    "around": Relation.NEAR,
    "with": Relation.WITH,
    "about": Relation.SAYS,
    "regarding": Relation.SAYS,
}
PARTICLES: Final = frozenset("up down off out away back over along together around aside again".split())  # noqa: SIM905
CONJUNCTIONS: Final = frozenset(
    [
        "and",
        "or",
        "but",
        "then",
        "while",
        "as",
        "when",
        "because",
        "so",
        "after",
        "before",
        "until",
        "where",
        "who",
        "which",
        "that",
    ]
)
# What a phrase that names a thing ends before, beside prepositions and conjunctions.
STOPS: Final = (
    frozenset(
        """
        i we you he she it they me us him them myself himself herself itself themselves yourself there here not n't of for than if
        how what why whom whose very too also just still now already only even again almost nearly slightly quickly slowly once
        twice together apart everyone everybody someone somebody anyone anybody everything something anything nothing nobody else
        today yesterday tomorrow tonight later soon okay ok yes yeah oh um uh hey well right please during through across against
        along past above below under underneath over between among without within outside beyond off up down out away back next
        forgotten forward forwards backward backwards upward upwards downward downwards ahead straight
        whether yet like both either neither though although unless since
        """.split()  # noqa: SIM905
    )
    | AUXILIARIES
    | CONJUNCTIONS
    | frozenset(PREPOSITIONS)
    | frozenset(PARTICLES)
)
# Nouns that name no thing which could be met again: directions, parts of the body, of things and of time, and what stands
# for anything.
NO_THING: Final = frozenset(
    """
    side left right front rear top bottom middle end edge corner way direction place spot position area part piece bit lot pair
    number kind sort type thing stuff item object one step turn moment second minute hour time while day week month year morning
    afternoon evening night hand finger arm leg foot head face eye ear nose mouth hair neck shoulder body back knee chest elbow
    waist palm thumb lip tooth view camera distance ground floor surface inside outside rest half word sentence question answer
    voice sound noise look glance nod smile laugh conversation topic action movement motion people person man woman boy girl child
    friend guy everyone group team stranger human somebody reason idea fact case point matter problem plan work job process
    attention care fun help use others other first last next same different new old big small good bad great nice little few much
    sure ready able available free busy close near far high low long short fast slow hard easy early late open
    """.split()  # noqa: SIM905
)
PARTITIVES: Final = frozenset("piece pair bit bunch pile stack handful slice kind sort lot couple".split())  # noqa: SIM905
# In speech: what asks.
QUESTION_WORDS: Final = frozenset(
    "who whom whose what which where when why how is are do does did can could will would shall should has have".split()  # noqa: SIM905
)

_PLURAL_ONLY: Final = frozenset(
    """
    clothes glasses sunglasses pants trousers jeans shorts pyjamas tights headphones earphones groceries goods scissors tweezers
    pliers binoculars stairs news species series lens bus gas canvas atlas
    """.split()  # noqa: SIM905
)
_IRREGULAR_PLURALS: Final = {
    "feet": "foot", "teeth": "tooth", "mice": "mouse", "geese": "goose", "children": "child", "men": "man", "women": "woman",
    "shelves": "shelf", "knives": "knife", "leaves": "leaf", "loaves": "loaf", "halves": "half", "wolves": "wolf",
    "scarves": "scarf", "calves": "calf", "lives": "life", "movies": "movie", "cookies": "cookie", "selfies": "selfie",
    "hoodies": "hoodie", "pies": "pie", "ties": "tie", "shoes": "shoe", "caches": "cache", "axes": "axe", "toes": "toe",
    "aches": "ache", "toothaches": "toothache", "headaches": "headache",
}  # fmt: skip


@lru_cache(maxsize=65536)
def thing(phrase: str) -> str | None:
    """What the things are called that a phrase names, the same for one and several of them.

    Args:
        phrase: one word or several, without an article; the last one says what it is.

    Returns:
        The class of a detector where there is one for it ("cell phone" for "phones"), else the last word in the singular,
        in lower case; None: it names no thing.
    """
    words = [word.lower() for word in phrase.split() if word]
    for size in (3, 2, 1):
        if len(words) >= size:
            labels = labels_for(" ".join(words[-size:]))
            if labels == ("person",):
                return None
            if len(labels) == 1:
                return labels[0]
    if not words:
        return None
    word = singular(words[-1])
    if word in NO_THING and len(words) > 1:  # "a puzzle piece"
        return thing(" ".join(words[:-1]))
    if len(word) < 3 or not word.replace("-", "").isalpha() or word in NO_THING or word in STOPS or word in DETERMINERS:
        return None
    return None if word.endswith("ly") and len(word) > 4 else word


@lru_cache(maxsize=65536)
def singular(word: str) -> str:
    """A noun without the ending of its plural; what has no singular stays."""
    if word in _PLURAL_ONLY:
        return word
    if word in _IRREGULAR_PLURALS:
        return _IRREGULAR_PLURALS[word]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and re.search(r"(?:s|x|z|ch|sh)es$", word):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
