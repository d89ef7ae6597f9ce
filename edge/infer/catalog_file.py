"""The form of a catalogue file (TOML), checked when it is read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

ModelId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._ +-]{0,127}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BundleSource(_Part):
    """The file lies beside the package's catalogue."""

    kind: Literal["bundle"]


class UserSource(_Part):
    """The user brought the file."""

    kind: Literal["user"]


class PypiSource(_Part):
    """The file is a member of a wheel."""

    kind: Literal["pypi"]
    package: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    version: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.!+_-]*$")
    member: str = Field(min_length=1)
    platform: str | None = Field(
        None, pattern=r"^[A-Za-z0-9_.]+$", description="platform tag of the wheel, when it has one"
    )
    download: int = Field(0, ge=0, description="bytes of the wheel: for the progress bar and the check of free space")


class HttpsSource(_Part):
    """The file comes from a server."""

    kind: Literal["https"]
    url: str = Field(pattern=r"^https?://")


Source = BundleSource | UserSource | PypiSource | HttpsSource


class FileEntry(_Part):
    """One file of a model."""

    name: FileName
    sha256: Sha256
    size: int = Field(gt=0, description="bytes")
    source: Annotated[Source, Field(discriminator="kind")]


class ModelEntry(_Part):
    """One model."""

    id: ModelId
    role: str = Field(min_length=1)
    decoder: str = Field(min_length=1)
    licence: str = Field(min_length=1)
    licence_file: str = ""
    provenance: str = Field(min_length=1)
    preferred: bool = Field(True, description="a user's model: whether it stands before those of the package")
    optional: bool = Field(False, description="fetched only when it is asked for; nothing misses it")
    files: tuple[FileEntry, ...] = Field(min_length=1)
    params: dict[str, Any] = Field(default_factory=dict)
    measured: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _files_fit_together(self) -> ModelEntry:
        names = [file.name for file in self.files]
        if len(set(names)) != len(names):
            msg = "two files of one model have the same name"
            raise ValueError(msg)
        return self


class Decoder(_Part):
    """One way to feed and read a network."""

    roles: tuple[str, ...] = Field(min_length=1)
    params: dict[str, Any] = Field(default_factory=dict)


class CatalogFile(_Part):
    """A whole catalogue."""

    labels: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    decoders: dict[str, Decoder] = Field(default_factory=dict)
    models: tuple[ModelEntry, ...] = ()

    @model_validator(mode="after")
    def _ids_are_unique(self) -> CatalogFile:
        ids = [model.id for model in self.models]
        doubles = {model_id for model_id in ids if ids.count(model_id) > 1}
        if doubles:
            msg = f"the id {min(doubles)} is given twice"
            raise ValueError(msg)
        return self
