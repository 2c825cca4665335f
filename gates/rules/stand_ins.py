"""Whether evidence is of a target that stands in for hardware, told by the evidence itself: what the engine answered, and where the tools lay.

A flag says what somebody claims. The simulated engine names itself, the tools of the simulated rack lie below its folder, and vLLM on a CPU moves
KV with vLLM's example connector, which is no product. One sign is enough for the watermark; that there is none proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gates.bundle import Bundle, Unreadable
from gates.readers.strict import decode
from gates.text import Text

_ENGINE = re.compile(r"(^|/)lab_engine(\.pyz)?$")
_PHYSICS = frozenset({"prefill_tokens_per_s", "decode_base_s", "service_spread"})  # no engine has its own speed as a setting
_RACK = re.compile(r"/rack/(bin|sys)(/|$)")
_EXAMPLE = re.compile(r'"kv_connector"\s*:\s*"(Seeded)?ExampleConnector"')


def told_by(bundle: Bundle) -> Text | None:
    """Return the first sign that the target is a stand-in, as a sentence that names the file; None when no file gives one."""
    for path in sorted(bundle.files):
        look = _LOOKS.get(path.rpartition("/")[2])
        if look is None:
            continue
        try:
            sign = next(look(decode(bundle.text(path))), None)
        except (Unreadable, ValueError, RecursionError):
            continue  # completeness says what is wrong with it
        if sign is not None:
            return Text("{p}: {s}", "{p}：{s}").fill(p=path, s=sign)
    return None


def _engine(told: Any) -> Iterator[Text]:
    """Yield the signs in engine.json."""
    if not isinstance(told, Mapping):
        return
    words, config = _words(told.get("argv")), told.get("config")
    version = told.get("version")
    if isinstance(version, str) and version.startswith("lab-"):
        yield Text("the engine answered the version {v}, which is the simulated engine's", "引擎应答的版本为 {v}，属于模拟引擎").fill(v=version[:80])
    if any(_ENGINE.search(word) for word in words) or (isinstance(config, Mapping) and set(config) >= _PHYSICS):
        yield Text("the engine's command line or configuration is the simulated engine's", "引擎的命令行或配置属于模拟引擎")
    if any(_EXAMPLE.search(word) for word in words):
        yield Text("the engine moved its KV with vLLM's example connector, which is no product", "引擎用 vLLM 的示例连接器搬运 KV，并非被测产品")


def _commands(rows: Any) -> Iterator[Text]:
    """Yield the signs in commands.json: where the program of a command lay, and what it was told to look at."""
    for row in rows if isinstance(rows, list) else ():
        for word in (*_words([row.get("path")]), *_words(row.get("argv"))) if isinstance(row, Mapping) else ():
            if _RACK.search(word):
                yield _of_the_rack(word)


def _job(told: Any) -> Iterator[Text]:
    """Yield the signs in job.json: where the tools of a cell were to be looked for, and whose word tells what is mounted."""
    engine = told.get("engine") if isinstance(told, Mapping) else None
    media = engine.get("media") if isinstance(engine, Mapping) else None
    for medium in media if isinstance(media, list) else ():
        for word in _words([medium.get("findmnt")]) if isinstance(medium, Mapping) else ():
            if _RACK.search(word):
                yield _of_the_rack(word)
    cells = told.get("cells") if isinstance(told, Mapping) else None
    for cell in cells if isinstance(cells, list) else ():
        for word in _words(cell.get("path_prefix")) if isinstance(cell, Mapping) else ():
            if _RACK.search(word):
                yield _of_the_rack(word)


def _of_the_rack(word: str) -> Text:
    return Text("{w} is of the simulated rack", "{w} 属于模拟机柜").fill(w=word[:200])


def _words(value: Any) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


_LOOKS = {"engine.json": _engine, "commands.json": _commands, "job.json": _job}
