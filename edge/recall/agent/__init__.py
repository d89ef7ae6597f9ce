"""The agent: what goes on where the first pass is not sure, for a few rounds, until it has an answer or time is up.

`agent` is the loop, `looks` are the ways to look, `policy` chooses among them without a language model and `model` with one;
`model` also answers from what was gathered, apart from choosing, and checks an answer against its picture.
"""

from __future__ import annotations

from edge.recall.agent.agent import MOST_ROUNDS, Agent, Limits
from edge.recall.agent.looks import Finding, Looks, looked_at
from edge.recall.agent.run import Agents

__all__ = ["MOST_ROUNDS", "Agent", "Agents", "Finding", "Limits", "Looks", "looked_at"]
