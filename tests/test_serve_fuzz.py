"""Requests that nobody would write, made from the API's own description: none may break the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from edge.memory import Store
from edge.serve import build_app
from tests.memory_support import segment
from tests.recall_data import BagEmbedder, tell
from tests.serve_support import LOCAL, Keys, jpeg, service_on, serving

BOUNDS = settings(
    max_examples=40,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # schemathesis' own
def test_no_request_breaks_the_server(tmp_path: Path) -> None:
    schemathesis = pytest.importorskip("schemathesis")

    @schemathesis.serializer("audio/wav")  # it knows none for sound
    def as_it_is(_context: Any, value: Any) -> bytes:
        return value if isinstance(value, bytes) else str(getattr(value, "data", value)).encode(errors="ignore")

    with Store.open(tmp_path / "home") as store:
        tell(store, BagEmbedder())
        store.commit(segment(0))
        service = service_on(store, BagEmbedder())
        service.pictures["hall"] = jpeg()
        service.hears = lambda _samples: "Who repaired a motorcycle?"
        app = build_app(service, Keys(LOCAL))
        seen: dict[int, int] = {}
        with serving(app) as url:
            schema = schemathesis.openapi.from_dict(app.openapi())
            for operation in schema.get_all_operations():
                one = operation.ok()
                if one.path == "/api/v1/events":
                    continue  # a stream that does not end; tests/test_serve_events.py holds it

                def check(case: Any) -> None:
                    answer = case.call(base_url=url)
                    seen[answer.status_code] = seen.get(answer.status_code, 0) + 1
                    assert answer.status_code < 500, (case.method, case.path, answer.text)
                    if answer.status_code >= 400:
                        assert answer.headers["content-type"][0].startswith("application/problem+json")

                BOUNDS(given(case=one.as_strategy())(check))()
        assert seen[200] > 50
