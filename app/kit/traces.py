"""Spans for an OpenTelemetry collector: which request, move, playbook, judgement or report took how long, across processes.

Off unless QUADGATE_OTLP_ENDPOINT names a collector: then nothing of OpenTelemetry is imported, and `span` costs a function call. What is
told of a span is short: ids, names of steps, statuses; never an address with its query, a header, a body, or the message of an error.
A collector that is away costs the spans, and nobody else anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

HEADER = "traceparent"  # W3C Trace Context: of a message, of a request, in a run's job.json
FLUSH_MS = 2000
TEXT_MAX = 120
PROVIDERS: dict[str, TracerProvider] = {}  # by endpoint, made by the first span
_PARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Span:
    """What a block may say about itself while it goes on. This one says it to nobody."""

    def say(self, **attributes: str | int | bool | None) -> None:
        """Add attributes. A value that is absent is left out, a long one is cut."""

    def call(self, name: str) -> None:
        """Give the span the name that is known only now."""


class _Real(Span):
    def __init__(self, span: Any) -> None:
        self._span = span

    def say(self, **attributes: str | int | bool | None) -> None:
        for key, value in attributes.items():
            if value is not None:
                self._span.set_attribute(f"quadgate.{key}", value[:TEXT_MAX] if isinstance(value, str) else value)

    def call(self, name: str) -> None:
        self._span.update_name(name)


_SILENT = Span()


def provider(endpoint: str) -> TracerProvider:
    """Return what makes the spans of this process and sends them to a collector, in batches and from a thread of its own."""
    if endpoint in PROVIDERS:
        return PROVIDERS[endpoint]
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from app.settings import settings

    url = endpoint.rstrip("/")
    made = TracerProvider(resource=Resource({"service.name": "quadgate", "service.instance.id": settings().node}))
    exporter = OTLPSpanExporter(endpoint=url if url.endswith("/v1/traces") else f"{url}/v1/traces", timeout=FLUSH_MS / 1e3)
    made.add_span_processor(BatchSpanProcessor(exporter))
    return PROVIDERS.setdefault(endpoint, made)


@contextmanager
def span(name: str, *, parent: str = "", endpoint: str | None = None, **attributes: str | int | bool | None) -> Iterator[Span]:
    """Let the block be a span. `parent`: the traceparent of another process; without one the span of the block around, if there is any.

    `endpoint`: of a process that reads no settings. An error goes through, and leaves its type on the span, not its message.
    """
    where = _endpoint() if endpoint is None else endpoint
    if not where:
        yield _SILENT
        return
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    above = TraceContextTextMapPropagator().extract({HEADER: parent}) if _PARENT.fullmatch(parent) else None
    tracer = provider(where).get_tracer("quadgate")
    with tracer.start_as_current_span(name, context=above, record_exception=False, set_status_on_exception=False) as made:
        real = _Real(made)
        real.say(**attributes)
        try:
            yield real
        except BaseException as error:
            made.set_attribute("error.type", type(error).__name__)
            made.set_status(trace.StatusCode.ERROR)
            raise


def carried() -> str:
    """Return the traceparent of the span that goes on, to be handed to another process; empty when there is none."""
    found = _current()
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{int(found.trace_flags):02x}" if found else ""


def ids() -> dict[str, str]:
    """Return {trace_id, span_id} of the span that goes on, for a line of the log; empty when there is none."""
    found = _current()
    return {"trace_id": f"{found.trace_id:032x}", "span_id": f"{found.span_id:016x}"} if found else {}


def in_log(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Be structlog's processor that adds the ids to a line."""
    line.update(ids())
    return line


def flush() -> None:
    """Send what is there, before a process of one span ends. Takes FLUSH_MS at most, and never raises."""
    for made in list(PROVIDERS.values()):
        made.force_flush(FLUSH_MS)


def _endpoint() -> str:
    from app.settings import settings  # not at the top: a playbook's host is told where to, and starts sooner without

    return settings().otlp_endpoint


def _current() -> Any:
    if not PROVIDERS:
        return None
    from opentelemetry import trace

    found = trace.get_current_span().get_span_context()
    return found if found.is_valid else None
