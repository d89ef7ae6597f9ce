"""The JSON forms of the API. They are those of the command line (docs/json.md), with more where a page needs it.

Times are ISO 8601 with the offset of the device's zone.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Item = TypeVar("Item")


class Form(BaseModel):
    """Base: unknown members are refused in requests."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Page(Form, Generic[Item]):
    """Some of many."""

    items: list[Item]
    next: str | None = Field(None, description="give it as `before` to get what follows; null: nothing follows")


class Who(Form):
    """Somebody who takes part."""

    id: str
    title: str = Field(description="the name, or “person 3”")


class Line(Form):
    """One line of a moment."""

    at: str
    text: str


class Words(Form):
    """Something that was said."""

    id: str
    trace: str
    start: str
    end: str
    speaker: str | None = Field(description="id of a person; null: not known")
    speaker_name: str | None
    text: str


class Moment(Form):
    """One remembered segment."""

    id: str
    camera: str
    start: str
    end: str
    text: str = Field(description="what was seen; empty where there was only speech")
    lines: list[Line]
    entities: list[Who]
    utterances: list[Words]
    key_frames: list[str]


class Mark(Form):
    """A box on a picture."""

    label: str
    entity: str | None
    title: str | None = Field(description="of the entity")
    box: tuple[float, float, float, float] = Field(
        description="x1, y1, x2, y2 as fractions of the picture's width and height"
    )


class KeyFrame(Form):
    """A stored picture; `/pictures/{id}` gives the JPEG."""

    id: str
    at: str
    width: int
    height: int
    marks: list[Mark]


class Seen(Form):
    """One observation."""

    id: str
    trace: str
    camera: str
    label: str
    entity: str | None
    start: str
    end: str
    text: str
    score: float


class Why(Form):
    """A decision about who somebody is."""

    id: str
    outcome: str
    entity: str | None
    reason: str


class WholeMoment(Moment):
    """A moment with all that is known of it."""

    observations: list[Seen]
    pictures: list[KeyFrame]
    decisions: list[Why]
    before: str | None = Field(description="the moment before it on the same camera")
    after: str | None


class DayMoment(Form):
    """A moment as a timeline shows it."""

    id: str
    camera: str
    start: str
    end: str
    text: str
    people: list[str] = Field(description="ids")
    key_frame: str | None


class Day(Form):
    """A day of the device's calendar."""

    date: str
    start: str
    end: str
    moments: list[DayMoment] = Field(description="oldest first")
    people: list[Who]
    cameras: list[str]
    previous: str | None = Field(description="the day before it that has moments")
    next: str | None


class DayCount(Form):
    """How much a day holds."""

    date: str
    moments: int


class Person(Form):
    """Somebody who is remembered."""

    id: str
    title: str
    name: str | None
    name_source: str
    kind: str
    first_seen: str
    last_seen: str
    seen: int = Field(description="observations")
    face: str | None = Field(description="path of the best picture of the face")


class Face(Form):
    """A picture of a face."""

    path: str
    at: str
    trace: str | None


class NameHeard(Form):
    """A name that was heard for somebody."""

    name: str
    source: str
    at: str
    accepted: bool
    utterance: str | None


class PersonFact(Form):
    """Something known of a person."""

    text: str = Field(description="what follows the name: “works at the bakery”")
    since: str | None
    until: str | None = Field(description="from when something else was so; null: it is so now")
    sources: list[str] = Field(description="ids of what it rests on, the latest first")


class WholePerson(Person):
    """A person with what is known of them."""

    facts: list[PersonFact] = Field(description="what is so now first")
    faces: list[Face] = Field(description="best first")
    sightings: list[Seen] = Field(description="newest first")
    utterances: list[Words] = Field(description="newest first")
    names_heard: list[NameHeard]


class NewName(Form):
    """What to call somebody."""

    name: str | None = Field(max_length=200, description="null: take the name away")


class NewMerge(Form):
    """Who becomes part of a person."""

    other: str = Field(max_length=40, description="id of who becomes part of them")
    preview: bool = Field(False, description="only say what would be done")


class NewSplit(Form):
    """Which sightings are somebody else's."""

    sightings: list[str] = Field(
        min_length=1, max_length=1000, description="ids of moments (t12), observations (o7) or words (u9)"
    )
    to: str | None = Field(None, max_length=40, description="whose they are; null: somebody new's")
    preview: bool = Field(False, description="only say what would be done")


class OneCorrection(Form):
    """Something that the owner put right."""

    id: str
    kind: str = Field(description="`name`, `merge`, `split` or `not`")
    person: str = Field(description="who was kept or named, or whose the sightings were")
    other: str | None = Field(description="who became part of them, or whose the sightings are now")
    created: bool = Field(description="`other` is somebody new")
    name: str | None = Field(description="that was given")
    observations: int = Field(description="that were moved, of a split")
    utterances: int = Field(description="that were moved, of a split")
    at: str
    undone_at: str | None
    text: str = Field(description="what it did, one sentence")


class Corrected(Form):
    """What a correction does or did."""

    text: str = Field(description="what it reaches, one sentence")
    correction: OneCorrection | None = Field(description="null: nothing was done yet")


class Found(Form):
    """One result of a search."""

    id: str
    level: str
    trace: str
    camera: str
    start: str
    end: str
    score: float
    text: str
    entities: list[Who]
    key_frame: str | None


class Question(Form):
    """A question to the memory."""

    question: str = Field(min_length=1, max_length=20_000)
    at: str | None = Field(None, description="ask as if it were then: nothing that ended later is used")


class Answered(Form):
    """An answer, and what it rests on."""

    question: str
    kind: str
    answer: str
    found: bool
    start: str | None
    end: str | None
    people: list[str]
    camera: str | None
    key_frame: str | None
    cited: list[str]
    evidence: list[Found]
    notes: list[str]
    rounds: int
    ms: float


class Camera(Form):
    """A camera as it is now."""

    name: str
    uri: str
    state: str = Field(description="connecting, live, stalled, failed, paused or ended")
    detail: str
    since: str | None
    last_frame: str | None
    fps: float
    width: int
    height: int
    segments: int
    dropped: int
    enabled: bool
    paused: bool
    pushed: bool


class NewCamera(Form):
    """A camera to add."""

    name: str = Field(min_length=1, max_length=64)
    uri: str = Field(min_length=1, max_length=2000, description="rtsp://…, http://…, /dev/video0, a file, test:")


class Channel(Form):
    """A bounded channel."""

    items: int
    bound: int
    dropped: int


class Memory(Form):
    """How much is remembered."""

    traces: int
    observations: int
    utterances: int
    entities: int
    key_frames: int
    first: str | None
    last: str | None
    bytes: int
    free_bytes: int


class StretchPerson(Form):
    """Somebody in a stretch of time."""

    id: str
    title: str
    moments: int


class Stretch(Form):
    """A node of the timeline; of level `trace`, a moment."""

    id: str
    level: str
    camera: str
    start: str
    end: str
    moments: int
    text: str
    summary_source: str = Field(description="extractive, or model")
    people: list[StretchPerson]
    places: dict[str, int] = Field(description="in how many moments it is spoken of")
    things: dict[str, int] = Field(description="in how many moments it was seen")


class WholeStretch(Stretch):
    """A node of the timeline with what it was made of."""

    made_of: list[Stretch]


class Target(Form):
    """Somebody or something that is followed."""

    label: str
    person: str | None
    title: str | None
    last: str
    moments: int
    missed: int = Field(description="moments in a row without it, up to now")


class Working(Form):
    """What goes on in front of a camera."""

    camera: str
    event: str
    start: str
    end: str
    current: bool
    moments: int
    summary: str
    latest: list[str] = Field(description="the latest moments in short, oldest first")
    people: list[Who] = Field(description="who was noticed lately, the latest first")
    targets: list[Target]


class Jobs(Form):
    """What is still made of memories."""

    waiting: dict[str, int] = Field(description="how many, by kind")
    aside: dict[str, int] = Field(description="how many failed too often, by kind")


class You(Form):
    """Who asks."""

    id: str
    name: str
    scopes: list[str]
    local: bool


class Status(Form):
    """How the device is."""

    device: str
    version: str
    now: str
    started: str
    uptime_s: float
    memory: Memory
    jobs: Jobs
    working: list[Working]
    cpu_percent: float = Field(description="of one core, of this process, since it was last asked")
    load: list[float] = Field(description="of the device: 1, 5, 15 minutes; runnable tasks")
    cores: int
    rss_bytes: int
    temperature_c: float | None
    loop_lag_ms: float
    loop_stalls: int
    channels: dict[str, Channel]
    missing: list[str]
    networks: str
    cameras: list[Camera]
    you: You


class OrderText(Form):
    """An order in plain words."""

    text: str = Field(min_length=1, max_length=400, description="“tell me when …”, “remind me …”, “remember that …”")


class Ordered(Form):
    """An order that was carried out."""

    text: str = Field(description="what was understood, in one sentence")
    item: str = Field(description="the id of the rule, or of the moment that keeps what to remember")


class OneRule(Form):
    """A rule."""

    id: str
    kind: str = Field(description="alert, reminder or quiet")
    text: str
    state: str = Field(description="active, paused or done")
    created: str
    camera: str | None
    urgent: bool
    next: str | None = Field(description="when time fires it next")
    last_told: str | None


class Notification(Form):
    """A decision about a rule."""

    id: str
    rule: str | None
    at: str = Field(description="of what happened")
    outcome: str = Field(description="deliver, digest or drop")
    reason: str
    text: str
    ground: list[str] = Field(description="ids of what it rests on")
    read: bool


class ForgetThis(Form):
    """What to forget: one of these (`since` and `until` go together)."""

    person: str | None = Field(None, max_length=40, description="id of a person or a voice: all that is theirs")
    since: str | None = Field(None, max_length=60, description="all moments that end after this")
    until: str | None = Field(None, max_length=60, description="all moments that begin before this")
    camera: str | None = Field(None, max_length=200, description="all that a camera saw")
    items: list[str] = Field([], max_length=1000, description="ids: t12, o7, u9, k4, n2, r3, a5")
    everything: bool = False


class Forget(ForgetThis):
    """What to forget, as a preview showed it."""

    token: str = Field(max_length=100, description="of the preview, so that what goes is what was shown")


class ForgetPreview(Form):
    """What will go, or went."""

    token: str = Field(description="give it back to forget exactly this")
    text: str = Field(description="one sentence")
    counts: dict[str, int] = Field(description="how many of what")
    beyond: list[str] = Field(description="copies that are not reached, one sentence each")
    person: str | None
    since: str | None
    until: str | None
    camera: str | None
    items: list[str]
    everything: bool


class NewPause(Form):
    """For how long."""

    seconds: float | None = Field(None, gt=0, le=31_536_000, description="null: until it is resumed")


class Paused(Form):
    """Whether everything is paused."""

    paused: bool
    since: str | None
    until: str | None = Field(description="null: until it is resumed")
