"""The nodes of the timeline on the command line."""

from __future__ import annotations

from collections.abc import Sequence

from edge.cli.console import print_json, say
from edge.clock import iso, to_local
from edge.memory import Store
from edge.memory.tiers import timeline
from edge.memory.tiers.timeline import Node
from edge.types.records import Kind, mentioned, public_id, render

FRONTIER = "frontier"  # the global state: what is recent in detail, what is distant in summary


def list_nodes(
    store: Store,
    level: str,
    *,
    since: float | None,
    until: float | None,
    camera: str | None,
    person: int | None,
    limit: int,
    json: bool,
) -> None:
    """Print the nodes of a level, or the global state, in the order of time."""
    with store.reading() as connection:
        if level == FRONTIER:
            found = timeline.frontier(connection, store.user, until, camera=camera)
            found = [node for node in found if since is None or node.end > since][-limit:]
        else:
            found = timeline.nodes_of_level(
                connection, store.user, level, since=since, until=until, camera=camera, limit=limit
            )
        if person is not None:
            found = [node for node in found if person in node.people]
        titles = store.titles({who for node in found for who in (*node.people, *mentioned(node.text))})
    if json:
        print_json([_as_json(node, titles) for node in found])
    elif not found:
        say("Nothing is remembered in that time, or it is still being gone over (`reflectworld jobs run`).")
    else:
        for node in found:
            _say_node(node, titles)


def _say_node(node: Node, titles: dict[int, str]) -> None:
    start, end = to_local(node.start), to_local(node.end)
    until = f"{end:%H:%M}" if end.date() == start.date() else f"{end:%Y-%m-%d %H:%M}"
    who = ", ".join(titles[one] for one in _by_count(node) if one in titles)
    moments = f"{node.traces} moment{'' if node.traces == 1 else 's'}"
    say(
        f"{start:%Y-%m-%d %H:%M}–{until}  {node.item}  {node.camera}  {node.name}, {moments}"
        + (f"  ({who})" if who else "")
    )
    say(f"    {_rendered(node, titles) or '(nothing to tell)'}")


def _as_json(node: Node, titles: dict[int, str]) -> dict[str, object]:
    return {
        "id": node.item,
        "level": node.name,
        "camera": node.camera,
        "start": iso(node.start),
        "end": iso(node.end),
        "moments": node.traces,
        "text": _rendered(node, titles),
        "summary_source": node.source,
        "people": [
            {"id": public_id(Kind.ENTITY, one), "title": titles.get(one, "someone"), "moments": node.people[one]}
            for one in _by_count(node)
        ],
        "places": node.places,
        "things": node.things,
    }


def _by_count(node: Node) -> Sequence[int]:
    return sorted(node.people, key=lambda one: (-node.people[one], one))


def _rendered(node: Node, titles: dict[int, str]) -> str:
    return render(node.text, lambda one: titles.get(one, "someone"))
