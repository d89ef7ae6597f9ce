"""ONNX Runtime on this machine: which providers really work, how many threads pay, and one place that opens networks.

`onnxruntime.get_available_providers()` says what the library was compiled with, not what the machine can do, and a
session whose provider cannot be loaded falls to the CPU without an error. So each candidate runs a small network before
it is chosen: with the fall-back forbidden, and with an answer that is known.
"""

from __future__ import annotations

import base64
import ctypes
import functools
import hashlib
import os
import statistics
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import platformdirs
import structlog

from edge.errors import InferenceError, ModelError, SettingsError
from edge.infer.catalog import Catalog, ModelSpec, checksum
from edge.infer.network import Network
from edge.settings import InferSettings

log = structlog.get_logger(__name__)

CPU = "CPUExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"

# Fastest first. Providers that send data elsewhere (Azure) are not candidates.
PROVIDER_ORDER = (
    TENSORRT,
    "NvTensorRTRTXExecutionProvider",
    "CUDAExecutionProvider",
    "MIGraphXExecutionProvider",
    "ROCMExecutionProvider",
    "CoreMLExecutionProvider",
    "QNNExecutionProvider",
    "OpenVINOExecutionProvider",
    "DmlExecutionProvider",
    CPU,
)

# Conv (2×2 kernel [[1, 2], [3, 4]]) and Relu on [1, 1, 3, 3], opset 13: an ONNX model of 165 bytes.
_PROBE_MODEL = base64.b64decode(
    "CAgSADqYAQomCgF4CgF3EgF5IgRDb252KhUKDGtlcm5lbF9zaGFwZUACQAKgAQcKDAoBeRIBeiIEUmVsdRIFcHJvYmUqHwgBCAEIAggCEAFCAXdKEAAA"
    "gD8AAABAAABAQAAAgEBaGwoBeBIWChQIARIQCgIIAQoCCAEKAggDCgIIA2IbCgF6EhYKFAgBEhAKAggBCgIIAQoCCAIKAggCQgQKABAN"
)
_PROBE_INPUT = np.arange(-4, 5, dtype=np.float32).reshape(1, 1, 3, 3)
_PROBE_OUTPUT = np.array([[[[0, 0], [17, 27]]]], dtype=np.float32)  # ReLU of the correlation −13, −3, 17, 27

_THREAD_GAIN = 1.25  # more threads must be this much faster to be worth keeping other work waiting


@dataclass(frozen=True, slots=True)
class Probe:
    """What trying a provider came to."""

    provider: str
    works: bool
    reason: str  # why not; "" when it works


def probe(provider: str) -> Probe:
    """Run a small network on one provider, with no fall-back, and compare its answer with the known one."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if provider != CPU:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    try:
        session = ort.InferenceSession(_PROBE_MODEL, options, providers=[provider])
        chosen = session.get_providers()
        if not chosen or chosen[0] != provider:
            return Probe(provider, works=False, reason=f"the session fell to {chosen[0] if chosen else 'nothing'}")
        (answer,) = session.run(None, {"x": _PROBE_INPUT})
    except Exception as error:  # noqa: BLE001 - a provider may raise anything; it is reported in `description`
        text = str(error).strip().splitlines()
        return Probe(provider, works=False, reason=text[0][:200] if text else type(error).__name__)
    if not np.allclose(answer, _PROBE_OUTPUT, rtol=1e-2, atol=1e-2):
        return Probe(provider, works=False, reason="its answer is wrong")
    return Probe(provider, works=True, reason="")


@functools.lru_cache(maxsize=16)
def _probed(candidates: tuple[str, ...]) -> tuple[Probe, ...]:
    return tuple(probe(candidate) for candidate in candidates)


def candidates(wanted: str, available: Sequence[str]) -> tuple[str, ...]:
    """The providers to try, in order.

    Args:
        wanted: `auto`, or names separated by commas; the ending `ExecutionProvider` may be left out.
        available: what the library was compiled with.

    Raises:
        SettingsError: a wanted provider is not available.
    """
    if wanted.strip().lower() == "auto":
        return tuple(name for name in PROVIDER_ORDER if name in available)
    by_short = {name.removesuffix("ExecutionProvider").lower(): name for name in available}
    chosen = []
    for word in (part.strip() for part in wanted.split(",")):
        name = by_short.get(word.removesuffix("ExecutionProvider").lower())
        if name is None:
            known = ", ".join(sorted(by_short))
            raise SettingsError(
                f"The provider “{word}” is not in this ONNX Runtime (it has {known}). "
                "Correct or unset REFLECTWORLD_INFER__PROVIDERS."
            )
        chosen.append(name)
    return tuple(dict.fromkeys(chosen))


_M_ARENA_MAX = -8  # glibc's malloc.h


class Runtime:
    """Opens networks with the providers and the threads that suit this machine. Thread-safe."""

    def __init__(self, settings: InferSettings) -> None:
        """Probe the machine.

        Raises:
            SettingsError: a provider in the settings is unknown.
            InferenceError: no provider works.
        """
        self._settings = settings
        self.probes = _probed(candidates(settings.providers, ort.get_available_providers()))
        working = tuple(probe.provider for probe in self.probes if probe.works)
        if not working:
            tried = "; ".join(f"{_short(probe.provider)}: {probe.reason}" for probe in self.probes) or "none was found"
            raise InferenceError(
                f"No ONNX Runtime provider works ({tried}). "
                "Install onnxruntime again or unset REFLECTWORLD_INFER__PROVIDERS."
            )
        self.providers = working if CPU in working else (*working, CPU)
        self._lock = threading.Lock()
        self._opened: weakref.WeakValueDictionary[Path, Network] = weakref.WeakValueDictionary()
        self._measured = ""
        self.threads = settings.threads or self._measure_threads()

    @property
    def description(self) -> str:
        """What was chosen and why, in one line."""
        refused = "; ".join(
            f"{_short(probe.provider)} does not work here: {probe.reason}" for probe in self.probes if not probe.works
        )
        chosen = ", then ".join(_short(provider) for provider in self.providers)
        threads = f"{self.threads} thread{'s' if self.threads != 1 else ''} a network{self._measured}"
        return f"ONNX Runtime {ort.__version__} on {chosen}; {threads}" + (f"; {refused}" if refused else "")

    def open(self, spec: ModelSpec, file: str | None = None) -> Network:
        """Open a network; a file that is open already is shared.

        Args:
            spec: the model.
            file: which of its files; the main one by default.

        Raises:
            ModelError: the file is absent, damaged, or not a network.
        """
        path = spec.path(file)
        with self._lock:
            network = self._opened.get(path)
            if network is None:
                network = self.open_path(path, spec.id, taps=tuple(spec.params.get("taps") or ()))
                self._opened[path] = network
            return network

    def open_path(self, path: Path, name: str, *, threads: int | None = None, taps: Sequence[str] = ()) -> Network:
        """Open an ONNX file that is in no catalogue.

        Args:
            path: of the file.
            name: id of the model, for messages.
            threads: inside the network; None: as measured.
            taps: names of tensors inside the network that come out, too, after its own outputs.

        Raises:
            ModelError: the file is not a network that can be run.
        """
        providers = [(provider, self._options(provider, path)) for provider in self.providers]
        try:
            network: str | bytes = path.read_bytes() + _outputs(taps) if taps else str(path)
            session = ort.InferenceSession(network, _session_options(threads or self.threads), providers=providers)
        except Exception as error:  # the runtime raises classes of its own that have no common root
            text = str(error).strip().splitlines()
            reason = text[0].rstrip(".")[:300] if text else type(error).__name__
            raise ModelError(
                name, f"{path} cannot be loaded as an ONNX network ({reason}). Give a complete ONNX file."
            ) from error
        release_memory()
        used = session.get_providers()
        if used[0] != self.providers[0]:
            log.warning("network fell back", model=name, wanted=self.providers[0], used=used[0])
        return Network(name, session)

    def _options(self, provider: str, path: Path) -> Mapping[str, Any]:
        if provider != TENSORRT:
            return {}
        # The engine cache is not invalidated by ONNX Runtime when any of these changes (onnxruntime#22244).
        key = hashlib.sha256("|".join((checksum(path), ort.__version__, _gpu_identity())).encode()).hexdigest()[:24]
        cache = Path(platformdirs.user_cache_dir("reflectworld", appauthor=False)) / "engines" / key
        cache.mkdir(parents=True, exist_ok=True)
        return {"trt_engine_cache_enable": "1", "trt_engine_cache_path": str(cache), "trt_fp16_enable": "1"}

    def _measure_threads(self) -> int:
        """One thread or several, whichever is faster now on the bundled face detector (a busy machine prefers one)."""
        many = min(os.cpu_count() or 1, 4)
        spec = Catalog.load(self._settings).default("faces")
        if many < 2 or not spec.present or self.providers[0] != CPU:
            return 1
        networks = {count: self.open_path(spec.path(), spec.id, threads=count) for count in (1, many)}
        feeds = {networks[1].inputs[0].name: np.zeros((1, 3, 192, 320), dtype=np.float32)}
        spent: dict[int, list[float]] = {1: [], many: []}
        for _ in range(8):
            for count, network in networks.items():
                begin = time.perf_counter()
                network.run(feeds)
                spent[count].append((time.perf_counter() - begin) * 1e3)
        one, several = (statistics.median(times[2:]) for times in spent.values())
        self._measured = f" (measured: {one:.1f} ms with 1, {several:.1f} ms with {many})"
        return many if one > several * _THREAD_GAIN else 1


def _outputs(names: Sequence[str]) -> bytes:
    """Bytes that add outputs to the graph of an ONNX file when they stand behind it.

    In the encoding of Protocol Buffers, a message that comes twice is merged and lists are joined: a second `graph` (field 7
    of the model) with nothing but outputs (field 12, each with its name, field 1) adds them to the first.
    """

    def field(number: int, data: bytes) -> bytes:
        return _varint(number << 3 | 2) + _varint(len(data)) + data

    return b"".join(field(7, field(12, field(1, name.encode()))) for name in names)


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def release_memory() -> None:
    """Give memory that was freed back to the operating system, where the C library can (glibc).

    Loading a network and running it on large inputs leaves tens of megabytes of free heap behind: 87 MB after loading the
    seven networks of the product, 54 MB after a round of face detections (measured). Takes 0.2–13 ms.
    """
    trim = getattr(_libc(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def limit_heaps(count: int = 1) -> None:
    """Let the threads of this process share one heap, where the C library can (glibc); before threads are started.

    glibc gives each thread a heap of its own, and pictures that one thread makes and another frees leave holes in all of
    them: over ten minutes of watching, resident memory grew by 32 MB without a limit and by nothing with one; two heaps
    grew by 13 MB in an hour (measured).
    """
    options = getattr(_libc(), "mallopt", None)
    if options is not None:
        options(_M_ARENA_MAX, count)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _session_options(threads: int) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    # Spinning threads take the processor from the other networks of the pipeline (measured).
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Inputs differ in shape from call to call, and the arena and the memory plan of each shape are never given back:
    # over 80 mixed calls of six networks RSS grew from 250 to 430 MB with both, to 284 MB without, at the same CPU time
    # (measured).
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    return options


def _gpu_identity() -> str:
    """The driver's description of the GPU and the TensorRT libraries: part of the key of an engine cache."""
    sources = [Path("/proc/driver/nvidia/version"), Path("/etc/nv_tegra_release"), Path("/proc/device-tree/model")]
    sources += sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    texts = [source.read_text(encoding="utf-8", errors="replace") for source in sources if source.is_file()]
    libraries = [str(library.resolve()) for library in sorted(Path("/usr/lib").glob("*-linux-gnu/libnvinfer.so*"))]
    return "|".join([os.environ.get("CUDA_VISIBLE_DEVICES", ""), *texts, *libraries])


def _short(provider: str) -> str:
    return provider.removesuffix("ExecutionProvider")
