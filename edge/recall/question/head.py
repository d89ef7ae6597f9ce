"""The reflex head: a small network that finds the question in an input, moves its vector, and says whether to answer.

It is Light-Omni's latent state (3.2) at the size of a small computer. There a language model with soft prompts gives two hidden
states; here they come from the sentence embedder that searches anyway, and from three small networks on it:

* *the finder* reads the states of the input's words and scores every span of them as the question; "no question" is one more
  candidate, so that the scores are a distribution (as in extractive reading, Devlin et al. 2019, 4.2);
* *the actor* gives P(speak) and P(search) from the question, the global state and what is on camera now (equation 3);
* *the mover*, linear – ReLU – linear as in the paper, gives what is added to the question's vector so that it lies nearer to
  what a memory says (`z_ret` of section 3.2).

All three are read from one file of arrays; `tools/head` trains them on made-up lives and public text. Without the file a
question is taken by `edge.recall.question.finder` alone and its vector stays as it is.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edge.errors import ModelError
from edge.infer import ModelSpec, TextEmbedder, TokenStates, unit_words
from edge.types.evidence import Vector

Array = NDArray[np.float32]

WINDOW: Final = 5  # words that a layer of the finder looks at
DILATIONS: Final = (1, 3, 9)  # of its layers: 53 words in all
FLAGS: Final = 7
_KEPT: Final = 8  # texts whose reading is remembered: a question is read by the finder, then searched for
_WORD = re.compile(r"\S+")
_ENDS = (".", "?", "!", "…")


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What a question is asked in."""

    frontier: Vector  # (d,) mean of what the global state tells, or zeros
    now: Vector  # (d,) of what is on camera now, or zeros


@dataclass(frozen=True, slots=True)
class Span:
    """A question inside an input."""

    start: int  # characters
    end: int
    probability: float  # of exactly this span
    whole: float  # that all of the input is the question
    nothing: float  # that there is none


@dataclass(frozen=True, slots=True)
class Action:
    """What an input calls for (Light-Omni, 3.2)."""

    speak: float  # P: it is said to the device and wants an answer
    search: float  # P: the answer lies in the memory


class Head:
    """The reflex head on one sentence embedder. Thread-safe."""

    def __init__(self, spec: ModelSpec, embedder: TextEmbedder) -> None:
        """Load the weights.

        Raises:
            ModelError: the file is absent or damaged, or was made for another embedder.
        """
        made_for = str(spec.params["embedder"])
        if made_for != embedder.key:
            raise ModelError(
                spec.id,
                f"The model {spec.id} was made for the text-embedding model {made_for}, and {embedder.key} is in use. "
                "Train it for that one: `python -m tools.head.train`.",
            )
        path = spec.path()
        try:
            with np.load(path, allow_pickle=False) as arrays:
                self._weights = Weights({name: arrays[name] for name in arrays.files})
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(spec.id, f"{path} is not a reflex head ({error}). {spec.remedy}") from error
        self.key = spec.key
        self.embedder = embedder
        self._read: OrderedDict[str, TokenStates] = OrderedDict()
        self._lock = Lock()

    def find(self, text: str) -> Span:
        """Where the question is in an input.

        Raises:
            InferenceError: the embedder failed.
        """
        words = words_of(text)
        if not words:
            return Span(0, len(text), 0.0, 0.0, 1.0)
        inside, start, end, _ = self._scored(text, words)
        first, last, best, whole, nothing = best_span(inside, start, end)
        return Span(words[first][0], words[last][1], best, whole, nothing)

    def act(self, text: str, context: Context) -> Action:
        """Whether an input wants an answer, and the memory.

        Raises:
            InferenceError: the embedder failed.
        """
        words = words_of(text)
        if not words:
            return Action(0.0, 0.0)
        speak, search = self._weights.actor(
            self.vector(text), context.frontier, context.now, self._scored(text, words)[3]
        )
        return Action(speak, search)

    def vector(self, text: str) -> Vector:
        """The text's vector as the embedder gives it; (d,).

        Raises:
            InferenceError: the embedder failed.
        """
        read = self._states(text)
        return read.vector if read.vector is not None else self.embedder.embed([text])[0]

    def read_words(self, text: str) -> tuple[tuple[str, ...], NDArray[np.float32]]:
        """The content words of a text and what they mean there, as `TextEmbedder.read_words`.

        Raises:
            InferenceError: the embedder failed.
        """
        return unit_words(text, self._states(text))

    def moved(self, vector: Vector, context: Context) -> Vector:
        """A question's vector, moved towards what a memory says; (d,), L2-normalised."""
        return self._weights.mover(vector, context.frontier, context.now)

    def _scored(self, text: str, words: list[tuple[int, int]]) -> tuple[Array, Array, Array, Array]:
        return self._weights.finder(*features(text, words, self._states(text), self._weights.vocabulary))

    def _states(self, text: str) -> TokenStates:
        with self._lock:
            known = self._read.get(text)
        if known is None:
            known = self.embedder.token_states(text)
            with self._lock:
                self._read[text] = known
                while len(self._read) > _KEPT:
                    self._read.popitem(last=False)
        return known


# -- the networks -------------------------------------------------------------------------------------------------------


class Weights:
    """The arrays of the three networks, and how they are run."""

    def __init__(self, arrays: dict[str, NDArray[np.generic]]) -> None:
        self.vocabulary = {str(word): place for place, word in enumerate(arrays["vocabulary"].tolist(), 1)}
        self._arrays: dict[str, Array] = {
            name: value.astype(np.float32) for name, value in arrays.items() if name != "vocabulary"
        }

    def finder(self, states: Array, ids: NDArray[np.int64], flags: Array) -> tuple[Array, Array, Array, Array]:
        """Scores of n words: as one inside the question, as its first, as its last, each (n,); and the mean of the layers."""
        a = self._arrays
        x = np.concatenate([states @ a["f_state"], a["f_word"][ids], flags], axis=1)
        layers = []
        for depth, dilation in enumerate(DILATIONS):
            x = np.maximum(shifted(x[None], dilation)[0] @ a[f"f_w{depth}"] + a[f"f_b{depth}"], 0.0)
            layers.append(x)
        joint = np.concatenate(layers, axis=1)
        scores: Array = joint @ a["f_out"] + a["f_bias"]
        return scores[:, 0], scores[:, 1], scores[:, 2], joint.mean(axis=0)

    def actor(self, question: Vector, frontier: Vector, now: Vector, layers: Array) -> tuple[float, float]:
        """P(speak), P(search); `layers` is what the finder's layers make of the question."""
        a = self._arrays
        hidden = np.maximum(np.concatenate([question, frontier, now, layers]) @ a["a_w"] + a["a_b"], 0.0)
        speak, search = 1.0 / (1.0 + np.exp(-(hidden @ a["a_out"] + a["a_bias"])))
        return float(speak), float(search)

    def mover(self, question: Vector, frontier: Vector, now: Vector) -> Vector:
        """The question's vector, moved."""
        a = self._arrays
        hidden = np.maximum(np.concatenate([question, frontier, now]) @ a["m_w"] + a["m_b"], 0.0)
        moved = question + hidden @ a["m_out"]
        unit: Vector = (moved / np.linalg.norm(moved)).astype(np.float32)
        return unit


def words_of(text: str) -> list[tuple[int, int]]:
    """Where the words of a text are: parted at white space, as characters from and to."""
    return [match.span() for match in _WORD.finditer(text)]


def features(
    text: str, words: list[tuple[int, int]], read: TokenStates, vocabulary: dict[str, int]
) -> tuple[Array, NDArray[np.int64], Array]:
    """What the finder sees of each word.

    Args:
        text: the input.
        words: of `words_of`.
        read: its tokens.
        vocabulary: function words and their numbers from 1.

    Returns:
        (n, d) the mean state of its tokens; (n,) its number in the vocabulary, 0: none; (n, FLAGS) signs around it.
    """
    count = len(words)
    sums = np.zeros((count, read.states.shape[1]), np.float32)
    sizes = np.zeros(count, np.float32)
    ends = np.array([end for _, end in words])
    if read.spans:
        owners = np.minimum(np.searchsorted(ends, [start for start, _ in read.spans], side="right"), count - 1)
        np.add.at(sums, owners, read.states)
        np.add.at(sizes, owners, 1.0)
    states: Array = (sums / np.maximum(sizes, 1.0)[:, None]).astype(np.float32)
    spelled = [text[start:end] for start, end in words]
    bare = [re.sub(r"^\W+|\W+$", "", word).lower() for word in spelled]
    ids = np.array([vocabulary.get(word, 0) for word in bare], np.int64)
    flags: Array = np.zeros((count, FLAGS), np.float32)
    for place, word in enumerate(spelled):
        closed = word.rstrip("\"'”’)")
        flags[place] = (
            closed.endswith(_ENDS),
            closed.endswith("?"),
            closed.endswith((",", ";", ":", "-", "–", "—")),
            not bare[place],
            place == 0,
            place == count - 1,
            place > 0 and spelled[place - 1].rstrip("\"'”’)").endswith((*_ENDS, ":")),
        )
    return states, ids, flags


def shifted(x: Array, dilation: int) -> Array:
    """(batch, n, c) → (batch, n, WINDOW · c): each word beside its neighbours at steps of `dilation`; zeros outside."""
    reach = WINDOW // 2 * dilation
    padded = np.pad(x, ((0, 0), (reach, reach), (0, 0)))
    return np.concatenate([padded[:, step * dilation : step * dilation + x.shape[1]] for step in range(WINDOW)], axis=2)


def best_span(inside: Array, start: Array, end: Array) -> tuple[int, int, float, float, float]:
    """The best span of words, and how the probability is shared.

    A span scores the sum of its words' scores, plus that of its first word as a first and of its last as a last; no span
    scores 0; the softmax over all of them is the distribution.

    Returns:
        First and last word; the probabilities of that span, of all words, of none.
    """
    sums = np.concatenate([[0.0], np.cumsum(inside, dtype=np.float64)])
    scores = sums[None, 1:] - sums[:-1, None] + start[:, None] + end[None, :]
    scores[np.tril_indices(len(inside), -1)] = -np.inf
    top = max(float(scores.max()), 0.0)
    weights = np.exp(scores - top)
    total = float(weights.sum()) + float(np.exp(-top))
    first, last = np.unravel_index(int(np.argmax(scores)), scores.shape)
    return (
        int(first),
        int(last),
        float(weights[first, last]) / total,
        float(weights[0, -1]) / total,
        float(np.exp(-top)) / total,
    )
