"""Cells: other claims of the vendor, measured once a run, behind everything that is judged. Each is one line of cells.jsonl.

`started_ns` to `ended_ns` is the time that counts, `bytes` what was moved in it, and `cold` says that none of it came from memory, which is
shown (`proof`) and not assumed. A cell that could not be measured has a `problem` in words and no times. Of several engine hosts each cell is
measured on each, one after another, since they may share a medium; each line then bears `host`.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from probe import clock
from probe.cells_client import client_cell
from probe.engine import Engine
from probe.engine_host import GRACE_S
from probe.errors import Ended, ProbeError
from probe.session import Session

FIRST_TOKEN_LABEL = "cell-first-token"


def run_cells(session: Session) -> None:
    """Measure the cells of the job file in its order: those of probe.jobspec.CELLS, where the engine's restart comes last, then clients.

    What needs no request is measured by the engine's host alone (probe.cells_host), wherever that is.
    """
    for spec in session.spec.get("cells") or []:
        for engine in session.engines:
            _cell(session, engine, _own(session, engine, spec))


def _own(session: Session, engine: Engine, spec: Dict[str, Any]) -> Dict[str, Any]:
    """Return the settings of a cell on an engine's host: its own, where there are several, else the job's."""
    rows = session.spec.get("attendants") or []
    listed = (rows[engine.place].get("cells") if rows else None) or []
    return next((row for row in listed if row["cell"] == spec["cell"]), spec)


def _cell(session: Session, engine: Engine, spec: Dict[str, Any]) -> None:
    kind, named = spec["cell"], session.engines.part(engine).named
    with session.job.phase("cell") as row:
        engine.wait_idle(session.job.sleep)
        found: Dict[str, Any] = {"cell": kind, "cold": False, **named}
        try:
            found.update(_MEASURES[kind](session, engine, spec) if kind in _MEASURES else engine.host.cell(kind, session.job.sleep))
        except Ended:
            raise
        except (ProbeError, OSError) as error:
            found["problem"] = str(error)
        except (KeyError, TypeError, ValueError) as error:
            found["problem"] = "The settings of the cell %s are not usable: %s %s." % (kind, type(error).__name__, error)
        session.job.journals.put("cells.jsonl", found)
        row["detail"] = {"cell": kind, **named, "problem": found.get("problem")}
        row["ok"] = "problem" not in found


def _model_load(session: Session, engine: Engine, spec: Dict[str, Any]) -> Dict[str, Any]:
    """Stop the engine, put its weights out of memory, start it: the time to healthy and to the first token, by the clock of this host.

    `bytes` is what must be read of the weights, and the counters of device and mount around the time tell whether it was.
    """
    job, host, place = session.job, engine.host, engine.place
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
        [session.prompts.shot("cell", None, place, session.prompts.prefix(label, place), label, "m", session.prompts.output)], 1, offsets=False
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


_MEASURES: Dict[str, Callable[[Session, Engine, Dict[str, Any]], Dict[str, Any]]] = {"model_load": _model_load, "client": client_cell}
