"""Speaker embeddings with Resemblyzer (Wan et al. 2018, arXiv:1710.10467, generalised end-to-end loss)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edge.errors import ModelError
from edge.infer import ModelSpec, Runtime
from edge.perceive.speech.melspec import HOP, MELS, mel_power
from edge.perceive.speech.turns import Range
from edge.types.media import Samples

FRAMES = 160  # mel frames of 10 ms that the network hears at once
_BATCH = 16  # windows a run: bounds the memory
_SILENT = 1e-6  # RMS below which there is nothing to raise


class VoicePrinter:
    """Embeds stretches of speech. Thread-safe."""

    def __init__(self, spec: ModelSpec, runtime: Runtime) -> None:
        """Open the model.

        Args:
            spec: a model of the role `voice-embedding` with the decoder `resemblyzer`.
            runtime: opens its network.

        Raises:
            ModelError: the file is absent or damaged, or the model has another form.
        """
        self._network = runtime.open(spec)
        if len(self._network.inputs) != 1 or self._network.inputs[0].shape[-1] != MELS:
            raise ModelError(
                spec.id, f"The model {spec.id} does not take {MELS} mel bands. Choose another decoder for it."
            )
        self._target = 10.0 ** (float(spec.params.get("target_dbfs", -30.0)) / 20.0)
        self.key = spec.key

    def embed(self, samples: Samples, windows: Sequence[Range]) -> NDArray[np.float32]:
        """Embed windows of a sound.

        Args:
            samples: (n,) mono, 16 kHz.
            windows: (begin, end) in samples; FRAMES * HOP long, or shorter: then the speech is repeated to that length.

        Returns:
            (len(windows), 256), each L2-normalised.

        Raises:
            InferenceError: the network failed.
        """
        mels = mel_power(samples)
        heard = np.stack([self._window(samples, mels, window) for window in windows])
        rows = [
            self._network.run({self._network.inputs[0].name: heard[at : at + _BATCH]})[0]
            for at in range(0, len(heard), _BATCH)
        ]
        return unit(np.concatenate(rows).astype(np.float32))

    def _window(self, samples: Samples, mels: NDArray[np.float32], window: Range) -> NDArray[np.float32]:
        """Mel power of one window at the loudness that the network knows: (FRAMES, MELS)."""
        first = window[0] // HOP
        count = min(FRAMES, max(1, (window[1] - window[0]) // HOP))
        rows = mels[first : first + count]
        # The network was trained on speech of at least -30 dBFS: quiet speech is raised, loud speech left as it is.
        rms = float(np.sqrt(np.mean(np.square(samples[window[0] : window[1]], dtype=np.float64))))
        gain = max(1.0, self._target / rms) if rms > _SILENT else 1.0
        return np.resize(rows, (FRAMES, MELS)) * np.float32(gain * gain)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors along the last axis at length 1; zero vectors stay zero."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.maximum(norms, 1e-9)).astype(np.float32)
    return scaled
