"""How a command reaches the running service: its address and a secret, in a file that only its owner can read.

Every account of the device can connect to localhost; the secret tells the owner's commands from those of others.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import orjson

from edge.errors import FaultError, NotFoundError, PairingError, ReflectWorldError, UserError
from edge.serve.private import write_private

FILE = "run.token"


@dataclass(frozen=True, slots=True)
class RunFile:
    """What `run.token` holds."""

    url: str  # of the localhost listener, for example http://127.0.0.1:8765
    token: str
    pid: int


def write_run_file(home: Path, url: str) -> RunFile:
    """Say where the service of this home listens, with a new secret; `remove_run_file` at its end.

    Raises:
        OSError: it cannot be written.
    """
    run = RunFile(url, secrets.token_urlsafe(32), os.getpid())
    data = {"url": run.url, "token": run.token, "pid": run.pid}
    write_private(home / FILE, orjson.dumps(data) + b"\n")
    return run


def read_run_file(home: Path) -> RunFile | None:
    """Where the service listens; None: nothing says that it runs (it may also have been killed).

    Raises:
        PairingError: the file is another account's, or damaged.
    """
    path = home / FILE
    try:
        data = orjson.loads(path.read_bytes())
        return RunFile(str(data["url"]), str(data["token"]), int(data["pid"]))
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise PairingError(
            f"The service of “{home}” runs under another account; give this command as that account (for example with sudo)."
        ) from error
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise PairingError(f"“{path}” cannot be read; start `reflectworld run` anew, which writes it.") from error


def remove_run_file(home: Path, run: RunFile) -> None:
    """Take the file away if it is still this run's."""
    try:
        current = read_run_file(home)
    except PairingError:
        return
    if current == run:
        (home / FILE).unlink(missing_ok=True)


class LocalClient:
    """Talks to the running service over localhost, as its owner. A context manager."""

    def __init__(self, run: RunFile, *, timeout_s: float = 10.0) -> None:
        self._http = httpx.Client(
            base_url=run.url,
            headers={"Authorization": f"Bearer {run.token}"},
            timeout=timeout_s,
            trust_env=False,  # a proxy of the environment must not see the secret
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(self, method: str, path: str, body: object | None = None) -> Any:
        """Ask for one thing.

        Args:
            method: of HTTP.
            path: below the service's address, for example `/api/v1/devices`.
            body: sent as JSON; None: nothing.

        Returns:
            The JSON of the answer; None: it has none.

        Raises:
            NotFoundError, UserError, FaultError: the service refused, in its words.
            ServiceAbsentError: it does not answer.
        """
        answer = self._answer(method, path, body)
        return orjson.loads(answer.content) if answer.content else None

    def fetch(self, path: str) -> bytes:
        """The content of what is no JSON, such as a picture. Raises as `call`."""
        return self._answer("GET", path, None).content

    def _answer(self, method: str, path: str, body: object | None) -> httpx.Response:
        try:
            answer = self._http.request(method, path, json=body)
        except httpx.ConnectError as error:
            raise ServiceAbsentError("The service does not run; start it with `reflectworld run`.") from error
        except httpx.HTTPError as error:
            raise FaultError(
                f"The service does not answer ({type(error).__name__}); `reflectworld status` says how it is."
            ) from error
        if answer.is_success:
            return answer
        raise _refusal(answer)


class ServiceAbsentError(UserError):
    """Nothing listens where the service should."""

    problem = "not-running"


def local_client(home: Path) -> LocalClient | None:
    """A client for the running service of this home; None: none runs (as far as its file says).

    Raises:
        PairingError: it runs under another account.
    """
    run = read_run_file(home)
    return LocalClient(run) if run is not None else None


def _refusal(answer: httpx.Response) -> ReflectWorldError:
    try:
        detail = str(orjson.loads(answer.content)["detail"])
    except (ValueError, KeyError, TypeError):
        detail = f"The service refused this with status {answer.status_code}; see its log."
    if answer.status_code == 404:
        return NotFoundError("", detail)
    return FaultError(detail) if answer.status_code >= 500 else UserError(detail)
