"""What was said in a segment, and by which voices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import structlog

from edge.errors import InferenceError, ModelError
from edge.infer import Catalog, Runtime
from edge.perceive.speech.diarise import Diarisation, diarise, one_unknown
from edge.perceive.speech.recognise import Recogniser
from edge.perceive.speech.turns import (
    NOBODY,
    Piece,
    Range,
    Unit,
    merge_turns,
    pieces,
    place_sentences,
    split_sentences,
    widen,
)
from edge.perceive.speech.voiceprint import VoicePrinter
from edge.perceive.speech.words import Judgement, Verdict, confidence, judge
from edge.settings import PerceiveSettings
from edge.types.evidence import Utterance, Voice
from edge.types.media import SAMPLE_RATE, Samples, Segment

log = structlog.get_logger(__name__)

PAD_S = 0.2  # the detector dates a beginning late and an end early by about this (measured: words)
TURN_PAD_S = 0.1  # … and for people, who count breaths and short pauses as speech, by this more (measured: turns)
FILL_S = 0.8  # pauses inside a turn (measured)
SNAP_S = 0.8  # the end of a sentence moves to a pause this near
_EMBED_S = 0.8  # less speech gives no embedding that means anything
_TIGHT = 0.84  # mean cosine of a voice's windows to their mean: less is several people (measured: one person >= .866)


@dataclass(frozen=True, slots=True)
class Turn:
    """A stretch in which one voice speaks."""

    start: float  # UTC POSIX seconds
    end: float
    voice: str  # anchor


@dataclass(frozen=True, slots=True, eq=False)
class SpeechEvidence:
    """All that the sound of a segment has to say."""

    voices: tuple[Voice, ...] = ()
    utterances: tuple[Utterance, ...] = ()
    turns: tuple[Turn, ...] = ()
    untranscribed: bool = False  # there was speech without words that could be kept
    other_language: bool = False  # speech that is not in the recogniser's language
    refused_words: int = 0  # invented on silence, in loops or for another language


class SpeechAnalyser:
    """Turns the sound of segments into utterances and voices. Deterministic; holds no state between segments."""

    def __init__(
        self,
        recogniser: Recogniser | None,
        printer: VoicePrinter | None,
        settings: PerceiveSettings | None = None,
        *,
        missing: Sequence[str] = (),
    ) -> None:
        """Put an analyser together.

        Args:
            recogniser: None: speech stays untranscribed.
            printer: None: utterances have no voices.
            settings: what counts as evidence.
            missing: sentences on what could not be built, for people.
        """
        self._recogniser = recogniser
        self._printer = printer
        self._settings = settings or PerceiveSettings()
        self.missing = tuple(missing)

    def analyse(self, segment: Segment) -> SpeechEvidence:
        """Find voices and words.

        A network that fails is reported and costs its part only: the segment's speech is then untranscribed, or has no
        voices.

        Args:
            segment: with its sound and where speech was heard in it.
        """
        if segment.audio is None or not segment.speech or not len(segment.audio):
            return SpeechEvidence()
        samples = _centred(segment.audio)
        spoken = [_range(span.start, span.end, segment.audio_start) for span in segment.speech]
        bursts = widen(spoken, round(PAD_S * SAMPLE_RATE), len(samples))
        if not bursts:
            return SpeechEvidence()
        heard = self._diarise(samples, bursts, segment)
        utterances: list[Utterance] = []
        judged: list[Judgement] = []
        failed = self._recogniser is None
        settings = self._settings
        for piece in pieces(
            heard.units, round(settings.speech_join_gap_s * SAMPLE_RATE), round(settings.speech_max_s * SAMPLE_RATE)
        ):
            judgement = self._words(samples, piece, segment)
            if judgement is None:
                failed = True
                continue
            judged.append(judgement)
            utterances += _utterances(piece, judgement, segment)
        verdicts = {judgement.verdict for judgement in judged}
        return SpeechEvidence(
            voices=self._voices(heard, spoken),
            utterances=tuple(utterances),
            turns=_turns(heard.units, len(samples), segment),
            untranscribed=failed or (not utterances and bool(verdicts & {Verdict.UNCLEAR, Verdict.FOREIGN})),
            other_language=Verdict.FOREIGN in verdicts,
            refused_words=sum(judgement.refused for judgement in judged),
        )

    def _diarise(self, samples: Samples, bursts: Sequence[Range], segment: Segment) -> Diarisation:
        if self._printer is None:
            return one_unknown(bursts)
        try:
            return diarise(samples, bursts, self._printer, self._settings.voice_threshold)
        except InferenceError as error:
            log.warning("voices failed", camera=segment.camera, segment=segment.index, reason=str(error))
            return one_unknown(bursts)

    def _words(self, samples: Samples, piece: Piece, segment: Segment) -> Judgement | None:
        if self._recogniser is None:
            return None
        try:
            hypothesis = self._recogniser.transcribe(samples[piece.begin : piece.end])
        except InferenceError as error:
            log.warning("speech recognition failed", camera=segment.camera, segment=segment.index, reason=str(error))
            return None
        voiced = sum(unit.end - unit.begin for unit in piece.units) / SAMPLE_RATE - 2 * PAD_S * len(piece.units)
        return judge(hypothesis, max(0.0, voiced))

    def _voices(self, heard: Diarisation, spoken: Sequence[Range]) -> tuple[Voice, ...]:
        voices = []
        for number, speaker in enumerate(heard.speakers):
            own = [unit for unit in heard.units if unit.speaker == number]
            seconds = sum(_overlap((unit.begin, unit.end), burst) for unit in own for burst in spoken) / SAMPLE_RATE
            voices.append(
                Voice(
                    anchor=f"v{number + 1}",
                    seconds=seconds,
                    embedding=speaker.embedding if seconds >= _EMBED_S else None,
                    safe=seconds >= self._settings.voice_min_s and speaker.tightness >= _TIGHT,
                    embedder=self._printer.key if self._printer is not None else "",
                )
            )
        return tuple(voices)


def build_speech(catalog: Catalog, runtime: Runtime, settings: PerceiveSettings) -> SpeechAnalyser:
    """Open the models for speech and voices.

    A model that is missing is said once, in the log and in `SpeechAnalyser.missing`; the rest works.

    Args:
        catalog: the known models.
        runtime: opens them.
        settings: what counts as evidence.
    """
    missing: list[str] = []

    def absent(error: ModelError, sentence: str) -> None:
        missing.append(f"{sentence}: {error}")
        log.warning("model missing", model=error.model, reason=str(error))

    recogniser: Recogniser | None = None
    printer: VoicePrinter | None = None
    try:
        recogniser = Recogniser(catalog.default("speech"), runtime)
    except ModelError as error:
        absent(error, "Speech is not put into words")
    try:
        printer = VoicePrinter(catalog.default("voice-embedding"), runtime)
    except ModelError as error:
        absent(error, "Voices are not told apart")
    return SpeechAnalyser(recogniser, printer, settings, missing=missing)


def _centred(audio: Samples) -> Samples:
    """Finite, and without a constant offset."""
    finite = np.nan_to_num(audio.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    return finite - np.float32(finite.mean(dtype=np.float64))


def _range(start: float, end: float, zero: float) -> Range:
    return round((start - zero) * SAMPLE_RATE), round((end - zero) * SAMPLE_RATE)


def _overlap(one: Range, two: Range) -> int:
    return max(0, min(one[1], two[1]) - max(one[0], two[0]))


def _anchor(speaker: int) -> str | None:
    return None if speaker == NOBODY else f"v{speaker + 1}"


def _at(sample: int, segment: Segment) -> float:
    """UTC of a sample, inside the segment."""
    return min(max(segment.audio_start + sample / SAMPLE_RATE, segment.start), segment.end)


def _utterances(piece: Piece, judgement: Judgement, segment: Segment) -> list[Utterance]:
    sentences = place_sentences(split_sentences(judgement.words), piece.units, round(SNAP_S * SAMPLE_RATE))
    return [
        Utterance(
            start=_at(sentence.begin, segment),
            end=_at(sentence.end, segment),
            text=" ".join(word.text for word in sentence.words),
            voice=_anchor(piece.speaker),
            confidence=confidence(sentence.words),
        )
        for sentence in sentences
    ]


def _turns(units: Sequence[Unit], samples: int, segment: Segment) -> tuple[Turn, ...]:
    turns = merge_turns(units, round(FILL_S * SAMPLE_RATE))
    wide = widen([(turn.begin, turn.end) for turn in turns], round(TURN_PAD_S * SAMPLE_RATE), samples)
    return tuple(
        Turn(_at(begin, segment), _at(end, segment), voice)
        for turn, (begin, end) in zip(turns, wide, strict=True)
        if (voice := _anchor(turn.speaker)) is not None
    )
