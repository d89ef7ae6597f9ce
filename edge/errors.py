"""The error tree: every failure that a user can meet, as one sentence with its remedy.

Two roots by cause. A `UserError` is something that the person at the keyboard (or the caller of the API) can put right:
the sentence says how. A `FaultError` is something that broke underneath: the sentence says what was kept and what to do.
The command line prints the message and exits with `exit_code`; the API makes a problem document of it.
"""

from __future__ import annotations

from pathlib import Path


class ReflectWorldError(Exception):
    """Root of all errors of this package; `str()` is one clear sentence with the remedy."""

    exit_code = 1
    problem = "error"


class UserError(ReflectWorldError):
    """The request cannot be carried out as it was made."""

    exit_code = 2
    problem = "bad-request"


class FaultError(ReflectWorldError):
    """Something underneath failed; what was already stored is kept."""

    exit_code = 3
    problem = "fault"


class SourceError(UserError):
    """A camera or file cannot be watched."""

    problem = "source"

    def __init__(self, source: str, message: str) -> None:
        super().__init__(message)
        self.source = source


class QuestionError(UserError):
    """A question or a query cannot be understood as one (too long, empty, not text)."""

    problem = "question"


class NotFoundError(UserError):
    """A named thing (person, trace, camera, key frame) is not in the memory."""

    problem = "not-found"

    def __init__(self, what: str, message: str) -> None:
        super().__init__(message)
        self.what = what


class SettingsError(UserError):
    """A setting has a value that cannot be used."""

    problem = "settings"


class PairingError(UserError):
    """Devices cannot be paired or told apart as things stand."""

    problem = "pairing"


class CertificateError(UserError):
    """A certificate or its key cannot be used."""

    problem = "certificate"


class ModelError(UserError):
    """A model is missing, damaged or does not fit its role."""

    problem = "model"

    def __init__(self, model: str, message: str) -> None:
        super().__init__(message)
        self.model = model


class ModelDownloadError(ModelError, FaultError):
    """A model could not be fetched (offline, disk full, server trouble)."""

    exit_code = 3
    problem = "model-download"


class MemoryKeyError(UserError):
    """The memory's key is absent or wrong."""

    exit_code = 4
    problem = "key"


class StoreError(FaultError):
    """The memory's files cannot be opened, read or written."""

    problem = "store"

    def __init__(self, path: Path | str, message: str) -> None:
        super().__init__(message)
        self.path = str(path)


class StoreVersionError(StoreError, UserError):
    """The memory was written by a newer version of this program."""

    exit_code = 5
    problem = "store-version"


class ClaimHeldError(StoreError):
    """Another process is at the same long work."""

    problem = "busy"


class StaleError(StoreError):
    """What is to be written rests on something that was forgotten a moment ago; decide again."""

    problem = "stale"


class DiskFullError(StoreError):
    """No space is left on the device that holds the memory."""

    exit_code = 6
    problem = "disk-full"


class ArchiveError(UserError):
    """A backup or an export cannot be used: damaged, of another form, or not to be opened with this key."""

    problem = "archive"


class BackupError(FaultError):
    """A backup could not be made; earlier ones are as they were."""

    problem = "backup"


class InferenceError(FaultError):
    """A network failed while running."""

    problem = "inference"


class NotifyError(FaultError):
    """Word could not be sent."""

    problem = "notify"

    def __init__(self, sink: str, message: str) -> None:
        super().__init__(message)
        self.sink = sink


class ReasonError(FaultError):
    """A language model did not do what was asked of it."""

    problem = "reason"


class PostponedError(FaultError):
    """A job cannot be done yet, for a reason that is no fault of its own, such as a server that does not answer."""

    problem = "postponed"

    def __init__(self, seconds: float, message: str) -> None:
        super().__init__(message)
        self.seconds = seconds  # until it is worth another try
