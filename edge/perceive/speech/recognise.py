"""Speech to text with Moonshine (Jeffries et al. 2024, arXiv:2410.15608), greedily, with the probability of each token.

The encoder takes the waveform itself; the decoder gives one token a step and keeps its attention caches between
steps. The probabilities are what tells words from inventions (`edge.perceive.speech.words`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edge.errors import ModelError
from edge.infer import ModelSpec, Network, Runtime
from edge.perceive.speech.words import Hypothesis, Word
from edge.types.media import SAMPLE_RATE, Samples

_BEGIN, _END = 1, 2  # tokens
_SPACE = "▁".encode()  # marks the beginning of a word inside tokens
_TOKENS_A_SECOND = 8.0  # greatest length of a transcript (measured: fast speech has 6.1)
_LOOP_TOKENS = 16  # so many tokens of one repeated phrase stop the decoder
_LOOP_COPIES = 4
_LOOP_PHRASE = 12  # longest phrase looked for, tokens
_PAD_S = 0.1  # zeros on both sides (measured: 0, .3 and .5 bring more wrong words)
_PEAK = 0.5  # loudest sample after the gain


class Recogniser:
    """Turns a piece of speech into words. Thread-safe."""

    def __init__(self, spec: ModelSpec, runtime: Runtime) -> None:
        """Open the model.

        Args:
            spec: a model of the role `speech` with the decoder `moonshine`.
            runtime: opens its networks.

        Raises:
            ModelError: a file is absent or damaged, or the model has another form.
        """
        self._encoder = runtime.open(spec, "encoder_model.ort")
        self._decoder = runtime.open(spec, "decoder_model_merged.ort")
        self._tokens = read_tokens(spec.id, spec.path("tokenizer.bin"))
        self._caches = _caches(spec.id, self._decoder)
        self._pad = np.zeros(round(float(spec.params.get("pad_s", _PAD_S)) * SAMPLE_RATE), dtype=np.float32)

    def transcribe(self, samples: Samples) -> Hypothesis:
        """Recognise one piece of speech.

        Args:
            samples: (n,) mono, 16 kHz, any loudness; at most about 25 s.

        Raises:
            InferenceError: a network failed.
        """
        if not len(samples):
            return Hypothesis((), ended=True)
        sound = np.concatenate((self._pad, level(samples), self._pad))[np.newaxis]
        mask = np.ones(sound.shape, dtype=np.int64)
        (hidden,) = self._encoder.run({"input_values": sound, "attention_mask": mask})
        limit = 8 + int(len(samples) / SAMPLE_RATE * _TOKENS_A_SECOND)
        ids: list[int] = []
        logprobs: list[float] = []
        feeds: dict[str, NDArray[Any]] = {"encoder_attention_mask": mask, "encoder_hidden_states": hidden}
        feeds |= {name: np.zeros((1, heads, 0, width), dtype=np.float32) for name, heads, width in self._caches}
        ended = False
        while len(ids) < limit and not _stuck(ids):
            feeds["input_ids"] = np.array([[ids[-1] if ids else _BEGIN]], dtype=np.int64)
            feeds["use_cache_branch"] = np.array([bool(ids)])
            logits, *caches = self._decoder.run(feeds)
            for (name, _, _), cache in zip(self._caches, caches, strict=True):
                if not ids or "encoder" not in name:  # the encoder's caches are made in the first step only
                    feeds[name] = cache
            token, logprob = _best(logits[0, -1])
            if token == _END:
                ended = True
                break
            ids.append(token)
            logprobs.append(logprob)
        return Hypothesis(to_words([self._tokens[token] for token in ids], logprobs), ended)


def level(samples: Samples) -> Samples:
    """Without a constant offset, and loud enough: the network hears nothing below about −70 dB.

    Args:
        samples: (n,), any loudness.
    """
    centred: Samples = (samples - samples.mean(dtype=np.float64)).astype(np.float32)
    peak = float(np.abs(centred).max(initial=0.0))
    if peak > 0:
        centred *= np.float32(_PEAK / peak)
    return centred


def to_words(tokens: Sequence[bytes], logprobs: Sequence[float]) -> tuple[Word, ...]:
    """Join tokens into words; a token that begins with the mark of a space begins a word."""
    groups: list[tuple[list[bytes], list[float]]] = []
    for token, logprob in zip(tokens, logprobs, strict=True):
        if not groups or token.startswith(_SPACE):
            groups.append(([], []))
        groups[-1][0].append(token)
        groups[-1][1].append(logprob)
    words = []
    for parts, values in groups:
        text = b"".join(parts).replace(_SPACE, b" ").decode("utf-8", errors="replace").strip()
        if text:
            words.append(Word(text, sum(values), len(values)))
    return tuple(words)


def read_tokens(model: str, path: Path) -> tuple[bytes, ...]:
    """Read Moonshine's vocabulary: for each token its length (one byte, or two from 128 on) and its bytes.

    Raises:
        ModelError: the file is something else.
    """
    data = path.read_bytes()
    tokens: list[bytes] = []
    at = 0
    while at < len(data):
        size = data[at]
        at += 1
        if size >= 128 and at < len(data):
            size += data[at] * 128 - 128
            at += 1
        tokens.append(data[at : at + size])
        at += size
    if at != len(data) or len(tokens) <= _END:
        raise ModelError(
            model, f"The vocabulary {path} is not Moonshine's. Fetch it again: `reflectworld models pull {model}`."
        )
    return tuple(tokens)


def _caches(model: str, decoder: Network) -> tuple[tuple[str, int, int], ...]:
    """Name, heads and width of the attention caches, in the order in which the decoder gives them back."""
    inputs = {tensor.name: tensor.shape for tensor in decoder.inputs}
    caches = []
    for output in decoder.outputs[1:]:
        name = output.name.replace("present", "past_key_values", 1)
        shape = inputs.get(name, ())
        heads, width = (shape[1], shape[3]) if len(shape) == 4 else (None, None)
        if heads is None or width is None:
            raise ModelError(
                model, f"The model {model} is no Moonshine: it keeps no cache “{name}”. Choose another decoder for it."
            )
        caches.append((name, heads, width))
    return tuple(caches)


def _best(logits: NDArray[np.float32]) -> tuple[int, float]:
    """The most likely token and the natural logarithm of its probability."""
    token = int(logits.argmax())
    return token, -float(np.log(np.exp(logits.astype(np.float64) - float(logits[token])).sum()))


def _stuck(ids: Sequence[int]) -> bool:
    """Whether the last tokens repeat one phrase over and over."""
    for size in range(1, _LOOP_PHRASE + 1):
        copies = max(_LOOP_COPIES, -(-_LOOP_TOKENS // size))
        tail = ids[-size * copies :]
        if len(tail) == size * copies and all(tail[i] == tail[i % size] for i in range(size, len(tail))):
            return True
    return False
