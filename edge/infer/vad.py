"""Voice activity: where somebody speaks, as the sound comes in.

The network is Silero VAD (Silero Team, 2021–2025): a recurrent network that gives one probability for every 512 samples
at 16 kHz. Around it stands a small machine with hysteresis, a least length of speech and a least length of silence.

Invariants:

* The changes depend on the samples since the last `reset` alone, never on how they were cut into chunks.
* Changes alternate: speech begins, ends, begins, … with `at_sample` rising.
* A change is reported as late as it becomes certain, and dated to when it happened: a beginning after `min_speech_s` of
  voice, an end after `min_silence_s` without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edge.types.media import SAMPLE_RATE, Samples

WINDOW = 512  # samples a probability, fixed by the network
CONTEXT = 64  # samples of the window before that the network wants in front of each window
_STATE = (2, 1, 128)  # shape of the recurrent state
_HYSTERESIS = 0.15  # below the threshold by this much counts as silence (Silero's own convention)


class Net(Protocol):
    """The part of `edge.infer.Network` that is used here."""

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Run the network once."""
        ...


@dataclass(frozen=True, slots=True)
class SpeechChange:
    """Speech began or ended."""

    at_sample: int  # samples since the last reset, a multiple of WINDOW
    speaking: bool  # True: it began here; False: it ended here


class VoiceActivity:
    """Streaming voice activity detection; deterministic from `reset`. One instance serves one stream at a time."""

    def __init__(
        self, network: Net, *, threshold: float = 0.35, min_silence_s: float = 0.5, min_speech_s: float = 0.2
    ) -> None:
        """Wrap the network.

        Args:
            network: Silero VAD, v5 or v6 layout (`input`, `state`, `sr` → probability, state).
            threshold: probability at which a window counts as speech (measured: .35).
            min_silence_s: shorter pauses do not end speech, s (measured: .5).
            min_speech_s: less voice than this is not speech (clicks, coughs), s.
        """
        self._network = network
        self._on = threshold
        self._off = max(threshold - _HYSTERESIS, 0.01)
        self._min_silence = round(min_silence_s * SAMPLE_RATE)
        self._min_speech = round(min_speech_s * SAMPLE_RATE)
        self._rate = np.array(SAMPLE_RATE, dtype=np.int64)
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next sample is sample 0 of a new stream."""
        self._state = np.zeros(_STATE, dtype=np.float32)
        self._context = np.zeros(CONTEXT, dtype=np.float32)
        self._rest = np.zeros(0, dtype=np.float32)
        self._heard = 0  # samples that went through the network
        self._onset: int | None = None  # where the present speech began, certain or not
        self._voiced = 0  # samples of voice since the onset
        self._quiet: int | None = None  # where the present pause within speech began
        self._ended: int | None = None  # where the last speech ended
        self._speaking = False

    @property
    def speaking(self) -> bool:
        """Whether speech has begun and not ended; stays true through pauses shorter than `min_silence_s`."""
        return self._speaking

    @property
    def silence_s(self) -> float:
        """Seconds of silence since speech ended.

        0.0 while somebody speaks and when nobody has spoken since the reset. It stands still while a sound that may be
        the beginning of new speech is going on, so that a cut at `silence_s >= 1.0` never falls into a first word.
        """
        if self._speaking or self._ended is None:
            return 0.0
        upto = self._heard if self._onset is None else self._onset
        return (upto - self._ended) / SAMPLE_RATE

    def feed(self, samples: Samples) -> tuple[SpeechChange, ...]:
        """Hear the next samples.

        Args:
            samples: (n,) mono, -1..1, 16 kHz, any n; what is not a finite number counts as silence.

        Returns:
            The changes that became certain, oldest first.
        """
        fresh = np.nan_to_num(np.asarray(samples, dtype=np.float32), nan=0.0, posinf=0.0, neginf=0.0)
        pending = np.concatenate((self._rest, fresh))
        whole = len(pending) // WINDOW * WINDOW
        self._rest = pending[whole:]
        changes: list[SpeechChange] = []
        for begin in range(0, whole, WINDOW):
            self._step(self._probability(pending[begin : begin + WINDOW]), changes)
        return tuple(changes)

    def finish(self) -> tuple[SpeechChange, ...]:
        """The stream ends here: the last partial window is heard, and open speech is closed where it was last heard.

        Returns:
            The changes that this brings; only `reset` may follow.
        """
        changes: list[SpeechChange] = []
        if len(self._rest):
            window = np.zeros(WINDOW, dtype=np.float32)
            window[: len(self._rest)] = self._rest
            self._rest = self._rest[:0]
            self._step(self._probability(window), changes)
        if self._speaking:
            self._end(self._heard if self._quiet is None else self._quiet, changes)
        return tuple(changes)

    def _probability(self, window: Samples) -> float:
        """One step of the network: the probability that `window` holds speech."""
        heard = np.concatenate((self._context, window))[np.newaxis]
        probability, state = self._network.run({"input": heard, "state": self._state, "sr": self._rate})
        self._state = state
        self._context = window[-CONTEXT:]
        return float(probability.reshape(-1)[0])

    def _step(self, probability: float, changes: list[SpeechChange]) -> None:
        """Move the machine over one window."""
        begin, self._heard = self._heard, self._heard + WINDOW
        if probability >= self._on:
            if self._onset is None:
                self._onset, self._voiced = begin, 0
            self._quiet = None
            self._voiced += WINDOW
            if not self._speaking and self._voiced >= self._min_speech:
                self._speaking = True
                changes.append(SpeechChange(self._onset, speaking=True))
            return
        if self._onset is None:
            return
        if probability < self._off and self._quiet is None:
            self._quiet = begin
        if self._quiet is not None and self._heard - self._quiet >= self._min_silence:
            if self._speaking:
                self._end(self._quiet, changes)
            self._onset = self._quiet = None

    def _end(self, at: int, changes: list[SpeechChange]) -> None:
        self._speaking = False
        self._onset = self._quiet = None
        self._ended = at
        changes.append(SpeechChange(at, speaking=False))


def speech_spans(activity: VoiceActivity, samples: Samples) -> tuple[tuple[int, int], ...]:
    """Where somebody speaks in a whole recording.

    Args:
        activity: is reset before and after.
        samples: (n,) mono, -1..1, 16 kHz.

    Returns:
        (begin, end) pairs in samples, rising, disjoint, within 0..n.
    """
    activity.reset()
    changes = activity.feed(samples) + activity.finish()
    activity.reset()
    begins = [change.at_sample for change in changes if change.speaking]
    ends = [min(change.at_sample, len(samples)) for change in changes if not change.speaking]
    return tuple(zip(begins, ends, strict=True))
