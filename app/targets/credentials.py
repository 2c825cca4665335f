"""Credentials are references to files that only their owner can read. The database and the engagement file never hold a secret."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from app.kit.errors import Refused
from app.settings import settings
from gates.system_words import said
from gates.text import Text

ENVIRONMENT = "QUADGATE_SECRET_"


def credential_path(reference: str) -> Path:
    """Return the file of a reference: an absolute path, or a name below `<state_dir>/credentials`. Refuses a file that others can read."""
    path = Path(reference)
    if not path.is_absolute():
        path = settings().state_dir / "credentials" / path
    try:
        info = path.stat()
    except OSError as error:
        raise Refused(
            "credential_missing",
            Text(
                "The credential file {path} cannot be read: {why}. Put it there with mode 0600, owned by the user that runs Quadgate.",
                "无法读取凭据文件 {path}：{why}。请将其放在该位置，权限 0600，属主为运行 Quadgate 的用户。",
            ),
            path=str(path),
            why=said(error),
        ) from error
    mode = stat.S_IMODE(info.st_mode)
    if not stat.S_ISREG(info.st_mode) or mode & 0o077 or info.st_uid != os.geteuid():
        raise Refused(
            "credential_open",
            Text(
                "The credential file {path} has mode {mode} and can be read by others or is not owned by us. Run: chmod 600 {path}",
                "凭据文件 {path} 的权限为 {mode}，可被他人读取或属主不符。请执行：chmod 600 {path}",
            ),
            path=str(path),
            mode=f"{mode:04o}",
        )
    return path


def secret_of(reference: Mapping[str, str]) -> str:
    """Return the secret of `{file: NAME}`, without the line end, or of `{env: QUADGATE_SECRET_NAME}`. Raises Refused where there is none."""
    name = str(reference.get("env") or "")
    if name:
        secret = os.environ.get(name, "") if name.startswith(ENVIRONMENT) else ""
        where = Text(f"the environment variable {name} of the service", f"服务的环境变量 {name}")
    else:
        path = credential_path(str(reference["file"]))
        secret = path.read_text(encoding="utf-8").rstrip("\r\n")
        where = Text(f"the credential file {path}", f"凭据文件 {path}")
    if not secret or "\n" in secret:
        raise Refused(
            "secret_missing",
            Text("No password of one line stands in {where}. Put it there, then try again.", "{where} 中没有单行密码。请写入后重试。"),
            where=where,
        )
    return secret
