"""From an input to what is asked: the question in it, people, things, times, and what kind of answer it wants."""
