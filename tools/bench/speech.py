"""Speech: word error rate, diarization error and cost on real recordings, cut into segments as the product cuts them.

    python -m tools.bench.speech [--shared FOLDER] [--languages]

Words: all transcribed files of `media/speech` together, and apart from them the GRID clips and the NASA film;
reference and hypothesis are normalised alike (`tools.bench.speech_text`). Speakers: each segment is diarized by
itself; its voices are then joined over the file by the cosine of their embeddings at `IdentitySettings.voice_match`,
in order of time, each to the most similar speaker so far (mean of his embeddings) or to a new one, no two voices of a
segment to one; collar .25 s, overlap scored. Inventions: words kept on noise and tones; with `--languages` also on
synthetic speech (espeak-ng) and on real English played backwards.

The exit status is 1 when a floor is missed.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jiwer
import numpy as np
from rich.console import Console
from rich.table import Table

from edge.capture import open_source, segments
from edge.infer import Catalog, Runtime, VoiceActivity, speech_spans
from edge.perceive.speech import Recogniser, SpeechAnalyser, SpeechEvidence, build_speech
from edge.perceive.speech.voiceprint import unit
from edge.settings import load_settings
from edge.types.evidence import Vector
from edge.types.media import SAMPLE_RATE, CutReason, Mode, Samples, Segment, SegmentCounts, Span
from tools.bench.speech_text import normalise

MAX_WER, MAX_GRID_WER, MAX_DER = 0.05, 0.20, 0.08
ROOT = Path(__file__).resolve().parents[2]
SENTENCES = {  # espeak-ng voice → an everyday sentence
    "de": "Guten Morgen, wie geht es Ihnen heute? Ich habe gestern meine Schlüssel auf dem Küchentisch vergessen.",
    "fr-fr": "Bonjour, comment allez-vous aujourd'hui? J'ai oublié mes clés sur la table de la cuisine hier soir.",
    "es": "Buenos días, ¿cómo está usted hoy? Ayer olvidé mis llaves en la mesa de la cocina.",
    "it": "Buongiorno, come sta oggi? Ieri ho dimenticato le chiavi sul tavolo della cucina.",
    "pt": "Bom dia, como está você hoje? Ontem esqueci as minhas chaves na mesa da cozinha.",
    "nl": "Goedemorgen, hoe gaat het vandaag met u? Ik heb gisteren mijn sleutels op de keukentafel laten liggen.",
    "sv": "God morgon, hur mår du idag? Igår glömde jag mina nycklar på köksbordet.",
    "pl": "Dzień dobry, jak się pan dzisiaj czuje? Wczoraj zapomniałem kluczy na stole w kuchni.",
    "ru": "Доброе утро, как у вас дела сегодня? Вчера я забыл ключи на кухонном столе.",
    "tr": "Günaydın, bugün nasılsınız? Dün anahtarlarımı mutfak masasında unuttum.",
    "hu": "Jó reggelt, hogy van ma? Tegnap a konyhaasztalon felejtettem a kulcsaimat.",
    "hi": "नमस्ते, आज आप कैसे हैं? कल मैं अपनी चाबियाँ रसोई की मेज़ पर भूल गया था।",
    "ar": "صباح الخير، كيف حالك اليوم؟ نسيت مفاتيحي أمس على طاولة المطبخ.",
    "cmn": "早上好,你今天怎么样?昨天我把钥匙忘在厨房的桌子上了。",
    "en-us": "Good morning, how are you today? Yesterday I forgot my keys on the kitchen table.",
    "en-gb": "The little boy plays in the garden with his dog while his mother prepares dinner.",
}


@dataclass
class Bench:
    """What the measurements share."""

    analyser: SpeechAnalyser
    activity: VoiceActivity
    cpu_s: float = 0.0  # of analysing
    heard_s: float = 0.0  # of sound analysed
    failures: list[str] = field(default_factory=list)

    def cut(self, path: Path) -> list[Segment]:
        """Segments of a file, as `watch` cuts it."""
        settings = load_settings().capture
        source = open_source(str(path), camera="bench", start=0.0, settings=settings)
        items = segments(
            source, vad=self.activity, settings=settings, mode=Mode.OFFLINE_QUALITY, stop=threading.Event()
        )
        return [item for item in items if isinstance(item, Segment)]

    def analyse(self, segment: Segment, analyser: SpeechAnalyser | None = None) -> SpeechEvidence:
        """Analyse a segment and keep the clock."""
        begin = time.process_time()
        evidence = (analyser or self.analyser).analyse(segment)
        if analyser is None:
            self.cpu_s += time.process_time() - begin
            self.heard_s += segment.end - segment.start
        return evidence

    def whole(self, samples: Samples) -> Segment:
        """A sound as one segment."""
        spans = speech_spans(self.activity, samples)
        return Segment(
            camera="bench",
            source="0" * 32,
            index=0,
            start=0.0,
            end=len(samples) / SAMPLE_RATE,
            reason=CutReason.END_OF_SOURCE,
            first_of_event=True,
            still=False,
            audio=samples,
            audio_start=0.0,
            speech=tuple(Span(begin / SAMPLE_RATE, end / SAMPLE_RATE) for begin, end in spans),
            audio_faults=0,
            counts=SegmentCounts(),
        )

    def require(self, what: str, value: float, most: float) -> None:
        """Note a floor that is missed."""
        if not value <= most:
            self.failures.append(f"{what}: {value:.1%} is more than {most:.0%}")


def spoken(evidence: Iterable[SpeechEvidence]) -> str:
    """All words in order."""
    return " ".join(utterance.text for one in evidence for utterance in one.utterances)


def words(bench: Bench, shared: Path, console: Console) -> None:
    """Word error rates."""
    table = Table(title="Words: segments of the product against the transcripts")
    for column in ("set", "file", "words", "WER", "refused", "heard"):
        table.add_column(column, justify="right" if column in {"words", "WER", "refused"} else "left", overflow="fold")
    sets: dict[str, tuple[list[str], list[str]]] = {}
    refused = 0
    with (shared / "media/speech/transcripts.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            name = row["file"]
            group = "speech" if name.startswith("speech/") else name.split("/")[1]
            reference, evidence = row["transcript"], [bench.analyse(s) for s in bench.cut(shared / "media" / name)]
            if group == "nasa":  # its last subtitle runs past the sound
                reference = reference[: reference.index("maryland") + len("maryland")]
            want, got = normalise(reference), normalise(spoken(evidence))
            wants, gots = sets.setdefault(group, ([], []))
            wants.append(want)
            gots.append(got)
            lost = sum(one.refused_words for one in evidence)
            refused += lost
            error = jiwer.wer(want, got)
            table.add_row(
                group, Path(name).name, str(len(want.split())), f"{error:.1%}", str(lost), got if error else "="
            )
    for group, (wants, gots) in sets.items():
        error = jiwer.wer(wants, gots)
        table.add_row(f"[b]{group}", "[b]all", str(sum(len(w.split()) for w in wants)), f"[b]{error:.1%}", "", "")
        if group in {"speech", "grid"}:
            bench.require(f"word error rate of {group}", error, MAX_WER if group == "speech" else MAX_GRID_WER)
    console.print(table)
    console.print(f"Words of real English refused: {refused}")


def split_by_voice(bench: Bench, catalog: Catalog, runtime: Runtime, shared: Path, console: Console) -> None:
    """Whether transcribing each voice by itself costs words."""
    with (shared / "media/speech/transcripts.csv").open(encoding="utf-8", newline="") as stream:
        texts = {Path(row["file"]).stem: row["transcript"] for row in csv.DictReader(stream)}
    order = ("1688-142285-0002", "116-288045-0000", "1688-142285-0000", "103-1240-0000", "1688-142285-0001")
    want = normalise(" ".join(texts[name] for name in order))
    cut = bench.cut(shared / "media/derived/libri_three_speakers.flac")
    plain = SpeechAnalyser(Recogniser(catalog.default("speech"), runtime), None)
    for name, analyser in (("by voice", None), ("ignoring voices", plain)):
        got = normalise(spoken(bench.analyse(segment, analyser) for segment in cut))
        console.print(f"libri_three_speakers transcribed {name}: WER {jiwer.wer(want, got):.1%}")


def speakers(bench: Bench, shared: Path, console: Console) -> None:
    """Diarization error rates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyannote.core import Annotation, Timeline
        from pyannote.core import Segment as Stretch
        from pyannote.metrics.diarization import DiarizationErrorRate

    match = load_settings().identity.voice_match
    table = Table(title=f"Speakers: collar .25 s, voices joined over segments at cosine {match:.2f}")
    for column in ("file", "segments", "speakers", "found", "DER", "missed s", "false alarm s", "confused s"):
        table.add_column(column, justify="right")
    for sound, labels, floor in (
        ("derived/libri_three_speakers.flac", "derived/libri_three_speakers.rttm", True),
        ("speech/ami/ami_tst00_30s.wav", "speech/ami/ami_tst00_30s.rttm", False),
    ):
        truth = Annotation()
        for number, line in enumerate((shared / "media" / labels).read_text(encoding="utf-8").splitlines()):
            part = line.split()
            truth[Stretch(float(part[3]), float(part[3]) + float(part[4])), number] = part[7]
        cut = bench.cut(shared / "media" / sound)
        found, known = Annotation(), list[list[Vector]]()
        for segment in cut:
            evidence = bench.analyse(segment)
            names: dict[str, str] = {}
            taken: set[int] = set()
            for voice in evidence.voices:
                names[voice.anchor] = f"{segment.index}-{voice.anchor}"
                if voice.embedding is not None:
                    taken.add(number := join(known, voice.embedding, match, taken))
                    names[voice.anchor] = f"p{number}"
            for number, turn in enumerate(evidence.turns):
                found[Stretch(turn.start, turn.end), f"{segment.index}-{number}"] = names[turn.voice]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scored = DiarizationErrorRate(collar=0.25)(
                truth, found, uem=Timeline([Stretch(0, cut[-1].end)]), detailed=True
            )
        rate = scored["diarization error rate"]
        table.add_row(
            Path(sound).name,
            str(len(cut)),
            str(len(truth.labels())),
            str(len(found.labels())),
            f"{rate:.1%}",
            *(f"{scored[part]:.2f}" for part in ("missed detection", "false alarm", "confusion")),
        )
        if floor:
            bench.require("diarization error", rate, MAX_DER)
            if scored["confusion"] > 0 or len(found.labels()) != len(truth.labels()):
                bench.failures.append(f"{Path(sound).name}: speakers are confused")
    console.print(table)


def join(known: list[list[Vector]], embedding: Vector, match: float, taken: set[int]) -> int:
    """The speaker so far that an embedding belongs to, none of those `taken`; a new one below `match`."""
    free = [number for number in range(len(known)) if number not in taken]
    likeness = {number: float(unit(np.mean(known[number], axis=0)) @ embedding) for number in free}
    best = max(free, key=lambda number: likeness[number], default=-1)
    if best >= 0 and likeness[best] >= match:
        known[best].append(embedding)
        return best
    known.append([embedding])
    return len(known) - 1


def inventions(bench: Bench, console: Console) -> None:
    """Words on sounds that are no speech: through the detector, and forced past it."""
    table = Table(title="Inventions: 10 s of no speech; “forced” calls all of it speech")
    for column in ("sound", "speech heard s", "words", "forced: words", "forced: refused"):
        table.add_column(column, justify="right")
    kept = 0
    for name, samples in noises().items():
        segment = bench.whole(samples)
        evidence = bench.analyse(segment)
        everything = Segment(**{**_fields(segment), "speech": (Span(segment.start, segment.end),)})
        forced = bench.analyse(everything)
        count = len(spoken([evidence]).split())
        kept += count
        speech = sum(span.end - span.start for span in segment.speech)
        table.add_row(name, f"{speech:.1f}", str(count), str(len(spoken([forced]).split())), str(forced.refused_words))
    console.print(table)
    if kept:
        bench.failures.append(f"{kept} words are kept on sounds without speech")


def noises() -> dict[str, Samples]:
    """Ten seconds each."""
    rng = np.random.default_rng(0)
    count = 10 * SAMPLE_RATE
    t = np.arange(count) / SAMPLE_RATE
    spectrum = np.fft.rfft(rng.normal(size=count))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    pink = np.fft.irfft(spectrum)
    note = np.arange(SAMPLE_RATE // 4)
    tune = [
        np.sin(2 * np.pi * f * note / SAMPLE_RATE) * np.exp(-note / 3000)
        for f in rng.choice([262, 294, 330, 392, 440], 40)
    ]
    sounds = {
        "silence": np.zeros(count),
        "faint white noise": rng.normal(size=count) * 0.003,
        "white noise": rng.normal(size=count) * 0.1,
        "pink noise": 0.3 * pink / np.abs(pink).max(),
        "chord": 0.1 * sum(np.sin(2 * np.pi * f * t) for f in (261, 329, 392)),
        "tune": 0.3 * np.concatenate(tune),
        "mains hum": 0.05 * np.sin(2 * np.pi * 50 * t) + 0.02 * np.sin(2 * np.pi * 150 * t),
        "clicks": np.where(rng.random(count) < 0.0005, 0.8, 0.0),
    }
    return {name: np.asarray(sound, dtype=np.float32) for name, sound in sounds.items()}


def languages(bench: Bench, shared: Path, console: Console) -> None:
    """Speech that is not English. Synthetic and reversed speech are a trial, not a proof."""
    table = Table(title="Other languages: espeak-ng, and real English backwards")
    for column in ("speech", "words kept", "refused", "other language", "untranscribed", "kept text"):
        table.add_column(column, justify="right" if column != "kept text" else "left")
    sounds: dict[str, Samples] = {}
    if shutil.which("espeak-ng"):
        with tempfile.TemporaryDirectory() as folder:
            for voice, text in SENTENCES.items():
                path = Path(folder) / f"{voice}.wav"
                subprocess.run(["espeak-ng", "-v", voice, "-s", "150", "-w", str(path), text], check=True)
                sounds[voice] = np.concatenate([s.audio for s in bench.cut(path) if s.audio is not None])
    else:
        console.print("espeak-ng is not installed: no synthetic speech.")
    for path in sorted((shared / "media/speech/librispeech").glob("*-0000.flac")):
        heard = np.concatenate([s.audio for s in bench.cut(path) if s.audio is not None])
        sounds[f"{path.stem.split('-')[0]} backwards"] = heard[::-1].copy()
    for name, samples in sounds.items():
        evidence = bench.analyse(bench.whole(samples))
        text = spoken([evidence])
        table.add_row(
            name,
            str(len(text.split())),
            str(evidence.refused_words),
            "yes" if evidence.other_language else "",
            "yes" if evidence.untranscribed else "",
            text,
        )
    console.print(table)


def _fields(segment: Segment) -> dict[str, object]:
    return {name: getattr(segment, name) for name in Segment.__dataclass_fields__}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurements; 1 when a floor is missed."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.speech", description=(__doc__ or "").split("\n")[0])
    default = Path(os.environ.get("REFLECTWORLD_SHARED", ROOT.parent / "shared"))
    parser.add_argument("--shared", type=Path, default=default, help="folder with media/ (default: %(default)s)")
    parser.add_argument("--languages", action="store_true", help="also try speech that is not English")
    options = parser.parse_args(arguments)
    console = Console(width=160)
    settings = load_settings()
    catalog = Catalog.load(settings.infer)
    runtime = Runtime(settings.infer)
    activity = VoiceActivity(runtime.open(catalog.default("voice-activity")), threshold=settings.perceive.vad_threshold)
    bench = Bench(build_speech(catalog, runtime, settings.perceive), activity)
    words(bench, options.shared, console)
    split_by_voice(bench, catalog, runtime, options.shared, console)
    speakers(bench, options.shared, console)
    cost = bench.cpu_s / bench.heard_s
    console.print(f"Cost of words and voices: {cost:.3f} s of CPU a second of sound ({bench.heard_s:.0f} s)")
    inventions(bench, console)
    if options.languages:
        languages(bench, options.shared, console)
    for failure in bench.failures:
        console.print(f"[red]Missed: {failure}")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
