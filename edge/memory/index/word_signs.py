"""Words in their context: the signs of what the network makes of each content word, and late interaction over them.

A question is compared with a moment word by word (ColBERT: Khattab and Zaharia 2020, section 3.3): each of its words looks for
the word of the moment that means most nearly the same there, and what they find is added up. So "who fixed the bike" finds
"repaired a bicycle", which shares no word with it and whose vector is one of many. A word is kept as signs only, one bit a
component (recall over dialogue is the same as with int8: .686 and .686 at 10, measured), 48 bytes with 384 components.
"""

from __future__ import annotations

import json

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory.index.write import rows_of

WORD_SIGNS_V1 = """
create table word_signs(
  trace integer not null references trace(id) on delete cascade, embedder integer not null references text_embedder(id),
  bits blob not null, primary key(trace, embedder)) without rowid;
"""


def create_word_signs(connection: apsw.Connection) -> None:
    """Make the table; part of a migration, inside its transaction."""
    connection.execute(WORD_SIGNS_V1)


def late_interaction(
    connection: apsw.Connection,
    embedder: str,
    states: NDArray[np.float32],
    weights: NDArray[np.float64],
    traces: NDArray[np.int64],
) -> NDArray[np.float64]:
    """How well the words of some traces answer to those of a question.

    Args:
        connection: any reader.
        embedder: key of the model that made the states.
        states: (m, d) of the question's words, L2-normalised.
        weights: (m,) how much each of them tells.
        traces: (n,) ids.

    Returns:
        (n,) the weighted mean of the cosine of each word with its nearest; NaN where no words are kept.
    """
    found = np.full(len(traces), np.nan)
    if not len(states) or not weights.sum():
        return found
    sql = """
        select w.key, s.bits from json_each(:wanted) w join text_embedder m on m.key = :embedder
        join word_signs s on s.trace = w.value and s.embedder = m.id"""
    size = (states.shape[1] + 7) // 8
    rows = rows_of(connection, sql, {"wanted": json.dumps(traces.tolist()), "embedder": embedder})
    rows = [(place, bits) for place, bits in rows if bits and len(bits) % size == 0]
    if not rows:
        return found
    packed = np.frombuffer(b"".join(bits for _, bits in rows), np.uint8).reshape(-1, size)
    # A component is 1 or -1 over the root of their number: unit vectors. 0 and 1 are multiplied, which is the same for less.
    ones = np.unpackbits(packed, axis=1, count=states.shape[1], bitorder="little").astype(np.float32)
    near = (2.0 * (states @ ones.T) - states.sum(axis=1, keepdims=True)) / np.sqrt(np.float32(states.shape[1]))
    begins = np.cumsum([0, *(len(bits) // size for _, bits in rows)])[:-1]
    best = np.maximum.reduceat(near, begins, axis=1)
    found[[place for place, _ in rows]] = (weights / weights.sum()) @ best
    return found
