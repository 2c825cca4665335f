"""What the YAML parser says of a text that it cannot read, in both languages; it speaks English only, and of what it did rather than of the text."""

from __future__ import annotations

import re

import yaml

from gates.text import Text

_FOUND = r"(?P<found>'[^']*'|\"[^\"]*\"|<[^>]*>|None|\S+)"
_SAID: tuple[tuple[str, Text], ...] = (
    (r"mapping values are not allowed here", Text("a `key: value` cannot begin here", "此处不能出现“键: 值”")),
    (r"mapping keys are not allowed here", Text("a key cannot begin here", "此处不能出现键")),
    (r"sequence entries are not allowed here", Text("a list entry `- ` cannot begin here", "此处不能出现列表项“- ”")),
    (r"could not find expected ':'", Text("a key without its `:` stands before here", "此前的键缺少冒号“:”")),
    (
        rf"expected <block end>, but found {_FOUND}",
        Text("the indentation does not go on as it began (found {found})", "缩进与前文不一致（遇到 {found}）"),
    ),
    (
        r"expected ',' or '\]', but got (?P<found>.*)",
        Text("a `,` or the closing `]` is missing (found {found})", "缺少“,”或右方括号“]”（遇到 {found}）"),
    ),
    (
        r"expected ',' or '\}', but got (?P<found>.*)",
        Text("a `,` or the closing `}}` is missing (found {found})", "缺少“,”或右花括号“}}”（遇到 {found}）"),
    ),
    (r"expected the node content, but found (?P<found>.*)", Text("a value is missing (found {found})", "缺少值（遇到 {found}）")),
    (
        r"found character (?P<found>.*) that cannot start any token",
        Text(
            "no value can begin with {found}; a tab indents nothing, and such a character is written in quotes",
            "值不能以 {found} 开头；制表符不能用于缩进，此类字符须加引号",
        ),
    ),
    (r"found unexpected end of stream", Text("the closing quote is missing", "缺少右引号")),
    (r"found unexpected document separator", Text("the closing quote is missing before `---`", "“---”之前缺少右引号")),
    (r"found unknown escape character (?P<found>.*)", Text("{found} cannot stand behind a backslash", "反斜杠后不能是 {found}")),
    (
        r"expected escape sequence of \d+ hexadecimal numbers, but found (?P<found>.*)",
        Text("an escape behind a backslash lacks digits (found {found})", "反斜杠转义缺少十六进制数字（遇到 {found}）"),
    ),
    (
        r"expected alphabetic or numeric character, but found (?P<found>.*)",
        Text(
            "a `&` or `*` needs a name behind it, or quotes around the text (found {found})", "“&”“*”之后须有名称，否则请给文字加引号（遇到 {found}）"
        ),
    ),
    (
        r"expected (?:chomping or indentation indicators|a comment or a line break), but found (?P<found>.*)",
        Text("nothing can stand behind `|` or `>` on its line (found {found})", "“|”“>”之后本行不能再有内容（遇到 {found}）"),
    ),
    (
        r"found undefined tag handle .*|found non-specific tag .*|expected URI.*|expected ('!'|' '), but found .*",
        Text("a tag `!` is not read; write the plain value, or put it in quotes", "不支持标签“!”；请直接写值，或加引号"),
    ),
    (r"found undefined alias (?P<found>.*)", Text("the alias {found} names nothing", "别名 {found} 未定义")),
    (r"found duplicate anchor (?P<found>'[^']*').*|second occurrence", Text("an anchor `&` of this name stands twice", "同名锚点“&”重复")),
    (
        r"but found another document|expected '<document start>', but found .*",
        Text("one file is one document, and another begins here", "一个文件只能有一个文档，此处开始了另一个"),
    ),
    (r"invalid indentation or unclosed '\[' or '\{'", Text("the indentation is wrong, or a `[` or `{{` is not closed", "缩进有误，或“[”“{{”未闭合")),
    (r"expected a mapping.* for merging.*", Text("only a map can be merged by `<<`", "“<<”只能合并映射")),
    (r"special characters are not allowed|.*#x[0-9a-f]{4}.*", Text("a control character, which is no text", "含有控制字符，不是文字")),
)
_TOKENS = {  # the parser's own names of what it met
    "'<stream end>'": Text("the end of the file", "文件结尾"),
    "'<document start>'": Text("`---`", "“---”"),
    "'<document end>'": Text("`...`", "“...”"),
    "'<block end>'": Text("the end of an indented block", "缩进块的结尾"),
    "'<block mapping start>'": Text("an indented map", "缩进的映射"),
    "'<block sequence start>'": Text("an indented list", "缩进的列表"),
    "'<scalar>'": Text("a value", "一个值"),
}
_OTHER = Text("not YAML ({said})", "不是 YAML 语法（{said}）")


class Refused(yaml.MarkedYAMLError):
    """Something that YAML allows and we do not take, at a place of the text."""

    def __init__(self, text: Text, mark: yaml.Mark) -> None:
        super().__init__(None, None, text.en, mark)
        self.text = text


def what_of(error: yaml.YAMLError) -> Text:
    """Return what is wrong with a text, without its place."""
    if isinstance(error, Refused):
        return error.text
    said = str(getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0])
    for pattern, text in _SAID:
        if match := re.fullmatch(pattern, said):
            return text.fill(**{name: _TOKENS.get(found, found) for name, found in match.groupdict().items()})
    return _OTHER.fill(said=said)
