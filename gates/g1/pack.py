"""The survey pack of one host, as the judge sees it: every command's output read once by its reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gates.canonical import sha256_hex
from gates.g1.argv import other_command
from gates.model import Observation, Problem, Reading
from gates.readers.rdma import read_perftest_json
from gates.readers.registry import READERS, read
from gates.text import Text

if TYPE_CHECKING:
    from gates.bundle import Bundle

ACCOUNT = ("stdout_bytes", "stdout_sha256")  # what the survey itself says of what a command wrote
SMARTCTL_UNREADABLE = 0b111  # of its exit status; the higher bits are the drive's own verdicts and stand in its JSON


@dataclass(frozen=True)
class Answer:
    """One command of a survey and what its reader made of it."""

    name: str
    tool: str
    path: str
    reading: Reading
    stderr: str = ""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return what keeps this output from being used."""
        return self.reading.problems

    def all(self, quantity: str, **labels: str) -> list[Observation]:
        """Return the observations of a quantity whose labels include these."""
        return [o for o in self.reading.observations if o.quantity == quantity and labels.items() <= o.labels.items()]

    def one(self, quantity: str, **labels: str) -> Observation | None:
        """Return the only observation of a quantity with these labels; none or several are None."""
        found = self.all(quantity, **labels)
        return found[0] if len(found) == 1 else None


class HostPack:
    """evidence/<step>/<host>/: the commands and their outputs."""

    def __init__(self, bundle: Bundle, step: str, host: str) -> None:
        self.step, self.host = step, host
        self._bundle = bundle
        self._root = f"evidence/{step}/{host}/"
        self._answers: dict[str, Answer] = {}

    def path(self, name: str) -> str:
        """Return the bundle path of one of its files."""
        return self._root + name

    @cached_property
    def trouble(self) -> Text | None:
        """Return why this pack cannot be used at all, or None."""
        for name in ("commands.json", "host.json"):
            if not self._bundle.has(self.path(name)):
                return Text("{host} brought no {name} in step {step}", "{host} 在步骤 {step} 中没有带回 {name}").fill(
                    host=self.host, name=name, step=self.step
                )
        claimed = self._document("host.json")
        if not isinstance(claimed, Mapping) or claimed.get("host") != self.host:
            return Text("the pack of {host} does not name {host} as its host", "{host} 的证据包所记主机名不是 {host}").fill(host=self.host)
        if not self._commands:
            return Text("the pack of {host} lists no commands, or one name twice", "{host} 的证据包没有命令，或命令名重复").fill(host=self.host)
        return None

    @cached_property
    def _commands(self) -> dict[str, Mapping[str, Any]]:
        rows = self._document("commands.json")
        if not isinstance(rows, list):
            return {}
        named = {str(row["name"]): row for row in rows if isinstance(row, Mapping) and isinstance(row.get("name"), str)}
        return named if len(named) == len(rows) else {}  # a name that stands twice would let one output hide another

    @cached_property
    def _accounted(self) -> bool:
        """Return whether this survey says what each command wrote. One of an earlier release says it of none."""
        return any(key in row for row in self._commands.values() for key in ACCOUNT)

    def missing(self) -> list[str]:
        """Return the outputs that the list of commands names and that were not brought, whether a check needs them or not."""
        return [name for row in self._commands.values() if not self._bundle.has(self.path(name := str(row.get("stdout"))))]

    def names(self, tool: str) -> list[str]:
        """Return the names of the commands that a reader is for."""
        return [name for name, row in self._commands.items() if row.get("tool") == tool]

    def answers(self, tool: str) -> list[Answer]:
        """Return all outputs of one tool."""
        return [self.answer(name) for name in self.names(tool)]

    def answer(self, name: str) -> Answer:
        """Return one output, read. A command that is not there, failed or timed out has problems."""
        if name not in self._answers:
            self._answers[name] = self._read(name)
        return self._answers[name]

    def _read(self, name: str) -> Answer:
        row = self._commands.get(name)
        if row is None:
            return Answer(
                name,
                "",
                self.path("commands.json"),
                _only("missing_command", "{host} did not run {name}", "{host} 未执行 {name}", host=self.host, name=name),
            )
        tool, path = str(row.get("tool")), self.path(str(row.get("stdout")))
        other = other_command(name, tool, row.get("argv")) or _other_output(name, row.get("stdout"))
        if other is not None:  # the output of something else proves nothing of this: it is not read at all
            return Answer(name, tool, path, Reading(problems=(other,)))
        failure = self._failure(row, name, tool)
        if not self._bundle.has(path):
            return Answer(name, tool, path, _only("missing_file", "the output of {name} is missing", "缺少 {name} 的输出", name=name))
        data = self._bundle.bytes(path)
        reading = (
            read_with_argv(tool, data, row.get("argv"))
            if tool in READERS
            else _only("unknown_tool", "no reader for {tool}", "没有 {tool} 的读取器", tool=tool)
        )
        self._bundle.read_as[path] = (tool, reading)
        error = self.path(str(row.get("stderr")))
        stderr = self._bundle.text(error).strip() if self._bundle.has(error) else ""
        return Answer(name, tool, path, Reading(reading.observations, (*failure, *self._unlike(row, name, data), *reading.problems)), stderr)

    def _unlike(self, row: Mapping[str, Any], name: str, data: bytes) -> tuple[Problem, ...]:
        """Return the problem of an output that is not what its command wrote: most texts have no end of their own that would tell."""
        size, digest = (row.get(key) for key in ACCOUNT)
        if not self._accounted or (size == len(data) and not isinstance(size, bool) and digest == sha256_hex(data)):
            return ()
        if size is None or digest is None:
            return _only("no_account", "what {name} wrote is not told", "未记录 {name} 的输出长度与摘要", name=name).problems
        text = "the output of {name} is not what it wrote: {a} bytes, {b} were written", "{name} 的输出与其所写不符：{a} 字节，写出 {b} 字节"
        return _only("changed_output", *text, name=name, a=len(data), b=size).problems

    def _failure(self, row: Mapping[str, Any], name: str, tool: str) -> tuple[Problem, ...]:
        if row.get("timed_out"):
            return _only("timed_out", "{name} was ended after its time-out", "{name} 超时被终止", name=name).problems
        code = row.get("exit_code")
        if not isinstance(code, int) or isinstance(code, bool):
            return _only("no_exit_code", "{name} has no exit code", "{name} 没有退出码", name=name).problems
        if tool == "smartctl" and 0 < code < 256 and not code & SMARTCTL_UNREADABLE:
            return ()
        if code != 0:
            return _only("command_failed", "{name} ended with exit code {code}", "{name} 以退出码 {code} 结束", name=name, code=code).problems
        return ()

    def _document(self, name: str) -> Any:
        try:
            return json.loads(self._bundle.text(self.path(name)))
        except (ValueError, RecursionError):
            return None


def _other_output(name: str, stdout: Any) -> Problem | None:
    """Return the problem of an output that is kept under another command's name: two commands would share it."""
    if stdout == f"{name}.out":
        return None
    text = Text("{name} has the output of another command: {o}", "{name} 的输出文件属于其他命令：“{o}”")
    return Problem("other_output", text.fill(name=name, o=str(stdout)[:160]))


def read_with_argv(tool: str, data: bytes, argv: Any) -> Reading:
    """Return what the reader makes of an output; the JSON of perftest has its unit on the command line only."""
    if tool == "perftest" and data.lstrip()[:1] == b"{" and isinstance(argv, list):
        return read_perftest_json(data, report_gbits="--report_gbits" in argv)
    return read(tool, data)


def _only(code: str, en: str, zh: str, /, **words: Any) -> Reading:
    return Reading(problems=(Problem(code, Text(en, zh).fill(**words)),))
