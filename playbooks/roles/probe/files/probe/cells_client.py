"""A cell that a third-party client measures: it drives the engine instead of us, on prompts of its own, and its result is kept as it wrote it.

Where the arm has an external tier, the client runs twice with one seed: first so that its prompts are stored, then, the engine started anew and
the page cache empty, to be measured. So its figures are of cold recovery, as ours are.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from typing import Any, Dict, List

from probe import clock, metrics
from probe.engine import Engine
from probe.engine_control import tail
from probe.engine_counters import OWN_HITS, PROMPT, TIER_HITS
from probe.errors import ProbeError
from probe.files import sha256_of, walk_files
from probe.selfexec import clean_environment
from probe.session import Session

PASS_S = 3600.0  # of one pass, where the settings say nothing
RESULT_MAX = 512 << 20  # bytes
FOLDER = "{folder}"  # stands in argv for the folder of the pass
STORE, MEASURE = "store", "measure"
COUNTED = (PROMPT, OWN_HITS, TIER_HITS)


def client_cell(session: Session, engine: Engine, spec: Dict[str, Any]) -> Dict[str, Any]:
    """Run a client and keep its result beside the job's own files. Return the row: argv, times of the measuring pass, and what shows it was cold.

    `bytes` and `sha256` are those of the result, by which it is known as this run's.
    A client that is absent, fails, hangs or writes nothing raises ProbeError with the end of what it said.
    """
    job = session.job
    own = {key: spec[key] for key in ("tool", "tier", "requests", "file")}
    home = os.path.join(job.folder, "client")
    shutil.rmtree(home, ignore_errors=True)
    proof: Dict[str, Any] = {"resident_bytes": 0, "bytes": 0, "engine_before": None, "engine": engine.process()}
    try:
        if engine.kv_dirs:
            _run(session, spec, os.path.join(home, STORE))
            engine.wait_idle(job.sleep, stored=True)
            proof = _cool(session, engine)
        before, started = engine.metrics(), clock.mono_ns()
        argv = _run(session, spec, os.path.join(home, MEASURE))
        ended = clock.mono_ns()
        counted = _grown(before, engine.metrics())
        result = _result(os.path.join(home, MEASURE), str(spec["result"]))
        size = os.path.getsize(result)
        if not 0 < size <= RESULT_MAX:
            raise ProbeError("cell", "%s wrote a result of %d bytes; from 1 to %d are kept." % (spec["tool"], size, RESULT_MAX))
        kept = os.path.join(job.folder, str(spec["file"]))
        shutil.copyfile(result, kept)
        digest = sha256_of(kept)[0]
    except ProbeError as error:
        return dict(own, problem=str(error))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    cold = not engine.kv_dirs or (proof["bytes"] > 0 and proof["resident_bytes"] == 0 and proof["engine"] not in (None, proof["engine_before"]))
    return dict(own, argv=argv, started_ns=started, ended_ns=ended, bytes=size, sha256=digest, cold=cold, proof=proof, engine_metrics=counted)


def _grown(before: Dict[str, str], after: Dict[str, str]) -> Dict[str, str]:
    """Return what the engine counted meanwhile, as decimal strings: whether its prompts came from where they were stored."""
    grown = {quantity: metrics.growth(before, after, quantity) for quantity in COUNTED}
    return {quantity: format(value, "f") for quantity, value in grown.items() if value is not None}


def _cool(session: Session, engine: Engine) -> Dict[str, Any]:
    """Start the engine anew over an empty page cache. Return what was resident then, and the processes before and after."""
    job = session.job
    before = engine.process()
    engine.control("stop", job.sleep)
    found = engine.host.drop()
    engine.control("start", job.sleep)
    engine.wait_healthy(job.sleep)
    sums = {key: sum(int(one[key]) for one in found) for key in ("files", "bytes", "resident_bytes")}
    return dict(sums, method="mincore", engine_before=before, engine=engine.process())


def _run(session: Session, spec: Dict[str, Any], folder: str) -> List[str]:
    """Run one pass to its end in a folder of its own; return what was started."""
    os.makedirs(folder)
    argv = [str(word).replace(FOLDER, folder) for word in spec["argv"]]
    env = clean_environment()
    env.update({str(key): str(value) for key, value in (spec.get("env") or {}).items()})
    program = shutil.which(argv[0], path=env.get("PATH", "/usr/bin:/bin"))
    if not program:
        raise ProbeError("cell", "%s is not installed on this host: there is no %s." % (spec["tool"], argv[0]))
    log_path, limit = os.path.join(folder, "client.log"), float(spec.get("timeout_s") or PASS_S)
    end = time.monotonic() + limit
    with open(log_path, "wb") as log:
        child = subprocess.Popen([program, *argv[1:]], env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            while child.poll() is None:
                if time.monotonic() > end:
                    raise ProbeError("cell", "%s did not end within %g s. It said last: %s" % (spec["tool"], limit, tail(log_path, 300)))
                session.job.sleep(0.1)  # raises when the job shall end
        finally:
            _end(child)
    if child.returncode != 0:
        raise ProbeError("cell", "%s ended with %d. It said last: %s" % (spec["tool"], child.returncode, tail(log_path, 300)))
    return argv


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End what is left of a client: it may have started workers, which share its session."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _result(folder: str, name: str) -> str:
    """Return the one file of a name below a folder; none, or several, is a problem."""
    found = [path for path in walk_files(folder) if os.path.basename(path) == name]
    if len(found) != 1:
        raise ProbeError("cell", "The client wrote %d files %s where one was to be." % (len(found), name))
    return found[0]
