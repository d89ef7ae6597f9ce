"""Rules, reminders and notifications, and orders in plain words."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from edge.clock import iso
from edge.memory.tiers.procedural import AlertRecord, RuleRecord
from edge.serve import inputs
from edge.serve.context import Context
from edge.serve.forms import Notification, OneRule, Ordered, OrderText, Page
from edge.serve.protocols import Scope
from edge.types.records import Kind, public_id


def rules_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["rules"], dependencies=[context.needs(Scope.ASK)])
    notifier, orders = context.service.notifier, context.service.orders

    def number(text: str) -> int:
        return inputs.number(text, Kind.RULE, "rule")

    @router.get("/rules")
    async def rules() -> list[OneRule]:
        """The rules, oldest first."""
        return await context.workers.run(lambda: [_rule(one) for one in notifier.rules()])

    @router.post("/orders", status_code=201)
    async def order(text: OrderText) -> Ordered:
        """Keep a rule, a reminder, quiet hours or something to remember, said in plain words."""
        done = await context.workers.run(lambda: orders.take(text.text))
        return Ordered(text=done.text, item=done.item)

    @router.delete("/rules/{rule}")
    async def remove(rule: str) -> OneRule:
        """Forget a rule and what was decided about it."""
        return await context.workers.run(lambda: _rule(notifier.remove(number(rule))))

    @router.post("/rules/{rule}/pause")
    async def pause(rule: str) -> OneRule:
        """Let a rule rest."""
        return await context.workers.run(lambda: _rule(notifier.pause(number(rule), paused=True)))

    @router.post("/rules/{rule}/resume")
    async def resume(rule: str) -> OneRule:
        """Let a rule count again."""
        return await context.workers.run(lambda: _rule(notifier.pause(number(rule), paused=False)))

    @router.get("/rules/{rule}/why")
    async def why(rule: str) -> list[Notification]:
        """The latest decisions about a rule, newest first, with their reasons."""
        return await context.workers.run(lambda: [_alert(one) for one in notifier.why(number(rule))])

    @router.get("/alerts")
    async def alerts(
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[
            str | None, Query(max_length=40, description="the id of the last one of the page before")
        ] = None,
    ) -> Page[Notification]:
        """The notifications, newest first."""
        after = None if before is None else inputs.number(before, Kind.ALERT, "notification")
        found = await context.workers.run(lambda: notifier.alerts(before=after, limit=limit))
        more = public_id(Kind.ALERT, found[-1].id) if len(found) == limit else None
        return Page(items=[_alert(one) for one in found], next=more)

    @router.post("/alerts/{alert}/read", status_code=204)
    async def read(alert: str) -> None:
        """Note that a notification was seen."""
        which = inputs.number(alert, Kind.ALERT, "notification")
        await context.workers.run(lambda: notifier.read(which))

    return router


def _rule(rule: RuleRecord) -> OneRule:
    return OneRule(
        id=public_id(Kind.RULE, rule.id),
        kind=rule.kind,
        text=rule.text,
        state=rule.state,
        created=iso(rule.created),
        camera=rule.camera,
        urgent=rule.urgent,
        next=None if rule.due is None else iso(rule.due),
        last_told=None if rule.last_fired is None else iso(rule.last_fired),
    )


def _alert(alert: AlertRecord) -> Notification:
    return Notification(
        id=public_id(Kind.ALERT, alert.id),
        rule=None if alert.rule is None else public_id(Kind.RULE, alert.rule),
        at=iso(alert.at),
        outcome=alert.outcome,
        reason=alert.reason,
        text=alert.text,
        ground=list(alert.ground),
        read=alert.read,
    )
