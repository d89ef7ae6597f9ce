"""`reflectworld reason`: whether the language model does what it is there for."""

from __future__ import annotations

import typer
from pydantic import BaseModel

from edge.cli.console import HomeOption, JsonOption, print_json, say, settings_for
from edge.clock import monotonic
from edge.reason import Budget, Reasoner, Refusal, Request, Usage, load_prompt, open_reasoner

app = typer.Typer(name="reason", help="The language model, where there is one.", no_args_is_help=True)

_WORD = "cup"
_TOKENS = 200  # some models think aloud first


class _Word(BaseModel):
    """What is asked for."""

    word: str


@app.callback()
def _group() -> None:
    """Keep `check` a command of its own."""


@app.command(name="check")
def check(json: JsonOption = False, home: HomeOption = None) -> None:
    """Ask the language model something tiny; the exit status is 1 when there is none or it does not answer well."""
    settings = settings_for(home)
    reasoner = open_reasoner(settings.reason, settings.home)
    try:
        began, before = monotonic(), reasoner.totals().today
        prompt = load_prompt("check").fill(word=_WORD)
        request = Request("check", prompt, _Word, Budget(_TOKENS))
        answer = reasoner.ask(request)
        seconds = monotonic() - began
    finally:
        reasoner.close()
    after = reasoner.totals().today
    used = Usage(after.tokens_in - before.tokens_in, after.tokens_out - before.tokens_out, after.cost - before.cost)
    _show(reasoner, answer, seconds, used, json=json)
    if isinstance(answer, Refusal):
        raise typer.Exit(1)


def _show(reasoner: Reasoner, answer: _Word | Refusal, seconds: float, used: Usage, *, json: bool) -> None:
    refusal = answer if isinstance(answer, Refusal) else None
    if json:
        print_json(
            {
                "ok": refusal is None,
                "model": reasoner.name or None,
                "seconds": round(seconds, 3),
                "tokens_in": max(0, used.tokens_in),
                "tokens_out": max(0, used.tokens_out),
                "cost": max(0.0, used.cost),
                "reason": None if refusal is None else str(refusal.reason),
                "detail": "" if refusal is None else refusal.text,
                "remedy": "" if refusal is None else refusal.remedy,
            }
        )
    elif refusal is None:
        cost = f", cost {used.cost:.6g}" if used.cost > 0 else ""
        say(f"{reasoner.name} answers: {seconds:.1f} s, {used.tokens_in} tokens in, {used.tokens_out} out{cost}.")
    else:
        say(str(refusal))
