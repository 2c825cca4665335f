"""A trace goes on from the request to the move, the playbook and the message after it, and says ids and statuses only."""

from __future__ import annotations

import http.server
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app.engine import hints
from app.kit import logs, traces
from app.settings import ROOT, settings
from tests.engine_kit import PLAYBOOKS, drive, ended, make_attempt, playbook_step, wait_for
from tests.integration.web_client import Browser

SAID = {
    "together",
    "attempt",
    "generation",
    "moved",
    "gate",
    "step",
    "step_status",
    "event",
    "run",
    "playbook",
    "status",
    "rc",
    "events",
    "request",
    "method",
}
TRACEPARENT = "00-" + "a1" * 16 + "-" + "b2" * 8 + "-01"


class Collector(http.server.BaseHTTPRequestHandler):
    """What an OpenTelemetry collector is to those who send to it."""

    def do_POST(self) -> None:
        body = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.spans += [s for r in body.resource_spans for scope in r.scope_spans for s in scope.spans]  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[http.server.HTTPServer]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    server.spans = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def kept(state: Path, collector: http.server.HTTPServer, monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Keep the spans of this process; those of others go to the collector."""
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    monkeypatch.setattr(settings(), "otlp_endpoint", endpoint)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setitem(traces.PROVIDERS, endpoint, provider)
    return exporter


def named(kept: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in kept.get_finished_spans() if span.name == name]


def test_a_request_goes_on_with_the_callers_trace_and_is_named_by_its_route_not_by_its_address(kept: InMemorySpanExporter) -> None:
    answer = Browser().get("/api/v1/engagements/none-of-them?token=abc", traceparent=TRACEPARENT)
    Browser().get("/healthz")
    (span,) = kept.get_finished_spans()
    assert span.name == "GET /api/v1/engagements/{engagement_id}"
    assert span.parent is not None
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == ("a1" * 16, "b2" * 8)
    assert span.attributes == {"quadgate.request": answer.headers["X-Request-Id"], "quadgate.method": "GET", "quadgate.status": answer.status_code}


def test_a_playbook_is_a_span_below_the_move_that_started_it_and_tells_no_secret(
    state: Path, kept: InMemorySpanExporter, collector: http.server.HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
    secret = state / "become"
    secret.write_text("marzipan-canary-4711\n")
    secret.chmod(0o600)
    host = {"groups": ["engine"], "connection": "local", "become_password": {"file": str(secret)}}
    attempt_id = make_attempt(playbook_step(playbook="secret.yml"), hosts={"gpu01": host})
    assert drive(attempt_id, until=ended).status == "finished"
    (playbook,) = wait_for(lambda: [s for s in collector.spans if s.name == "playbook"])  # type: ignore[attr-defined]
    begun = next(s for s in named(kept, "advance") if s.context.span_id == int.from_bytes(playbook.parent_span_id))
    assert playbook.trace_id == begun.context.trace_id.to_bytes(16)
    assert begun.attributes is not None
    assert (begun.attributes["quadgate.attempt"], begun.attributes["quadgate.step"], begun.attributes["quadgate.gate"]) == (
        attempt_id,
        "survey",
        "G2",
    )
    told = {a.key: a.value for a in playbook.attributes}
    assert (told["quadgate.attempt"].string_value, told["quadgate.playbook"].string_value) == (attempt_id, "secret.yml")
    keys = {key.removeprefix("quadgate.") for s in named(kept, "advance") for key in s.attributes or {}} | {k.removeprefix("quadgate.") for k in told}
    assert keys <= SAID
    everything = str(collector.spans) + str([s.to_json() for s in kept.get_finished_spans()])  # type: ignore[attr-defined]
    assert not [needle for needle in ("marzipan-canary-4711", "tropical-fish") if needle in everything]


def test_a_hint_carries_the_trace_and_the_task_goes_on_with_it(kept: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.worker import tasks

    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(hints, "_knock", lambda url: None)
    monkeypatch.setattr("celery.Celery.send_task", lambda self, name, **how: sent.append(how))
    hints.publish_advance("none", 1, "here")
    with traces.span("request"):
        hints.publish_advance("none", 1, "here")
        here = traces.carried()
    assert [how["headers"] for how in sent] == [None, {"traceparent": here}]
    tasks.advance.apply(args=["none", 1], headers=sent[1]["headers"])
    (span,) = named(kept, "advance")
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" in here


def test_a_line_of_the_log_names_the_span_and_an_error_leaves_its_type_alone(kept: InMemorySpanExporter, capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        logs.configure("json")
        with pytest.raises(ValueError, match="s3cr3t"), traces.span("judge"):
            _fail(logging.getLogger("quadgate.engine"))
        logging.getLogger("quadgate.engine").info("outside")
    finally:
        root.handlers[:], root.level = before
    inside, outside = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (span,) = named(kept, "judge")
    assert inside["trace_id"] == f"{span.context.trace_id:032x}"
    assert "trace_id" not in outside
    assert span.attributes == {"error.type": "ValueError"}
    assert "s3cr3t" not in span.to_json()


def _fail(log: logging.Logger) -> None:
    log.info("inside")
    raise ValueError("password=s3cr3t")


def test_without_a_collector_nothing_of_it_is_loaded() -> None:
    program = (
        "import sys\nfrom app.kit import logs, traces\nimport app.engine.host\n"
        "with traces.span('advance', attempt='x') as span:\n    span.say(moved=True)\n"
        "assert (traces.carried(), traces.ids()) == ('', {})\nassert not [m for m in sys.modules if m.startswith('opentelemetry.sdk')], 'loaded'\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, env={"PATH": "/usr/bin:/bin", "QUADGATE_OTLP_ENDPOINT": ""})
