"""JSON out of what a language model wrote, and whether it has the form that was asked for. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NoReturn, cast

from pydantic import TypeAdapter, ValidationError

LONGEST = 1_000_000  # characters of an answer that are looked at
_TRIES = 64  # places at which JSON may begin that are tried, and so for its end
_ERRORS = 4  # that are told
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_OPENER = re.compile(r"[{\[]")


class NotJsonError(ValueError):
    """A text holds no JSON object or list; the message says what is wrong with it."""


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_constant)


def extract_json(text: str) -> Any:
    """The JSON value of an answer: all of it, or the longest object or list that stands in it.

    Models put fences around JSON, say something before or after it, or think aloud first.

    Args:
        text: as the model wrote it.

    Returns:
        What `json` makes of it: objects, lists; another value only when the text is nothing else.

    Raises:
        NotJsonError: there is none.
    """
    clean = _THOUGHT.sub("", text[:LONGEST]).strip().removeprefix("\ufeff")
    if not clean:
        raise NotJsonError("The answer is empty.")
    best: tuple[int, Any] | None = None
    problem = "no object begins in it"
    with suppress(ValueError, RecursionError):  # there is more in it than JSON
        return _whole(clean)
    place, tries = 0, 0
    while tries < _TRIES and (found := _OPENER.search(clean, place)):
        tries += 1
        try:
            value, end = _DECODER.raw_decode(clean, found.start())
        except json.JSONDecodeError as error:
            if best is None and tries == 1:
                problem = f"{error.msg} at character {error.pos - found.start()}"
            place = found.start() + 1
        except (ValueError, RecursionError) as error:
            problem = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
            place = found.start() + 1
        else:
            if best is None or end - found.start() > best[0]:
                best = end - found.start(), value
            place = end
    if best is None:
        raise NotJsonError(f"The answer is not JSON: {problem}.")
    return _encodable(best[1])


def _whole(text: str) -> Any:
    return _encodable(json.loads(text, parse_constant=_constant))


def _encodable(value: Any) -> Any:
    """The value itself, when it can be stored: JSON may escape half of a character, and its numbers may be too large."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise NotJsonError("The answer holds half of a character.") from None
    except ValueError:
        raise NotJsonError("The answer holds a number that is too large.") from None
    return value


@lru_cache(maxsize=64)
def _prepared(form: Hashable) -> tuple[TypeAdapter[Any], str]:
    """Who validates answers of a form, and its schema as JSON."""
    adapter: TypeAdapter[Any] = TypeAdapter(cast("type[Any]", form))
    return adapter, json.dumps(_closed(adapter.json_schema()))


def schema(form: type[Any]) -> dict[str, Any]:
    """The JSON schema of a form, as models are held to it: no further properties, and none left out.

    Without the latter grammars let a model end at once; what has a default may still be left out of an answer.
    """
    found: dict[str, Any] = json.loads(_prepared(cast("Hashable", form))[1])
    return found


def _closed(value: Any) -> Any:
    if isinstance(value, list):
        return [_closed(one) for one in value]
    if not isinstance(value, dict):
        return value
    closed = {
        key: {name: _closed(one) for name, one in inner.items()} if key in {"properties", "$defs"} else _closed(inner)
        for key, inner in value.items()
    }
    if isinstance(closed.get("properties"), dict):
        closed["required"] = list(closed["properties"])
        closed["additionalProperties"] = False
    return closed


def validated(text: str, form: type[Any]) -> Any:
    """The object of an answer.

    Args:
        text: as the model wrote it.
        form: what it has to be.

    Raises:
        ValueError: it is not; the message says why, in words that a model can correct it by.
    """
    value = extract_json(text)
    try:
        return _prepared(cast("Hashable", form))[0].validate_python(value)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        told = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'answer'}: {one['msg']}" for one in faults[:_ERRORS])
        raise ValueError(f"The answer has not the form that was asked for: {told[:600]}.") from None
    except RecursionError:
        raise ValueError("The answer is nested too deeply.") from None
