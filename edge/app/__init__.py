"""The composition root: builds the rooms and owns what runs."""
