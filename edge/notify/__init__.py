"""Rules and reminders of the owner: signals, a deterministic resolver, and the ways by which word is sent."""
