"""The API on a small real memory: what it gives, whom it refuses, and how it says no."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from edge.memory import Store
from edge.serve import build_app
from edge.settings import ServeSettings
from tests.memory_support import segment
from tests.recall_data import BagEmbedder, tell
from tests.serve_support import LOCAL, Keys, MemoryService, call, jpeg, service_on


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("serve") / "home") as store:
        tell(store, BagEmbedder())
        yield store


@pytest.fixture
def service(store: Store) -> MemoryService:
    return service_on(store, BagEmbedder())


@pytest.fixture
def app(service: MemoryService) -> FastAPI:
    return build_app(service, Keys(LOCAL))


@pytest.fixture
def faces(tmp_path: Path) -> Iterator[FastAPI]:
    """A memory with a face, boxes and a key frame."""
    with Store.open(tmp_path / "home") as store:
        ids = store.commit(segment(0)).entities
        store.commit(segment(1, who=ids[-1]))
        yield build_app(service_on(store), Keys(LOCAL))


def test_moments_come_newest_first_in_pages(app: FastAPI) -> None:
    found, before = [], None
    for _ in range(3):
        page = call(app, "GET", "/api/v1/moments", params={"limit": 2} | ({"before": before} if before else {})).json()
        found += page["items"]
        before = page["next"]
        if before is None:
            break
    assert [one["id"] for one in found] == ["t4", "t3", "t2", "t1"]
    assert found[3]["text"] == "Anna sat at a table with a cup. A cat was on a sofa."
    assert found[3]["entities"] == [{"id": "p1", "title": "Anna"}]
    assert found[3]["utterances"][0]["text"] == "My name is Anna."


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({"person": "Anna"}, ["t4", "t2", "t1"]),
        ({"person": "p2"}, ["t3"]),
        ({"camera": "garage"}, ["t3"]),
        ({"label": "cat"}, ["t1"]),
        ({"label": "mug"}, ["t3", "t1"]),
        ({"until": "2025-01-06T12:00:00+01:00", "person": "Anna"}, ["t2", "t1"]),
        ({"since": "2025-01-08T00:00:00+01:00"}, ["t4"]),
        ({"label": "elephant"}, []),
    ],
)
def test_moments_are_filtered(app: FastAPI, filters: dict[str, str], ids: list[str]) -> None:
    page = call(app, "GET", "/api/v1/moments", params=filters).json()
    assert [one["id"] for one in page["items"]] == ids
    assert page["next"] is None


def test_a_day_is_a_timeline_between_its_neighbours(app: FastAPI) -> None:
    days = [one["date"] for one in call(app, "GET", "/api/v1/days").json()["items"]]
    assert len(days) == 3
    day = call(app, "GET", f"/api/v1/days/{days[1]}").json()
    assert [one["id"] for one in day["moments"]] == ["t3"]
    assert (day["previous"], day["next"]) == (days[2], days[0])
    assert day["people"] == [{"id": "p2", "title": "person 2"}]
    page = call(app, "GET", "/api/v1/moments", params={"day": days[2]}).json()
    assert [one["id"] for one in page["items"]] == ["t2", "t1"]
    first = call(app, "GET", "/api/v1/days", params={"limit": 1}).json()
    assert [one["date"] for one in first["items"]] == days[:1]
    rest = call(app, "GET", "/api/v1/days", params={"before": first["next"]}).json()
    assert [one["date"] for one in rest["items"]] == days[1:]


def test_a_moment_says_where_what_was_and_why(faces: FastAPI) -> None:
    whole = call(faces, "GET", "/api/v1/moments/t2").json()
    assert (whole["before"], whole["after"]) == ("t1", None)
    assert [one["label"] for one in whole["observations"]] == ["person", "cup"]
    (picture,) = whole["pictures"]
    assert picture["id"] == whole["key_frames"][0]
    assert [one["outcome"] for one in whole["decisions"]] == ["same"]


def test_pictures_have_an_etag_and_stay_private(faces: FastAPI) -> None:
    frame = call(faces, "GET", "/api/v1/moments/t1").json()["key_frames"][0]
    first = call(faces, "GET", f"/api/v1/pictures/{frame}")
    assert first.content.startswith(b"\xff\xd8")
    assert first.headers["content-type"] == "image/jpeg"
    assert "private" in first.headers["cache-control"]
    again = call(faces, "GET", f"/api/v1/pictures/{frame}", headers={"If-None-Match": f'"x", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    other = call(faces, "GET", f"/api/v1/pictures/{frame}", headers={"If-None-Match": '"other"'})
    assert other.status_code == 200


def test_people_have_faces_sightings_and_words(faces: FastAPI) -> None:
    (person,) = call(faces, "GET", "/api/v1/people").json()["items"]
    assert (person["title"], person["seen"]) == ("person 1", 2)
    assert call(faces, "GET", person["face"]).content.startswith(b"\xff\xd8")
    whole = call(faces, "GET", f"/api/v1/people/{person['id']}").json()
    assert whole["faces"][0]["path"] == person["face"]  # the best slot comes first in both
    assert [one["trace"] for one in whole["sightings"]] == ["t2", "t1"]
    assert [one["text"] for one in whole["utterances"]] == ["Sentence 1.", "Sentence 0."]
    assert whole["names_heard"][0]["name"] == "Ann"
    assert call(faces, "GET", f"/api/v1/people/{person['id']}/faces/999").status_code == 404


def test_people_come_in_pages(app: FastAPI) -> None:
    first = call(app, "GET", "/api/v1/people", params={"limit": 1}).json()
    assert [one["title"] for one in first["items"]] == ["Anna"]
    second = call(app, "GET", "/api/v1/people", params={"limit": 1, "before": first["next"]}).json()
    assert [one["title"] for one in second["items"]] == ["person 2"]
    assert second["next"] is None
    assert call(app, "GET", "/api/v1/people", params={"before": "p99"}).status_code == 404


def test_a_name_reaches_what_was_remembered(faces: FastAPI) -> None:
    assert call(faces, "PUT", "/api/v1/people/p1/name", json={"name": "Eileen"}).json()["title"] == "Eileen"
    assert call(faces, "GET", "/api/v1/moments/t1").json()["text"].startswith("Eileen")
    assert call(faces, "PUT", "/api/v1/people/p1/name", json={"name": None}).json()["title"] == "person 1"
    refused = call(faces, "PUT", "/api/v1/people/p1/name", json={"name": "person 3"})
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")


def test_questions_are_answered_with_what_they_rest_on(app: FastAPI) -> None:
    answer = call(app, "POST", "/api/v1/ask", json={"question": "who repaired a motorcycle?"}).json()
    assert answer["found"] is True
    assert answer["cited"][0] in {"t3", "o7"}
    assert answer["key_frame"] == "k2"
    asked_before = call(
        app, "POST", "/api/v1/ask", json={"question": "who repaired a motorcycle?", "at": "2025-01-06T12:00:00+01:00"}
    ).json()
    assert asked_before["found"] is False


def test_search_has_the_tools_of_the_command_line(app: FastAPI) -> None:
    found = call(app, "GET", "/api/v1/search", params={"q": "cat on a sofa"}).json()["items"]
    assert found[0]["id"] == "t1"
    words = call(app, "GET", "/api/v1/search", params={"q": "train to Hamburg", "level": "utterance"}).json()["items"]
    assert words[0]["text"].endswith("The train to Hamburg leaves on Friday at noon.") or "Hamburg" in words[0]["text"]
    only = call(app, "GET", "/api/v1/search", params={"q": "cup", "camera": "garage"}).json()["items"]
    assert {one["camera"] for one in only} == {"garage"}
    assert call(app, "GET", "/api/v1/search", params={"q": "cup", "camera": "cellar"}).status_code == 404
    things = call(app, "GET", "/api/v1/search", params={"q": "table", "thing": "cup", "person": "Anna"}).json()["items"]
    assert [one["id"] for one in things] == ["t1"]


def test_who_when_count_and_what_is_behind_an_id(app: FastAPI) -> None:
    (anna,) = call(app, "GET", "/api/v1/who", params={"name": "Anna"}).json()
    assert (anna["id"], anna["title"], anna["moments"]) == ("p1", "Anna", 3)
    assert call(app, "GET", "/api/v1/who", params={"name": "Berta"}).status_code == 404
    times = call(app, "GET", "/api/v1/when", params={"thing": "cup"}).json()
    assert [one["first"] for one in times] == ["t3", "t1"]
    counted = call(app, "GET", "/api/v1/count", params={"person": "Anna"}).json()
    assert (counted["times"], counted["moments"], counted["days"]) == (2, 3, 2)
    assert call(app, "GET", "/api/v1/count").status_code == 422
    around = call(app, "GET", "/api/v1/items/t1", params={"neighbours": 1}).json()
    assert [one["id"] for one in around] == ["t1", "t2"]
    ground = call(app, "GET", "/api/v1/items/t3", params={"evidence": True}).json()
    assert {one["level"] for one in ground} == {"observation", "utterance"}
    assert call(app, "GET", "/api/v1/items/t99").status_code == 404


def test_cameras_are_added_paused_shown_and_removed(app: FastAPI, service: MemoryService) -> None:
    made = call(app, "POST", "/api/v1/cameras", json={"name": "door", "uri": "rtsp://door/1"})
    assert (made.status_code, made.json()["state"]) == (201, "live")
    assert call(app, "GET", "/api/v1/cameras/door/snapshot").status_code == 404
    service.pictures["door"] = jpeg()
    shown = call(app, "GET", "/api/v1/cameras/door/snapshot")
    assert (shown.content, shown.headers["cache-control"]) == (service.pictures["door"], "private, no-store")
    assert call(app, "POST", "/api/v1/cameras/door/pause").json()["state"] == "paused"
    assert call(app, "POST", "/api/v1/cameras/door/resume").json()["state"] == "live"
    assert [one["name"] for one in call(app, "GET", "/api/v1/cameras").json()["items"]] == ["door"]
    assert call(app, "POST", "/api/v1/cameras", json={"name": "door", "uri": "rtsp://x"}).status_code == 422
    assert call(app, "DELETE", "/api/v1/cameras/door").status_code == 204
    assert call(app, "GET", "/api/v1/cameras/door").status_code == 404


def test_the_status_says_how_it_is_and_who_asks(app: FastAPI) -> None:
    status = call(app, "GET", "/api/v1/status").json()
    assert status["memory"]["traces"] == 4
    assert status["channels"]["capture:hall"] == {"items": 2, "bound": 8, "dropped": 1}
    assert status["missing"] == ["Speech is not heard."]
    assert status["you"] == {"id": "local", "name": "this device", "scopes": ["admin"], "local": True}
    assert status["rss_bytes"] > 1_000_000


def test_figures_for_prometheus(app: FastAPI) -> None:
    call(app, "GET", "/api/v1/moments/t1")
    text = call(app, "GET", "/metrics").text
    assert "reflectworld_moments 4.0" in text
    assert 'reflectworld_channel_items{channel="capture:hall"} 2.0' in text
    assert 'reflectworld_requests_total{method="GET",route="/api/v1/moments/{moment}",status="200"} 1.0' in text


READS = [
    "/api/v1/status",
    "/api/v1/moments",
    "/api/v1/moments/t1",
    "/api/v1/people",
    "/api/v1/people/p1",
    "/api/v1/people/p1/faces/1",
    "/api/v1/corrections",
    "/api/v1/pictures/k1",
    "/api/v1/days",
    "/api/v1/days/today",
    "/api/v1/search?q=cup",
    "/api/v1/who?name=Anna",
    "/api/v1/when?thing=cup",
    "/api/v1/count?thing=cup",
    "/api/v1/items/t1",
    "/api/v1/cameras",
    "/api/v1/cameras/door",
    "/api/v1/cameras/door/snapshot",
    "/api/v1/events",
    "/metrics",
    "/api/openapi.json",
    "/api/docs",
    "/",
]
WRITES = [
    ("POST", "/api/v1/cameras"),
    ("DELETE", "/api/v1/cameras/door"),
    ("POST", "/api/v1/cameras/door/pause"),
    ("POST", "/api/v1/cameras/door/resume"),
    ("PUT", "/api/v1/people/p1/name"),
    ("POST", "/api/v1/people/p1/merge"),
    ("POST", "/api/v1/people/p1/split"),
    ("POST", "/api/v1/people/p1/not"),
    ("POST", "/api/v1/corrections/c1/undo"),
]


@pytest.mark.parametrize("path", READS)
def test_nothing_is_read_without_the_right_key(service: MemoryService, path: str) -> None:
    app = build_app(service, Keys(None))
    refused = call(app, "GET", path)
    assert (refused.status_code, refused.headers["content-type"]) == (401, "application/problem+json")
    assert refused.headers["www-authenticate"] == "Bearer"
    assert call(app, "GET", path, headers={"Authorization": "Bearer phone"}).status_code == 403


def test_scripts_and_styles_are_for_every_known_device(service: MemoryService) -> None:
    app = build_app(service, Keys(None))
    assert call(app, "GET", "/static/css/phone.css").status_code == 401
    for key in ("phone", "reader", "owner"):
        assert call(app, "GET", "/static/css/phone.css", headers={"Authorization": f"Bearer {key}"}).status_code == 200


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_nothing_is_changed_without_being_admin(service: MemoryService, method: str, path: str) -> None:
    app = build_app(service, Keys(None))
    body = {"json": {"name": "x", "uri": "rtsp://x"}} if method == "POST" else {}
    assert call(app, method, path, **body).status_code == 401
    assert call(app, method, path, headers={"Authorization": "Bearer reader"}, **body).status_code == 403


def test_every_route_of_the_description_asks_for_a_key(service: MemoryService) -> None:
    app = build_app(service, Keys(None))
    for path, methods in app.openapi()["paths"].items():
        for method in methods:
            where = path.replace("{", "").replace("}", "")
            assert call(app, method.upper(), where).status_code == 401, (method, path)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nowhere", 404),
        ("PUT", "/api/v1/moments", 405),
        ("GET", "/api/v1/moments/x", 404),
        ("GET", "/api/v1/moments/p1", 404),
        ("GET", "/api/v1/moments/t99999999999999999999999", 404),
        ("GET", "/api/v1/moments?limit=0", 422),
        ("GET", "/api/v1/moments?since=whenever", 422),
        ("GET", "/api/v1/moments?day=2025-13-01", 422),
        ("GET", "/api/v1/moments?before=t77", 404),
        ("GET", "/api/v1/moments?person=Nobody", 404),
        ("GET", "/api/v1/days/0002-01-01", 200),
        ("GET", "/api/v1/days/9999-12-31", 422),
        ("GET", "/api/v1/pictures/k77", 404),
        ("GET", "/api/v1/search", 422),
        ("GET", "/api/v1/search?q=%20", 422),
        ("GET", "/api/v1/cameras/none/snapshot", 404),
        ("POST", "/api/v1/cameras/none/pause", 404),
    ],
)
def test_errors_are_problem_documents(app: FastAPI, method: str, path: str, status: int) -> None:
    answer = call(app, method, path)
    assert answer.status_code == status
    if status >= 400:
        document = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert document["status"] == status
        assert document["type"].startswith("urn:reflectworld:problem:")
        assert document["detail"].endswith(".")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../http.py",
        "/static/%2e%2e/http.py",
        "/static/..%2fhttp.py",
        "/static/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc/passwd",
        "/static//etc/passwd",
        "/static/..\\http.py",
        "/static/",
    ],
)
def test_no_path_leads_out_of_the_pages(app: FastAPI, path: str) -> None:
    assert call(app, "GET", path).status_code == 404


def test_large_bodies_are_refused(service: MemoryService) -> None:
    app = build_app(service, Keys(LOCAL), ServeSettings(max_body_bytes=2000))
    large = call(app, "POST", "/api/v1/ask", content=b" " * 2001)
    assert (large.status_code, large.json()["type"]) == (413, "urn:reflectworld:problem:too-large")

    async def endless() -> object:
        for _ in range(10):
            yield b" " * 1000

    assert call(app, "POST", "/api/v1/ask", content=endless()).status_code == 413


def test_answers_tell_browsers_what_not_to_do(app: FastAPI) -> None:
    for path in ("/", "/api/v1/status", "/api/v1/nowhere"):
        headers = call(app, "GET", path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_the_pages_hold_nothing_inline() -> None:
    import re

    from edge.serve.http import STATIC

    pages = list(STATIC.glob("*.html"))
    assert pages
    for page in pages:
        text = page.read_text()
        assert not re.search(r"""<style|\sstyle=|\son[a-z]+=|=\s*["']?javascript:|https?://""", text, re.IGNORECASE), (
            page
        )
        assert all('src="' in tag for tag in re.findall(r"<script[^>]*>", text)), page
    for script in STATIC.rglob("*.js"):
        text = script.read_text()
        assert re.search(r"^// @ts-check$", text, re.MULTILINE), script
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            script
        )
