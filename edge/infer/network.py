"""One network: named arrays in, arrays out; whatever goes wrong inside becomes our error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from edge.errors import InferenceError

_DTYPES: Mapping[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or an output of a network."""

    name: str
    shape: tuple[int | None, ...]  # None: any length
    dtype: np.dtype[Any]

    def describe(self) -> str:
        """Type and shape in words, e.g. `float32[1, 3, ?, ?]`."""
        return f"{self.dtype}[{', '.join('?' if side is None else str(side) for side in self.shape)}]"


class Network:
    """A network that is ready to run. Thread-safe: several threads may call `run` at once."""

    def __init__(self, name: str, session: ort.InferenceSession) -> None:
        """Wrap a session.

        Args:
            name: id of the model, for messages.
            session: an ONNX Runtime session.

        Raises:
            InferenceError: an input or output is not a plain tensor.
        """
        self.name = name
        self._session = session
        self.inputs = tuple(_info(name, node) for node in session.get_inputs())
        self.outputs = tuple(_info(name, node) for node in session.get_outputs())
        self.providers: tuple[str, ...] = tuple(session.get_providers())
        self._by_name = {tensor.name: tensor for tensor in self.inputs}

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Run the network once.

        Args:
            feeds: one array for each input, with its type and rank.

        Returns:
            The outputs, in the order of `outputs`.

        Raises:
            InferenceError: an array does not fit its input, or the run failed.
        """
        self._check(feeds)
        try:
            results = self._session.run(
                None, {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in feeds.items()}
            )
        except Exception as error:  # the runtime raises classes of its own that have no common root
            raise InferenceError(
                f"The network {self.name} failed: {_first_line(error)}. Try again with less load, or another model."
            ) from error
        return list(results)

    def _check(self, feeds: Mapping[str, NDArray[Any]]) -> None:
        if feeds.keys() != self._by_name.keys():
            raise InferenceError(
                f"The network {self.name} wants the inputs {', '.join(self._by_name)}, "
                f"not {', '.join(feeds) or 'none'}. "
                "Choose the decoder that fits the model."
            )
        for name, array in feeds.items():
            want = self._by_name[name]
            fits = (
                array.dtype == want.dtype
                and array.ndim == len(want.shape)
                and all(side is None or side == got for side, got in zip(want.shape, array.shape, strict=True))
            )
            if not fits:
                raise InferenceError(
                    f"The network {self.name} wants {want.describe()} for “{name}”, "
                    f"not {array.dtype}{list(array.shape)}. "
                    "Choose the decoder and the input size that fit the model."
                )


def _info(model: str, node: Any) -> TensorInfo:
    dtype = _DTYPES.get(node.type)
    if dtype is None:
        raise InferenceError(
            f"The network {model} has “{node.name}” of the type {node.type}, which cannot be used. "
            "Export it with plain tensors."
        )
    shape = tuple(side if isinstance(side, int) and side >= 0 else None for side in node.shape)
    return TensorInfo(node.name, shape, np.dtype(dtype))


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0].rstrip(".") if text else type(error).__name__
