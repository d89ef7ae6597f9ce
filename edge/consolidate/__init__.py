"""What is made of memories while nobody waits: the worker of the durable queue and its handlers."""
