"""Language models: one interface (`Reasoner.ask`) to whichever there is, or to none.

`values` has what is asked and answered, `gate` decides where a request may go, `prompts` keeps what is said to models in
files of their own. Everything that is made with a language model has to be there without one, too.
"""

from __future__ import annotations

from edge.reason.breaker import State as BreakerState
from edge.reason.gate import Decision, Gate, Place, SettingsGate, Want
from edge.reason.ledger import Ledger, Tally, Totals
from edge.reason.prompts import Prompt
from edge.reason.prompts import load as load_prompt
from edge.reason.reasoner import Reasoner, open_reasoner
from edge.reason.values import Budget, Message, Refusal, Request, Usage, Why

__all__ = [
    "BreakerState",
    "Budget",
    "Decision",
    "Gate",
    "Ledger",
    "Message",
    "Place",
    "Prompt",
    "Reasoner",
    "Refusal",
    "Request",
    "SettingsGate",
    "Tally",
    "Totals",
    "Usage",
    "Want",
    "Why",
    "load_prompt",
    "open_reasoner",
]
