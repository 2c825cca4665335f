"""The command line: JSON on stdout, a sentence on stderr; exit 0, 1 (failed), 3 (refused) or 64 (usage)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple

from probe import VERSION
from probe.errors import ProbeError

USAGE = 64
DESCRIPTION = "Detached jobs, workload driver, telemetry and cold-cache tools of Quadgate, for one target host."


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print("%s: %s" % (self.prog, message), file=sys.stderr)
        raise SystemExit(USAGE)


def main(argv: Optional[List[str]] = None) -> NoReturn:
    """Run one command and end the process."""
    arguments = _parser().parse_args(argv)
    try:
        answer = arguments.run(arguments)
    except ProbeError as error:
        print(json.dumps({"error": {"kind": error.kind, "message": str(error)}}))
        print(str(error), file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    if isinstance(answer, dict):
        print(json.dumps(answer))
        answer = 0
    sys.stdout.flush()
    raise SystemExit(answer or 0)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="probe.pyz", description=DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    _add(commands, "version", _version)
    _add(commands, "hostinfo", _hostinfo)
    _add(commands, "survey", _survey, spec=True, out=True)
    _add(commands, "calibrate", _calibrate, out=True)
    truth = _add(commands, "calibration-server", _calibration_server)
    for option, default in (("ttft-ms", 100), ("spread-ms", 0), ("gap-ms", 5)):
        truth.add_argument("--" + option, type=float, default=default)
    truth.add_argument("--expect", type=int, default=0, help="say on stdout when the first request came and when this many answers have ended")
    truth.add_argument("--journal", default="", help="write the truth about each answer here at the end")
    _add(commands, "drive", _drive, spec=True, out=True)
    _add(commands, "drop-cache", _drop_cache, dir=True)
    _add(commands, "residency", _residency, dir=True)
    _add(commands, "room", _room, dir=True).add_argument("--bytes", type=int, required=True)
    _add(commands, "medium", _medium, dir=True).add_argument("--declared", required=True, help="JSON object {mount_point, fs_types, sources}")
    pack = _add(commands, "pack", _pack, out=True)
    pack.add_argument("--dir")
    pack.add_argument("--root")
    pack.add_argument("--job")
    job = commands.add_parser("job").add_subparsers(dest="verb", required=True, parser_class=_Parser)
    _add(job, "start", _job_start, root=True, spec=True)
    poll = _add(job, "poll", _job_poll, root=True, job=True)
    poll.add_argument("--from", dest="offsets", default="{}", help="JSON object of file name to byte offset, or @FILE")
    poll.add_argument("--max-bytes", type=int, default=1 << 20)
    _holder_options(poll)
    stop = _add(job, "stop", _job_stop, root=True, job=True)
    stop.add_argument("--wait", type=float, default=20.0)
    _holder_options(stop)
    _add(job, "list", _job_list, root=True)
    run = _add(job, "run", _job_run, dir=True)
    run.add_argument("--lock-fd", type=int, required=True)
    engine = commands.add_parser("engine").add_subparsers(dest="verb", required=True, parser_class=_Parser)
    for verb in ("start", "stop", "kill", "status"):
        _add(engine, verb, _engine, spec=True)
    _add(commands, "counters", _counters, spec=True)
    lock = commands.add_parser("lock").add_subparsers(dest="verb", required=True, parser_class=_Parser)
    for verb in ("take", "release"):
        one = _add(lock, verb, _lock, root=True)
        one.add_argument("--attempt", required=True)
        one.add_argument("--fence", type=int, required=True)
    return parser


def _add(commands: Any, name: str, run: Callable[[Any], Any], **options: bool) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name)
    for option in options:
        parser.add_argument("--" + option, required=True)
    parser.set_defaults(run=run)
    return parser


def _holder_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--attempt", default="", help="the attempt that asks, with its fencing number: one that was taken over stops nothing")
    parser.add_argument("--fence", type=int)


def _holder(a: Any) -> Optional[Tuple[str, int]]:
    return (a.attempt, a.fence) if a.attempt and a.fence is not None else None


def _version(_: Any) -> Dict[str, Any]:
    return {"probe": VERSION, "python": sys.version.split()[0]}


def _hostinfo(_: Any) -> Dict[str, Any]:
    from probe.hostinfo import host_info

    return host_info()


def _survey(a: Any) -> Dict[str, Any]:
    from probe.files import load_spec
    from probe.survey import run_survey

    return run_survey(load_spec(a.spec), a.out)


def _calibrate(a: Any) -> Dict[str, Any]:
    from probe.calibrate import calibrate
    from probe.files import write_json

    result = calibrate()
    write_json(a.out, result)
    return result


def _calibration_server(a: Any) -> int:
    from probe.truth_answers import Pace
    from probe.truth_server import TruthServer

    TruthServer(Pace(int(a.ttft_ms * 1e6), int(a.spread_ms * 1e6), int(a.gap_ms * 1e6)), a.expect, a.journal).serve()
    return 0


def _drive(a: Any) -> Dict[str, Any]:
    from probe.drive import drive
    from probe.files import load_spec

    return drive(load_spec(a.spec), a.out)


def _drop_cache(a: Any) -> Dict[str, Any]:
    from probe.coldness import drop_cache

    return drop_cache(a.dir)


def _residency(a: Any) -> Dict[str, Any]:
    from probe.coldness import residency

    return residency(a.dir)


def _room(a: Any) -> Dict[str, Any]:
    from probe.preflight import require_medium

    return require_medium([a.dir], a.bytes)[0]


def _medium(a: Any) -> Dict[str, Any]:
    from probe.medium import require_declared

    return require_declared(a.dir, json.loads(a.declared))


def _pack(a: Any) -> Dict[str, Any]:
    from probe.jobs import job_dir
    from probe.pack import pack_dir

    if a.dir and not a.job:
        return pack_dir(a.dir, a.out)
    if a.root and a.job and not a.dir:
        return pack_dir(job_dir(a.root, a.job), a.out, a.job)
    raise ProbeError("usage", "Pack wants either --dir DIR (a survey) or --root DIR --job ID (a job).")


def _job_start(a: Any) -> Dict[str, Any]:
    from probe import attend_seal, jobs
    from probe.files import load_spec

    spec = load_spec(a.spec)
    key = attend_seal.take_key(spec)
    return jobs.start(a.root, spec, key)


def _job_poll(a: Any) -> Dict[str, Any]:
    from probe import jobs

    try:
        text = a.offsets
        if text.startswith("@"):
            with open(text[1:], encoding="utf-8") as f:
                text = f.read()
        offsets = {str(k): int(v) for k, v in json.loads(text).items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ProbeError("usage", "--from must be a JSON object of file name to byte offset: %s." % error) from error
    return jobs.poll(a.root, a.job, offsets, a.max_bytes, _holder(a))


def _job_stop(a: Any) -> Dict[str, Any]:
    from probe import jobs

    return jobs.stop(a.root, a.job, a.wait, _holder(a))


def _job_list(a: Any) -> Dict[str, Any]:
    from probe import jobs

    return jobs.list_jobs(a.root)


def _job_run(a: Any) -> int:
    from probe.job_main import run

    return run(os.path.abspath(a.dir), a.lock_fd)


def _engine(a: Any) -> Dict[str, Any]:
    from probe import engine_control, engine_kill
    from probe.files import load_spec

    verbs = {"start": engine_control.start, "stop": engine_control.stop, "kill": engine_kill.kill, "status": engine_control.status}
    return verbs[a.verb](load_spec(a.spec))


def _counters(a: Any) -> Dict[str, Any]:
    from probe import fatal
    from probe.files import load_spec

    return fatal.check(load_spec(a.spec))


def _lock(a: Any) -> Dict[str, Any]:
    from probe import hostlock

    return {"take": hostlock.take, "release": hostlock.release}[a.verb](a.root, a.attempt, a.fence)
