"""Settings: one frozen class per room, units in the names or beside the fields.

A value comes from the environment (`REFLECTWORLD_CAPTURE__SEGMENT_MAX_S=20`), else from `config.toml` in the home folder
(`[capture]`, `segment_max_s = 20`), else it is the default below. Each default that was taken from a paper or measured
says so.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from edge.errors import SettingsError

CONFIG_FILE = "config.toml"


class _Room(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CaptureSettings(_Room):
    """How sources are read and cut."""

    segment_max_s: float = Field(30.0, gt=1, le=30, description="longest segment, s (ReflectWorld-MM, 3.2: at most 30)")
    segment_min_s: float = Field(
        8.0, ge=1, le=30, description="no cut at an end of speech or a slow change before this, s"
    )
    speech_end_s: float = Field(
        1.0, ge=0.3, le=5, description="silence that ends an utterance and may end a segment, s"
    )
    sample_fps: float = Field(2.0, gt=0, le=30, description="frames a second that are looked at, 1/s")
    cut_threshold: float = Field(10.0, gt=0, description="scene cut: mean absolute difference of 64×36 grey, 0..255")
    cut_ratio: float = Field(2.0, gt=1, description="scene cut: times the largest of the neighbouring ±3 frames")
    duplicate_threshold: float = Field(
        1.0,
        ge=0,
        description="sampled frames that differ less than this (0..255, worst of 8×8 tiles) from the last chosen are left out",
    )
    change_threshold: float = Field(
        18.0, gt=0, description="slow visual change against the segment's first frame that ends it, 0..255"
    )
    event_gap_s: float = Field(
        30.0, gt=0, description="a gap longer than this starts a new event, s (ReflectWorld-MM: 30)"
    )
    max_side_px: int = Field(
        1280, ge=160, description="frames are scaled down so that their longer side is at most this, px"
    )
    queue_items: int = Field(8, ge=2, description="bound of the channel from capture to perception, items")
    connect_s: float = Field(
        5.0, gt=0, le=60, description="a live source that does not answer within this cannot be reached, s"
    )
    stall_s: float = Field(
        5.0, gt=0.2, le=120, description="a live source without a picture for this has stalled; twice this ends it, s"
    )
    reconnect_first_s: float = Field(0.5, gt=0, description="wait before the first attempt to reconnect; doubles, s")
    reconnect_max_s: float = Field(3.0, gt=0, description="longest wait between attempts to reconnect, s")
    live_max_age_s: float = Field(
        0.5, gt=0, description="live frames that waited longer than this are not looked at, s"
    )
    rtsp_transport: Literal["tcp", "udp"] = Field("tcp", description="tcp or udp: how RTSP cameras send")


class InferSettings(_Room):
    """How networks run."""

    threads: int = Field(1, ge=0, le=64, description="threads inside one network; 0: measured at start-up")
    providers: str = Field("auto", description="auto, or a comma-separated list of ONNX Runtime providers in order")
    models_dir: Path | None = Field(None, description="where pulled models are kept; default: the user's cache folder")


class PerceiveSettings(_Room):
    """What counts as evidence."""

    object_threshold: float = Field(0.4, gt=0, lt=1, description="object detector score")
    face_threshold: float = Field(0.6, gt=0, lt=1, description="face detector score to be shown at all")
    face_input_px: int = Field(640, ge=160, le=1920, description="longer side of the face detector's input, px")
    face_min_width_px: float = Field(
        30.0, gt=0, description="gate: narrower faces never write an identity, px of the frame"
    )
    face_min_score: float = Field(0.9, gt=0, lt=1, description="gate: face detector score")
    face_min_norm: float = Field(46.0, gt=0, description="gate: L2 norm of the raw face embedding")
    face_max_yaw: float = Field(1.5, gt=0, description="gate: |nose offset| / half the eye distance")
    face_min_sharpness: float = Field(3.0, ge=0, description="gate: variance of the Laplacian of the aligned crop")
    best_shots: int = Field(4, ge=1, le=20, description="face shots that represent a track")
    vad_threshold: float = Field(0.35, gt=0, lt=1, description="voice activity")
    speech_join_gap_s: float = Field(1.5, ge=0, description="speech with shorter gaps is transcribed in one piece, s")
    speech_max_s: float = Field(25.0, gt=1, le=30, description="longest piece that is transcribed at once, s")
    voice_threshold: float = Field(0.68, gt=0, lt=1, description="cosine at which two windows are one speaker")
    voice_min_s: float = Field(2.0, gt=0, description="gate: less speech never writes a voice gallery, s (M3-Agent: 2)")
    key_frames: int = Field(3, ge=1, le=10, description="pictures kept for a segment, at most")


class IdentitySettings(_Room):
    """When two sightings are one person."""

    face_match: float = Field(
        0.58, gt=0, lt=1, description="cosine: mean of the top 3 gallery slots; same person at or above"
    )
    face_margin: float = Field(
        0.04, ge=0, lt=1, description="a match must beat the second candidate by this, else it waits"
    )
    face_pending: float = Field(0.48, gt=0, lt=1, description="between this and face_match nothing is decided")
    face_slots: int = Field(8, ge=1, le=64, description="face slots an entity")
    voice_match: float = Field(0.70, gt=0, lt=1, description="cosine: same voice at or above")
    voice_pending: float = Field(0.65, gt=0, lt=1, description="between this and voice_match nothing is decided")
    voice_new_s: float = Field(
        4.0, gt=0, description="speech that makes an unknown voice somebody at once, s; less must be heard twice"
    )
    voice_slots: int = Field(4, ge=1, le=64, description="voice slots an entity")
    body_weight: float = Field(0.2, ge=0, le=0.5, description="weight of the body beside the face")
    body_fresh_s: float = Field(
        1800.0, gt=0, description="a body (clothes) counts only this long after its person was last seen, s"
    )
    ema: float = Field(0.2, gt=0, lt=1, description="weight of a new sighting in its slot (Light-Omni, A.1)")
    pending_s: float = Field(86_400.0, gt=0, description="how long undecided evidence waits, s")
    strangers: Literal["all", "consent", "none"] = Field(
        "all",
        description="people without a name: all are enrolled; consent: only for consent_days unless you name or allow them;"
        " none: they are seen as someone, and no face or voice of theirs is kept",
    )
    stranger_days: float = Field(
        0.0,
        ge=0,
        description="faces and voices of people without a name go when they were not seen for so long; 0: never",
    )
    consent_days: float = Field(
        7.0, gt=0, description="consent: for so long they are known again while you have not said who they are"
    )


class MemorySettings(_Room):
    """Where and how the memory is kept."""

    key_frame_max_px: int = Field(960, ge=160, description="key frames are scaled down to this longer side, px")
    key_frame_quality: int = Field(80, ge=30, le=100, description="JPEG quality of key frames")
    key_file: Path | None = Field(None, description="the key file; default: key in the home folder, mode 0600")
    backup_folder: Path | None = Field(None, description="backups are made here by themselves; default: none are")
    backup_h: float = Field(24.0, ge=0, description="from one backup to the next, hours; 0: none")
    backup_keep: int = Field(7, ge=1, description="so many of the newest backups stay in the folder")
    keep_days: float | None = Field(
        None, gt=0, description="older moments go, unless they are important; default: never"
    )
    key_frame_days: float | None = Field(
        None, gt=0, description="pictures of older moments go, but for one of each important moment; default: never"
    )
    keep_gb: float | None = Field(
        None, gt=0, description="a larger memory is thinned, the oldest first; default: no limit"
    )
    min_free_gb: float = Field(
        1.0,
        ge=0,
        description="with less free on the device (or than a twentieth of a small one) the memory is thinned; with a sixteenth"
        " of that, nothing more is remembered",
    )
    examine_h: float = Field(24.0, ge=0, description="from one reading of the whole memory to the next, hours; 0: none")


class RecallSettings(_Room):
    """How questions are answered."""

    episodic: int = Field(4, ge=1, description="traces that an answer draws on (Light-Omni, A.2)")
    max_question_chars: int = Field(4000, ge=100, description="longer questions are refused, characters")
    rounds: int = Field(
        5, ge=1, le=5, description="looks of one question at most, the first pass among them; 1: no further"
    )
    further_s: float = Field(20.0, gt=0, description="no look begins later than this after the question, s")
    deep_s: float = Field(120.0, gt=0, description="the same with `ask --deep`, s")
    model: bool = Field(
        True, description="a language model helps where there is one and the first looks brought nothing"
    )
    learn: bool = Field(True, description="what helped earlier questions chooses where is looked")
    learn_batch: int = Field(64, ge=1, description="so many judged answers are learned from together (RRM)")
    keep_answers: int = Field(
        1000, ge=0, description="so many questions are kept for a judgement of their answers, the latest; 0: none"
    )
    head: Literal["off", "rules", "find", "move"] = Field(
        "find",
        description="how an input is taken: off: as it is; rules: the question in it is found by rules; find: by the reflex"
        " head; move: the head also moves the question's vector (measured: a little worse with words compared one by one)",
    )


class NotifySettings(_Room):
    """When word is sent of what the owner's rules watch for, and how."""

    cooldown_s: float = Field(600.0, ge=0, description="a rule is not heard again within this, s")
    topic_s: float = Field(86_400.0, ge=0, description="two rules do not tell the same within this, s")
    daily: int = Field(12, ge=1, description="a rule is heard so often a day at most; more waits for the digest")
    daily_total: int = Field(40, ge=1, description="all rules together are heard so often a day at most")
    digest_s: float = Field(3600.0, ge=0, description="what waits is told together after this, s")
    max_rules: int = Field(100, ge=1, description="so many rules may be kept")
    webhook: str | None = Field(None, pattern=r"^https?://", description="notifications are posted here as JSON")
    webhook_s: float = Field(5.0, gt=0, le=60, description="the webhook answers within this, s")
    apprise: tuple[str, ...] = Field(
        (), description="addresses of Apprise, such as ntfy://topic, that get notifications too"
    )


class ConsolidateSettings(_Room):
    """When work is done that makes more of what was remembered."""

    poll_s: float = Field(0.5, gt=0, le=60, description="how often the queue is looked at, s")
    budget_s: float = Field(
        5.0,
        gt=0,
        description="after so much work at a stretch as long a pause is made, s (deterministic work is exempt)",
    )
    idle_cpu: float = Field(
        0.85, gt=0, le=1, description="while more of the processors is in use, work that can wait does, 0..1"
    )
    patience_s: float = Field(
        900.0, ge=0, description="what has waited longer than this is done however busy the machine is, s"
    )


class ReasonSettings(_Room):
    """Which language model there is, if any, what it may be sent, and what it may cost."""

    backend: Literal["none", "openai", "llama"] = Field(
        "none", description="none, openai (any OpenAI-compatible server) or llama (a model file on this device)"
    )
    base_url: str = Field(
        "http://localhost:8080/v1", pattern=r"^https?://[^/\s]+", description="openai: the address of the API"
    )
    model: str = Field("default", min_length=1, description="openai: the name of the model on the server")
    api_key_env: str | None = Field(
        None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="openai: the environment variable that holds the key"
    )
    api_key_file: Path | None = Field(
        None, description="openai: the file that holds the key, in the place of a variable"
    )
    tls_verify: bool = Field(True, description="openai: whether the server's certificate is checked")
    tls_ca: Path | None = Field(None, description="openai: the certificate (PEM) of an authority of your own")
    allow_remote: bool = Field(False, description="openai: whether texts may be sent to another machine")
    allow_remote_images: bool = Field(False, description="openai: whether pictures may be sent to another machine, too")
    model_path: Path | None = Field(None, description="llama: the model file (GGUF)")
    context_tokens: int = Field(4096, ge=512, description="llama: the size of its context, tokens")
    threads: int = Field(0, ge=0, le=256, description="llama: threads; 0: as the package chooses")
    temperature: float = Field(0.0, ge=0, le=2, description="0: always the likeliest words")
    parallel: int = Field(1, ge=1, le=64, description="requests at once; more wait for their turn")
    timeout_s: float = Field(120.0, gt=0, description="a request that takes longer is given up, s")
    attempts: int = Field(3, ge=1, le=10, description="tries, when a server is overloaded, fails or cannot be reached")
    retry_first_s: float = Field(
        0.5, gt=0, description="the wait before the second try is anywhere below this; doubles, s"
    )
    retry_max_s: float = Field(20.0, gt=0, description="longest wait between tries, unless the server asks for more, s")
    breaker_failures: int = Field(5, ge=1, description="after so many failures in a row it is left alone for a while")
    breaker_open_s: float = Field(30.0, gt=0, description="for so long the first time; doubles up to ten minutes, s")
    price_in: float = Field(0.0, ge=0, description="price of a million tokens of questions, in any currency")
    price_out: float = Field(0.0, ge=0, description="price of a million tokens of answers, in the same currency")
    daily_cost: float | None = Field(None, ge=0, description="what a day may cost, in the same currency")
    daily_tokens: int | None = Field(None, ge=0, description="tokens that a day may take")


class ServeSettings(_Room):
    """Where the server listens, under which name and certificate, and what it lets in at most."""

    port: int = Field(8420, ge=0, le=65535, description="port for this device itself (localhost, HTTP)")
    lan_port: int = Field(8421, ge=0, le=65535, description="port for paired devices (HTTPS), open once there are any")
    name: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$",
        description="the device is NAME.local; default: reflectworld- and its host name",
    )
    hosts: tuple[str, ...] = Field(
        (),
        description="further host names that it may be called by, such as that of your own certificate; the first is shown",
    )
    certificate: Path | None = Field(
        None, description="your own certificate chain (PEM), such as from ACME or Tailscale; default: the device's own"
    )
    certificate_key: Path | None = Field(None, description="the private key of your own certificate (PEM)")
    threads: int = Field(4, ge=1, le=32, description="threads that read the memory for requests")
    max_body_bytes: int = Field(256_000, ge=1000, description="larger bodies of requests are refused, bytes")
    body_timeout_s: float = Field(10.0, gt=0, description="a request whose body takes longer is given up, s")
    header_timeout_s: float = Field(10.0, gt=0, description="a connection that asks nothing for so long is closed, s")
    max_connections: int = Field(200, ge=8, description="connections at once; more are told to come back")
    max_streams: int = Field(32, ge=1, description="live event streams at once")
    event_buffer: int = Field(256, ge=16, description="events that a page which was away can still get")
    heartbeat_s: float = Field(15.0, gt=0, description="a live event stream says at least so often that it lives, s")


class Settings(BaseSettings):
    """All settings of one process."""

    model_config = SettingsConfigDict(
        env_prefix="REFLECTWORLD_", env_nested_delimiter="__", frozen=True, extra="ignore"
    )

    home: Path = Field(default_factory=lambda: default_home(), description="folder of the memory")
    user: str = Field("owner", description="whose memory it is")
    capture: CaptureSettings = CaptureSettings()
    infer: InferSettings = InferSettings()
    perceive: PerceiveSettings = PerceiveSettings()
    identity: IdentitySettings = IdentitySettings()
    memory: MemorySettings = MemorySettings()
    recall: RecallSettings = RecallSettings()
    notify: NotifySettings = NotifySettings()
    consolidate: ConsolidateSettings = ConsolidateSettings()
    reason: ReasonSettings = ReasonSettings()
    serve: ServeSettings = ServeSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file of the home folder."""
        given = init_settings().get("home") or env_settings().get("home") or default_home()
        file = TomlConfigSettingsSource(settings_cls, toml_file=Path(given) / CONFIG_FILE)
        return init_settings, env_settings, file


def default_home() -> Path:
    """`/var/lib/reflectworld` under systemd (`STATE_DIRECTORY`), else the platform's user data folder."""
    state = os.environ.get("STATE_DIRECTORY")
    if state:
        return Path(state.split(":")[0])
    return Path(platformdirs.user_data_dir("reflectworld", appauthor=False))


def home_folder(home: Path | None = None) -> Path:
    """The folder of the memory: as given, else of the environment, else the default."""
    if home is not None:
        return home.expanduser()
    given = os.environ.get("REFLECTWORLD_HOME")
    return Path(given) if given else default_home()


def load_settings(home: Path | None = None) -> Settings:
    """Read the settings; `home` overrides the folder of the memory.

    Raises:
        SettingsError: a value cannot be used; the sentence says which, and its line if it is of the file.
    """
    path = home_folder(home) / CONFIG_FILE
    try:
        strangers = sorted(set(_document(path)) - (set(Settings.model_fields) - {"home"}))
        if strangers:
            raise SettingsError(f"{_place(path, strangers[:1])}there is no setting “{strangers[0]}”. Remove it.")
        return Settings(home=home.expanduser()) if home is not None else Settings()
    except ValidationError as error:
        first = error.errors()[0]
        keys = [str(part) for part in first["loc"]]
        where = ".".join(keys)
        variable = f"REFLECTWORLD_{'__'.join(keys)}".upper()
        fault = (
            f"There is no setting “{where}”."
            if first["type"] == "extra_forbidden"
            else f"The setting “{where}” cannot be used: {first['msg']}."
        )
        if any(name.upper() == variable for name in os.environ) or not path.exists():
            raise SettingsError(f"{fault} Correct or unset its environment variable {variable}.") from error
        raise SettingsError(f"{_place(path, keys)}{fault[0].lower()}{fault[1:]} Correct or remove it.") from error


def _document(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"“{path}” is not TOML: {error}. Correct it there.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"“{path}” cannot be read ({error}): check who may read it, and that it is text."
        ) from error


def _place(path: Path, keys: Sequence[str]) -> str:
    """“Line 7 of …: ” for a key of the file; without the line where it cannot be told."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#")[0].strip()
        if words.startswith("[") and words.endswith("]"):
            table = tuple(part.strip(" \t\"'") for part in words.strip("[]").split("."))
            here = table
        elif "=" in words:
            here = (*table, *(part.strip(" \t\"'") for part in words.split("=")[0].split(".")))
        else:
            continue
        if here == tuple(keys):
            return f"Line {number} of “{path}”: "
    return f"“{path}”: "
