"""mdadm: --create, --assemble, --detail and --examine [--export], --stop and --zero-superblock over the namespaces that are connected."""

import hashlib
import os
import sys
from typing import Any, Dict, List

import nodes
import nvme_fabrics
import state

DATA_OFFSET = 264192  # sectors, as mdadm 4.2 leaves on a large member
NUMBER = 127


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Answer one command."""
    if "--version" in argv:
        sys.stderr.write("mdadm - v4.2 - 2021-12-30 - Debian 4.2-5\n")
        return 0
    words = [word for word in argv[1:] if not word.startswith("-")]
    verb = next((word for word in argv[1:] if word in _VERBS), "")
    if "--scan" in argv:
        for device, array in sorted(state.changes().get("md", {}).items()):
            print("ARRAY %s metadata=1.2 name=any:%s UUID=%s" % (device, array["name"], array["uuid"]))
        return 0
    if not verb or not words:
        sys.stderr.write("mdadm: not simulated: %s\n" % " ".join(argv[1:]))
        return 2
    return _VERBS[verb](words, argv, rack)


def _create(words: List[str], argv: List[str], rack: Dict[str, Any]) -> int:
    device, members = words[0], words[1:]
    told = {word.partition("=")[0]: word.partition("=")[2] for word in argv if "=" in word}
    there = {"/dev/" + name for name in nvme_fabrics.namespaces()} | {"/dev/" + drive["namespace"] for drive in rack["drives"]}
    with state.changing() as now:
        arrays, signatures = now.setdefault("md", {}), now.setdefault("signatures", {})
        for member in members:
            if member not in there:
                return _fail("cannot open %s: No such file or directory" % member)
            if member in signatures:
                return _fail("%s appears to be part of a raid array or to hold a file system" % member)
        if device in arrays or len(members) != int(told["--raid-devices"]):
            return _fail("%s is already in use, or the number of devices is wrong." % device)
        uuid = hashlib.sha256(" ".join([device, *members]).encode()).hexdigest()[:32]
        dashed = ":".join(uuid[i : i + 8] for i in range(0, 32, 8))
        arrays[device] = {"members": members, "chunk": int(told["--chunk"].rstrip("K")), "name": told["--name"], "uuid": dashed}
        for member in members:
            signatures[member] = {"TYPE": "linux_raid_member", "LABEL": "any:" + told["--name"]}
            now.setdefault("superblocks", {})[member] = dict(arrays[device])
        _appear(device, members)
    sys.stderr.write("mdadm: array %s started.\n" % device)
    return 0


def _detail(words: List[str], argv: List[str], _: Dict[str, Any]) -> int:
    array = state.changes().get("md", {}).get(words[0])
    if array is None:
        return _fail("cannot open %s: No such file or directory" % words[0])
    if "--export" in argv:
        print("MD_LEVEL=raid0\nMD_DEVICES=%d\nMD_METADATA=1.2\nMD_UUID=%s" % (len(array["members"]), array["uuid"]))
        print("MD_DEVNAME=%s\nMD_NAME=any:%s" % (array["name"], array["name"]))
        for index, member in enumerate(array["members"]):
            key = "MD_DEVICE_dev_%s" % member.rpartition("/")[2]
            print("%s_ROLE=%d\n%s_DEV=%s" % (key, index, key, member))
        return 0
    print("%s:\n           Version : 1.2\n        Raid Level : raid0" % words[0])
    print("      Raid Devices : %d\n             State : clean\n        Chunk Size : %dK" % (len(array["members"]), array["chunk"]))
    print("              Name : any:%s\n              UUID : %s" % (array["name"], array["uuid"]))
    return 0


def _assemble(words: List[str], _: List[str], __: Dict[str, Any]) -> int:
    """Start an array of members that all carry its superblock, as after a boot; what lay on it is there again."""
    device, members = words[0], words[1:]
    with state.changing() as now:
        blocks = [now.get("superblocks", {}).get(member) for member in members]
        if not blocks or any(block is None or block["uuid"] != (blocks[0] or {})["uuid"] for block in blocks):
            return _fail("superblock on %s doesn't match others - assembly aborted" % members[-1])
        first = dict(blocks[0] or {})
        if len(members) != len(first["members"]):
            return _fail("%s assembled from %d drives - not enough to start the array." % (device, len(members)))
        holds = first.pop("holds", None)
        now.setdefault("md", {})[device] = {**first, "members": members}
        if holds:
            now.setdefault("signatures", {})[device] = holds
        _appear(device, members)
    sys.stderr.write("mdadm: %s has been started with %d drives.\n" % (device, len(members)))
    return 0


def _examine(words: List[str], argv: List[str], __: Dict[str, Any]) -> int:
    block = state.changes().get("superblocks", {}).get(words[0])
    if block is None:
        return _fail("No md superblock detected on %s." % words[0])
    if "--export" in argv:
        print("MD_LEVEL=raid0\nMD_DEVICES=%d\nMD_NAME=any:%s\nMD_UUID=%s" % (len(block["members"]), block["name"], block["uuid"]))
        return 0
    print("%s:\n          Magic : a92b4efc\n        Version : 1.2\n           Name : any:%s" % (words[0], block["name"]))
    print("     Raid Level : raid0\n    Data Offset : %d sectors\n     Chunk Size : %dK" % (DATA_OFFSET, block["chunk"]))
    return 0


def _stop(words: List[str], _: List[str], __: Dict[str, Any]) -> int:
    with state.changing() as now:
        array = now.get("md", {}).get(words[0])
        if array is None:
            return _fail("error opening %s: No such file or directory" % words[0])
        if any(mount["source"] == words[0] for mount in now.get("mounts", [])):
            return _fail("Cannot get exclusive access to %s:Perhaps a running process, mounted filesystem or active volume group?" % words[0])
        _disappear(words[0], array["members"])
        del now["md"][words[0]]
        holds = now.get("signatures", {}).pop(words[0], None)
        for member in array["members"]:
            now["superblocks"][member]["holds"] = holds
    sys.stderr.write("mdadm: stopped %s\n" % words[0])
    return 0


def _zero(words: List[str], _: List[str], __: Dict[str, Any]) -> int:
    with state.changing() as now:
        if any(words[0] in array["members"] for array in now.get("md", {}).values()):
            return _fail("Couldn't open %s for write - not zeroing" % words[0])
        now.get("superblocks", {}).pop(words[0], None)
        now.get("signatures", {}).pop(words[0], None)
    return 0


def _appear(device: str, members: List[str]) -> None:
    """Let the array be a device that holds its members; its name in /dev/md is a link, as udev makes it."""
    for member in members:
        os.makedirs(os.path.join(nodes.holders(member), "md%d" % NUMBER), exist_ok=True)
    os.makedirs(os.path.dirname(nodes.path(device)), exist_ok=True)
    nodes.blank("/dev/md%d" % NUMBER)
    os.symlink("../md%d" % NUMBER, nodes.path(device))


def _disappear(device: str, members: List[str]) -> None:
    for member in members:
        holder = os.path.join(nodes.holders(member), "md%d" % NUMBER)
        if os.path.isdir(holder):
            os.rmdir(holder)
    os.unlink(nodes.path(device))
    os.unlink(nodes.path("/dev/md%d" % NUMBER))


def _fail(sentence: str) -> int:
    sys.stderr.write("mdadm: %s\n" % sentence)
    return 1


_VERBS = {"--create": _create, "--assemble": _assemble, "--detail": _detail, "--examine": _examine, "--stop": _stop, "--zero-superblock": _zero}
