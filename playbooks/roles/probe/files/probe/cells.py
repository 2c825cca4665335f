"""Cells: other claims of the vendor, measured once a run, behind everything that is judged. Each is one line of cells.jsonl.

`started_ns` to `ended_ns` is the time that counts, `bytes` what was moved in it, and `cold` says that none of it came from memory, which is
shown (`proof`) and not assumed. A cell that could not be measured has a `problem` in words and no times.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from probe import clock
from probe.cells_client import client_cell
from probe.engine_host import GRACE_S
from probe.errors import Ended, ProbeError
from probe.session import Session

FIRST_TOKEN_LABEL = "cell-first-token"


def run_cells(session: Session) -> None:
    """Measure the cells of the job file in its order: those of probe.jobspec.CELLS, where the engine's restart comes last, then clients.

    What needs no request is measured by the engine's host alone (probe.cells_host), wherever that is.
    """
    for spec in session.spec.get("cells") or []:
        kind = spec["cell"]
        with session.job.phase("cell") as row:
            session.engine.wait_idle(session.job.sleep)
            found: Dict[str, Any] = {"cell": kind, "cold": False}
            try:
                found.update(_MEASURES[kind](session, spec) if kind in _MEASURES else session.host.cell(kind, session.job.sleep))
            except Ended:
                raise
            except (ProbeError, OSError) as error:
                found["problem"] = str(error)
            except (KeyError, TypeError, ValueError) as error:
                found["problem"] = "The settings of the cell %s are not usable: %s %s." % (kind, type(error).__name__, error)
            session.job.journals.put("cells.jsonl", found)
            row["detail"] = {"cell": kind, "problem": found.get("problem")}
            row["ok"] = "problem" not in found


def _model_load(session: Session, spec: Dict[str, Any]) -> Dict[str, Any]:
    """Stop the engine, put its weights out of memory, start it: the time to healthy and to the first token, by the clock of this host.

    `bytes` is what must be read of the weights, and the counters of device and mount around the time tell whether it was.
    """
    engine, job, host = session.engine, session.job, session.host
    host.weights(False)  # a model that is not whole is told while the engine still runs
    engine.control("stop", job.sleep)
    before = host.weights(True)
    started = clock.mono_ns()
    limit = float(spec.get("timeout_s") or engine.start_s)
    engine.control("start", job.sleep, limit + GRACE_S)
    engine.wait_healthy(job.sleep, limit)
    healthy = clock.mono_ns()
    label = "%s/%s" % (FIRST_TOKEN_LABEL, session.spec["job"])
    brief = session.send(
        [session.prompts.shot("cell", None, 0, session.prompts.prefix(label, 0), label, "m", session.prompts.output)], 1, offsets=False
    )[0]
    if brief["error"] or brief["first_text_ns"] is None:
        raise ProbeError("cell", "The engine answered its first request with an error: %s." % (brief["error"],))
    after = host.weights(False)
    row = {"started_ns": started, "healthy_ns": healthy, "ended_ns": brief["first_text_ns"], "proof": before["proof"]}
    for when, told in (("before", before), ("after", after)):
        row.update({"%s_%s" % (key, when): told[key] for key in ("disk", "nfs")})
        row.update({"on_%s" % when: told["on"]} if "on" in told else {})  # of an engine host elsewhere
    row.update({key: after[key] for key in ("bytes", "weight_files")})
    return dict(row, cold=after["bytes"] > 0 and before["proof"]["resident_bytes"] == 0)


_MEASURES: Dict[str, Callable[[Session, Dict[str, Any]], Dict[str, Any]]] = {"model_load": _model_load, "client": client_cell}
