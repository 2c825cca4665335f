"""Forget the engine's GPU cache without starting it anew, and prove it: the endpoint's own word is not enough.

vLLM answers HTTP 200 with {"success": false} while blocks are held, SGLang HTTP 400 with a sentence while requests are under way, and the success of
either tells nothing of what still serves. So a prompt that is known to hit before must not hit behind it: either here, or by the job's own canary,
which was stored and is not used before. SGLang's reset empties its host memory too, and what the engine holds itself counts as one. What opens the
endpoint opens more than that, so only the engine's own host asks it; the prompts come from the driver, which may be elsewhere.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

from probe import metrics
from probe.engine_counters import IN_USE, OWN_HITS, RESET_WORDS, family_of
from probe.errors import ProbeError
from probe.prompts import Shot

if TYPE_CHECKING:
    from probe.engine import Engine

LIMIT_S, PAUSE_S = 60.0, 0.2  # how long blocks may be held behind the last request
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def verified_reset(engine: "Engine", warm: Shot, ask_again: bool, sleep: Callable[[float], None], timeout: float = 60.0) -> Dict[str, Any]:
    """Reset the prefix cache and return the proof {url, answers, success, kv_cache_usage, hits_before, hits_after}; counts are decimal strings.

    `warm` is sent twice before, so that it hits; `ask_again` sends it once more behind the reset, where no canary of the job does. The reset is
    posted by the engine's host (`post`), wherever that is, and of a host elsewhere the proof bears `on`. Raises ProbeError with a sentence where
    the engine is not shown to be cold: nothing is measured then.
    """
    _ask(engine, warm, sleep, timeout)
    hits_before = _ask(engine, warm, sleep, timeout)
    if not hits_before:
        raise ProbeError(
            "engine",
            "A prompt that was sent twice did not hit the GPU cache (%s counts %s), so a reset of it cannot be shown. Nothing was measured; use "
            "cool: restart (targets.engine.cool)." % (metrics.names_of(engine.metrics(), OWN_HITS), _text(hits_before)),
        )
    proof: Dict[str, Any] = dict(engine.host.reset(sleep), hits_before=_text(hits_before), hits_after=None)
    if ask_again:
        proof["hits_after"] = _text(_ask(engine, warm, sleep, timeout))
        if proof["hits_after"] is None or Decimal(proof["hits_after"]) != 0:
            raise ProbeError(
                "engine",
                "POST %s said success, and %s tokens of a prompt from before still came from the GPU cache. Nothing was measured; use cool: restart "
                "(targets.engine.cool)." % (proof["url"], proof["hits_after"]),
            )
    return proof


def post(url: str, page: Callable[[], Dict[str, str]], sleep: Callable[[float], None]) -> Dict[str, Any]:
    """Ask until the body says success and no block is in use, which held blocks may delay; `page` tells the engine's counters now.

    Return {url, answers: [{status, success}], success, kv_cache_usage}: of the proof, what the engine's host tells.
    """
    end = time.monotonic() + LIMIT_S
    told: Dict[str, Any] = {"url": url, "answers": [], "success": False, "kv_cache_usage": None}
    answers = told["answers"]
    while True:
        status, body = _post(url, b"", 30.0)
        now = page()
        said, usage = _success(body, status, RESET_WORDS.get(family_of(now) or "")), metrics.amount(now, IN_USE)
        answer = {"status": status, "success": said}
        if said is True:
            told.update(success=True, kv_cache_usage=_text(usage))
            if usage == 0:
                answers.append(answer)
                return told
        if not answers or answers[-1] != answer:
            answers.append(answer)
        if time.monotonic() > end or (status != 200 and said is None):
            raise ProbeError(
                "engine",
                "POST %s did not empty the GPU cache within %d s: the last answer was %s with success %s, %s is %s. Nothing was measured."
                % (url, LIMIT_S, status, json.dumps(said), metrics.names_of(now, IN_USE), _text(usage)),
            )
        sleep(PAUSE_S)


def _ask(engine: "Engine", shot: Shot, sleep: Callable[[float], None], timeout: float) -> Optional[Decimal]:
    """Send one prompt to its end; return how many of its tokens the engine still held itself, None where the engine does not count them."""
    before = metrics.amount(engine.metrics(), OWN_HITS)
    status, body = _post(engine.base + "/v1/completions", shot.body, timeout)
    if status != 200:
        raise ProbeError("engine", "The prompt that shows whether the GPU cache is empty was answered with %s: %s" % (status, body[:200]))
    engine.wait_idle(sleep)
    after = metrics.amount(engine.metrics(), OWN_HITS)
    return None if before is None or after is None else after - before


def _post(url: str, body: bytes, timeout: float) -> Any:
    """Return (status, body) of a POST; what is no answer at all raises a sentence."""
    request = urllib.request.Request(url, data=body, method="POST", headers={"Content-Type": "application/json"})
    try:
        with _OPENER.open(request, timeout=timeout) as answer:
            return answer.status, answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode("utf-8", "replace")
    except OSError as error:
        raise ProbeError("engine", "POST %s failed: %s." % (url, error)) from error


def _success(body: str, status: int, words: Optional[str]) -> Optional[bool]:
    """Return what the body says of success; None where it says nothing, which is never success. `words`: of an engine that writes no JSON."""
    if words:
        return True if status == 200 and body.startswith(words) else False if status == 400 and body.strip() else None
    try:
        said = json.loads(body)
    except ValueError:
        return None
    found = said.get("success") if isinstance(said, dict) else None
    return found if isinstance(found, bool) else None


def _text(value: Optional[Decimal]) -> Optional[str]:
    return None if value is None else format(value, "f")
