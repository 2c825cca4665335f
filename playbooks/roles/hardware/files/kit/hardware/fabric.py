"""RoCEv2: link, MTU, PFC, DSCP trust and GID of each interface. Always checked; set only where `configure` asks for it, and undone by `remove`."""

import re
from typing import Any, Dict, List, Optional

from hardware.host import Host, Refused

PRIORITIES = 8
RDMA_MTU = 4096  # bytes; the largest that InfiniBand verbs know, and what RoCE uses on an Ethernet MTU of 4200 or more


def apply(host: Host) -> Dict[str, Any]:
    """Set what was asked for, then check every interface."""
    order = host.order
    if order.get("configure"):
        for interface in order["interfaces"]:
            _configure(host, interface)
    for interface in order["interfaces"]:
        _check(host, interface)
    return {"interfaces": [interface["netdev"] for interface in order["interfaces"]]}


def remove(host: Host) -> Dict[str, Any]:
    """Set every interface back to what the record says it was."""
    known = host.record.part("fabric")
    for netdev in sorted(known):
        was = known[netdev]
        qos = _qos(host, netdev) if {"trust", "pfc"} & set(was) else None
        if "mtu" in was and _mtu(host, netdev) != was["mtu"]:
            host.do(["ip", "link", "set", "dev", netdev, "mtu", str(was["mtu"])], "set the MTU of %s back to %d" % (netdev, was["mtu"]))
        if qos and "trust" in was and qos["trust"] != was["trust"]:
            host.do(["mlnx_qos", "-i", netdev, "--trust", was["trust"]], "set the trust of %s back to %s" % (netdev, was["trust"]))
        if qos and "pfc" in was and qos["pfc"] != was["pfc"]:
            host.do(["mlnx_qos", "-i", netdev, "--pfc", _bits(was["pfc"])], "set PFC of %s back to %s" % (netdev, _bits(was["pfc"])))
        if not host.dry:
            del known[netdev]
            host.record.keep()
    return {}


def _configure(host: Host, interface: Dict[str, Any]) -> None:
    """Set MTU, trust and PFC of one interface; each value that was there is recorded before it is changed, once."""
    order, netdev = host.order, interface["netdev"]
    was = host.record.part("fabric").setdefault(netdev, {})

    def remember(name: str, value: Any) -> None:
        was.setdefault(name, value)
        host.record.keep()

    mtu = _mtu(host, netdev)
    if order.get("mtu") and mtu != order["mtu"]:
        if mtu is None:
            raise Refused(
                "The interface {0} is not on this host (`ip -j link show dev {1}`); put its right name into targets.fabric.",
                "本主机上没有接口 {0}（`ip -j link show dev {1}`）；请在 targets.fabric 中填写正确的名称。",
                netdev,
                netdev,
            )
        remember("mtu", mtu)
        host.do(["ip", "link", "set", "dev", netdev, "mtu", str(order["mtu"])], "set the MTU of %s to %d" % (netdev, order["mtu"]))
    if order.get("qos_tool", "mlnx_qos") == "none":
        return
    qos = _qos(host, netdev)
    if qos is None:
        raise Refused(
            "mlnx_qos does not answer for {0}, so neither PFC nor trust can be set; install it (MLNX_OFED, python3-mlnx-qos).",
            "mlnx_qos 对 {0} 没有应答，无法设置 PFC 与信任模式；请安装该工具（MLNX_OFED、python3-mlnx-qos）。",
            netdev,
        )
    if order.get("trust") and qos["trust"] != order["trust"]:
        remember("trust", qos["trust"])
        host.do(["mlnx_qos", "-i", netdev, "--trust", order["trust"]], "set the trust of %s to %s" % (netdev, order["trust"]))
    wanted = _wanted_pfc(order)
    if wanted and qos["pfc"] != wanted:
        remember("pfc", qos["pfc"])
        host.do(["mlnx_qos", "-i", netdev, "--pfc", _bits(wanted)], "set PFC of %s to %s" % (netdev, _bits(wanted)))


def _check(host: Host, interface: Dict[str, Any]) -> None:
    order, netdev, device, port = host.order, interface["netdev"], interface["device"], int(interface.get("port") or 1)
    code, out, err = host.ask(["ethtool", netdev])
    up = re.search(r"Link detected: (yes|no)", out)
    host.check("link.%s" % netdev, None if code or not up else up.group(1) == "yes", up.group(1) if up else err, "yes", "ethtool %s" % netdev)
    if order.get("speed_gbit"):
        speed = re.search(r"Speed: (\d+)Mb/s", out)
        mbit = int(speed.group(1)) if speed else None
        host.check(
            "speed.%s" % netdev,
            None if mbit is None else mbit >= order["speed_gbit"] * 1000,
            mbit,
            order["speed_gbit"] * 1000,
            "ethtool %s, Mb/s" % netdev,
        )
    _check_rdma(host, device, port)
    mtu = _mtu(host, netdev)
    if order.get("mtu"):
        host.check("mtu.%s" % netdev, None if mtu is None else mtu == order["mtu"], mtu, order["mtu"], "ip -j link show dev %s" % netdev)
    if order.get("qos_tool", "mlnx_qos") != "none":
        _check_qos(host, netdev)
    if order.get("gid_index") is not None:
        base = "%s/class/infiniband/%s/ports/%d" % (host.sys, device, port)
        kind = host.text("%s/gid_attrs/types/%d" % (base, order["gid_index"]))
        gid = host.text("%s/gids/%d" % (base, order["gid_index"])) or ""
        good = None if kind is None else kind == "RoCE v2" and bool(gid.replace(":", "").strip("0"))
        host.check(
            "gid.%s" % device,
            good,
            "%s %s" % (kind, gid),
            "RoCE v2 at index %d" % order["gid_index"],
            "%s/gid_attrs/types/%d" % (base, order["gid_index"]),
        )


def _check_rdma(host: Host, device: str, port: int) -> None:
    """Check that the RDMA port is active, and that its own MTU is the largest."""
    rows = host.json(["rdma", "-j", "link", "show"]) or []
    row: Dict[str, Any] = next((r for r in rows if r.get("ifname") == device and r.get("port") == port), {})
    state = "%s %s" % (row.get("state"), row.get("physical_state"))
    host.check("rdma.%s" % device, state == "ACTIVE LINK_UP" if row else None, state, "ACTIVE LINK_UP", "rdma -j link show")
    _, out, _ = host.ask(["ibv_devinfo", "-v"])
    part = re.search(r"hca_id:\s*%s\b(.*?)(?=hca_id:|\Z)" % re.escape(device), out, re.S)
    found = re.search(r"active_mtu:\s*(\d+)", part.group(1)) if part else None
    value = int(found.group(1)) if found else None
    if (host.order.get("mtu") or 0) >= 4200:
        host.check("rdma_mtu.%s" % device, None if value is None else value == RDMA_MTU, value, RDMA_MTU, "ibv_devinfo -v")


def _check_qos(host: Host, netdev: str) -> None:
    order, qos = host.order, _qos(host, netdev)
    evidence = "mlnx_qos -i %s" % netdev
    if order.get("trust"):
        host.check("trust.%s" % netdev, None if qos is None else qos["trust"] == order["trust"], qos and qos["trust"], order["trust"], evidence)
    wanted = _wanted_pfc(order)
    if wanted:
        host.check("pfc.%s" % netdev, None if qos is None else qos["pfc"] == wanted, qos and _bits(qos["pfc"]), _bits(wanted), evidence)
    if order.get("dscp") is not None and order.get("priority") is not None:
        priority = (qos or {}).get("dscp", {}).get(str(order["dscp"]))
        host.check("dscp.%s" % netdev, None if priority is None else priority == order["priority"], priority, order["priority"], evidence)


def _wanted_pfc(order: Dict[str, Any]) -> Optional[List[int]]:
    if order.get("priority") is None:
        return None
    return [1 if index == order["priority"] else 0 for index in range(PRIORITIES)]


def _bits(values: List[int]) -> str:
    return ",".join(str(value) for value in values)


def _mtu(host: Host, netdev: str) -> Optional[int]:
    code, _, _ = host.ask(["ip", "-j", "link", "show", "dev", netdev])
    if code:
        return None
    rows = host.json(["ip", "-j", "link", "show", "dev", netdev])
    return next((int(row["mtu"]) for row in rows if row.get("ifname") == netdev), None)


def _qos(host: Host, netdev: str) -> Optional[Dict[str, Any]]:
    """Return {trust, pfc: [0|1 by priority], dscp: {dscp: priority}} from the text of mlnx_qos, or None when it cannot be read."""
    code, out, _ = host.ask(["mlnx_qos", "-i", netdev])
    trust = re.search(r"Priority trust state:\s*(\w+)", out)
    pfc = re.search(r"enabled((?:\s+[01]){%d})" % PRIORITIES, out)
    if code or not trust or not pfc:
        return None
    dscp = {}
    for priority, values in re.findall(r"prio:(\d)\s+dscp:([\d,]+)", out):
        dscp.update({str(int(value)): int(priority) for value in values.split(",") if value})
    return {"trust": trust.group(1), "pfc": [int(bit) for bit in pfc.group(1).split()], "dscp": dscp}
