"""One engagement from its file to its summary, on one machine: the same supervisor, use cases, worker and playbooks as anywhere."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from app.demo import medium, ports
from app.demo.options import DemoOptions, dumped, engagement_text
from app.demo.progress import Progress
from app.demo.remaining import remaining_of
from app.kit.errors import QuadgateError, Refused
from app.kit.i18n import N_
from app.kit.terminal import interrupt_once, on_end, unheard
from gates.plan import load_yaml
from gates.system_words import said
from gates.text import Text

MARKER = ".quadgate-demo"
GATES = ("G1", "G2", "G3", "G4")
ENDED = ("finished", "canceled", "error")
LOOK_SECONDS = 0.5
GATE_SECONDS = 3600  # a demo gate that takes an hour hangs: say so instead of waiting for ever


def run_demo(options: DemoOptions, console: Console) -> dict[str, Any]:
    """Run the demo and return its summary; everything that was started is stopped, whatever happens."""
    out = options.out.resolve()
    # The settings are read once in a process, so the state folder must be known before anything asks for them.
    os.environ["QUADGATE_STATE_DIR"] = str(out / "state")
    from app.up import Supervisor

    text = engagement_text(options)
    supervisor = Supervisor()
    try:
        supervisor.end_leftovers()  # before the state goes: it says which processes an earlier demo left, and whether one still runs
        if left := medium.release(out / "state"):
            raise Refused(
                "medium_in_use", N_("{what} is left of an earlier demo and in use. End what uses it, then start again."), what=", ".join(left)
            )
    except OSError as error:
        raise _unusable(out, error) from error
    with ports_of(text, own=options.engagement is not None) as (text, moved):  # what an earlier demo left has given its port back
        try:
            prepare(out)
        except OSError as error:
            raise _unusable(out, error) from error
        with Progress(console) as progress:
            if moved:
                progress.both(moved.en, moved.zh, "!", "yellow")
            with media_of(out / "state", text, progress) as fitted, running(supervisor, progress, web=options.web):
                return Demo(options, out, fitted, supervisor, progress).run()


def _unusable(out: Path, error: OSError) -> Refused:
    return Refused("folder_unusable", N_("{folder} cannot hold a demo: {reason}."), folder=str(out), reason=said(error))


@contextmanager
def ports_of(text: str, *, own: bool) -> Iterator[tuple[str, Text | None]]:
    """Give the engagement file with ports that are this demo's, and what to say where they are others than it names."""
    document = load_yaml(text)
    with ports.kept(document["targets"]["engine"], own=own) as moved:
        yield (dumped(document) if moved else text), moved


def prepare(out: Path) -> None:
    """Make the output folder empty. A folder that holds anything but an earlier demo is refused."""
    if out.exists() and any(out.iterdir()) and not (out / MARKER).exists():
        raise Refused("not_a_demo_folder", N_("{folder} holds files that are not of a demo: name an empty folder with --out."), folder=str(out))
    for name in ("state", "reports", "bundles"):
        shutil.rmtree(out / name, ignore_errors=True)
    (out / "summary.json").unlink(missing_ok=True)
    (out / "state").mkdir(parents=True)
    (out / MARKER).touch()


@contextmanager
def media_of(state: Path, text: str, progress: Progress) -> Iterator[str]:
    """Give the engagement file with the media that this machine can have, and take them away at the end, whatever that is."""
    document = load_yaml(text)
    if names := medium.wanted(document["targets"]):
        if why := medium.lacking(state):
            medium.plain(document["targets"])
            text = dumped(document)
            progress.both(f"KV lies in a plain directory: {why.en}", f"KV 位于普通目录：{why.zh}", "!", "yellow")
        else:
            progress.both(f"KV lies on XFS on a loop device ({', '.join(names)})", f"KV 位于 loop 设备上的 XFS（{'、'.join(names)}）")
    try:
        yield text
    finally:
        if left := medium.release(state):
            what = ", ".join(left)
            with suppress(OSError, SystemExit):
                progress.both(f"left behind, since it is in use: {what}", f"仍在使用，未能移除：{what}", "✗", "red")


@contextmanager
def running(supervisor: Any, progress: Progress, *, web: bool) -> Iterator[None]:
    """Keep broker, worker, beat and (when asked) the web server running for the length of the block."""
    interrupt_once()  # who ends a demo otherwise than by Ctrl-C wants the same
    try:
        try:
            progress.both("starting database, broker, worker and scheduler", "启动数据库、消息代理、工作进程和调度器")
            supervisor.start(web=web)
            yield
        finally:
            on_end(unheard)  # a Ctrl-C on this very line is the only one that can still come through; the stopping below is whole
    finally:
        with suppress(OSError, SystemExit):  # the terminal may be gone: that must not keep anything running
            progress.both("stopping everything that was started", "停止已启动的全部进程")
        supervisor.stop(tell=lambda text: progress.both(text.en, text.zh))


class Demo:
    """The drive: the people of both parties do what they would do at the pages."""

    def __init__(self, options: DemoOptions, out: Path, text: str, supervisor: Any, progress: Progress) -> None:
        # Imported here, after the state folder is set: these modules reach the settings.
        from app.demo import people

        self.people = people
        self.options = options
        self.out = out
        self.text = text
        self.supervisor = supervisor
        self.progress = progress
        self.kills: list[dict[str, Any]] = []
        self.actors: dict[str, Any] = {}
        self.engagement_id = ""
        self.remaining = remaining_of(load_yaml(text), options.until)

    def run(self) -> dict[str, Any]:
        """Run the gates in order until one refuses to start; returns the summary."""
        from app.demo.summary import write_summary

        started = time.monotonic()
        self._engage()
        for gate in GATES:
            if not self._gate(gate) or gate == self.options.until:
                break
        extra = {
            "seed": self.options.seed,
            "faults": {name: str(strength) for name, strength in self.options.faults.items()},
            "worker_kills": self.kills,
            "seconds": round(time.monotonic() - started, 1),
        }
        return write_summary(self.out, self.engagement_id, self._engineer(), extra)

    def _engage(self) -> None:
        """Create the people and the engagement, and let both parties seal the plan."""
        from app.engagements.usecases import create_engagement
        from app.kit.db import write_session

        (self.out / "engagement.yaml").write_text(self.text, encoding="utf-8")
        document = load_yaml(self.text)
        with write_session() as session:
            self.actors = self.people.hire(session, document["engagement"]["people"])
        with write_session() as session:
            engagement = create_engagement(session, text=self.text, actor=self._engineer())
            self.engagement_id = engagement.id
        with write_session() as session:
            self.people.work_down_inboxes(session, self.actors)
        code = document["engagement"]["code"]
        self.progress.both(f"engagement {code}, plan approved by both parties and sealed", f"联测项目 {code}，计划已由双方确认并封存")

    def _gate(self, gate: str) -> bool:
        """Run one attempt at a gate to its end; tell whether the engagement may go on."""
        from app.attempts.usecases import start_attempt
        from app.kit.db import write_session
        from gates.registry import GATES as SPECS

        try:
            with write_session() as session:
                attempt_id = start_attempt(session, engagement_id=self.engagement_id, gate=gate, actor=self._engineer()).id
        except Refused as refusal:
            self.progress.both(f"{gate} cannot start: {refusal.text('en')}", f"{gate} 不能启动：{refusal.text('zh_CN')}")
            return False
        title = SPECS[gate].title
        self.remaining.begin(time.monotonic())
        self.progress.gate(gate, f"{title.en} {title.zh}", self.remaining.seconds(gate, time.monotonic()))
        view = self._follow(attempt_id, gate)
        self.progress.verdict(view["verdict"], view["status"])
        with write_session() as session:
            self.people.work_down_inboxes(session, self.actors, scan=scan_of_the_signed_report())
        return bool(view["status"] == "finished")

    def _follow(self, attempt_id: str, gate: str) -> dict[str, Any]:
        """Watch an attempt to its end, fill in the form when it waits for a person, kill processes when asked to."""
        from app.attempts.usecases import attempt_view
        from app.demo.faults import WorkerKill
        from app.demo.inspection import fill_in
        from app.kit.db import read_session

        kill = WorkerKill(self.supervisor, gate) if self.options.worker_kill and gate in ("G3", "G4") else None
        deadline = time.monotonic() + GATE_SECONDS
        while True:
            with read_session() as session:
                view: dict[str, Any] = attempt_view(session, attempt_id=attempt_id, actor=self._engineer())
            self.remaining.look(gate, view["steps"], time.monotonic())
            self.progress.attempt(view, self.remaining.seconds(gate, time.monotonic()))
            if view["status"] in ENDED:
                break
            if view["may"]["form"]:
                fill_in(view, self.actors)
            if kill and kill.strike(view):
                self.progress.struck(kill.done)
                self.kills.append(kill.done)
            if time.monotonic() > deadline:
                raise QuadgateError(
                    "demo_hangs", N_("{gate} has not ended within an hour; the logs are in {folder}."), gate=gate, folder=str(self.out / "state/log")
                )
            time.sleep(LOOK_SECONDS)
        if view["problem"]:
            self.progress.both(view["problem"]["en"], view["problem"]["zh-CN"], "✗", "red")
        return view

    def _engineer(self) -> Any:
        return self.people.having(self.actors, "engineer", "vendor")


def scan_of_the_signed_report() -> bytes:
    """Return a picture that says of itself that it is no scan: a demo has no paper, ink or seal."""
    from app.demo.inspection import picture

    return picture("SIMULATED: no scan, no signature, no seal")
