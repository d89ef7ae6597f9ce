"""ReflectWorld Edge: an on-device visual memory."""

__version__ = "0.1.0"
