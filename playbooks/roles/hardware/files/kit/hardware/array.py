"""The array over NVMe-oF: one connection a portal, native multipath, persistent over reboots. Only what we connected is disconnected."""

import os
import re
from typing import Any, Dict, List, Optional

from hardware import textfile
from hardware.host import Host, Refused

UNIT = "quadgate-array.service"
RULES = "udev/rules.d/71-quadgate-array.rules"  # behind the distribution's own 71-nvmf-iopolicy rules by its name's place in the alphabet
PORT = "4420"  # what the standard gives NVMe-oF
SITE_CONFIG = "/etc/nvme/config.json"  # the one file that nvme connect-all reads by itself at boot
OPTIONS = (
    ("io_queues", "--nr-io-queues"),
    ("queue_size", "--queue-size"),
    ("keep_alive_s", "--keep-alive-tmo"),
    ("reconnect_delay_s", "--reconnect-delay"),
    ("ctrl_loss_s", "--ctrl-loss-tmo"),
    ("host_nqn", "--hostnqn"),
    ("config_json", "--config"),  # a file of the site's own with the DH-CHAP keys: no secret passes through us
)


def apply(host: Host) -> Dict[str, Any]:
    """Connect every portal that has no path yet, set the I/O policy, make it last, and check paths and namespaces."""
    order, known = host.order, host.record.part("array")
    if known.get("subsystem", order["subsystem"]) != order["subsystem"]:
        raise Refused(
            "We connected this host to the array {0}, and the engagement says {1} now. Remove the engagement's targets first; nothing was changed.",
            "本主机此前由我方连接到阵列 {0}，而项目现在写的是 {1}。请先清除该项目的目标主机；未做任何更改。",
            known["subsystem"],
            order["subsystem"],
        )
    if (order.get("persistent") or "discovery") == "discovery" and order.get("config_json") not in (None, SITE_CONFIG):
        raise Refused(
            "array.config_json is {0}, and with persistent: discovery a boot reads {1} alone, so that no path would come "
            "back. Put it there, or say persistent: service. Nothing was changed.",
            "array.config_json 为 {0}，而 persistent: discovery 在启动时只读取 {1}，"
            "重启后路径将无法恢复。请把文件放到该处，或改用 persistent: service。未做任何更改。",
            order["config_json"],
            SITE_CONFIG,
        )
    known["subsystem"] = order["subsystem"]
    host.record.keep()
    _modules(host)
    missing = [portal for portal in order["portals"] if not _path_of(host, portal)]
    for portal in missing:
        known.setdefault("connected", [])
        if _key(portal) not in known["connected"]:
            known["connected"].append(_key(portal))
            host.record.keep()
        host.do(_connect(order, portal), "connect %s at %s over %s" % (order["subsystem"], _name(portal), order["transport"]))
    if not (host.dry and missing):
        _policy(host)
    _persist(host)
    if host.dry and missing:
        return {"devices": []}
    return _verify(host)


def show(host: Host) -> Dict[str, Any]:
    """Check paths, namespaces and the I/O policy."""
    return _verify(host)


def remove(host: Host) -> Dict[str, Any]:
    """Disconnect our paths, give the I/O policy back, unload modules that we loaded, take our lines out."""
    known = host.record.part("array")
    if not known:
        return {}
    host.order["subsystem"] = known["subsystem"]
    in_use = _holders(host)
    if in_use:
        raise Refused(
            "{0} is still in use by {1}; remove the volume first.", "{0} 仍被 {1} 使用；请先清除卷。", known["subsystem"], ", ".join(in_use)
        )
    subsystem = _subsystem(host)
    if subsystem and known.get("iopolicy"):
        path = _policy_path(host, subsystem["Name"])
        if host.text(path) != known["iopolicy"]:
            host.act("set the I/O policy back to %s" % known["iopolicy"], lambda: _put(path, known["iopolicy"]))
    for path in list((subsystem or {}).get("Paths", [])):
        if any(_is_path(key, path) for key in known.get("connected", [])):
            host.do(["nvme", "disconnect", "-d", path["Name"]], "disconnect %s (%s)" % (path["Name"], _fields(path).get("traddr")))
    _forget(host)
    for module in reversed(known.get("modules", [])):
        if _loaded(host, module):
            host.do(["modprobe", "-r", module], "unload %s" % module)
    if not host.dry:
        host.record.data["array"] = {}
        host.record.keep()
    return {}


def devices(host: Host) -> List[str]:
    """Return the subsystem's block devices, in the order of their namespaces: with native multipath one a namespace, however many paths."""
    subsystem = _subsystem(host)
    if subsystem is None:
        return []
    try:
        names = os.listdir("%s/class/nvme-subsystem/%s" % (host.sys, subsystem["Name"]))
    except OSError:
        return []
    found = [name for name in names if re.match(r"nvme\d+n\d+$", name)]
    return ["/dev/" + name for name in sorted(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])]


def _modules(host: Host) -> None:
    multipath = host.text("%s/module/nvme_core/parameters/multipath" % host.sys)
    host.check("multipath", None if multipath is None else multipath == "Y", multipath, "Y", "%s/module/nvme_core/parameters/multipath" % host.sys)
    module = "nvme-%s" % host.order["transport"]
    if not _loaded(host, module):
        host.record.part("array").setdefault("modules", []).append(module)
        host.record.keep()
        host.do(["modprobe", module], "load %s" % module)


def _loaded(host: Host, module: str) -> bool:
    name = module.replace("-", "_")
    if os.path.isdir("%s/module/%s" % (host.sys, name)):
        return True  # built into the kernel, or loaded
    return any(line.split()[0] == name for line in host.need(["lsmod"]).splitlines()[1:] if line.split())


def _connect(order: Dict[str, Any], portal: Dict[str, Any]) -> List[str]:
    argv = ["nvme", "connect", "--transport", order["transport"], "--traddr", portal["address"], "--trsvcid", str(portal.get("port") or PORT)]
    return [*argv, "--nqn", order["subsystem"], *(word for pair in _flags(order, portal) for word in pair)]


def _flags(order: Dict[str, Any], portal: Dict[str, Any]) -> List[List[str]]:
    """Return what a connection is made with beside its address, as [flag, value]: the host's side of the portal, then what the order says."""
    told = [[flag, portal.get(key)] for key, flag in (("host_address", "--host-traddr"), ("host_interface", "--host-iface"))]
    told += [[flag, order.get(key)] for key, flag in OPTIONS]
    return [[flag, str(value)] for flag, value in told if value is not None]


def _subsystem(host: Host) -> Optional[Dict[str, Any]]:
    """Return the subsystem of the order as `nvme list-subsys` shows it, or None. Releases before 2.0 print an object, later ones a list."""
    told = host.json(["nvme", "list-subsys", "-o", "json"]) or []
    for entry in told if isinstance(told, list) else [told]:
        for row in entry.get("Subsystems", []):
            if row.get("NQN") == host.order["subsystem"]:
                found: Dict[str, Any] = row
                return found
    return None


def _key(portal: Dict[str, Any]) -> Dict[str, str]:
    """Return what tells one portal from another: address, port, and the host's side where it is named."""
    found = {"traddr": portal["address"], "trsvcid": portal.get("port") or PORT}
    found.update(host_traddr=portal.get("host_address"), host_iface=portal.get("host_interface"))
    return {key: str(value) for key, value in found.items() if value}


def _name(portal: Dict[str, Any]) -> str:
    """Return a portal in one word: its address, with port and the host's side where they are not what everybody has."""
    key = _key(portal)
    named = key["traddr"] if key["trsvcid"] == PORT else "%s:%s" % (key["traddr"], key["trsvcid"])
    return "@".join([named, *(key[side] for side in ("host_traddr", "host_iface") if side in key)])


def _fields(path: Dict[str, Any]) -> Dict[str, str]:
    """Return the parts of a path's address. Releases print `traddr=...,trsvcid=...`, old ones `traddr=... trsvcid=...`, also with a colon."""
    return dict(re.findall(r"(\w+)[=:]\s*([^\s,]+)", str(path.get("Address") or "")))


def _is_path(key: Dict[str, str], path: Dict[str, Any]) -> bool:
    """Tell whether a path is that of a portal. A port that the tool does not print is the usual one; the host's side must be the very one."""
    fields = {"trsvcid": PORT, **_fields(path)}
    return all(fields.get(part) == key.get(part) for part in ("traddr", "trsvcid")) and all(
        fields.get(part) == key.get(part) for part in ("host_traddr", "host_iface") if part in key
    )


def _path_of(host: Host, portal: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    return next((p for p in (_subsystem(host) or {}).get("Paths", []) if _is_path(_key(portal), p)), None)


def _policy_path(host: Host, name: str) -> str:
    return "%s/class/nvme-subsystem/%s/iopolicy" % (host.sys, name)


def _policy(host: Host) -> None:
    subsystem, wanted = _subsystem(host), _wanted_policy(host.order)
    if subsystem is None:
        return
    path = _policy_path(host, subsystem["Name"])
    now = host.text(path)
    if now is not None and now != wanted:
        host.record.part("array").setdefault("iopolicy", now)
        host.record.keep()
        host.act("set the I/O policy of %s to %s" % (subsystem["Name"], wanted), lambda: _put(path, wanted))


def _wanted_policy(order: Dict[str, Any]) -> str:
    return str(order.get("iopolicy") or "round-robin")


def _put(path: str, value: str) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(value + "\n")


def _persist(host: Host) -> None:
    """Make the connections last: lines for `nvme connect-all` (nvmf-autoconnect.service), or a unit of ours where the array has no discovery."""
    order, how = host.order, host.order.get("persistent") or "discovery"
    if how != "none":  # the kernel forgets the policy at each boot, and when the last path was lost
        match = 'ACTION=="add|change", SUBSYSTEM=="nvme-subsystem", ATTR{subsysnqn}=="%s"' % order["subsystem"]
        textfile.set_block(host, RULES, "array", ['%s, ATTR{iopolicy}="%s"' % (match, _wanted_policy(order))])
    if how == "discovery":
        port = order.get("discovery_port") or 8009
        lines = [
            " ".join(
                ["--transport=%s --traddr=%s --trsvcid=%s" % (order["transport"], portal["address"], port)]
                + ["=".join(pair) for pair in _flags(order, portal) if pair[0] != "--config"]  # a line knows no file: the site's own is read anyway
            )
            for portal in order["portals"]
        ]
        textfile.set_block(host, "nvme/discovery.conf", "array", lines)
    elif how == "service":
        lines = ["[Unit]", "Description=NVMe-oF connections of the array under test", "After=network-online.target", "Wants=network-online.target"]
        lines += ["Before=remote-fs-pre.target", "[Service]", "Type=oneshot", "RemainAfterExit=yes"]
        lines += ["ExecStart=-/usr/bin/env %s" % " ".join(_connect(order, portal)) for portal in order["portals"]]
        lines += ["[Install]", "WantedBy=multi-user.target"]
        textfile.set_block(host, "systemd/system/" + UNIT, "array", lines)
        if host.ask(["systemctl", "is-enabled", UNIT])[0]:
            host.record.part("array")["unit"] = True
            host.record.keep()
            host.do(["systemctl", "daemon-reload"], "let systemd read %s" % UNIT)
            host.do(["systemctl", "enable", UNIT], "enable %s" % UNIT)


def _forget(host: Host) -> None:
    if host.record.part("array").get("unit"):
        if not host.ask(["systemctl", "is-enabled", UNIT])[0]:
            host.do(["systemctl", "disable", UNIT], "disable %s" % UNIT)
        textfile.drop_block(host, "systemd/system/" + UNIT, "array")
        host.do(["systemctl", "daemon-reload"], "let systemd forget %s" % UNIT)
    textfile.drop_block(host, "nvme/discovery.conf", "array")
    textfile.drop_block(host, RULES, "array")


def _holders(host: Host) -> List[str]:
    """Return what stands on the subsystem's devices (an md array, a mount)."""
    found = []
    for device in devices(host):
        try:
            found += os.listdir("%s/class/block/%s/holders" % (host.sys, os.path.basename(device)))
        except OSError:
            continue
    return sorted(set(found))


def _verify(host: Host) -> Dict[str, Any]:
    order, subsystem = host.order, _subsystem(host)
    for portal in order["portals"]:
        path = _path_of(host, portal) or {}
        value = "%s %s" % (path.get("Transport"), path.get("State")) if path else "no path"
        wanted = "%s live" % order["transport"]
        host.check("path.%s" % _name(portal), value == wanted, value, wanted, "nvme list-subsys -o json")
    found = devices(host)
    host.check("namespaces", len(found) == order["namespaces"], len(found), order["namespaces"], "%s/class/nvme-subsystem" % host.sys)
    if subsystem:
        place = _policy_path(host, subsystem["Name"])
        now = host.text(place)  # read again: a kernel that does not know a policy keeps its own without a word
        host.check("iopolicy", None if now is None else now == _wanted_policy(order), now, _wanted_policy(order), place)
    paths = (subsystem or {}).get("Paths", [])
    return {"devices": found, "paths": sorted(_fields(path).get("traddr", "") for path in paths)}
