"""The host as the kit sees it: its tools, its files, what was changed, what was checked, and the record by which it is undone."""

import json
import os
import subprocess
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

TOOL_TIMEOUT_S = 900  # mkfs with discard on many terabytes is the slowest of them
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Refused(Exception):  # noqa: N818 - it is no error of the program
    """What cannot or must not be done, as a sentence for people in English and in Chinese.

    Both halves name their values by place ({0}, {1!r}); a value that is itself a refusal is put in language by language.
    """

    def __init__(self, en: str, zh: str, *values: Any) -> None:
        self.en = en.format(*[value.en if isinstance(value, Refused) else value for value in values])
        self.zh = zh.format(*[value.zh if isinstance(value, Refused) else value for value in values])
        super().__init__(self.en)

    def json(self) -> str:
        """Return both halves as whoever runs the kit expects them on stderr."""
        return json.dumps({"en": self.en, "zh-CN": self.zh}, ensure_ascii=False)


class Host:
    """Runs tools and edits files. In a plan (`dry`) nothing is changed, and `changed` holds what would be."""

    def __init__(self, order: Dict[str, Any], verb: str) -> None:
        self.order, self.dry = order, verb in ("plan", "plan-remove", "show")
        self.etc, self.sys = order.get("etc") or "/etc", order.get("sys") or "/sys"
        self.dev, self.proc = order.get("dev") or "/dev", order.get("proc") or "/proc"
        self.prefix: List[str] = list(order.get("path_prefix") or [])
        self.changed: List[str] = []
        self.checks: List[Dict[str, Any]] = []
        self.record = Record(os.path.join(order["root"], "state", "hardware.json"), self.dry)

    def tools(self, *, real: bool = False) -> Dict[str, str]:
        """Return the environment of tools; `real` leaves out the simulated ones."""
        return {"PATH": ":".join(([] if real else self.prefix) + [DEFAULT_PATH]), "LC_ALL": "C", "LANG": "C"}

    def ask(self, argv: Sequence[str], *, real: bool = False) -> Tuple[int, str, str]:
        """Run a command that changes nothing. Return exit code (127: not installed), stdout, stderr."""
        try:
            done = subprocess.run(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.tools(real=real),
                timeout=TOOL_TIMEOUT_S,
            )
        except FileNotFoundError:
            return 127, "", "%s is not installed" % argv[0]
        except PermissionError:
            return 126, "", "%s may not be run" % argv[0]
        except subprocess.TimeoutExpired:
            return 124, "", "%s did not end within %d s" % (argv[0], TOOL_TIMEOUT_S)
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace").strip()

    def need(self, argv: Sequence[str], *, real: bool = False) -> str:
        """Run a command that must succeed and changes nothing; return its stdout."""
        code, out, err = self.ask(argv, real=real)
        if code:
            raise Refused("`{0}` ended with {1}: {2}", "`{0}` 退出码 {1}：{2}", " ".join(argv), code, _short(err or out.strip() or "it said nothing"))
        return out

    def do(self, argv: Sequence[str], why: str, *, real: bool = False) -> str:
        """Run a command that changes the host, unless this is a plan."""
        self.changed.append(why)
        return "" if self.dry else self.need(argv, real=real)

    def act(self, why: str, function: Callable[[], Any]) -> None:
        """Change the host by a function, unless this is a plan."""
        self.changed.append(why)
        if not self.dry:
            function()

    def check(self, name: str, good: Optional[bool], value: Any, wanted: Any, evidence: str) -> None:
        """Note a check; `good` is None where it cannot be told."""
        state = "unknown" if good is None else "ok" if good else "wrong"
        self.checks.append({"check": name, "state": state, "value": value, "wanted": wanted, "evidence": evidence})

    def text(self, path: str) -> Optional[str]:
        """Return a small file's text without the line end, or None."""
        try:
            with open(path, encoding="utf-8") as stream:
                return stream.read().strip()
        except (OSError, UnicodeDecodeError):
            return None

    def json(self, argv: Sequence[str], *, real: bool = False) -> Any:
        """Run a command and return the JSON that it prints; text before the JSON is an error, since it often is one."""
        out = self.need(argv, real=real)
        try:
            return json.loads(out or "null")
        except ValueError:
            raise Refused("`{0}` did not print JSON but: {1}", "`{0}` 输出的不是 JSON，而是：{1}", " ".join(argv), out.strip()[:200]) from None


def _short(text: str) -> str:
    """Return the beginning and the end of a long text: some tools put their reason before a page of usage, others after it."""
    return text if len(text) <= 500 else text[:250] + " ... " + text[-200:]


class Record:
    """What was there before, and what is ours: one JSON file, written whole, gone when nothing is left in it."""

    def __init__(self, path: str, dry: bool) -> None:
        self.path, self.dry = path, dry
        self.data: Dict[str, Any] = {}
        try:
            with open(path, encoding="utf-8") as stream:
                self.data = json.load(stream)
        except FileNotFoundError:
            pass
        except ValueError as error:
            raise Refused(
                "{0} is damaged ({1}), so what was there before is not known; nothing was changed.",
                "{0} 已损坏（{1}），无法得知原先状态；未做任何更改。",
                path,
                error,
            ) from None

    def part(self, name: str) -> Dict[str, Any]:
        """Return the entry of a part, made when it is absent."""
        found: Dict[str, Any] = self.data.setdefault(name, {})
        return found

    def keep(self) -> None:
        """Write the record; call it before the change that it describes."""
        if self.dry:
            return
        data = {key: value for key, value in self.data.items() if value}
        folder = os.path.dirname(self.path)
        if not data:
            if os.path.exists(self.path):
                os.unlink(self.path)
            return
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(self.path + ".tmp", "w", encoding="utf-8") as stream:
            json.dump(data, stream, indent=1, sort_keys=True)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(self.path + ".tmp", 0o1600)  # sticky: systemd-tmpfiles never ages such a file, wherever our root lies
        os.replace(self.path + ".tmp", self.path)
