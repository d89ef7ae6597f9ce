"""The model catalogue: which networks there are, where their files come from and where they lie.

Two catalogues are read and put one over the other: the one of the package (`models/catalog.toml`, in a checkout or
inside the installed package) and the user's own (`user.toml` beside the pulled models, written by `reflectworld models
add`).

Invariants:

* Ids are unique; a user's model never hides one of the package.
* A path is given out only for a file whose SHA-256 is the catalogue's, checked once per process for each version of the
  file on disk (path, size, modification time).
"""

from __future__ import annotations

import hashlib
import os
import threading
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import platformdirs
from pydantic import ValidationError

import edge
from edge.errors import ModelError
from edge.infer.catalog_file import CatalogFile, Decoder, FileEntry, ModelEntry, Source
from edge.settings import InferSettings

USER_CATALOG = "user.toml"
_PACKAGED = Path(edge.__file__).resolve().parent / "_models"
_CHECKOUT = Path(edge.__file__).resolve().parent.parent / "models"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model."""

    name: str  # without folders
    sha256: str  # 64 hex digits
    size: int  # bytes
    source: Source
    location: Path  # where it lies, or will lie once it was pulled

    @property
    def present(self) -> bool:
        """Whether a file of the right size is there (its content is checked by `ModelSpec.path` and `verify`)."""
        try:
            return self.location.stat().st_size == self.size
        except OSError:
            return False

    @property
    def fetchable(self) -> bool:
        """Whether `reflectworld models pull` can bring it."""
        return self.source.kind in {"pypi", "https"}


@dataclass(frozen=True, slots=True, eq=False)
class ModelSpec:
    """One model: its files, how to feed it and how to read it."""

    id: str
    role: str
    decoder: str
    files: tuple[ModelFile, ...]  # the first is the main one
    licence: str
    provenance: str
    params: Mapping[str, Any]  # parameters of pre- and post-processing; see models/catalog.toml
    measured: Mapping[str, str]
    user: bool = False  # added by the user
    optional: bool = False  # fetched only when it is asked for; nothing misses it
    preferred: bool = False  # a user's model that stands before those of the package
    licence_file: str = ""

    @property
    def present(self) -> bool:
        """Whether all files are there."""
        return all(file.present for file in self.files)

    @property
    def key(self) -> str:
        """Names the network that made an embedding: vectors of different keys are never compared."""
        return f"{self.id}@{self.files[0].sha256[:8]}"

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def remedy(self) -> str:
        """What to do when a file is absent or damaged."""
        if any(file.fetchable for file in self.files):
            return f"Fetch it: `reflectworld models pull {self.id}`."
        if self.user:
            again = f"--role {self.role} --decoder {self.decoder} --id {self.id} --replace"
            return f"Add it again: `reflectworld models add FILE {again}`."
        return "Install the package reflectworld-edge again: the file is part of it."

    def file(self, name: str | None = None) -> ModelFile:
        """The file of that name; the main one by default.

        Raises:
            ModelError: the model has no such file.
        """
        if name is None:
            return self.files[0]
        for file in self.files:
            if file.name == name:
                return file
        names = ", ".join(file.name for file in self.files)
        raise ModelError(self.id, f"The model {self.id} has no file “{name}”; it has {names}.")

    def path(self, name: str | None = None) -> Path:
        """Where a file of the model lies, after its checksum was found right.

        Args:
            name: which file; the main one by default.

        Raises:
            ModelError: the file is absent or damaged; the sentence says what to do.
        """
        file = self.file(name)
        if not file.location.is_file():
            raise ModelError(
                self.id, f"The model {self.id} is not on this device ({file.name} is missing). {self.remedy}"
            )
        if checksum(file.location) != file.sha256:
            raise ModelError(
                self.id, f"The model {self.id} is damaged: {file.location} does not have its checksum. {self.remedy}"
            )
        return file.location


class Catalog:
    """All models that are known."""

    def __init__(
        self,
        models: Sequence[ModelSpec],
        decoders: Mapping[str, Decoder],
        labels: Mapping[str, tuple[str, ...]],
        models_dir: Path,
    ) -> None:
        self.models = tuple(models)
        self.decoders = decoders
        self.labels = labels
        self.models_dir = models_dir
        self._by_id = {model.id: model for model in self.models}

    @classmethod
    def load(cls, settings: InferSettings, *, bundle: Path | None = None) -> Catalog:
        """Read the package's catalogue and the user's.

        Args:
            settings: `models_dir` says where pulled and added models lie.
            bundle: folder of the package's catalogue; default: found from the package.

        Raises:
            ModelError: a catalogue cannot be read or breaks a rule.
        """
        folder = bundle if bundle is not None else bundle_dir()
        models_dir = models_folder(settings)
        base = read_catalog(folder / "catalog.toml")
        user_path = models_dir / USER_CATALOG
        user = read_catalog(user_path) if user_path.is_file() else CatalogFile()
        known = {model.id for model in base.models}
        specs = [_spec(model, base, folder, models_dir, user=False) for model in base.models]
        own: list[ModelSpec] = []
        for model in user.models:
            if model.id in known:
                raise ModelError(
                    model.id, f"{user_path} has a model “{model.id}”, which exists already. Give it another id there."
                )
            known.add(model.id)
            own.append(_spec(model, base, folder, models_dir, user=True))
        own.reverse()  # the one that was added last stands first
        ordered = [*(spec for spec in own if spec.preferred), *specs, *(spec for spec in own if not spec.preferred)]
        labels = {name: tuple(words) for name, words in base.labels.items()}
        return cls(ordered, MappingProxyType(dict(base.decoders)), MappingProxyType(labels), models_dir)

    @property
    def roles(self) -> tuple[str, ...]:
        """All roles that a decoder can play, in the catalogue's order."""
        return tuple(dict.fromkeys(role for decoder in self.decoders.values() for role in decoder.roles))

    def get(self, model_id: str) -> ModelSpec:
        """The model of that id.

        Raises:
            ModelError: there is none.
        """
        spec = self._by_id.get(model_id)
        if spec is None:
            known = ", ".join(sorted(self._by_id))
            raise ModelError(model_id, f"There is no model “{model_id}”. Known are: {known}.")
        return spec

    def default(self, role: str) -> ModelSpec:
        """The model that plays a role: the first whose files are present, else the first.

        Raises:
            ModelError: no model plays this role.
        """
        fitting = [model for model in self.models if model.role == role]
        if not fitting:
            raise ModelError(
                role, f"No model plays the role “{role}”. Add one: `reflectworld models add FILE --role {role}`."
            )
        return next((model for model in fitting if model.present), fitting[0])

    def defaults(self) -> tuple[ModelSpec, ...]:
        """The model of each role that has one which is not optional."""
        roles = dict.fromkeys(model.role for model in self.models if not model.optional)
        return tuple(self.default(role) for role in roles)


def bundle_dir() -> Path:
    """The folder of the package's catalogue: inside an installed package, or `models/` of a checkout.

    Raises:
        ModelError: it is in neither place.
    """
    for folder in (_PACKAGED, _CHECKOUT):
        if (folder / "catalog.toml").is_file():
            return folder
    raise ModelError(
        "catalog", f"The model catalogue is not at {_PACKAGED}. Install the package reflectworld-edge again."
    )


def models_folder(settings: InferSettings) -> Path:
    """Where pulled and added models lie: the setting, `CACHE_DIRECTORY` of systemd, or the user's cache folder."""
    if settings.models_dir is not None:
        return settings.models_dir.expanduser()
    cache = os.environ.get("CACHE_DIRECTORY")
    base = Path(cache.split(":")[0]) if cache else Path(platformdirs.user_cache_dir("reflectworld", appauthor=False))
    return base / "models"


_checksums: dict[tuple[str, int, int], str] = {}
_checksums_lock = threading.Lock()


def checksum(path: Path, *, fresh: bool = False) -> str:
    """SHA-256 of a file, 64 hex digits; remembered for each (path, size, modification time) unless `fresh`.

    Raises:
        ModelError: the file cannot be read.
    """
    try:
        stat = path.stat()
        key = (str(path), stat.st_size, stat.st_mtime_ns)
        with _checksums_lock:
            known = _checksums.get(key)
        if known is not None and not fresh:
            return known
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(path.name, f"{path} cannot be read ({error.strerror}). Check its permissions.") from error
    with _checksums_lock:
        _checksums[key] = digest
    return digest


def read_catalog(path: Path) -> CatalogFile:
    """Read a catalogue file.

    Raises:
        ModelError: it cannot be read or breaks a rule.
    """
    try:
        return CatalogFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ModelError(
            "catalog", f"The model catalogue {path} breaks a rule at {where}: {first['msg']}. Correct it."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ModelError("catalog", f"The model catalogue {path} is not TOML ({error}). Correct it.") from error
    except OSError as error:
        raise ModelError(
            "catalog", f"The model catalogue {path} cannot be read ({error.strerror}). Check its permissions."
        ) from error


def _spec(entry: ModelEntry, base: CatalogFile, bundle: Path, models_dir: Path, *, user: bool) -> ModelSpec:
    decoder = base.decoders.get(entry.decoder)
    if decoder is None:
        known = ", ".join(base.decoders)
        raise ModelError(
            entry.id, f"The model {entry.id} names the decoder “{entry.decoder}”, which is none of {known}."
        )
    if entry.role not in decoder.roles:
        raise ModelError(
            entry.id,
            f"The model {entry.id} cannot play “{entry.role}”: "
            f"its decoder {entry.decoder} is for {', '.join(decoder.roles)}.",
        )
    params = {**decoder.params, **entry.params}
    labels = params.get("labels")
    if isinstance(labels, str):
        if labels not in base.labels:
            raise ModelError(
                entry.id, f"The model {entry.id} names the labels “{labels}”, which the catalogue does not have."
            )
        params["labels"] = base.labels[labels]
    files = tuple(_file(file, entry.id, bundle, models_dir) for file in entry.files)
    return ModelSpec(
        id=entry.id,
        role=entry.role,
        decoder=entry.decoder,
        files=files,
        licence=entry.licence,
        provenance=entry.provenance,
        params=MappingProxyType({name: _frozen(value) for name, value in params.items()}),
        measured=MappingProxyType(dict(entry.measured)),
        user=user,
        preferred=user and entry.preferred,
        optional=entry.optional,
        licence_file=entry.licence_file,
    )


def _file(entry: FileEntry, model_id: str, bundle: Path, models_dir: Path) -> ModelFile:
    folder = bundle if entry.source.kind == "bundle" else models_dir / model_id
    return ModelFile(entry.name, entry.sha256, entry.size, entry.source, folder / entry.name)


def _frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(item) for key, item in value.items()})
    return value
