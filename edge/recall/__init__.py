"""From a question to evidence and an answer: the question understood, the memory searched, the answer drawn from what is there.

>>> recall = Recall(store, embedder)  # doctest: +SKIP
>>> recall.ask("where did I last see my cup?").text  # doctest: +SKIP
'A cup was last seen today at 17:04 by the camera hall. A cup was on a table, in the middle of the view.'
"""

from __future__ import annotations

from edge.recall.agent import looked_at
from edge.recall.answer.phrases import say_time
from edge.recall.answer.portrait import Aspect, Fact, Profile, fact_history, known_facts, one_fact, profile
from edge.recall.answer.related import Related, key_of, related
from edge.recall.answer.stretches import Stretch, stretches
from edge.recall.batch import Query, Ranked, parse_query, read_queries, refused, to_line
from edge.recall.question.finder import Heard, find_question
from edge.recall.question.head import Head
from edge.recall.question.understand import Known, Question, QuestionKind, understand
from edge.recall.question.when import Order, When, understand_when
from edge.recall.recall import Recall
from edge.recall.records import Answer, Company, Count, Filters, Level, Look, Person, Result, Time
from edge.recall.search.searcher import Embedder
from edge.recall.search.similar import like, similar
from edge.recall.tools import Tools

__all__ = [
    "Answer",
    "Aspect",
    "Company",
    "Count",
    "Embedder",
    "Fact",
    "Filters",
    "Head",
    "Heard",
    "Known",
    "Level",
    "Look",
    "Order",
    "Person",
    "Profile",
    "Query",
    "Question",
    "QuestionKind",
    "Ranked",
    "Recall",
    "Related",
    "Result",
    "Stretch",
    "Time",
    "Tools",
    "When",
    "fact_history",
    "find_question",
    "key_of",
    "known_facts",
    "like",
    "looked_at",
    "one_fact",
    "parse_query",
    "profile",
    "read_queries",
    "refused",
    "related",
    "say_time",
    "similar",
    "stretches",
    "to_line",
    "understand",
    "understand_when",
]
