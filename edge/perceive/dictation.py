"""Words of a short recording that somebody made on purpose: a question that is spoken."""

from __future__ import annotations

import threading

from edge.infer import Catalog, Runtime, VoiceActivity, speech_spans
from edge.perceive.speech import Recogniser, SpeechAnalyser
from edge.settings import PerceiveSettings
from edge.types.media import SAMPLE_RATE, CutReason, Samples, Segment, SegmentCounts, Span


class Dictation:
    """Turns recordings into words with the recogniser that segments are heard with. Thread-safe; one at a time.

    Args:
        recogniser: of speech.
        activity: where somebody speaks; used by nobody else.
        settings: what counts as words.
    """

    def __init__(self, recogniser: Recogniser, activity: VoiceActivity, settings: PerceiveSettings) -> None:
        self._analyser = SpeechAnalyser(recogniser, None, settings)
        self._activity = activity
        self._turn = threading.Lock()

    def words(self, samples: Samples) -> str:
        """What is said in a recording; empty: nothing that can be made out.

        Args:
            samples: (n,) float32, mono, 16 kHz, -1..1.

        Raises:
            InferenceError: the network that hears speech failed.
        """
        with self._turn:
            spoken = speech_spans(self._activity, samples)
            recording = Segment(
                camera="",
                source="",
                index=0,
                start=0.0,
                end=len(samples) / SAMPLE_RATE,
                reason=CutReason.END_OF_SOURCE,
                first_of_event=True,
                still=True,
                audio=samples,
                audio_start=0.0,
                speech=tuple(Span(begin / SAMPLE_RATE, end / SAMPLE_RATE) for begin, end in spoken),
                audio_faults=0,
                counts=SegmentCounts(),
            )
            return " ".join(utterance.text for utterance in self._analyser.analyse(recording).utterances)


def build_dictation(catalog: Catalog, runtime: Runtime, settings: PerceiveSettings) -> Dictation:
    """Open the models.

    Raises:
        ModelError: one of them is not there.
    """
    activity = VoiceActivity(runtime.open(catalog.default("voice-activity")), threshold=settings.vad_threshold)
    return Dictation(Recogniser(catalog.default("speech"), runtime), activity, settings)
