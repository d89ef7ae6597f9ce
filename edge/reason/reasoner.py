"""The one way to ask a language model: a request in, an object of its form or a refusal out; never an exception for trouble.

Invariants:

* Nothing is sent before the gate has said where it may go, and nothing that the breaker does not admit.
* The deadline of a request holds for all of it: waiting for its turn, tries, pauses, the second answer.
* An answer is only given out when it has the form that was asked for; one that has not is sent back once, with what is wrong.
* Whatever is used counts, also when there is no answer in the end.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar, cast

import structlog

from edge.clock import monotonic, utc_now
from edge.reason import breaker as circuit
from edge.reason.backends import Backend, Call, Completion, Halted, Trouble, stopped, timed_out
from edge.reason.breaker import Breaker, Rules, State
from edge.reason.extraction import schema, validated
from edge.reason.gate import Decision, Gate, Place, SettingsGate, Want
from edge.reason.ledger import Ledger, Tally, Totals
from edge.reason.llama import LlamaBackend
from edge.reason.openai import OpenAIBackend
from edge.reason.pacing import backoff
from edge.reason.prompts import load
from edge.reason.values import Message, Refusal, Request, Usage, Why
from edge.settings import ReasonSettings

log = structlog.get_logger(__name__)

T = TypeVar("T")

_POLL_S: Final = 0.1  # between looks at whether the caller gave up
_CHARACTERS: Final = 3.0  # of a token, when nobody counted them; English has about 4, so this is on the safe side
_IMAGE_TOKENS: Final = 1000  # of a picture, likewise: 765 to 1105 for a key frame by the rule of OpenAI's documentation
_QUOTED: Final = 4000  # characters of an answer that are sent back with what is wrong


def never() -> bool:
    """For a caller who does not give up."""
    return False


@dataclass(slots=True)
class _Run:
    """One request on its way."""

    purpose: str
    until: float  # monotonic seconds
    seconds: float  # that it has in all
    halted: Halted
    cost: float | None  # that it may have
    used: Usage = field(default_factory=Usage)
    retries: int = 0
    repairs: int = 0

    @property
    def left(self) -> float:
        """Seconds."""
        return self.until - monotonic()


class Reasoner:
    """Asks one language model for one process; from any thread."""

    def __init__(
        self,
        settings: ReasonSettings,
        backend: Backend | None = None,
        ledger: Ledger | None = None,
        gate: Gate | None = None,
    ) -> None:
        """Prepare; nothing is sent or loaded.

        Args:
            settings: which model, and how.
            backend: that asks it; None: that of the settings.
            ledger: that counts; None: one that forgets.
            gate: that decides; None: by the settings.
        """
        self._settings = settings
        self._backend = backend or build_backend(settings)
        self._ledger = ledger or Ledger(None)
        self._gate = gate or SettingsGate(settings)
        self._rules = Rules(limit=settings.breaker_failures, open_s=settings.breaker_open_s)
        self._breaker = Breaker()
        self._lock = threading.Lock()  # of the breaker and of what is reserved
        self._reserved = Usage()  # by requests under way
        self._turns = threading.BoundedSemaphore(settings.parallel)
        self._stopped = threading.Event()
        self._dice = random.Random()

    # -- what is known ----------------------------------------------------------------------------------------------------

    @property
    def configured(self) -> bool:
        """Whether there is a model to ask at all; it may still not answer."""
        return self._backend is not None

    @property
    def name(self) -> str:
        """What is asked, for people; empty: nothing is."""
        return "" if self._backend is None else self._backend.name

    @property
    def breaker(self) -> State:
        """Whether it is left alone for now."""
        with self._lock:
            return self._breaker.state

    def totals(self) -> Totals:
        """What was used; reads the disk."""
        return self._ledger.totals()

    def drop(self, purpose: str, counts: Mapping[str, int]) -> None:
        """Count parts of answers that broke a rule of their caller, by why."""
        if counts:
            self._ledger.drop(purpose, counts)

    def probe(self, seconds: float = 5.0) -> Refusal | None:
        """Whether the model is there, without a question and at no cost: None, or what is wrong."""
        decision = self._decide("probe", 0, Usage())
        if decision.refusal is not None and decision.refusal.reason is not Why.OVER_BUDGET:
            return decision.refusal
        assert self._backend is not None  # noqa: S101 -- the gate says no without one; tells mypy
        return self._backend.probe(seconds)

    # -- life -------------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Give up all requests, now and from now on; from any thread, idempotent."""
        self._stopped.set()

    def close(self) -> None:
        """Stop, and end all threads."""
        self.stop()
        if self._backend is not None:
            self._backend.close()

    # -- asking -----------------------------------------------------------------------------------------------------------

    def ask(self, request: Request[T], stopping: Halted = never) -> T | Refusal:
        """Ask; waits for the answer, at most as long as the request or the settings say.

        Args:
            request: what is asked.
            stopping: asked several times a second; when it says so, the request is given up.

        Returns:
            The answer in the form of the request, or why there is none.
        """
        began = monotonic()

        def halted() -> bool:
            return self._stopped.is_set() or stopping()

        seconds = self._settings.timeout_s if request.seconds is None else request.seconds
        run = _Run(request.purpose, began + seconds, seconds, halted, request.budget.cost)
        most = self._most(request)
        decision = self._decide(request.purpose, request.images, most, reserve=True)
        if decision.refusal is not None:
            outcome: T | Refusal = decision.refusal
        else:
            try:
                outcome = self._in_turn(run, request)
            finally:
                self._release(most)
        refused = outcome if isinstance(outcome, Refusal) else None
        if refused is not None and refused.reason is Why.NONE_CONFIGURED:
            return outcome  # nothing happened
        tally = Tally(
            requests=1,
            answered=int(refused is None),
            retries=run.retries,
            repairs=run.repairs,
            tokens_in=run.used.tokens_in,
            tokens_out=run.used.tokens_out,
            cost=run.used.cost,
            seconds=monotonic() - began,
        )
        self._ledger.add(request.purpose, tally, None if refused is None else refused.reason)
        if refused is not None:
            log.info("reason.refused", purpose=request.purpose, reason=str(refused.reason), text=refused.text)
        return outcome

    def _decide(self, purpose: str, images: int, most: Usage, *, reserve: bool = False) -> Decision:
        """What the gate says; what it lets through is reserved, so that several at once keep to a budget, too."""
        today = self._ledger.totals().today if self._backend is not None else Usage()
        with self._lock:
            decision = self._gate.decide(Want(purpose, images, most), today + self._reserved, utc_now())
            if reserve and decision.refusal is None:
                self._reserved = self._reserved + most
        if decision.refusal is None and (self._backend is None or decision.place in (Place.LATER, Place.NONE)):
            raise AssertionError("a gate that lets nothing through has to say why")
        return decision

    def _release(self, most: Usage) -> None:
        with self._lock:
            self._reserved = self._reserved + Usage(-most.tokens_in, -most.tokens_out, -most.cost)

    def _in_turn(self, run: _Run, request: Request[T]) -> T | Refusal:
        while not self._turns.acquire(timeout=max(0.0, min(_POLL_S, run.left))):
            if run.halted():
                return stopped().refusal
            if run.left <= 0:
                return timed_out(run.seconds).refusal
        try:
            return self._answer(run, request)
        finally:
            self._turns.release()

    def _answer(self, run: _Run, request: Request[T]) -> T | Refusal:
        call = Call(request.messages, schema(request.form), request.purpose, request.budget.tokens)
        problem = ""
        for attempt in range(2):
            completion = self._complete(run, call)
            if isinstance(completion, Refusal):
                return completion
            try:
                return cast("T", validated(completion.text, request.form))
            except ValueError as error:
                problem = "The answer was cut off: it has to be shorter." if completion.cut else str(error)
            if attempt == 0:
                run.repairs += 1
                again = Message("user", load("repair").words(problem=problem))
                call = replace(
                    call, messages=(*request.messages, Message("assistant", completion.text[:_QUOTED]), again)
                )
        remedy = "A larger model does better, and so does a server that holds answers to a JSON schema."
        return Refusal(Why.INVALID_OUTPUT, f"The language model wrote nothing that can be used. {problem}", remedy)

    def _complete(self, run: _Run, call: Call) -> Completion | Refusal:
        """One completion, with as many tries as the settings, the deadline and the budget allow."""
        backend = self._backend
        assert backend is not None  # noqa: S101 -- the gate let it through; tells mypy
        last: Refusal | None = None
        for attempt in range(self._settings.attempts):
            refusal = self._may_try(run, call)
            if refusal is not None:
                if last is not None and refusal.reason is Why.BREAKER_OPEN:
                    return replace(last, retry_s=refusal.retry_s)
                return refusal
            run.retries += attempt > 0
            try:
                completion = self._try(backend, run, call)
            except Trouble as trouble:
                last = trouble.refusal
                if not trouble.again or attempt + 1 == self._settings.attempts:
                    break
                pause = max(self._backoff(attempt), trouble.wait or 0.0)
                if pause >= run.left:
                    return replace(last, retry_s=max(pause, last.retry_s or 0.0))
                if not self._pause(run, pause):
                    return stopped().refusal
                continue
            self._use(run, call, completion)
            return completion
        assert last is not None  # noqa: S101 -- there is one try at least; tells mypy
        return last

    def _may_try(self, run: _Run, call: Call) -> Refusal | None:
        if run.halted():
            return stopped().refusal
        if run.left <= 0:
            return timed_out(run.seconds).refusal
        most = run.used + self._estimate(call.messages, call.tokens)
        if run.cost is not None and most.cost > run.cost:
            text = f"The request may not cost more than {run.cost:g}."
            return Refusal(Why.OVER_BUDGET, text, "Use a model that costs less, or ask for less at once.")
        now = monotonic()
        with self._lock:
            self._breaker, admitted = circuit.admit(self._breaker, now, self._rules)
            wait = self._breaker.until - now
        if admitted:
            return None
        text = "The language model failed several times in a row and is left alone for a while."
        remedy = "`reflectworld doctor` tells what is wrong with it."
        return Refusal(Why.BREAKER_OPEN, text, remedy, retry_s=max(1.0, wait))

    def _try(self, backend: Backend, run: _Run, call: Call) -> Completion:
        told = False
        try:
            completion = backend.complete(call, run.left, run.halted)
            told = True
            self._tell(circuit.succeeded)
        except Trouble as trouble:
            told = True
            if trouble.sick:
                self._tell(lambda known: circuit.failed(known, monotonic(), self._rules))
            elif trouble.refusal.reason in (Why.STOPPED, Why.MISCONFIGURED, Why.UNSUPPORTED):
                self._tell(lambda known: circuit.abandoned(known, monotonic()))
            else:  # it answers, if not as one would like
                self._tell(circuit.succeeded)
            raise
        finally:
            if not told:
                self._tell(lambda known: circuit.abandoned(known, monotonic()))
        return completion

    def _tell(self, change: Callable[[Breaker], Breaker]) -> None:
        with self._lock:
            before, self._breaker = self._breaker.state, change(self._breaker)
            after = self._breaker.state
        if before is not after:
            log.info("reason.breaker", state=str(after))

    def _backoff(self, attempt: int) -> float:
        with self._lock:
            return backoff(attempt, self._settings.retry_first_s, self._settings.retry_max_s, self._dice)

    def _pause(self, run: _Run, seconds: float) -> bool:
        """Wait; False: the caller gave up."""
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0:
            if run.halted():
                return False
            self._stopped.wait(min(_POLL_S, left))
        return not run.halted()

    # -- what it takes ----------------------------------------------------------------------------------------------------

    def _use(self, run: _Run, call: Call, completion: Completion) -> None:
        guess = self._estimate(call.messages, 0)
        tokens_in = guess.tokens_in if completion.tokens_in is None else completion.tokens_in
        tokens_out = completion.tokens_out
        if tokens_out is None:
            tokens_out = _tokens(len(completion.text))
        run.used = run.used + self._priced(tokens_in, tokens_out)

    def _most(self, request: Request[T]) -> Usage:
        """What a request may take with its second answer."""
        once = self._estimate(request.messages, request.budget.tokens)
        return self._priced(2 * once.tokens_in + _tokens(_QUOTED), 2 * once.tokens_out)

    def _estimate(self, messages: tuple[Message, ...], tokens_out: int) -> Usage:
        characters = sum(len(message.text) for message in messages)
        images = sum(len(message.images) for message in messages)
        return self._priced(_tokens(characters) + images * _IMAGE_TOKENS, tokens_out)

    def _priced(self, tokens_in: int, tokens_out: int) -> Usage:
        cost = (tokens_in * self._settings.price_in + tokens_out * self._settings.price_out) / 1e6
        return Usage(tokens_in, tokens_out, cost)


def build_backend(settings: ReasonSettings) -> Backend | None:
    """The backend of the settings; None: there is none."""
    if settings.backend == "openai":
        return OpenAIBackend(settings)
    return LlamaBackend(settings) if settings.backend == "llama" else None


def open_reasoner(settings: ReasonSettings, home: Path) -> Reasoner:
    """The reasoner of a memory; `close` it in the end.

    Args:
        settings: which model, and how.
        home: folder of the memory, where the totals are kept.
    """
    return Reasoner(settings, ledger=Ledger(home))


def _tokens(characters: int) -> int:
    return int(characters / _CHARACTERS) + 1
