"""The `reflectworld` command."""

from edge.cli.root import app, main

__all__ = ["app", "main"]
