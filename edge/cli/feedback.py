"""`reflectworld feedback`: saying whether an answer was right, which teaches where to look."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from edge.cli.console import HomeOption, JsonOption, open_for_reading, open_for_writing, print_json, say, settings_for
from edge.recall import Recall
from edge.types.records import Kind, public_id


class Verdict(StrEnum):
    """What is thought of an answer."""

    GOOD = "good"
    BAD = "bad"


def feedback(
    answer: Annotated[str, typer.Argument(help="Id of an answer, such as q3, or “last”.", show_default=False)],
    verdict: Annotated[Verdict, typer.Argument(help="Whether it was right.", show_default=False)],
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Say whether an answer was right; also of one that says that nothing is remembered.

    Of many such judgements is learned where to look first for which kind of question: never what was asked about.
    """
    settings = settings_for(home)
    with open_for_reading(settings):
        pass  # a memory that is not there is not made for this
    with open_for_writing(settings) as store:
        item = None if answer.strip().lower() == "last" else answer
        kept = Recall(store, None, settings.recall).judge(item, good=verdict is Verdict.GOOD)
    found = public_id(Kind.ANSWER, kept.id)
    if json:
        print_json({"id": found, "question": kept.question, "verdict": verdict.value, "learned": kept.learned})
    else:
        say(f"Noted: {found}, “{kept.question}”, was {verdict.value}.")
