"""Rules and reminders of the owner: signals, a deterministic resolver, and the ways by which word is sent."""

from __future__ import annotations

from edge.notify.delivery import Delivery
from edge.notify.language import command, understand
from edge.notify.notifier import Notifier
from edge.notify.program import Remember
from edge.notify.sinks import Message, Sink, sinks

__all__ = ["Delivery", "Message", "Notifier", "Remember", "Sink", "command", "sinks", "understand"]
