"""What keeps the memory bounded, movable and erasable: forgetting, retention, export, backup, a new key."""
