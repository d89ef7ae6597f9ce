"""The three networks of the head as they are trained: forward, backward, Adam; NumPy alone.

The forward passes are those of `edge.recall.question.head.Weights` for a batch; `train` holds that both give the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edge.recall.question.head import DILATIONS, FLAGS, WINDOW, shifted

Array = NDArray[np.float32]
Parameters = dict[str, Array]

HIDDEN = 64  # of each layer of the finder
STATE = 64  # the state of a word, projected
WORD = 16  # a function word's own vector
TRUNK = 128  # of the actor and the mover


def matrix(random_: np.random.Generator, rows: int, columns: int, gain: float = 1.0) -> Array:
    """He initialisation."""
    return (random_.normal(size=(rows, columns)) * gain * np.sqrt(2.0 / rows)).astype(np.float32)


@dataclass
class Adam:
    """Adam (Kingma and Ba 2015) with decoupled weight decay."""

    parameters: Parameters
    rate: float
    decay: float = 0.0
    _first: Parameters = field(init=False)
    _second: Parameters = field(init=False)
    _step: int = 0

    def __post_init__(self) -> None:
        self._first = {name: np.zeros_like(value) for name, value in self.parameters.items()}
        self._second = {name: np.zeros_like(value) for name, value in self.parameters.items()}

    def step(self, gradients: Parameters, scale: float) -> None:
        """One step; `scale` follows the schedule of the rate."""
        self._step += 1
        for name, gradient in gradients.items():
            first, second, value = self._first[name], self._second[name], self.parameters[name]
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient * gradient - second)
            rate = self.rate * scale
            corrected = np.sqrt(second / (1.0 - 0.999**self._step)) + 1e-8
            value -= rate * (first / (1.0 - 0.9**self._step)) / corrected
            if value.ndim > 1:
                value -= rate * self.decay * value


# -- the finder -----------------------------------------------------------------------------------------------------------


def new_finder(random_: np.random.Generator, dimensions: int, words: int) -> Parameters:
    """Its parameters before training."""
    found = {
        "f_state": matrix(random_, dimensions, STATE, 0.7),
        "f_word": (random_.normal(size=(words + 1, WORD)) * 0.3).astype(np.float32),
        "f_out": matrix(random_, HIDDEN * len(DILATIONS), 3, 0.3),
        "f_bias": np.array([-0.5, -1.0, -1.0], np.float32),
    }
    size = STATE + WORD + FLAGS
    for depth in range(len(DILATIONS)):
        found[f"f_w{depth}"] = matrix(random_, WINDOW * size, HIDDEN)
        found[f"f_b{depth}"] = np.zeros(HIDDEN, np.float32)
        size = HIDDEN
    return found


@dataclass(frozen=True)
class Batch:
    """Inputs of the finder, padded to one length."""

    states: Array  # (b, n, d)
    ids: NDArray[np.int64]  # (b, n)
    flags: Array  # (b, n, FLAGS)
    mask: Array  # (b, n) 1: a word
    first: NDArray[np.int64]  # (b,) of the question; -1: none
    last: NDArray[np.int64]


def finder_gradients(
    p: Parameters, batch: Batch, random_: np.random.Generator, dropout: float
) -> tuple[float, Parameters]:
    """The mean loss of a batch, and its gradients."""
    mask = batch.mask[:, :, None]
    x = np.concatenate([batch.states @ p["f_state"], p["f_word"][batch.ids], batch.flags], axis=2) * mask
    inputs, layers, drops = [], [], []
    for depth, dilation in enumerate(DILATIONS):
        wide = shifted(x, dilation)
        x = np.maximum(wide @ p[f"f_w{depth}"] + p[f"f_b{depth}"], 0.0) * mask
        drop = (random_.random(x.shape, np.float32) >= dropout).astype(np.float32) / (1.0 - dropout)
        x = x * drop
        inputs.append(wide)
        layers.append(x)
        drops.append(drop)
    joint = np.concatenate(layers, axis=2)
    scores = joint @ p["f_out"] + p["f_bias"]
    loss, d_scores = span_loss(scores, batch)
    gradients: Parameters = {
        "f_out": np.einsum("bnc,bnk->ck", joint, d_scores),
        "f_bias": d_scores.sum(axis=(0, 1)),
    }
    d_joint = d_scores @ p["f_out"].T
    flowing = np.zeros_like(layers[-1])
    for depth in reversed(range(len(DILATIONS))):
        d_x = (
            (d_joint[:, :, depth * HIDDEN : (depth + 1) * HIDDEN] + flowing) * drops[depth] * (layers[depth] > 0) * mask
        )
        wide = inputs[depth]
        flat = d_x.reshape(-1, HIDDEN)
        gradients[f"f_w{depth}"] = wide.reshape(-1, wide.shape[2]).T @ flat
        gradients[f"f_b{depth}"] = flat.sum(axis=0)
        flowing = unshifted(d_x @ p[f"f_w{depth}"].T, DILATIONS[depth])
    flowing = flowing * mask
    d_state = flowing[:, :, :STATE]
    gradients["f_state"] = batch.states.reshape(-1, batch.states.shape[2]).T @ d_state.reshape(-1, STATE)
    gradients["f_word"] = np.zeros_like(p["f_word"])
    np.add.at(gradients["f_word"], batch.ids, flowing[:, :, STATE : STATE + WORD])
    return loss, gradients


def unshifted(wide: Array, dilation: int) -> Array:
    """The transpose of `shifted`."""
    size = wide.shape[2] // WINDOW
    reach = WINDOW // 2 * dilation
    padded = np.zeros((wide.shape[0], wide.shape[1] + 2 * reach, size), np.float32)
    for step in range(WINDOW):
        padded[:, step * dilation : step * dilation + wide.shape[1]] += wide[:, :, step * size : (step + 1) * size]
    return padded[:, reach : reach + wide.shape[1]]


def span_loss(scores: Array, batch: Batch) -> tuple[float, Array]:
    """Minus the log-probability of the true spans (or of none) under `best_span`'s distribution, and its gradient."""
    gradient = np.zeros_like(scores)
    loss = 0.0
    for row in range(len(scores)):
        n = int(batch.mask[row].sum())
        inside, start, end = scores[row, :n].astype(np.float64).T
        sums = np.concatenate([[0.0], np.cumsum(inside)])
        spans = sums[None, 1:] - sums[:-1, None] + start[:, None] + end[None, :]
        spans[np.tril_indices(n, -1)] = -np.inf
        top = max(float(spans.max()), 0.0)
        weights = np.exp(spans - top)
        total = weights.sum() + np.exp(-top)
        share = weights / total
        first, last = int(batch.first[row]), int(batch.last[row])
        if first < 0:
            loss += top + np.log(total)
        else:
            loss += top + np.log(total) - spans[first, last]
            share[first, last] -= 1.0
        by_first, by_last = share.sum(axis=1), share.sum(axis=0)
        # A word is inside each span that begins at or before it and ends at or after it.
        within = np.cumsum(by_first) - np.concatenate([[0.0], np.cumsum(by_last)[:-1]])
        gradient[row, :n] = np.stack([within, by_first, by_last], axis=1)
    return float(loss) / len(scores), (gradient / len(scores)).astype(np.float32)


# -- the actor and the mover ----------------------------------------------------------------------------------------------


def new_actor(random_: np.random.Generator, dimensions: int) -> Parameters:
    """Its parameters before training."""
    return {
        "a_w": matrix(random_, 3 * dimensions + HIDDEN * len(DILATIONS), TRUNK),
        "a_b": np.zeros(TRUNK, np.float32),
        "a_out": matrix(random_, TRUNK, 2, 0.3),
        "a_bias": np.zeros(2, np.float32),
    }


def actor_gradients(
    p: Parameters, inputs: Array, labels: Array, random_: np.random.Generator, dropout: float
) -> tuple[float, Parameters]:
    """The mean cross-entropy of a batch, and its gradients."""
    drop = (random_.random((len(inputs), TRUNK), np.float32) >= dropout) / (1.0 - dropout)
    hidden = np.maximum(inputs @ p["a_w"] + p["a_b"], 0.0)
    dropped = (hidden * drop).astype(np.float32)
    chance = 1.0 / (1.0 + np.exp(-(dropped @ p["a_out"] + p["a_bias"])))
    loss = -np.mean(labels * np.log(chance + 1e-9) + (1 - labels) * np.log(1 - chance + 1e-9))
    d_out = ((chance - labels) / len(inputs)).astype(np.float32)
    d_hidden = ((d_out @ p["a_out"].T) * drop * (hidden > 0)).astype(np.float32)
    return float(loss), {
        "a_w": inputs.T @ d_hidden,
        "a_b": d_hidden.sum(axis=0),
        "a_out": dropped.T @ d_out,
        "a_bias": d_out.sum(axis=0),
    }


def new_mover(random_: np.random.Generator, dimensions: int) -> Parameters:
    """Its parameters before training: at first nothing is moved."""
    return {
        "m_w": matrix(random_, 3 * dimensions, TRUNK),
        "m_b": np.zeros(TRUNK, np.float32),
        "m_out": np.zeros((TRUNK, dimensions), np.float32),
    }


def mover_gradients(
    p: Parameters, inputs: Array, keys: Array, temperature: float, keep: float
) -> tuple[float, Parameters]:
    """The contrastive loss of a batch (Light-Omni, equation 4) and its gradients.

    Args:
        p: the parameters.
        inputs: (b, 3 d) the question, the global state, what is on camera.
        keys: (m, d) what the memory says; the first b answer the questions in turn, the others none.
        temperature: of the softmax.
        keep: weight of the squared length of what is added.
    """
    d = keys.shape[1]
    hidden = np.maximum(inputs @ p["m_w"] + p["m_b"], 0.0)
    added = hidden @ p["m_out"]
    moved = inputs[:, :d] + added
    norms = np.linalg.norm(moved, axis=1, keepdims=True)
    unit = moved / norms
    logits = unit @ keys.T / temperature
    logits -= logits.max(axis=1, keepdims=True)
    share = np.exp(logits)
    share /= share.sum(axis=1, keepdims=True)
    rows = np.arange(len(inputs))
    loss = float(-np.log(share[rows, rows] + 1e-9).mean() + keep * (added * added).sum(axis=1).mean())
    share[rows, rows] -= 1.0
    d_unit = share @ keys / temperature / len(inputs)
    d_moved = (d_unit - unit * (d_unit * unit).sum(axis=1, keepdims=True)) / norms
    d_added = d_moved + 2 * keep * added / len(inputs)
    d_hidden = (d_added @ p["m_out"].T) * (hidden > 0)
    return loss, {"m_w": inputs.T @ d_hidden, "m_b": d_hidden.sum(axis=0), "m_out": hidden.T @ d_added}
