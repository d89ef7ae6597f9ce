"""The key of the memory: where it comes from, and what each source protects against.

The first of these that is there is used:

1. **Passphrase** (REFLECTWORLD_PASSPHRASE, or given by the caller), stretched by scrypt (RFC 7914) with a random salt.
   Protects against whoever has the device, its card or a copy of the folder, as far as the passphrase cannot be
   guessed. Does not protect while it stands in the environment of a running process that the attacker can read.
2. **systemd credential** (`$CREDENTIALS_DIRECTORY/reflectworld-key`). With `LoadCredentialEncrypted=` bound to a TPM it
   protects a stolen card or a copy of the folder, not a stolen device that starts by itself. With `LoadCredential=` it
   protects as much as the place that the credential is loaded from.
3. **Key file** (MemorySettings.key_file, else `key` in the home folder; 32 random bytes in hex, mode 0600, made on
   first use). Beside the data it protects a copy of the database files alone (a backup, a discarded file), and lets a
   memory be destroyed by destroying 64 characters. It does not help against a stolen card, nor against anybody who can
   read the folder. On another device (a stick that is taken out) it protects what stays behind.

None protects against the owner's account or root on the running device. The home folder keeps `key.json`: which source
the memory was made with, the salt, and a check value, so that a wrong key is told from a damaged file. The check value
is a hash of the derived key and gives an attacker no more than the encrypted file does.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from edge.errors import MemoryKeyError
from edge.memory.wraps import unwrap, wrap
from edge.settings import MemorySettings

PASSPHRASE_VARIABLE = "REFLECTWORLD_PASSPHRASE"  # noqa: S105 -- the name of a variable
CREDENTIAL = "reflectworld-key"
KEY_BYTES = 32
FORMER = "reflectworld former key"  # purpose of the wraps in `key.json`
# scrypt at N = 2^15, r = 8, p = 1 takes 32 MiB and about 0.1 s (measured on one x86-64 core).
SCRYPT_N, SCRYPT_R, SCRYPT_P = 2**15, 8, 1
SCRYPT_N_MAX, SCRYPT_R_MAX = 2**20, 16  # a record that asks for more is not ours: 1 GiB at most


class KeySource(StrEnum):
    """Where a key comes from."""

    PASSPHRASE = "passphrase"  # noqa: S105 -- the name of a source
    CREDENTIAL = "systemd-credential"
    FILE = "key-file"


@dataclass(frozen=True, slots=True)
class MasterKey:
    """The key of both files."""

    secret: bytes  # 32 bytes
    source: KeySource
    words: str  # how to name it in a sentence
    proven: bool  # the check value says that it is the memory's

    @property
    def pragma(self) -> str:
        """The key in the form that spares SQLite its own derivation: ours is uniformly random already."""
        return f"raw:{self.secret.hex()}"

    def __repr__(self) -> str:
        return f"MasterKey(source={self.source!r})"  # never the secret


@dataclass(frozen=True, slots=True)
class _Record:
    """What `key.json` says."""

    source: KeySource
    check: str
    salt: bytes
    n: int
    r: int
    p: int


def obtain_key(home: Path, settings: MemorySettings, *, exists: bool, passphrase: str | None = None) -> MasterKey:
    """Find the key of the memory in `home`; make one if there is no memory yet.

    Args:
        home: the folder of the memory; it exists.
        settings: where the key file is.
        exists: whether there is a memory already. Then nothing is made: a new key could not open it.
        passphrase: overrides the environment.

    Raises:
        MemoryKeyError: the key is absent, wrong, or readable for others.
        OSError: it cannot be read or written.
    """
    record = _read_record(home) if exists else None
    path = settings.key_file or home / "key"
    given = passphrase if passphrase is not None else os.environ.get(PASSPHRASE_VARIABLE)
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    salt = record.salt if record else secrets.token_bytes(16)
    if given and exists and record is None:
        raise MemoryKeyError(
            f"“{home / 'key.json'}” is missing, and with it the salt of the passphrase; put it back from a copy."
        )
    if given:
        key = _from_passphrase(given, salt, record)
    elif credentials and (Path(credentials) / CREDENTIAL).is_file():
        key = _from_credential(Path(credentials) / CREDENTIAL)
    else:
        key = _from_file(path, exists=exists, record=record)
    if record is not None:
        _compare(key, record, home)
        return MasterKey(key.secret, key.source, key.words, proven=True)
    if not exists:
        _write_record(home, _Record(key.source, _check(key.secret), salt, SCRYPT_N, SCRYPT_R, SCRYPT_P))
        return MasterKey(key.secret, key.source, key.words, proven=True)
    return key


def new_key(
    folder: Path, source: KeySource, *, passphrase: str | None = None, former: Sequence[bytes] = ()
) -> MasterKey:
    """Make a key for a memory that is made anew in `folder`: its `key.json` and, for a key file, `key`.

    Args:
        folder: empty of keys; it exists.
        source: PASSPHRASE or FILE.
        passphrase: for PASSPHRASE.
        former: keys that the memory had before; kept in `key.json` under the new one, as they open older backups.

    Raises:
        MemoryKeyError: an empty passphrase.
        OSError: it cannot be written.
    """
    salt = secrets.token_bytes(16)
    if source is KeySource.PASSPHRASE:
        if not passphrase:
            raise MemoryKeyError("A passphrase cannot be empty; take five random words or more.")
        key = _from_passphrase(passphrase, salt, None)
    else:
        _make_file(folder / "key")
        key = _from_file(folder / "key", exists=True, record=None)
    kept = [wrap(key.secret, secret, FORMER) for secret in former]
    _write_record(folder, _Record(key.source, _check(key.secret), salt, SCRYPT_N, SCRYPT_R, SCRYPT_P), kept)
    return replace(key, proven=True)


def former_keys(home: Path, key: MasterKey) -> list[bytes]:
    """Keys that the memory in `home` had before this one, the latest first."""
    data = record_data(home) or {}
    opened = (unwrap(key.secret, str(wrapped), FORMER) for wrapped in data.get("former", ()))
    return [secret for secret in opened if secret is not None]


def record_data(home: Path) -> dict[str, Any] | None:
    """What `key.json` says; None: there is none. Nothing in it is secret.

    Raises:
        MemoryKeyError: it is damaged.
    """
    if _read_record(home) is None:
        return None
    data: dict[str, Any] = orjson.loads((home / "key.json").read_bytes())
    return data


def adopt_record(folder: Path, data: Mapping[str, Any]) -> None:
    """Write what `record_data` gave elsewhere into a folder, as its `key.json`.

    Raises:
        MemoryKeyError: it is no such thing.
        OSError: it cannot be written.
    """
    former = data.get("former", ())
    kept = [one for one in former if isinstance(one, str)] if isinstance(former, list) else []
    _write_record(folder, _record(data, folder / "key.json"), kept)


def stretched(passphrase: str, salt: bytes, n: int = SCRYPT_N, r: int = SCRYPT_R, p: int = SCRYPT_P) -> bytes:
    """32 bytes of a passphrase by scrypt (RFC 7914)."""
    return hashlib.scrypt(
        passphrase.encode(errors="surrogateescape"), salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=KEY_BYTES
    )


def _from_passphrase(passphrase: str, salt: bytes, record: _Record | None) -> MasterKey:
    n, r, p = (record.n, record.r, record.p) if record else (SCRYPT_N, SCRYPT_R, SCRYPT_P)
    # NFC or not, what a keyboard gives is taken as it is: bytes decide.
    secret = stretched(passphrase, salt, n, r, p)
    return MasterKey(secret, KeySource.PASSPHRASE, "this passphrase", proven=False)


def _from_credential(path: Path) -> MasterKey:
    return MasterKey(
        _decode(path.read_bytes(), path), KeySource.CREDENTIAL, f"the credential “{path.name}”", proven=False
    )


def _from_file(path: Path, *, exists: bool, record: _Record | None) -> MasterKey:
    if not path.exists():
        if exists:
            raise MemoryKeyError(_absent(path, record))
        _make_file(path)
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise MemoryKeyError(
            f"“{path}” is not a key file; move it away, or name the key file with REFLECTWORLD_MEMORY__KEY_FILE."
        )
    if stat.S_IMODE(mode) & 0o077:
        raise MemoryKeyError(f"The key file “{path}” can be read by others on this device; run `chmod 600 {path}`.")
    return MasterKey(_decode(path.read_bytes(), path), KeySource.FILE, f"the key file “{path}”", proven=False)


def _absent(path: Path, record: _Record | None) -> str:
    if record is None or record.source is KeySource.FILE:
        return f"The key file “{path}” of this memory is missing; put it back, the memory cannot be read without it."
    if record.source is KeySource.PASSPHRASE:
        return f"This memory opens with a passphrase; set {PASSPHRASE_VARIABLE}."
    return f"This memory opens with the systemd credential “{CREDENTIAL}”; start it from its systemd unit."


def _make_file(path: Path) -> None:
    """Write a new key: whole or not at all, readable for nobody else at any moment, and never over another."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(KEY_BYTES).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(part, path)
        except FileExistsError:
            return  # another process was quicker: its key is the key
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _decode(data: bytes, path: Path) -> bytes:
    """32 bytes as such, or as 64 hex digits."""
    if len(data) == KEY_BYTES:
        return data
    try:
        secret = bytes.fromhex(data.decode("ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise MemoryKeyError(f"“{path}” does not hold a key (64 hex digits); put the right file in its place.")
    return secret


def _check(secret: bytes) -> str:
    return hashlib.blake2b(secret, digest_size=16, person=b"reflectworld-key").hexdigest()


def _compare(key: MasterKey, record: _Record, home: Path) -> None:
    if hmac.compare_digest(_check(key.secret), record.check):
        return
    if key.source is record.source:
        if key.source is KeySource.PASSPHRASE:
            raise MemoryKeyError(
                f"The passphrase is wrong for the memory in “{home}”; give the one that it was made with."
            )
        raise MemoryKeyError(
            f"The memory in “{home}” was made with another key than {key.words}; put the right key in its place."
        )
    if record.source is KeySource.FILE:
        unset = PASSPHRASE_VARIABLE if key.source is KeySource.PASSPHRASE else "CREDENTIALS_DIRECTORY"
        raise MemoryKeyError(f"The memory in “{home}” opens with its key file, not with {key.words}; unset {unset}.")
    raise MemoryKeyError(f"{key.words[0].upper()}{key.words[1:]} does not fit. {_absent(home / 'key', record)}")


def _read_record(home: Path) -> _Record | None:
    path = home / "key.json"
    try:
        data = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        data = None
    return _record(data, path)


def _record(data: Any, path: Path) -> _Record:
    try:
        record = _Record(
            KeySource(data["source"]),
            str(data["check"]),
            bytes.fromhex(data["salt"]),
            int(data["n"]),
            int(data["r"]),
            int(data["p"]),
        )
    except (ValueError, KeyError, TypeError):
        record = None
    if record is None or not (0 < record.n <= SCRYPT_N_MAX and 0 < record.r <= SCRYPT_R_MAX and 0 < record.p <= 16):
        raise MemoryKeyError(
            f"“{path}” is damaged; put a copy back, or remove it if the memory opens with a key file or a credential."
        )
    return record


def _write_record(home: Path, record: _Record, former: Sequence[str] = ()) -> None:
    path = home / "key.json"
    part = home / f".key.json.{os.getpid()}"
    data: dict[str, Any] = {
        "version": 1,
        "source": record.source,
        "check": record.check,
        "salt": record.salt.hex(),
        "n": record.n,
        "r": record.r,
        "p": record.p,
    }
    if former:
        data["former"] = list(former)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    _sync_folder(home)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
