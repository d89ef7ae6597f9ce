"""The ways by which word is sent: a webhook, and whatever Apprise reaches. The pages get it as an event, not from here."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Protocol

import httpx
import structlog

from edge.clock import iso
from edge.errors import NotifyError
from edge.settings import NotifySettings

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Message:
    """One notification as it is sent."""

    id: str  # public, "a7"; of a digest, that of its first
    title: str
    text: str
    at: float  # UTC POSIX seconds of what happened
    rule: str | None = None  # public, "r3"


class Sink(Protocol):
    """One way to send."""

    name: str

    def send(self, message: Message) -> None:
        """Send; may take seconds.

        Raises:
            NotifyError: it did not arrive.
        """


class Webhook:
    """Posts JSON to an address: {id, title, text, at, rule}."""

    name = "webhook"

    def __init__(self, url: str, timeout_s: float) -> None:
        self._url = url
        self._timeout = timeout_s

    def send(self, message: Message) -> None:
        """Post one message; a redirect is not followed, because the owner named this address and no other."""
        body = {
            "id": message.id,
            "title": message.title,
            "text": message.text,
            "at": iso(message.at),
            "rule": message.rule,
        }
        try:
            answer = httpx.post(self._url, json=body, timeout=self._timeout, follow_redirects=False)
        except httpx.HTTPError as error:
            raise NotifyError(
                self.name,
                f"The webhook did not answer ({type(error).__name__}); check [notify] webhook and the network.",
            ) from error
        if not answer.is_success:
            raise NotifyError(
                self.name, f"The webhook answered {answer.status_code}; check the address in [notify] webhook."
            )


class Apprise:
    """Sends through Apprise (an optional package) to the addresses of the settings."""

    name = "apprise"

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self._addresses = addresses

    def send(self, message: Message) -> None:
        """Send one message to all addresses."""
        if importlib.util.find_spec("apprise") is None:
            raise NotifyError(
                self.name, "Apprise is not installed; `pip install 'reflectworld-edge[apprise]'` adds it."
            )
        import apprise

        sender = apprise.Apprise()
        for address in self._addresses:
            if not sender.add(address):
                raise NotifyError(
                    self.name, "An address in [notify] apprise cannot be read; see Apprise's documentation."
                )
        if not sender.notify(title=message.title, body=message.text):
            raise NotifyError(self.name, "Apprise could not deliver to every address; check them and the network.")


def sinks(settings: NotifySettings) -> tuple[Sink, ...]:
    """The ways that the settings name."""
    found: list[Sink] = []
    if settings.webhook is not None:
        found.append(Webhook(settings.webhook, settings.webhook_s))
    if settings.apprise:
        found.append(Apprise(settings.apprise))
    return tuple(found)
