"""The `reflectworld` command."""
