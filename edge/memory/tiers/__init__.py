"""The tiers that are derived from what was seen: each with its tables, its reads and its writes.

What is here is a function of evidence and of the owner's corrections; when those change, it is derived again.
"""
