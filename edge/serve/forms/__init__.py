"""The JSON forms of the API. They are those of the command line (docs/json.md), with more where a page needs it.

Times are ISO 8601 with the offset of the device's zone.
"""

from __future__ import annotations

from edge.serve.forms.answers import Answered, Found, Judged, Judgement, Looked, Question
from edge.serve.forms.base import Form, Line, Page, Who, Words
from edge.serve.forms.cameras import Camera, NewCamera
from edge.serve.forms.facts import OneFact, Relation, WholeFact
from edge.serve.forms.keeping import Forget, ForgetPreview, ForgetThis, NewPause, Paused
from edge.serve.forms.moments import Day, DayCount, DayMoment, KeyFrame, Mark, Moment, Seen, WholeMoment, Why
from edge.serve.forms.people import (
    Corrected,
    Face,
    NameHeard,
    NewMerge,
    NewName,
    NewSplit,
    OneCorrection,
    Person,
    PersonFact,
    WholePerson,
)
from edge.serve.forms.rules import Notification, OneRule, Ordered, OrderText
from edge.serve.forms.status import Channel, Jobs, Memory, Status, You
from edge.serve.forms.timeline import Stretch, StretchPerson, Target, WholeStretch, Working
from edge.serve.forms.tools import Companion, Counted, OneTime, SomeBody

__all__ = [
    "Answered",
    "Camera",
    "Channel",
    "Companion",
    "Corrected",
    "Counted",
    "Day",
    "DayCount",
    "DayMoment",
    "Face",
    "Forget",
    "ForgetPreview",
    "ForgetThis",
    "Form",
    "Found",
    "Jobs",
    "Judged",
    "Judgement",
    "KeyFrame",
    "Line",
    "Looked",
    "Mark",
    "Memory",
    "Moment",
    "NameHeard",
    "NewCamera",
    "NewMerge",
    "NewName",
    "NewPause",
    "NewSplit",
    "Notification",
    "OneCorrection",
    "OneFact",
    "OneRule",
    "OneTime",
    "OrderText",
    "Ordered",
    "Page",
    "Paused",
    "Person",
    "PersonFact",
    "Question",
    "Relation",
    "Seen",
    "SomeBody",
    "Status",
    "Stretch",
    "StretchPerson",
    "Target",
    "Who",
    "WholeFact",
    "WholeMoment",
    "WholePerson",
    "WholeStretch",
    "Why",
    "Words",
    "Working",
    "You",
]
