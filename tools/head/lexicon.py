"""Words from which lives, questions and household talk are made up. Written by hand; everyday English.

Every fifth entry of each list (by its place) is held out: training never sees it, the figures of the model card come from it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

# base, past, participle, -ing; a regular verb gives its base alone.
_PLACING = (
    "put,put,put,putting leave,left,left,leaving lay,laid,laid,laying place hide,hid,hidden,hiding store stack "
    "hang,hung,hung,hanging drop,dropped,dropped,dropping pack unpack throw,threw,thrown,throwing "
    "stick,stuck,stuck,sticking arrange lose,lost,lost,losing set,set,set,setting park spill"
)
_GETTING = (
    "take,took,taken,taking find,found,found,finding buy,bought,bought,buying fetch pick,picked,picked,picking "
    "get,got,got,getting order receive bring,brought,brought,bringing borrow rent choose,chose,chosen,choosing "
    "grab,grabbed,grabbed,grabbing collect steal,stole,stolen,stealing"
)
_USING = (
    "wash clean wipe repair fix,fixed,fixed,fixing open close use charge measure paint move carry lift "
    "break,broke,broken,breaking assemble mend fold dust polish photograph film "
    "unplug,unplugged,unplugged,unplugging test inspect connect cover wrap,wrapped,wrapped,wrapping decorate "
    "tidy check iron label install sharpen dismantle switch,switched,switched,switching"
)
_EATING = (
    "eat,ate,eaten,eating drink,drank,drunk,drinking cook bake taste fry cut,cut,cut,cutting peel pour slice "
    "boil order make,made,made,making prepare heat stir,stirred,stirred,stirring chop,chopped,chopped,chopping "
    "share grill mix,mixed,mixed,mixing"
)
_DOING = (
    "play watch read,read,read,reading write,wrote,written,writing sing,sang,sung,singing "
    "draw,drew,drawn,drawing practise study finish start record listen learn translate "
    "copy,copied,copied,copying rehearse"
)
_ABOUT = (
    "talk about|talked about|talked about|talking about;discuss|discussed|discussed|discussing;"
    "mention|mentioned|mentioned|mentioning;complain about|complained about|complained about|complaining about;"
    "ask about|asked about|asked about|asking about;explain|explained|explained|explaining;"
    "joke about|joked about|joked about|joking about;argue about|argued about|argued about|arguing about;"
    "suggest|suggested|suggested|suggesting;plan|planned|planned|planning;promise|promised|promised|promising;"
    "decide on|decided on|decided on|deciding on"
)
_MOVING = (
    "arrive|arrived|arrived|arriving;leave|left|left|leaving;come in|came in|come in|coming in;"
    "go out|went out|gone out|going out;wake up|woke up|woken up|waking up;"
    "fall asleep|fell asleep|fallen asleep|falling asleep;sit down|sat down|sat down|sitting down;"
    "laugh|laughed|laughed|laughing;dance|danced|danced|dancing;come back|came back|come back|coming back;"
    "ring the bell|rang the bell|rung the bell|ringing the bell;take a nap|took a nap|taken a nap|taking a nap;"
    "go for a walk|went for a walk|gone for a walk|going for a walk;"
    "make a call|made a call|made a call|making a call;stand up|stood up|stood up|standing up;"
    "have lunch|had lunch|had lunch|having lunch"
)

THINGS = (
    "keys|phone|wallet|cup|mug|umbrella|scissors|screwdriver|hammer|charger|laptop|notebook|passport|glasses|"
    "backpack|jacket|hat|scarf|gloves|shoes|remote control|headphones|camera|tripod|suitcase|toolbox|"
    "tape measure|flashlight|batteries|medicine|pills|plaster|letter|parcel|box|blanket|pillow|towel|toothbrush|"
    "soap|bucket|broom|vacuum cleaner|iron|lamp|candle|vase|flowers|plant|chair|table|shelf|ladder|drill|"
    "paintbrush|bicycle|helmet|ball|guitar|piano|book|magazine|newspaper|photo album|map|ticket|credit card|"
    "receipt|coins|bag|bottle|thermos|plate|bowl|knife|fork|spoon|pan|pot|kettle|toaster|coffee machine|fridge|"
    "oven|washing machine|window|door|curtain|carpet|picture frame|mirror|clock|printer|tablet|speaker|"
    "microphone|power bank|cable|hard drive|whiteboard|marker pen|sticky notes|puzzle|doll|teddy bear|toy car|"
    "balloon|present|wrapping paper|tent|sleeping bag|fishing rod|watering can|shovel|lawn mower|hose|"
    "bird feeder|leash|litter box|fish tank|trolley|wheelchair|stroller|lunch box|apron|sewing machine|"
    "knitting needles|yarn|tape|glue|stapler|envelope|stamps"
)
FOOD = (
    "coffee|tea|milk|juice|water|beer|wine|bread|toast|butter|cheese|eggs|bacon|sausages|rice|noodles|pasta|"
    "pizza|soup|salad|potatoes|carrots|onions|tomatoes|mushrooms|chicken|fish|beef|hotpot|dumplings|pancakes|"
    "cake|cookies|chocolate|ice cream|yoghurt|apples|bananas|oranges|strawberries|grapes|melon|nuts|honey|jam|"
    "sandwiches|burgers|fries|curry|barbecue|porridge|cereal|lemonade|smoothies|popcorn|tofu|shrimp|lasagne|"
    "omelette|stew"
)
PLACES = (
    "kitchen|living room|bedroom|bathroom|hall|garage|garden|balcony|cellar|attic|office|meeting room|car|"
    "supermarket|bakery|cafe|restaurant|park|station|airport|school|library|gym|pharmacy|hospital|post office|"
    "market|workshop|museum|hotel|beach|bus|train|courtyard|stairs|corridor|laundry room|dining room|shed|"
    "playground|cinema|bookshop|florist's|dentist's|lake|farm"
)
SPOTS = (
    "on the table|on the shelf|in the drawer|under the bed|behind the sofa|on the window sill|in the cupboard|"
    "in the fridge|next to the door|on the desk|in the bag|on the floor|by the sink|on the hook|inside the box|"
    "on top of the wardrobe|beside the television|in the basket|on the counter|in the bin|under the chair|"
    "near the stairs|in the glove compartment|on the bench|in my pocket|between the books"
)
TOPICS = (
    "the holiday|the rent|the broken heating|the birthday party|the new job|the weather|the neighbours|the exam|"
    "the wedding|the car repair|the recipe|the budget|the schedule|the trip to the lake|the football match|"
    "the film|the dentist|the electricity bill|the school play|the dog|the guest list|the concert|the renovation|"
    "the train tickets|the project|the election|the barbecue|the phone contract|the lost parcel|moving house|"
    "the insurance|the doctor's appointment|the choir|the sleepover|the shopping list|the visa|the garden fence"
)
TIMES = (
    "yesterday|today|this morning|last night|on Monday|on Tuesday|on Saturday evening|last week|two days ago|"
    "an hour ago|at noon|in the afternoon|before lunch|after dinner|at breakfast|on the third day|at 5 pm|"
    "around midnight|earlier|just now|last weekend|in March|on the 4th of May|during the meeting|after the party|"
    "the other day|this week|before bed|when it rained|after the walk"
)
COLOURS = (
    "red|blue|green|yellow|black|white|brown|grey|pink|purple|striped|wooden|old|new|big|small|broken|leather|"
    "plastic|silver"
)
NAMES = (
    "Anna|Ben|Clara|David|Emma|Felix|Grace|Henry|Ida|Jonas|Kate|Leo|Maria|Nora|Oscar|Paula|Quentin|Ruth|Simon|"
    "Tina|Uwe|Vera|Walter|Yusuf|Zoe|Amir|Bella|Carlos|Dana|Elias|Fatima|Georg|Hana|Ivan|Jin|Kenji|Lara|Mohan|"
    "Nina|Omar|Priya|Rosa|Sven|Tom|Mei|Aiko|Sofia|Max|Lily|Peter"
)
KIN = (
    "my wife|my husband|my mother|my father|my son|my daughter|my sister|my brother|my boss|the neighbour|"
    "the plumber|the postman|grandma|grandpa|my friend|my colleague|the doctor|the teacher|the landlord|"
    "the man with the beard|the woman in the red coat|the tall man|the boy|the girl|the delivery man|the waiter|"
    "the guests|the children|person 3|person 12|voice 2|everybody|the babysitter|our guide|the cleaner"
)
ADJECTIVES = (
    "happy|tired|angry|late|ill|nervous|hungry|busy|surprised|bored|proud|worried|afraid of dogs|"
    "allergic to nuts|good at cooking|married|afraid of heights|fond of jazz"
)
PURPOSES = (
    "for the party|for the trip|for dinner|for the children|for the picnic|for the experiment|"
    "for the presentation|for her birthday|for the neighbours"
)


@dataclass(frozen=True, slots=True)
class Verb:
    """The forms of a verb."""

    base: str
    past: str
    participle: str
    ing: str


def _regular(base: str) -> Verb:
    if base.endswith("e"):
        return Verb(base, base + "d", base + "d", base[:-1] + "ing")
    if base.endswith("y") and base[-2] not in "aeiou":
        return Verb(base, base[:-1] + "ied", base[:-1] + "ied", base + "ing")
    return Verb(base, base + "ed", base + "ed", base + "ing")


def _verbs(text: str) -> tuple[Verb, ...]:
    return tuple(Verb(*parts) if len(parts := one.split(",")) == 4 else _regular(one) for one in text.split())


def _phrases(text: str) -> tuple[Verb, ...]:
    return tuple(Verb(*one.split("|")) for one in text.split(";"))


@dataclass(frozen=True, slots=True)
class Lexicon:
    """One half of the words: for training, or held out."""

    placing: Sequence[Verb]
    getting: Sequence[Verb]
    using: Sequence[Verb]
    eating: Sequence[Verb]
    doing: Sequence[Verb]
    about: Sequence[Verb]
    moving: Sequence[Verb]
    things: Sequence[str]
    food: Sequence[str]
    places: Sequence[str]
    spots: Sequence[str]
    topics: Sequence[str]
    times: Sequence[str]
    colours: Sequence[str]
    names: Sequence[str]
    kin: Sequence[str]
    adjectives: Sequence[str]
    purposes: Sequence[str]


def _half(*, held_out: bool) -> Lexicon:
    def keep(items: Sequence[T]) -> tuple[T, ...]:
        return tuple(item for place, item in enumerate(items) if (place % 5 == 4) is held_out)

    return Lexicon(
        *(keep(_verbs(text)) for text in (_PLACING, _GETTING, _USING, _EATING, _DOING)),
        *(keep(_phrases(text)) for text in (_ABOUT, _MOVING)),
        *(
            keep(text.split("|"))
            for text in (THINGS, FOOD, PLACES, SPOTS, TOPICS, TIMES, COLOURS, NAMES, KIN, ADJECTIVES, PURPOSES)
        ),
    )


TRAINING = _half(held_out=False)
HELD_OUT = _half(held_out=True)


def is_plural(noun: str) -> bool:
    """Whether a noun of the lists takes “are”."""
    last = noun.split()[-1]
    return last.endswith("s") and not last.endswith(("ss", "us")) and last != "thermos"


def one_of(random_: random.Random, items: Sequence[T]) -> T:
    """One of some items."""
    return items[random_.randrange(len(items))]
