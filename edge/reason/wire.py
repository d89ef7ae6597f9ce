"""The chat completions of OpenAI-compatible servers, as bytes and back. Pure.

Servers differ in what they take: `Dialect` says what this one does, and `adapted` learns it from what it refuses. Written
against the API reference of OpenAI and the documentation of llama-server, Ollama and vLLM.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from ipaddress import ip_address
from typing import Any

import httpx
from pydantic import BaseModel, ValidationError

from edge.reason.backends import Call, Completion, Trouble
from edge.reason.prompts import load
from edge.reason.values import Message, Refusal, Why, media_type

_WORDS = 200  # characters of a server's own words that are told
_SEVER = 429, 502, 503, 504  # "come back later"


class Format(IntEnum):
    """How a server is told the form of an answer, the strictest first."""

    JSON_SCHEMA = 0  # response_format json_schema
    JSON_OBJECT = 1  # response_format json_object, and the schema in words
    TEXT = 2  # the schema in words


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server takes."""

    form: Format = Format.JSON_SCHEMA
    max_completion_tokens: bool = False  # in the place of max_tokens
    temperature: bool = True


def is_here(url: str) -> bool:
    """Whether an address is this device itself: what is sent there does not leave it."""
    try:
        host = httpx.URL(url).host
        return host == "localhost" or ip_address(host).is_loopback
    except (ValueError, httpx.InvalidURL):
        return False


def endpoint(base_url: str, path: str) -> str:
    """The address of a path such as `chat/completions`; the version is put in where the address has no path at all."""
    base = base_url.rstrip("/").removesuffix("/chat/completions")
    if not httpx.URL(base).path.strip("/"):
        base += "/v1"
    return f"{base}/{path}"


def body(call: Call, model: str, dialect: Dialect, temperature: float) -> dict[str, Any]:
    """A request as JSON values."""
    messages = list(call.messages)
    if dialect.form is not Format.JSON_SCHEMA:
        words = load("form").words(schema=json.dumps(dict(call.schema)))
        if messages and messages[0].role == "system":
            messages[0] = replace(messages[0], text=f"{messages[0].text}\n\n{words}")
        else:
            messages.insert(0, Message("system", words))
    made: dict[str, Any] = {
        "model": model,
        "messages": [_message(one) for one in messages],
        "stream": False,
        "max_completion_tokens" if dialect.max_completion_tokens else "max_tokens": call.tokens,
    }
    if dialect.temperature:
        made["temperature"] = temperature
    if dialect.form is Format.JSON_SCHEMA:
        named = {"name": re.sub(r"[^A-Za-z0-9_-]", "_", call.purpose)[:64] or "answer", "schema": dict(call.schema)}
        made["response_format"] = {"type": "json_schema", "json_schema": named}
    elif dialect.form is Format.JSON_OBJECT:
        made["response_format"] = {"type": "json_object"}
    return made


def _message(message: Message) -> dict[str, Any]:
    if not message.images:
        return {"role": message.role, "content": message.text}
    parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}]
    for image in message.images:
        url = f"data:{media_type(image)};base64,{base64.b64encode(image).decode()}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": message.role, "content": parts}


def adapted(dialect: Dialect, status: int, content: bytes) -> Dialect | None:
    """What to speak instead with a server that refused a request; None: it is not refused for how it was put."""
    if status not in (400, 404, 415, 422, 500, 501):
        return None
    words = content[:10_000].decode("utf-8", "replace").lower()
    if not dialect.max_completion_tokens and "max_completion_tokens" in words:
        return replace(dialect, max_completion_tokens=True)
    if dialect.temperature and "temperature" in words:
        return replace(dialect, temperature=False)
    told = any(word in words for word in ("response_format", "json_schema", "json_object", "grammar", "schema"))
    if dialect.form is not Format.TEXT and (told or status in (400, 422)) and not _too_long(words):
        return replace(dialect, form=Format(dialect.form + 1))
    return None


def _too_long(words: str) -> bool:
    return any(sign in words for sign in ("context length", "context_length", "context size", "too long", "too large"))


class _Part(BaseModel):
    text: str = ""


class _Said(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _Used(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Answer(BaseModel):
    choices: list[_Choice]
    usage: _Used | None = None


def completion(content: bytes) -> Completion:
    """What the body of a successful answer says.

    Raises:
        Trouble: it is no completion.
    """
    try:
        answer = _Answer.model_validate_json(content)
    except ValidationError:
        text = f"The language model's server answered something else than a completion: {clean(content)}"
        remedy = (
            "Check [reason] base_url: it is the address of an OpenAI-compatible API, such as http://localhost:8080/v1."
        )
        raise Trouble(Refusal(Why.SERVER_FAULT, text, remedy, retry_s=300.0), again=True, sick=True) from None
    if not answer.choices:
        text, remedy = "The language model's server answered without an answer.", "Try another model."
        raise Trouble(Refusal(Why.SERVER_FAULT, text, remedy, retry_s=300.0), again=True, sick=True)
    choice, used = answer.choices[0], answer.usage or _Used()
    said = choice.message.content
    words = "".join(part.text for part in said) if isinstance(said, list) else said or ""
    if not words and choice.message.refusal:
        text = f"The language model declined to answer: {clean(choice.message.refusal.encode())}"
        raise Trouble(Refusal(Why.REJECTED, text, "Try another model."))
    return Completion(
        words, _count(used.prompt_tokens), _count(used.completion_tokens), choice.finish_reason == "length"
    )


def _count(tokens: int | None) -> int | None:
    return tokens if tokens is not None and 0 <= tokens < 10_000_000 else None


def trouble(status: int, content: bytes, wait: float | None, secret: str = "") -> Trouble:
    """What an answer that is no success means.

    Args:
        status: of HTTP.
        content: its body.
        wait: s after which the server wants to be asked again; None: it does not say.
        secret: that is not to be told, should the server say it back.
    """
    said = clean(content, secret)
    if status in _SEVER:
        text = f"The language model's server has too much to do ({status}): {said}"
        refusal = Refusal(Why.OVERLOADED, text, "It is tried again later.", retry_s=wait or 60.0)
        return Trouble(refusal, again=True, wait=wait, sick=True)
    if status >= 500:
        text = f"The language model's server failed ({status}): {said}"
        refusal = Refusal(Why.SERVER_FAULT, text, "Look into its log.", retry_s=wait or 120.0)
        return Trouble(refusal, again=True, wait=wait, sick=True)
    if 300 <= status < 400:
        text = f"The language model's server sends elsewhere ({status}), which is not followed."
        return Trouble(Refusal(Why.REJECTED, text, "Put the address where it is in [reason] base_url."), sick=True)
    remedies = {
        401: "Check the key in the variable of [reason] api_key_env, or in api_key_file.",
        403: "Check the key in the variable of [reason] api_key_env, or in api_key_file, and what it may do.",
        402: "See to your account there.",
        404: "Check [reason] model and base_url.",
        413: "Ask for less at once, or give the server a larger context.",
    }
    remedy = remedies.get(status, "Check [reason] model, and that its context is large enough.")
    text = f"The language model's server refused the request ({status}): {said}"
    return Trouble(Refusal(Why.REJECTED, text, remedy), sick=status in (401, 402, 403, 404))


def clean(content: bytes, secret: str = "") -> str:
    """A server's own words, short and fit to be shown."""
    text = content[:20_000].decode("utf-8", "replace")
    told = _message_of(text) or text
    if secret:
        told = told.replace(secret, "…")
    told = " ".join("".join(one if one.isprintable() else " " for one in told).split())
    return f"“{told[:_WORDS]}{'…' if len(told) > _WORDS else ''}”" if told else "nothing."


def _message_of(text: str) -> str | None:
    """The sentence inside `{"error": {"message": …}}` or what servers write in its place."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for key in ("error", "message", "detail"):
        if isinstance(value, Mapping) and key in value:
            value = value[key]
    return value if isinstance(value, str) else None
