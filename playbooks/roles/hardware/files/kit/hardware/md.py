"""md RAID0 over the array's namespaces: made once on blank devices, 64 KiB aligned, known by its name."""

import os
import re
from typing import Any, Dict, List, Optional

from hardware import blocks, textfile
from hardware.host import Host, Refused

ALIGNMENT = 65536  # bytes; the array's own stripe unit, so that no write crosses it needlessly
SECTOR = 512


def ensure(host: Host, name: str, volume: Dict[str, Any]) -> str:
    """Return the md device of a volume, made where it is not there yet."""
    device = device_of(name, volume)
    members, wanted = members_of(host, volume), int(volume.get("members") or 4)
    chunk = int(volume.get("chunk_kib") or 512)
    if len(members) != wanted:
        raise Refused(
            "The volume {0} wants {1} devices and has {2} ({3}); nothing was made.",
            "卷 {0} 需要 {1} 个设备，现有 {2} 个（{3}）；未创建任何内容。",
            name,
            wanted,
            len(members),
            ", ".join(members) or "none",
        )
    if len(set(members)) != wanted:
        raise Refused(
            "The devices of the volume {0} are names of {1}: one stands there twice; nothing was made.",
            "卷 {0} 的设备名对应的是 {1}：有设备重复；未创建任何内容。",
            name,
            ", ".join(sorted(set(members))),
        )
    if chunk * 1024 % ALIGNMENT:
        raise Refused(
            "The volume {0} has chunk_kib {1}, which is no multiple of 64 KiB.", "卷 {0} 的 chunk_kib 为 {1}，不是 64 KiB 的整数倍。", name, chunk
        )
    made = host.record.part("volume").get(name, {}).get("md") or {}
    if _detail(host, device) is None and made and _is_ours(host, name, made, members):
        host.do(["mdadm", "--assemble", device, *members], "assemble %s again of %d devices" % (device, wanted))
    elif _detail(host, device) is None:
        for member in members:
            signature = blocks.signature(blocks.tags_of(host, member))
            if signature:
                raise Refused(
                    "{0} holds {1}, so it is not taken for the volume {2}. Nothing was overwritten; clear it by hand if it may go.",
                    "{0} 上已有 {1}，不会用于卷 {2}。未覆盖任何内容；若可舍弃，请手工清除。",
                    member,
                    signature,
                    name,
                )
        host.record.part("volume").setdefault(name, {})["md"] = {"device": device, "members": members, "idents": _idents(host, members)}
        host.record.keep()
        argv = ["mdadm", "--create", device, "--run", "--level=0", "--metadata=1.2", "--homehost=any", "--name=%s" % _label(name)]
        host.do([*argv, "--raid-devices=%d" % wanted, "--chunk=%dK" % chunk, *members], "make %s of %d devices" % (device, wanted))
    detail = _detail(host, device)
    if detail and "md" in host.record.part("volume").get(name, {}):  # devices may have other names after a boot; those that it runs on count
        runs_on = _devices(host, detail) or members
        host.record.part("volume")[name]["md"].update(uuid=detail["MD_UUID"], members=runs_on, idents=_idents(host, runs_on))
        host.record.keep()
    return device


def _is_ours(host: Host, name: str, made: Dict[str, Any], members: List[str]) -> bool:
    """Tell whether every member carries the superblock of the RAID that the record names: its UUID, or where that was not kept, name and members."""
    told = [_export(host.ask(["mdadm", "--examine", "--export", member])[1]) for member in members]
    if made.get("uuid"):
        return all(row.get("MD_UUID") == made["uuid"] for row in told)
    named = all(row.get("MD_NAME", "").rpartition(":")[2] == _label(name) for row in told)
    return named and len({row.get("MD_UUID") for row in told}) == 1 and sorted(members) == sorted(made["members"])


def is_there(host: Host, made: Dict[str, Any]) -> bool:
    """Tell whether the RAID that the record names runs. Raises Refused when another one has its name."""
    detail = _detail(host, made["device"])
    if detail is not None and made.get("uuid") and detail.get("MD_UUID") != made["uuid"]:
        raise Refused(
            "{0} is the RAID {1} now, and the one that we made is {2}. It is somebody else's and was left; rename or stop it, then try again.",
            "{0} 现在是 RAID {1}，而我方创建的是 {2}。该 RAID 属于他人，未作改动；请将其改名或停止后再试。",
            made["device"],
            detail.get("MD_UUID"),
            made["uuid"],
        )
    return detail is not None


def members_of(host: Host, volume: Dict[str, Any]) -> List[str]:
    """Return the devices of a volume under the kernel's names of today, whichever names the engagement gives them."""
    return [blocks.resolved(host, device) for device in volume["devices"]]


def check(host: Host, name: str, volume: Dict[str, Any]) -> None:
    """Check level, members, chunk, and that data begins on a 64 KiB boundary of every member."""
    device, wanted = device_of(name, volume), int(volume.get("members") or 4)
    detail = _detail(host, device) or {}
    evidence = "mdadm --detail --export %s" % device
    host.check("md_level.%s" % name, detail.get("MD_LEVEL") == "raid0", detail.get("MD_LEVEL"), "raid0", evidence)
    members = _devices(host, detail)
    agreed = sorted(members_of(host, volume))
    host.check("md_members.%s" % name, members == agreed and len(members) == wanted, members, agreed, evidence)
    found = re.search(r"Chunk Size : (\d+)K", host.ask(["mdadm", "--detail", device])[1])
    chunk = int(found.group(1)) if found else None
    wanted_chunk = int(volume.get("chunk_kib") or 512)
    host.check("md_chunk.%s" % name, None if chunk is None else chunk == wanted_chunk, chunk, wanted_chunk, "mdadm --detail %s, KiB" % device)
    for member in members:
        offset = re.search(r"Data Offset : (\d+) sectors", host.ask(["mdadm", "--examine", member])[1])
        value = int(offset.group(1)) * SECTOR if offset else None
        host.check(
            "alignment.%s.%s" % (name, member),
            None if value is None else value % ALIGNMENT == 0,
            value,
            "a multiple of 65536",
            "mdadm --examine %s, bytes" % member,
        )


def persist(host: Host, name: str, volume: Dict[str, Any]) -> None:
    """Let the array be assembled under its name at the next boot."""
    detail = _detail(host, device_of(name, volume))
    if detail:
        textfile.set_block(host, _conf(volume), "volume " + name, ["ARRAY %s metadata=1.2 UUID=%s" % (device_of(name, volume), detail["MD_UUID"])])


def remove(host: Host, name: str, volume: Dict[str, Any], entry: Dict[str, Any]) -> None:
    """Stop what we made and blank its members, which were blank before: those that carry its UUID, under whichever name they have today."""
    textfile.drop_block(host, _conf(volume), "volume " + name)
    made = entry.get("md")
    if not made:
        return
    runs, members = is_there(host, made), _members_now(host, name, made)
    if runs:
        host.do(["mdadm", "--stop", made["device"]], "stop %s" % made["device"])
    for member in members:
        host.do(["mdadm", "--zero-superblock", member], "blank %s" % member)


def _members_now(host: Host, name: str, made: Dict[str, Any]) -> List[str]:
    """Return the devices that carry the superblock of the RAID that the record names. Raises Refused while one of them is not on this host.

    A device of another RAID may have a recorded name by now; a member that somebody took for something else since is not ours any more.
    """
    idents = made.get("idents") or {}
    gone = [
        "%s (%s)" % (member, idents.get(member) or "of unknown identity")
        for member in made["members"]
        if not (blocks.by_ident(host, idents[member]) if idents.get(member) else os.path.exists(blocks.node(host, member)))
    ]
    if gone:
        raise Refused(
            "{0} of the RAID {1}: not on this host now, so its mark and what lies behind it would stay there. Connect the "
            "array again (deploy does), then remove; where it never comes back, take the entry {2} out of the record by "
            "hand.",
            "RAID {1} 的 {0} 当前不在本主机上，其标记及数据会留在原处。请重新连接阵列（重新部署即可）后再清除；若其不再"
            "返回，请手工从记录中删除 {2} 一项。",
            ", ".join(gone),
            made["device"],
            name,
        )
    return [device for device in blocks.drives(host) if _carries(host, name, made, device)]


def _carries(host: Host, name: str, made: Dict[str, Any], device: str) -> bool:
    """Tell whether a device carries our superblock: by its UUID, or where that was not kept, by name, on a recorded member."""
    told = _export(host.ask(["mdadm", "--examine", "--export", device])[1])
    if made.get("uuid"):
        return told.get("MD_UUID") == made["uuid"]
    ours = {ident for ident in (made.get("idents") or {}).values() if ident}
    recorded = blocks.ident(host, device) in ours if ours else device in made["members"]
    return recorded and told.get("MD_NAME", "").rpartition(":")[2] == _label(name)


def _devices(host: Host, detail: Dict[str, str]) -> List[str]:
    """Return the devices that a running RAID has, under the kernel's names."""
    return sorted(blocks.resolved(host, value) for key, value in detail.items() if re.match(r"MD_DEVICE_.+_DEV$", key))


def _idents(host: Host, members: List[str]) -> Dict[str, Optional[str]]:
    return {member: blocks.ident(host, member) for member in members}


def device_of(name: str, volume: Dict[str, Any]) -> str:
    """Return the path of the md device."""
    return str(volume.get("device") or "/dev/md/%s" % _label(name))


def _label(name: str) -> str:
    return "qg-" + name


def _conf(volume: Dict[str, Any]) -> str:
    """Return mdadm.conf's place below etc: Debian has a folder for it, others do not."""
    return str(volume.get("mdadm_conf") or "mdadm/mdadm.conf")


def _detail(host: Host, device: str) -> Optional[Dict[str, str]]:
    code, out, _ = host.ask(["mdadm", "--detail", "--export", device])
    if code == 127:
        raise Refused("mdadm is not installed on this host; install the package mdadm.", "本主机未安装 mdadm；请安装软件包 mdadm。")
    if code or "MD_LEVEL" not in out:
        return None
    return _export(out)


def _export(text: str) -> Dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
