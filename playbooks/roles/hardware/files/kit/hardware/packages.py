"""The distribution's own packages that a host needs (nvme-cli, mdadm, fio...): installed from files that were carried in, taken away by the record.

The order says `needed` (names), `folder` (where the archive was unpacked) and `carried` (rows of its manifest: path, kind, distribution, name,
version, architecture, needs, provides, sha256). Nothing is downloaded, nothing that is there is upgraded or removed, and what was there before stays.
"""

import hashlib
import os
from typing import Any, Callable, Dict, List, Optional

from hardware.host import Host, Refused
from hardware.managers import Manager, manager_of

BLOCK = 1 << 20


def show(host: Host) -> Dict[str, Any]:
    """Check that every needed package is there. Return {distribution, architecture, missing}."""
    manager = manager_of(host)
    missing = _missing(host, manager)
    for name in host.order["needed"]:
        found = manager.installed().get(name)
        host.check("packages.%s" % name, name not in missing, found["version"] if found else "not installed", "installed", manager.evidence(name))
    return {"distribution": manager.distribution, "architecture": manager.architecture, "missing": missing}


def apply(host: Host) -> Dict[str, Any]:
    """Install what is missing, with what it needs, from the carried files. Refused whole, in a sentence, where anything of it lacks."""
    manager = manager_of(host)
    missing = _missing(host, manager)
    rows = _chosen(host, manager, missing)
    if rows:
        files = [os.path.join(host.order["folder"], row["path"]) for row in rows]
        if not (host.dry and not all(os.path.exists(path) for path in files)):  # before a first unpacking there is nothing to try
            _verify(host, rows)
            manager.try_install(files, {row["name"] for row in rows})
        known, names, there = host.record.part("packages"), sorted(row["name"] for row in rows), manager.present()
        for row in rows:
            if row["name"] in known or row["name"] not in there:  # what somebody else left half installed is theirs
                before = known.get(row["name"], {}).get("settings") or {path: {"before": _text(path)} for path in manager.leftovers(row["name"])}
                known[row["name"]] = {"kind": row["kind"], "version": row["version"], "settings": before}
        host.record.keep()
        host.act("install %s" % ", ".join(names), lambda: manager.install(files))
        for path, told in [pair for name in names for pair in known.get(name, {}).get("settings", {}).items()]:
            told["after"] = _text(path)
        host.record.keep()
    if not (host.dry and rows):
        return show(host)
    return {"distribution": manager.distribution, "architecture": manager.architecture, "missing": missing}


def remove(host: Host) -> Dict[str, Any]:
    """Take away what the record says that we installed. What changed since, or is needed by others by now, stays: {left: [{en, zh-CN}]}."""
    known, left = host.record.part("packages"), []  # type: ignore[var-annotated]
    if known:
        manager = manager_of(host)
        there, ours = manager.present(), []
        for name in sorted(known):
            version = there.get(name)
            if version == known[name]["version"]:
                ours.append(name)
            elif version is not None:
                en = "The package {0} has the version {1} now, and we installed {2}: it was left."
                left.append(Refused(en, "软件包 {0} 的版本现为 {1}，我方安装的是 {2}，已保留。", name, version, known[name]["version"]))
        goes = manager.removable(ours)
        for name in sorted(set(ours) - set(goes)):
            left.append(Refused("The package {0} is needed by others by now: it was left.", "软件包 {0} 现已被其他软件包依赖，已保留。", name))
        if goes:
            kept = [name for name in goes if known[name].get("settings")]
            host.act("remove %s" % ", ".join(goes), lambda: manager.remove([name for name in goes if name not in kept], kept))
            for path, told in [pair for name in kept for pair in known[name]["settings"].items()]:
                if told["before"] is not None and told.get("after") != told["before"] and _text(path) == told.get("after"):
                    host.act("put %s back" % path, _writer(path, told["before"]))
        if not host.dry:
            known.clear()
            host.record.keep()
    return {"left": [{"en": one.en, "zh-CN": one.zh} for one in left]}


def _text(path: str) -> Optional[str]:
    """Return a file's bytes as text of one byte a character, or None where there is none."""
    try:
        with open(path, "rb") as stream:
            return stream.read().decode("latin-1")
    except OSError:
        return None


def _writer(path: str, text: str) -> Callable[[], None]:
    def write() -> None:
        with open(path, "wb") as stream:  # in place: owner and mode are those that the package manager kept
            stream.write(text.encode("latin-1"))

    return write


def _missing(host: Host, manager: Manager) -> List[str]:
    return [name for name in host.order["needed"] if name not in manager.installed()]


def _chosen(host: Host, manager: Manager, missing: List[str]) -> List[Dict[str, Any]]:
    """Return the carried packages that bring what is missing and all that it needs in turn. Versions are the package manager's own matter."""
    fits = [row for row in host.order.get("carried") or [] if manager.takes(row)]
    by_name = {row["name"]: row for row in fits}
    provided = {what: row for row in reversed(fits) for what in row["provides"]}
    chosen: Dict[str, Dict[str, Any]] = {}
    waiting = [(name, by_name.get(name)) for name in missing]
    without = [name for name, row in waiting if row is None]
    if without:
        raise Refused(
            "{0} needed here and not installed: {1}. {2} Put it into the folder that `make target-archive` takes by --os-packages and carry the "
            "archive in anew (targets.packages), or install it by hand; nothing was changed.",
            "此处需要但未安装：{1}。{2}请将其放入 `make target-archive` 的 --os-packages 目录并重新带入归档"
            "（targets.packages），或手工安装；未做任何更改。",
            "This package is" if len(without) == 1 else "These packages are",
            ", ".join(without),
            _carried(host, manager, without),
        )
    while waiting:
        _, row = waiting.pop()
        if row is None or row["name"] in chosen:
            continue
        chosen[row["name"]] = row
        for group in row["needs"]:
            if any(manager.has(what) for what in group):
                continue
            brings = next((found for what in group for found in (by_name.get(what), provided.get(what)) if found), None)
            if brings is None:
                raise Refused(
                    "{0} {1} needs {2}, which is neither installed on {3} {4} nor in the archive. Carry it in as well; nothing was changed.",
                    "{0} {1} 依赖 {2}，{3} {4} 上未安装，归档中也没有。请一并带入；未做任何更改。",
                    row["name"],
                    row["version"],
                    " | ".join(group),
                    manager.distribution,
                    manager.architecture,
                )
            waiting.append((brings["name"], brings))
    return [chosen[name] for name in sorted(chosen)]


def _carried(host: Host, manager: Manager, without: List[str]) -> Refused:
    """Return what the archive does carry of these names, as a sentence: mostly it is for another distribution or architecture."""
    here = "%s %s" % (manager.distribution, manager.architecture)
    others = sorted(
        {"%s: %s %s" % (r["name"], r["distribution"], r["architecture"]) for r in host.order.get("carried") or [] if r["name"] in without}
    )
    if others:
        return Refused("This host is {0}, and the archive carries {1}.", "本主机为 {0}，归档中为 {1}。", here, "; ".join(others))
    if not host.order.get("carried"):
        return Refused("This host is {0}, and no archive with packages is named.", "本主机为 {0}，未指定带软件包的归档。", here)
    return Refused("This host is {0}, and the archive does not carry it.", "本主机为 {0}，归档中没有该软件包。", here)


def _verify(host: Host, rows: List[Dict[str, Any]]) -> None:
    """Hold each file against the manifest once more: it lay in a folder of the user who connects, and root installs it."""
    for row in rows:
        path, made = os.path.join(host.order["folder"], row["path"]), hashlib.sha256()
        with open(path, "rb") as stream:
            for block in iter(lambda: stream.read(BLOCK), b""):
                made.update(block)
        if made.hexdigest() != row["sha256"]:
            raise Refused(
                "{0} is not what the archive's manifest says; nothing was installed. Delete {1} and deploy again.",
                "{0} 与归档清单不符；未安装任何内容。请删除 {1} 后重新部署。",
                path,
                host.order["folder"],
            )
