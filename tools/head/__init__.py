"""Training of the reflex head: what it learns from, how, and how well it then does on lives that it has not seen."""
