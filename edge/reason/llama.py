"""A model file on this device, run by llama-cpp-python (an optional package) in one thread of its own."""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog

from edge.clock import monotonic
from edge.reason.backends import Call, Completion, Halted, Trouble, stopped, timed_out
from edge.reason.values import Refusal, Why
from edge.settings import ReasonSettings

log = structlog.get_logger(__name__)

_WAITING: Final = 4  # questions that wait for the model
_POLL_S: Final = 0.1
_CLOSE_S: Final = 2.0
_INSTALL: Final = "Install it with `pip install 'reflectworld-edge[llm]'`."


@dataclass(slots=True)
class _Task:
    """One call on its way through the thread."""

    call: Call
    until: float  # monotonic seconds
    done: threading.Event = field(default_factory=threading.Event)
    given_up: threading.Event = field(default_factory=threading.Event)
    completion: Completion | None = None
    trouble: Trouble | None = None


class LlamaBackend:
    """One model file. Calls are done one after another: the model fills the processors by itself."""

    def __init__(self, settings: ReasonSettings) -> None:
        """Prepare; the file is loaded at the first call.

        Args:
            settings: the path, the size of its context, threads.
        """
        self._settings = settings
        self._tasks: queue.Queue[_Task | None] = queue.Queue(_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._model: Any = None

    @property
    def name(self) -> str:
        """The file."""
        path = self._settings.model_path
        return f"{path.name if path else 'no model file'} on this device"

    def complete(self, call: Call, seconds: float, halted: Halted) -> Completion:
        """Make one try; see `Backend`."""
        if any(message.images for message in call.messages):
            text = "A model file on this device is not given pictures."
            raise Trouble(
                Refusal(Why.UNSUPPORTED, text, 'Use a server that takes pictures: [reason] backend = "openai".')
            )
        task = _Task(call, monotonic() + seconds)
        with self._lock:
            if self._closed:
                raise stopped()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="reason-llama", daemon=True)
                self._thread.start()
            try:
                self._tasks.put_nowait(task)
            except queue.Full:  # the thread is deep in a prompt, and others wait already
                raise timed_out(seconds) from None
        while not task.done.wait(_POLL_S):
            if halted() or self._closed or monotonic() >= task.until:
                task.given_up.set()
                break
        if task.trouble is not None and task.trouble.refusal.reason is not Why.STOPPED:
            raise task.trouble
        if task.completion is None:
            raise stopped() if halted() or self._closed else timed_out(seconds)
        return task.completion

    def probe(self, _seconds: float) -> Refusal | None:
        """Whether the package and the file are there; the file is not loaded for it."""
        try:
            _package()
            _file(self._settings)
        except Trouble as trouble:
            return trouble.refusal
        return None

    def close(self) -> None:
        """End the thread after the token at hand; one that is deep in a prompt is left behind."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            with suppress(queue.Full):  # then it sees by itself that it is closed
                self._tasks.put_nowait(None)
            thread.join(_CLOSE_S)

    # -- in the thread ----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None and not self._closed:
            if self._over(task):
                continue
            try:
                task.completion = self._generate(task)
            except Trouble as trouble:
                task.trouble = trouble
            except Exception as error:  # noqa: BLE001 -- whatever the package raises, the caller is told
                log.warning("reason.llama.failed", error=str(error))
                text = f"The model file failed: {type(error).__name__}: {str(error)[:200]}."
                remedy = "Check [reason] model_path and context_tokens."
                task.trouble = Trouble(Refusal(Why.SERVER_FAULT, text, remedy, retry_s=300.0), sick=True)
            task.done.set()

    def _over(self, task: _Task) -> bool:
        return self._closed or task.given_up.is_set() or monotonic() >= task.until

    def _go_on(self, task: _Task) -> None:
        if self._over(task):  # nobody waits for it any more
            raise stopped()

    def _generate(self, task: _Task) -> Completion:
        model = self._loaded()
        self._go_on(task)
        call = task.call
        chunks: Iterator[Any] = model.create_chat_completion(
            messages=[{"role": one.role, "content": one.text} for one in call.messages],
            response_format={"type": "json_object", "schema": dict(call.schema)},
            max_tokens=call.tokens,
            temperature=self._settings.temperature,
            stream=True,
        )
        words: list[str] = []
        tokens, ending = 0, None
        for chunk in chunks:
            self._go_on(task)
            choice = chunk["choices"][0]
            said = choice["delta"].get("content")
            if said:
                tokens += 1
                words.append(said)
            ending = choice.get("finish_reason") or ending
        return Completion("".join(words), None, tokens, cut=ending == "length")

    def _loaded(self) -> Any:
        if self._model is None:
            package, path = _package(), _file(self._settings)
            began = monotonic()
            self._model = package.Llama(
                model_path=str(path),
                n_ctx=self._settings.context_tokens,
                n_threads=self._settings.threads or None,
                verbose=False,
            )
            log.info("reason.llama.loaded", file=path.name, seconds=round(monotonic() - began, 2))
        return self._model


def _package() -> Any:
    try:
        return importlib.import_module("llama_cpp")
    except (ImportError, OSError) as error:  # OSError: its own library is for another machine
        text = "The package llama-cpp-python is not there."
        raise Trouble(Refusal(Why.MISCONFIGURED, text, _INSTALL)) from error


def _file(settings: ReasonSettings) -> Path:
    path = settings.model_path
    if path is not None and path.expanduser().is_file():
        return path.expanduser()
    text = f"There is no model file at {path}." if path else "No model file is named."
    raise Trouble(Refusal(Why.MISCONFIGURED, text, "Put the path of a GGUF file in [reason] model_path."))
