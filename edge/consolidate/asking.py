"""Jobs that ask a language model: what a refusal means for a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from edge.errors import PostponedError, ReasonError
from edge.memory import Store
from edge.reason import Reasoner, Refusal, Request, Why

T = TypeVar("T")

_UNTIL_CHANGED_S: Final = 3600.0  # until something that somebody has to change is looked at again, s
_NUMBERED = re.compile(r"(?:person|voice) \d+")
_PASSES: Final = (Why.NONE_CONFIGURED, Why.NOT_ALLOWED, Why.MISCONFIGURED, Why.UNSUPPORTED, Why.OVER_BUDGET)


def ask(reasoner: Reasoner, request: Request[T], stopping: Callable[[], bool]) -> T | Refusal:
    """Ask for a job.

    Returns:
        The answer; or a refusal that is the job's to deal with: the model wrote nothing of use (`INVALID_OUTPUT`), or the
        job is to be given up (`STOPPED`).

    Raises:
        PostponedError: it is no fault of the job, and it waits.
        ReasonError: the model will not do it; this counts as a failure of the job.
    """
    answer = reasoner.ask(request, stopping)
    if not isinstance(answer, Refusal) or answer.reason in (Why.INVALID_OUTPUT, Why.STOPPED):
        return answer
    if answer.retry_s is not None or answer.reason in _PASSES:
        raise PostponedError(answer.retry_s or _UNTIL_CHANGED_S, str(answer))
    raise ReasonError(str(answer))


def given_names(store: Store, people: Iterable[int]) -> dict[int, str]:
    """The names of those who have one."""
    return {who: title for who, title in store.titles(set(people)).items() if not _NUMBERED.fullmatch(title)}
