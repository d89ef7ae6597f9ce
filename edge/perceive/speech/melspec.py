"""Mel spectra for the speaker network: numpy only.

The scale is Slaney's (Auditory Toolbox, 1998): linear below 1 kHz, logarithmic above; each filter has unit area.
Frames are centred on multiples of the hop with zeros outside the sound, the window is a periodic Hann.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from edge.types.media import SAMPLE_RATE, Samples

N_FFT = 400  # samples, 25 ms
HOP = 160  # samples, 10 ms
MELS = 40
_LINEAR_HZ = 200.0 / 3.0  # Hz a mel below the break
_BREAK_HZ = 1000.0
_LOG_STEP = np.log(6.4) / 27.0  # a mel above the break


def mel_power(samples: Samples) -> NDArray[np.float32]:
    """Mel power (not its logarithm).

    Args:
        samples: (n,) mono, 16 kHz.

    Returns:
        (1 + n // HOP, MELS).
    """
    count = 1 + len(samples) // HOP
    padded = np.zeros((count - 1) * HOP + N_FFT, dtype=np.float32)
    kept = samples[: len(padded) - N_FFT // 2]
    padded[N_FFT // 2 : N_FFT // 2 + len(kept)] = kept
    frames = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP]
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(N_FFT) / N_FFT)
    spectrum = np.fft.rfft(frames * window.astype(np.float32), axis=1)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
    mels: NDArray[np.float32] = power @ mel_filters()
    return mels


@cache
def mel_filters() -> NDArray[np.float32]:
    """The filter bank: (N_FFT // 2 + 1, MELS) weights from 0 to 8 kHz."""
    top = _hz_to_mel(SAMPLE_RATE / 2.0)
    edges = _mel_to_hz(np.linspace(0.0, top, MELS + 2))
    bins = np.fft.rfftfreq(N_FFT, 1.0 / SAMPLE_RATE)[:, np.newaxis]
    rising = (bins - edges[:-2]) / np.diff(edges)[:-1]
    falling = (edges[2:] - bins) / np.diff(edges)[1:]
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    return (triangles * (2.0 / (edges[2:] - edges[:-2]))).astype(np.float32)


def _hz_to_mel(hertz: float) -> float:
    if hertz < _BREAK_HZ:
        return hertz / _LINEAR_HZ
    return float(_BREAK_HZ / _LINEAR_HZ + np.log(hertz / _BREAK_HZ) / _LOG_STEP)


def _mel_to_hz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    corner = _BREAK_HZ / _LINEAR_HZ
    above = _BREAK_HZ * np.exp(_LOG_STEP * (mels - corner))
    return np.where(mels < corner, mels * _LINEAR_HZ, above)
