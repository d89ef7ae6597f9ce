"""The encrypted store: one writer, everything with an id and a provenance."""
