"""The user's own models: probed, copied beside the pulled ones and written into the user's catalogue."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from edge.errors import InferenceError, ModelError
from edge.infer.catalog import USER_CATALOG, Catalog, ModelSpec, checksum, read_catalog
from edge.infer.catalog_file import CatalogFile, FileEntry, ModelEntry, UserSource
from edge.infer.download import hold_folder
from edge.infer.network import Network, TensorInfo
from edge.infer.runtime import Runtime
from edge.settings import InferSettings

SINGLE_FILE_ROLES = ("objects", "faces", "face-embedding", "body-embedding", "voice-embedding", "voice-activity")
_EMBEDDING_ROLES = ("face-embedding", "body-embedding", "voice-embedding")
_MAX_SIDE = 4096  # px


@dataclass(frozen=True, slots=True)
class NewModel:
    """What the user says about a model."""

    file: Path
    role: str
    decoder: str | None = None  # None: the only one of the role
    id: str | None = None  # None: from the name of the file
    labels: Path | None = None  # a text file, one class a line
    input_size: tuple[int, int] | None = None  # width, height in px; None: what the network fixes, or the decoder's
    licence: str = "unknown"
    default: bool = True  # whether it stands before the others of its role
    replace: bool = False  # whether an earlier model of the user with that id gives way


def add_model(settings: InferSettings, new: NewModel) -> ModelSpec:
    """Copy a network into the folder of models, try it there, and enter it in the user's catalogue.

    Raises:
        ModelError: the file is no ONNX network, does not fit its decoder, or the id is taken.
        ModelDownloadError: the folder of models cannot be written.
    """
    catalog = Catalog.load(settings)
    decoder = _decoder(catalog, new)
    model_id = _model_id(catalog, new)
    if not new.file.is_file():
        raise ModelError(model_id, f"There is no file {new.file}. Give the path of an ONNX file.")
    name = re.sub(r"[^A-Za-z0-9._+-]", "_", new.file.name).lstrip("._+-") or "model.onnx"
    params: dict[str, Any] = dict(catalog.decoders[decoder].params)
    if new.labels is not None:
        params["labels"] = _labels(new.labels)
    with hold_folder(catalog.models_dir) as work:
        copy = work / name
        try:
            shutil.copyfile(new.file, copy)
        except OSError as error:
            raise ModelError(
                model_id, f"{new.file} cannot be copied to {catalog.models_dir} ({error.strerror}). Check both."
            ) from error
        # Tried where it will lie: weights outside the file would be missing there.
        network = Runtime(settings).open_path(copy, model_id)
        params |= _fit(network, new, decoder, params, catalog.labels)
        entry = ModelEntry(
            id=model_id,
            role=new.role,
            decoder=decoder,
            licence=new.licence,
            provenance=f"added by the user from {new.file.name}",
            preferred=new.default,
            files=(
                FileEntry(name=name, sha256=checksum(copy), size=copy.stat().st_size, source=UserSource(kind="user")),
            ),
            params={key: value for key, value in params.items() if value != catalog.decoders[decoder].params.get(key)},
        )
        folder = catalog.models_dir / model_id
        if new.replace:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        copy.replace(folder / name)
        _enter(catalog.models_dir, entry, work)
    return Catalog.load(settings).get(model_id)


def _enter(models_dir: Path, entry: ModelEntry, work: Path) -> None:
    path = models_dir / USER_CATALOG
    present = read_catalog(path) if path.is_file() else CatalogFile()
    models = [model for model in present.models if model.id != entry.id]
    whole = present.model_copy(update={"models": (*models, entry)})
    text = tomli_w.dumps(whole.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=False))
    fresh = work / USER_CATALOG
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def _decoder(catalog: Catalog, new: NewModel) -> str:
    if new.role not in SINGLE_FILE_ROLES:
        raise ModelError(
            new.role,
            f"“{new.role}” is not a role that one file can play. Choose one of {', '.join(SINGLE_FILE_ROLES)}.",
        )
    fitting = [name for name, decoder in catalog.decoders.items() if new.role in decoder.roles]
    if new.decoder is None and len(fitting) == 1:
        return fitting[0]
    if new.decoder not in fitting:
        said = f"not “{new.decoder}”" if new.decoder else "and none was named"
        raise ModelError(
            new.role, f"A model of the role {new.role} needs a decoder, {said}. Choose --decoder {' | '.join(fitting)}."
        )
    return new.decoder


def _model_id(catalog: Catalog, new: NewModel) -> str:
    model_id = new.id or re.sub(r"[^a-z0-9._-]+", "-", new.file.stem.lower()).strip("-._") or "model"
    if re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", model_id) is None:
        raise ModelError(
            model_id, f"“{model_id}” cannot be an id. Choose --id of small letters, digits and - . _, at most 64."
        )
    taken = next((spec for spec in catalog.models if spec.id == model_id), None)
    if taken is not None and not (taken.user and new.replace):
        hint = "Choose another with --id, or give --replace." if taken.user else "Choose another with --id."
        raise ModelError(model_id, f"There is a model “{model_id}” already. {hint}")
    return model_id


def _labels(path: Path) -> list[str]:
    try:
        words = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(
            path.name, f"The labels in {path} cannot be read. Give a UTF-8 text file with one class a line."
        ) from error
    labels = [word for word in words if word]
    if not labels:
        raise ModelError(path.name, f"There are no labels in {path}. Give a text file with one class a line.")
    return labels


def _fit(
    network: Network, new: NewModel, decoder: str, params: Mapping[str, Any], labels: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Run the network on an empty input; what it tells about its parameters."""
    found: dict[str, Any] = {}
    shape: tuple[int, ...]
    if "layout" in params:
        found |= _picture(network, new, params)
        size = found["input_size"]
        shape = (1, 3, size[1], size[0]) if found["layout"] == "nchw" else (1, size[1], size[0], 3)
    elif new.role == "voice-embedding":
        shape = (1, int(params["frames"]), int(params["mels"]))
    else:
        return found  # a streaming network with a state: loading it is the test
    wanted = network.inputs[0]
    try:
        outputs = network.run({wanted.name: np.zeros(shape, dtype=wanted.dtype)})
    except InferenceError as error:
        raise ModelError(network.name, f"{new.file} does not run on an input of {list(shape)}: {error}") from error
    if new.role == "objects":
        names = params["labels"]
        _check_objects(network.name, decoder, outputs, len(labels[names] if isinstance(names, str) else names))
    if new.role in _EMBEDDING_ROLES:
        found["dimensions"] = int(outputs[0].shape[-1])
    return found


def _picture(network: Network, new: NewModel, params: Mapping[str, Any]) -> dict[str, Any]:
    first = network.inputs[0]
    if len(network.inputs) != 1 or len(first.shape) != 4:
        inputs = ", ".join(f"{tensor.name} {tensor.describe()}" for tensor in network.inputs)
        raise ModelError(
            network.name,
            f"{new.file} does not take one picture (its inputs: {inputs}). Export it with one input of rank 4.",
        )
    layout = _layout(first, params["layout"])
    height, width = (first.shape[2], first.shape[3]) if layout == "nchw" else (first.shape[1], first.shape[2])
    asked = new.input_size or tuple(params["input_size"])
    size = [width or asked[0], height or asked[1]]
    if new.input_size is not None and size != list(new.input_size):
        raise ModelError(
            network.name,
            f"{new.file} takes {size[0]}×{size[1]} px only. Leave --input-size out, or export it with free sides.",
        )
    if not all(0 < side <= _MAX_SIDE for side in size):
        raise ModelError(
            network.name, f"{size[0]}×{size[1]} px cannot be an input size. Choose --input-size of 1 to {_MAX_SIDE} px."
        )
    return {"input_size": size, "layout": layout}


def _layout(first: TensorInfo, usual: str) -> str:
    if first.shape[1] == 3:
        return "nchw"
    return "nhwc" if first.shape[3] == 3 else usual


def _check_objects(model: str, decoder: str, outputs: list[NDArray[Any]], classes: int) -> None:
    """Refuse a network whose output does not have the layout that its decoder reads."""
    shapes = [output.shape for output in outputs]
    first = shapes[0]
    fits = {
        "nanodet": len(shapes) == 6 and all(len(shape) == 4 for shape in shapes) and first[1] == classes,
        "yolov8": len(first) == 3 and first[1] == 4 + classes,
        "yolox": len(first) == 3 and first[2] == 5 + classes,
        "yolov3-tiny": len(first) == 3 and first[2] == 5 + classes,
        "yolo26": len(first) == 3 and first[2] == 6,
    }
    if not fits.get(decoder, True):
        seen = ", ".join(str(list(shape)) for shape in shapes)
        raise ModelError(
            model,
            f"The output {seen} is not what the decoder {decoder} reads with {classes} classes. "
            "Choose another --decoder, or give the classes with --labels.",
        )
