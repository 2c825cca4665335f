"""What Python and the operating system say of a failure, in both languages: they speak English only.

The English half is what was said; the Chinese half says it in Chinese and quotes the words, by which help is found. What is not known here stays a
quotation alone.
"""

from __future__ import annotations

import errno
import json
import os
import re

from gates.text import Text

_OF_SYSTEM = {
    errno.EPERM: "操作不被允许",
    errno.ENOENT: "文件或目录不存在",
    errno.EIO: "输入输出错误",
    errno.ENXIO: "设备或地址不存在",
    errno.E2BIG: "参数过长",
    errno.EBADF: "文件描述符无效",
    errno.ENOMEM: "内存不足",
    errno.EACCES: "没有权限",
    errno.EBUSY: "设备或资源正在使用",
    errno.EEXIST: "文件已存在",
    errno.EXDEV: "不能跨文件系统操作",
    errno.ENODEV: "设备不存在",
    errno.ENOTDIR: "不是目录",
    errno.EISDIR: "是目录而不是文件",
    errno.EINVAL: "参数无效",
    errno.ENFILE: "系统打开的文件过多",
    errno.EMFILE: "打开的文件过多",
    errno.ETXTBSY: "程序文件正在运行",
    errno.EFBIG: "文件过大",
    errno.ENOSPC: "磁盘空间不足",
    errno.EROFS: "文件系统只读",
    errno.EMLINK: "链接过多",
    errno.EPIPE: "对端已关闭",
    errno.ENAMETOOLONG: "文件名过长",
    errno.ENOTEMPTY: "目录非空",
    errno.ELOOP: "符号链接层数过多",
    errno.ESTALE: "网络文件系统上的文件已失效",
    errno.EDQUOT: "已超出磁盘配额",
    errno.EADDRINUSE: "地址已被占用",
    errno.EADDRNOTAVAIL: "本机没有该地址",
    errno.ENETDOWN: "网络已断开",
    errno.ENETUNREACH: "网络不可达",
    errno.ECONNABORTED: "连接已中止",
    errno.ECONNRESET: "连接被对端重置",
    errno.ETIMEDOUT: "连接超时",
    errno.ECONNREFUSED: "连接被拒绝",
    errno.EHOSTDOWN: "主机已关机",
    errno.EHOSTUNREACH: "主机不可达",
}
# By their words: of name resolution, zip, zlib, JSON and CSV. `{0}` is the first group.
_BY_WORDS: tuple[tuple[str, str], ...] = (
    (r"Name or service not known|nodename nor servname provided.*|No address associated with hostname", "无法解析主机名"),
    (r"Temporary failure in name resolution", "域名解析暂时失败"),
    (r"File is not a zip file", "不是 zip 文件"),
    (r"Bad CRC-32 for file (.+)", "文件 {0} 的 CRC-32 校验不符"),
    (
        r"Bad magic number for (?:central directory|file header)|Truncated central directory|Truncated file header|Corrupt extra field.*",
        "zip 结构已损坏",
    ),
    (r"zipfiles that span multiple disks are not supported", "不支持分卷 zip"),
    (r"Bad offset for central directory|.*[Cc]entral directory.*", "zip 目录区已损坏"),
    (r"File name in directory (.+) and header .+ differ\.?", "zip 中 {0} 的文件名前后不一致"),
    (r"Overlapped entries: (.+) \(possible zip bomb\)", "zip 中 {0} 与其他文件重叠，疑为压缩炸弹"),
    (r"There is no item named (.+) in the archive", "zip 中没有 {0}"),
    (r"That compression method is not supported|compression type .+", "不支持该压缩方式"),
    (r"(?:File )?(.+) is encrypted, password required for extraction", "zip 中的 {0} 已加密"),
    (r"Error -?\d+ while decompressing data.*", "压缩数据已损坏"),
    (r"Expecting value", "此处应有值"),
    (r"Expecting property name enclosed in double quotes", "此处应有双引号括起的键"),
    (r"Expecting ':' delimiter", "此处缺少冒号“:”"),
    (r"Expecting ',' delimiter", "此处缺少逗号“,”"),
    (r"Illegal trailing comma before end of (?:object|array)", "末尾多余逗号"),
    (r"Unterminated string starting at", "字符串缺少结束引号"),
    (r"Invalid control character at", "字符串中有控制字符"),
    (r"Invalid \\+(?:escape.*|uXXXX escape)", "转义字符无效"),
    (r"Extra data", "JSON 之后还有内容"),
    (r"a key stands twice in one object", "同一对象中键重复"),
    (r"(.+) is not JSON|(.+) is not a number", "{0} 不是 JSON 数值"),
    (r"it holds half of a surrogate pair, which is no text", "含有半个代理对，不是文字"),
    (r"maximum recursion depth exceeded.*", "嵌套过深"),
    (r"Exceeds the limit \(\d+ digits\) for integer string conversion.*", "整数位数过多"),
    (r"unexpected end of data", "数据提前结束"),
    (r"line contains NUL", "含有空字符"),
    (r"field larger than field limit \((\d+)\)", "字段长度超过 {0}"),
    (r"['\"].+['\"] expected after ['\"].+['\"]", "引号后缺少分隔符"),
)
_NOTHING = Text("the data end too early", "数据提前结束")


def said(error: BaseException) -> Text:
    """Return what an error says, as a clause in each language. Of our own errors, which carry a `text`, the two halves of that."""
    own = getattr(error, "text", None)
    if isinstance(own, Text):
        return Text(own.en.rstrip("."), own.zh.rstrip("。"))
    if isinstance(error, UnicodeDecodeError):
        return Text(f"it is not UTF-8 text (byte {error.start})", f"不是 UTF-8 文本（第 {error.start} 字节）")
    if isinstance(error, json.JSONDecodeError):
        at = Text(f": line {error.lineno} column {error.colno}", f"（第 {error.lineno} 行第 {error.colno} 列：{error.msg}）")
        known = _known(error.msg)
        return Text(error.msg + at.en, known + at.zh if known else f"“{error.msg}”（第 {error.lineno} 行第 {error.colno} 列）")
    if isinstance(error, OSError) and error.errno is not None:
        raw = error.strerror or os.strerror(error.errno)
        return _quoted(raw, _OF_SYSTEM.get(error.errno, "") or _known(raw))
    if isinstance(error, RecursionError):
        return Text("it is nested too deep", "嵌套过深")
    return of_words(str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error))


def of_words(raw: str) -> Text:
    """Return what was said as words alone, as a clause in each language; of an empty saying, that the data end too early."""
    return _quoted(raw, _known(raw)) if raw.strip() else _NOTHING


def _quoted(raw: str, zh: str) -> Text:
    raw = " ".join(raw.split()).rstrip(".")
    return Text(raw, f"{zh}（{raw}）" if zh else f"“{raw}”")


def _known(words: str) -> str:
    """Return the Chinese for words that are known; empty for others."""
    for pattern, zh in _BY_WORDS:
        if match := re.fullmatch(pattern, words.strip()):
            return zh.format(next((group for group in match.groups() if group), ""))
    return ""
