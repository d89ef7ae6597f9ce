"""Language models: one interface, several backends, none needed."""
