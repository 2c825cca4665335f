"""When is an engine quiet: no request runs or waits, and nothing is stored any more.

Storing goes on after the answer, and each offload software counts it under its own names, some of them at endpoints of its own and some only
every ten seconds. So the job file says where to look (`engine.metrics_urls`) and what must be seen there (`engine.idle`):
{families: [counters of stored bytes, tokens or chunks], empty: [gauges of what waits to be stored], pairs: [[begun, done]], still_s, files}.
Where a page does not tell what it must, the answer is unknown (`idle` null), never yes.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional

from probe import metrics
from probe.engine_counters import RUNNING, WAITING
from probe.errors import ProbeError

LOOKS = 3  # in which nothing changed, at least
STILL_S = 0.1  # where the job file says nothing: all counters are of the engine's own page, and current
AWAY_S = 5.0  # an endpoint that does not answer for so long is not there
_WORDS = ("store", "write", "put_", "backup")
Pages = Dict[str, Dict[str, str]]


class Quiet:
    """Looks at one engine until it is quiet. `page` gives the engine's own counters and gauges, `host` (probe.engine_host) what lies on its host."""

    def __init__(self, spec: Dict[str, Any], page: Callable[[], Dict[str, str]], host: Any) -> None:
        rule: Dict[str, Any] = spec.get("idle") or {}
        self._page, self._host, self._urls = page, host, bool(spec.get("metrics_urls"))
        self._families: List[str] = list(rule.get("families") or [])
        self._empty: List[str] = list(rule.get("empty") or [])
        self._pairs: List[List[str]] = list(rule.get("pairs") or [])
        self._still_s = float(rule.get("still_s") or STILL_S)
        self._files = bool(rule.get("files") and spec.get("kv_dirs"))

    def pages(self) -> Pages:
        """Return the counters and gauges of every endpoint, the engine's own under ''. Raises ProbeError where one does not answer."""
        found: Pages = {"": self._page()}
        for url, page in (self._host.offload() if self._urls else {}).items():
            if page is None:
                raise ProbeError("engine", "GET %s was not answered." % url)
            found[url] = page
        return found

    def wait(self, sleep: Callable[[float], None], timeout: float, stored: bool = False) -> Dict[str, Any]:
        """Wait until nothing moves, for `timeout` s. Return {idle: true|false|null, waited_s, why}.

        `stored`: prefixes were stored before, so every family must tell something by now.
        """
        began, last, still, looks, away, sizes = time.monotonic(), None, 0.0, 0, 0.0, None  # type: float, Any, float, int, float, Any
        while True:
            now = time.monotonic()
            try:
                pages = self.pages()
            except ProbeError as error:
                away = away or now
                if now - away > min(AWAY_S, timeout):
                    return _answer(None, began, str(error))
                sleep(0.2)
                continue
            away = 0.0
            busy = [metrics.amount(pages[""], quantity) for quantity in (RUNNING, WAITING)]
            if None in busy:
                return _answer(None, began, "the engine does not say how many requests run and wait")
            why, storing = self._moving(pages, busy), _storing(pages)
            if why or storing != last:
                last, still, looks, sizes = storing, now, 0, self._sizes() if stored else None
            looks += 1
            if not why and looks >= LOOKS and now - still >= self._still_s:
                if not stored:
                    return _answer(True, began, "")
                if self._sizes() == sizes:
                    missing = [name for name in self._families if not any(_counted(page, name) for page in pages.values())]
                    return _answer(None if missing else True, began, "no endpoint tells %s" % ", ".join(missing) if missing else "")
                last, why = None, "the files of KV still grow"
            if now - began > timeout:
                return _answer(False, began, why or "storing goes on")
            sleep(0.05)

    def _moving(self, pages: Pages, busy: List[Any]) -> str:
        """Return what shows that work is going on, empty where nothing does."""
        if busy != [0, 0]:
            return "running %s, waiting %s" % (busy[0], busy[1])
        for page in pages.values():
            for name in self._empty:
                waiting = metrics.total(page, name)
                if waiting:
                    return "%s is %s" % (name, waiting)
            for begun, done in self._pairs:
                counts = (_counted(page, begun), _counted(page, done))
                if counts[0] is not None and counts[0] != (counts[1] or 0):
                    return "%s is %s and %s is %s" % (begun, counts[0], done, counts[1])
        return ""

    def _sizes(self) -> Optional[Dict[str, int]]:
        """Return {files, bytes} of the KV directories, where the software has no counter of what it wrote."""
        return self._host.kv_size() if self._files else None


def _counted(page: Dict[str, str], name: str) -> Any:
    """Return a counter by its name, with or without the ending that Prometheus clients add."""
    found = metrics.total(page, name + "_total")
    return metrics.total(page, name) if found is None else found


def _storing(pages: Pages) -> Dict[str, Dict[str, str]]:
    """Return everything that names stored or written bytes, tokens or chunks: it must stand still."""
    return {url: {k: v for k, v in page.items() if any(word in k for word in _WORDS)} for url, page in pages.items()}


def _answer(idle: Optional[bool], began: float, why: str) -> Dict[str, Any]:
    return {"idle": idle, "waited_s": round(time.monotonic() - began, 3), "why": why}
