"""md RAID0 over the array's namespaces: made once on blank devices, 64 KiB aligned, known by its name."""

import re
from typing import Any, Dict, List, Optional

from hardware import textfile
from hardware.host import Host, Refused

ALIGNMENT = 65536  # bytes; the array's own stripe unit, so that no write crosses it needlessly
SECTOR = 512


def ensure(host: Host, name: str, volume: Dict[str, Any]) -> str:
    """Return the md device of a volume, made where it is not there yet."""
    device = device_of(name, volume)
    members, wanted = list(volume["devices"]), int(volume.get("members") or 4)
    chunk = int(volume.get("chunk_kib") or 512)
    if len(members) != wanted:
        raise Refused(
            "The volume %s wants %d devices and has %d (%s); nothing was made." % (name, wanted, len(members), ", ".join(members) or "none")
        )
    if chunk * 1024 % ALIGNMENT:
        raise Refused("The volume %s has chunk_kib %d, which is no multiple of 64 KiB." % (name, chunk))
    made = host.record.part("volume").get(name, {}).get("md") or {}
    if _detail(host, device) is None and made and _is_ours(host, name, made, members):
        host.do(["mdadm", "--assemble", device, *members], "assemble %s again of %d devices" % (device, wanted))
    elif _detail(host, device) is None:
        for member in members:
            signature = signature_of(host, member)
            if signature:
                raise Refused(
                    "%s holds %s, so it is not taken for the volume %s. Nothing was overwritten; clear it by hand if it may go."
                    % (member, signature, name)
                )
        host.record.part("volume").setdefault(name, {})["md"] = {"device": device, "members": members}
        host.record.keep()
        argv = ["mdadm", "--create", device, "--run", "--level=0", "--metadata=1.2", "--homehost=any", "--name=%s" % _label(name)]
        host.do([*argv, "--raid-devices=%d" % wanted, "--chunk=%dK" % chunk, *members], "make %s of %d devices" % (device, wanted))
    detail = _detail(host, device)
    if detail and "md" in host.record.part("volume").get(name, {}):
        host.record.part("volume")[name]["md"].update(uuid=detail["MD_UUID"], members=members)  # devices may have other names after a boot
        host.record.keep()
    return device


def _is_ours(host: Host, name: str, made: Dict[str, Any], members: List[str]) -> bool:
    """Tell whether every member carries the superblock of the RAID that the record names: its UUID, or where that was not kept, name and members."""
    told = [_export(host.ask(["mdadm", "--examine", "--export", member])[1]) for member in members]
    if made.get("uuid"):
        return all(row.get("MD_UUID") == made["uuid"] for row in told)
    named = all(row.get("MD_NAME", "").rpartition(":")[2] == _label(name) for row in told)
    return named and len({row.get("MD_UUID") for row in told}) == 1 and sorted(members) == sorted(made["members"])


def is_there(host: Host, name: str, volume: Dict[str, Any]) -> bool:
    """Tell whether the RAID runs."""
    return _detail(host, device_of(name, volume)) is not None


def check(host: Host, name: str, volume: Dict[str, Any]) -> None:
    """Check level, members, chunk, and that data begins on a 64 KiB boundary of every member."""
    device, wanted = device_of(name, volume), int(volume.get("members") or 4)
    detail = _detail(host, device) or {}
    evidence = "mdadm --detail --export %s" % device
    host.check("md_level.%s" % name, detail.get("MD_LEVEL") == "raid0", detail.get("MD_LEVEL"), "raid0", evidence)
    members = sorted(value for key, value in detail.items() if re.match(r"MD_DEVICE_.+_DEV$", key))
    host.check("md_members.%s" % name, members == sorted(volume["devices"]) and len(members) == wanted, members, sorted(volume["devices"]), evidence)
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
    """Stop what we made and blank its members, which were blank before."""
    textfile.drop_block(host, _conf(volume), "volume " + name)
    made = entry.get("md")
    if not made:
        return
    if _detail(host, made["device"]) is not None:
        host.do(["mdadm", "--stop", made["device"]], "stop %s" % made["device"])
    for member in made["members"]:
        if "linux_raid_member" in (signature_of(host, member) or ""):
            host.do(["mdadm", "--zero-superblock", member], "blank %s" % member)


def signature_of(host: Host, device: str, *, real: bool = False) -> Optional[str]:
    """Return what a device holds (`TYPE=xfs LABEL=...`), or None when it is blank. blkid's exit code 2 means blank, and so little else does."""
    code, out, err = host.ask(["blkid", "-p", "-o", "export", device], real=real)
    if code == 2:
        return None
    if code:
        raise Refused("What %s holds cannot be told, so it is left alone: blkid ended with %d: %s" % (device, code, err))
    rows = [line for line in out.splitlines() if line.partition("=")[0] in ("TYPE", "PTTYPE", "LABEL")]
    return " ".join(rows) or "something that blkid does not name"


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
        raise Refused("mdadm is not installed on this host; install the package mdadm.")
    if code or "MD_LEVEL" not in out:
        return None
    return _export(out)


def _export(text: str) -> Dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
