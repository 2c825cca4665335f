"""YAML as a person means it: every value as it was written, and nothing that a file could do to its reader.

Numbers are exact; dates, base-60 and octal numbers, `.inf` and `.nan` stay the words that were written. A key stands once in a map and is text.
Tags, an alias that unfolds without end, nesting without end, and characters that are no text are refused with the line and column.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import yaml
from yaml.events import AliasEvent

from gates.canonical import writable
from gates.text import Text
from gates.yaml_problems import Refused, what_of

LARGEST = 1 << 20  # characters
MOST_NODES = 100_000  # with every alias unfolded
DEEPEST = 40
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]{0,30})", re.ASCII)
_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")


class BadYaml(ValueError):  # noqa: N818 - an error is named by what is wrong
    """A text that is no YAML of ours; `text` says where and why."""

    def __init__(self, en: str, zh: str) -> None:
        super().__init__(en)
        self.text = Text(en, zh)


def read_yaml(text: str) -> Any:
    """Return the data of a YAML text. Raises BadYaml with the line and column of what cannot be read."""
    if len(text) > LARGEST:
        raise BadYaml(f"the file has {len(text)} characters; at most {LARGEST} are read.", f"文件有 {len(text)} 个字符；最多读取 {LARGEST} 个。")
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        mark, what = getattr(error, "problem_mark", None), what_of(error)
        where = Text("line {line}, column {column}", "第 {line} 行第 {column} 列") if mark else Text("the file", "文件")
        at = where.fill(line=mark.line + 1, column=mark.column + 1) if mark else where
        raise BadYaml(f"{at.en}: not readable as YAML: {what.en}.", f"{at.zh}：无法按 YAML 解析：{what.zh}。") from None


class _Loader(yaml.SafeLoader):
    """Composes with limits: nodes are counted as if every alias were written out."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        self._composed = 0
        self._unfolded: dict[int, int] = {}  # id of a node -> how many nodes it stands for; the composer's tree keeps the nodes alive

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node, after checking what it would unfold to."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        mark: Any = event.start_mark
        self._depth += 1
        self._composed += 1
        if self._depth > DEEPEST:
            raise Refused(Text(f"nested deeper than {DEEPEST} levels", f"嵌套超过 {DEEPEST} 层"), mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        if node is None:
            return None
        if not isinstance(event, AliasEvent):
            self._check(node, event)
            self._unfolded[id(node)] = 1 + sum(self._unfolded[id(child)] for child in _children(node))
        elif id(node) not in self._unfolded:
            raise Refused(Text("an alias stands within the thing that it names", "别名出现在其所指内容之内"), mark)
        if max(self._composed, self._unfolded[id(node)]) > MOST_NODES:
            raise Refused(Text(f"it unfolds to more than {MOST_NODES} entries", f"展开后超过 {MOST_NODES} 项"), mark)
        return node

    @staticmethod
    def _check(node: yaml.Node, event: Any) -> None:
        tag: Any = getattr(event, "tag", None)
        if tag not in (None, "!"):
            raise Refused(Text(f"the tag {tag} is not read; write the plain value", f"不支持标签 {tag}；请直接写值"), event.start_mark)
        if isinstance(node, yaml.ScalarNode) and _NO_TEXT.search(node.value):
            raise Refused(
                Text("a character that is no text (NUL, or half of a surrogate pair)", "含有非文字字符（NUL 或半个代理对）"), event.start_mark
            )


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _exact(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    text = str(loader.construct_scalar(node))
    try:
        number = Decimal(text.replace("_", ""))
    except ArithmeticError:
        return text
    return number if writable(number) else text


def _whole(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    text = str(loader.construct_scalar(node))
    return int(text.replace("_", "")) if _WHOLE.fullmatch(text) else text


def _as_written(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


def _once(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[str, Any]:
    loader.flatten_mapping(node)
    out: dict[str, Any] = {}
    for key_node, value_node in node.value:
        mark: Any = key_node.start_mark
        if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == "tag:yaml.org,2002:null":
            raise Refused(Text("a key must be a word", "键须为单词"), mark)
        key = key_node.value
        if key in out:
            raise Refused(Text(f"the key {key!r} stands twice", f"键 {key!r} 重复"), mark)
        out[key] = loader.construct_object(value_node, deep=True)
    return out


_Loader.add_constructor("tag:yaml.org,2002:float", _exact)
_Loader.add_constructor("tag:yaml.org,2002:int", _whole)
_Loader.add_constructor("tag:yaml.org,2002:map", _once)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _as_written)
