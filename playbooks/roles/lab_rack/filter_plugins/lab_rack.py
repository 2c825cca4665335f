"""Turn the YAML description of a rack into what one host's simulated tools see, with the faults of the lab applied. Pure."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

OLD_FIRMWARE = "EDA53W0Q"
HOURS_A_YEAR = 8760


def rack_for(rack: Mapping[str, Any], host: str, groups: list[str], faults: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the description of one host: by its name, else by the groups it is in. Raises ValueError with a sentence.

    Each fault has a strength; 0 (or absence) means none. A fault that this rack does not know belongs to another simulator.
    """
    named = rack["hosts"].get(host)
    parts = [named] if named else [rack["hosts"][rack["by_group"][group]] for group in sorted(groups) if group in rack.get("by_group", {})]
    if not parts:
        raise ValueError(f"The simulated rack describes neither the host {host} nor one of its groups {sorted(groups)}.")
    seen: dict[str, Any] = {"host": host, "time_scale": rack["time_scale"], "tools": dict(rack["tools"]), "drives": [], "nics": [], "gpus": []}
    for part in copy.deepcopy(parts):
        gpus = part.pop("gpus", [])
        seen["gpus"] += [{**{k: v for k, v in gpus.items() if k != "each"}, **gpu} for gpu in gpus["each"]] if isinstance(gpus, dict) else gpus
        for key, value in part.items():
            seen[key] = seen[key] + value if key in ("drives", "nics") else value
    for index, drive in enumerate(seen["drives"]):
        drive.update(controller=f"nvme{index}", namespace=f"nvme{index}n1")
    for name, strength in (faults or {}).items():
        amount = float(strength or 0)
        if amount > 0 and name in FAULTS:
            FAULTS[name](seen, amount)
    return seen


def _missing_drive(seen: dict[str, Any], strength: float) -> None:
    """Take the last drives away."""
    seen["drives"] = seen["drives"][: max(0, len(seen["drives"]) - _count(strength))]


def _swapped_drive(seen: dict[str, Any], strength: float) -> None:
    """Put other pieces of the same model in the first places."""
    for index, drive in enumerate(seen["drives"][: _count(strength)]):
        drive["serial"] = f"QF25M0B77{index:03d}"


def _used_drive(seen: dict[str, Any], strength: float) -> None:
    """Let the first drive have been in use for `strength` years."""
    for drive in seen["drives"][:1]:
        health = drive["health"]
        health["power_on_hours"] += int(HOURS_A_YEAR * strength)
        health["percentage_used"] += int(12 * strength)
        health["data_units_written"] += int(2_400_000_000 * strength)


def _wrong_firmware(seen: dict[str, Any], strength: float) -> None:
    """Give the first drives an older firmware."""
    for drive in seen["drives"][: _count(strength)]:
        drive["firmware"] = OLD_FIRMWARE


def _narrow_link(seen: dict[str, Any], strength: float) -> None:
    """Let the first drives train half of their lanes."""
    for drive in seen["drives"][: _count(strength)]:
        drive["link"] = {**drive["link"], "width": max(1, drive["link"]["rated_width"] // 2)}


def _port_down(seen: dict[str, Any], strength: float) -> None:
    """Take the link of the first ports down."""
    for nic in seen["nics"][: _count(strength)]:
        nic["up"] = False


def _na_fields(seen: dict[str, Any], strength: float) -> None:
    """Let the first GPUs report `N/A` as their name."""
    for gpu in seen["gpus"][: _count(strength)]:
        gpu["model"] = "N/A"


def _json_prefix(seen: dict[str, Any], strength: float) -> None:
    """Let fio write I/O error lines before its JSON for the first drives."""
    for drive in seen["drives"][: _count(strength)]:
        drive["io_error"] = True


def _media_errors(seen: dict[str, Any], strength: float) -> None:
    """Give the first drive that many media errors."""
    for drive in seen["drives"][:1]:
        drive["health"] = {**drive["health"], "media_errors": _count(strength)}


def _failed_self_test(seen: dict[str, Any], strength: float) -> None:
    """Let the newest self-test of the first drives end with a failed segment."""
    for drive in seen["drives"][: _count(strength)]:
        drive["self_tests"] = [{"result": 7, "code": 2, "hours": drive["health"]["power_on_hours"]}, *drive["self_tests"]]


def _no_pfc(seen: dict[str, Any], strength: float) -> None:
    """Leave the first ports without a lossless priority."""
    for nic in seen["nics"][: _count(strength)]:
        nic["qos"] = {**nic["qos"], "pfc": []}


def _link_partner_errors(seen: dict[str, Any], strength: float) -> None:
    """Let the upstream port of the first drive count that many non-fatal errors, and the drive itself none."""
    for drive in seen["drives"][:1]:
        drive["aer"] = {"port": {"nonfatal": _count(strength)}}


def _gpu_ecc(seen: dict[str, Any], strength: float) -> None:
    """Give the first GPU that many uncorrectable ECC errors."""
    for gpu in seen["gpus"][:1]:
        gpu["uncorrectable"] = _count(strength)


def _port_errors(seen: dict[str, Any], strength: float) -> None:
    """Let the first port count that many symbol errors."""
    for nic in seen["nics"][:1]:
        nic["counters"] = {"rx_symbol_err_phy": _count(strength)}


def _bit_errors(seen: dict[str, Any], strength: float) -> None:
    """Let FEC of the first port fail to correct that many blocks, on a lane that makes most of the raw errors."""
    for nic in seen["nics"][:1]:
        nic["raw_errors_per_s"] = [0.2, 900.0 if strength else 0.4, 0.1, 0.3]
        nic["counters"] = {"uncorrectable_blocks": _count(strength)}


def _interface_errors(seen: dict[str, Any], strength: float) -> None:
    """Let the kernel count that many receive errors of the first interface, and its adapter none."""
    for nic in seen["nics"][:1]:
        nic["rx_errors"] = _count(strength)


def _hot_optic(seen: dict[str, Any], strength: float) -> None:
    """Let the module of the first ports be so hot that it raises its alarm."""
    for nic in seen["nics"][: _count(strength)]:
        nic["optic"] = {**nic["optic"], "temperature_c": 78.5}


def _gpu_firmware(seen: dict[str, Any], strength: float) -> None:
    """Give the last GPUs an older firmware of one block."""
    for gpu in seen["gpus"][-_count(strength) :]:
        gpu["firmware"] = {"RLC": "37"}


def _gpu_narrow(seen: dict[str, Any], strength: float) -> None:
    """Let the last GPUs train half of their lanes."""
    for gpu in seen["gpus"][-_count(strength) :]:
        gpu["link"] = {**gpu["link"], "width": max(1, gpu["link"]["rated_width"] // 2)}


def _gpu_partition(seen: dict[str, Any], strength: float) -> None:
    """Divide the last GPUs into partitions of one compute die each."""
    for gpu in seen["gpus"][-_count(strength) :]:
        gpu["partition"] = {"compute": "CPX", "memory": "NPS4"}


def _gpu_link_off(seen: dict[str, Any], strength: float) -> None:
    """Switch off the links between the first GPU and so many of the last."""
    for gpu in seen["gpus"][:1]:
        gpu["dark"] = list(range(len(seen["gpus"]) - _count(strength), len(seen["gpus"])))


def _gpu_weak(seen: dict[str, Any], strength: float) -> None:
    """Let the last GPUs lose a tenth of their rate in the last interval of a stress test; its peak stays as it was."""
    for gpu in seen["gpus"][-_count(strength) :]:
        gpu["weak"] = 0.9


def _cores_off(seen: dict[str, Any], strength: float) -> None:
    """Leave so many cores of the first processor switched off."""
    for cpu in seen.get("processors", [])[:1]:
        cpu["enabled"] = max(1, cpu["cores"] - _count(strength))


def _lost_log(seen: dict[str, Any], strength: float) -> None:
    """Let the first drive have counted so many failed commands, and its error log hold none of them."""
    for drive in seen["drives"][:1]:
        drive["health"] = {**drive["health"], "error_log_entries": _count(strength)}
        drive["log_lost"] = _count(strength)


def _logged_error(seen: dict[str, Any], strength: float) -> None:
    """Let the first drive have logged so many failed commands."""
    for drive in seen["drives"][:1]:
        drive["health"] = {**drive["health"], "error_log_entries": _count(strength)}


def _written_drive(seen: dict[str, Any], strength: float) -> None:
    """Let the first drive have been written that many times over, its hours and its wear set back."""
    for drive in seen["drives"][:1]:
        drive["health"] = {**drive["health"], "data_units_written": int(drive["capacity_bytes"] * (strength + 1) / 512_000)}


def _hot_drive(seen: dict[str, Any], strength: float) -> None:
    """Let the first drive be at 78 °C, and have been too hot for that many minutes of its life."""
    for drive in seen["drives"][:1]:
        drive["health"] = {**drive["health"], "temperature_k": 351, "warning_minutes": _count(strength)}


def _power_losses(seen: dict[str, Any], strength: float) -> None:
    """Let the first drive have lost its power that many times twenty."""
    for drive in seen["drives"][:1]:
        drive["health"] = {**drive["health"], "unsafe_shutdowns": 1 + 20 * _count(strength)}


def _kernel_faults(seen: dict[str, Any], strength: float) -> None:
    """Let the kernel have written so often of a drive that did not answer, and once of a corrected PCIe error."""
    told = [{"at": 900.0 + n, "text": f"nvme nvme0: I/O {n} QID 3 timeout, aborting"} for n in range(_count(strength))]
    seen["kernel_log"] = [*told, {"at": 899.5, "text": "pcieport 0000:40:01.1: AER: Corrected error received: 0000:41:00.0"}]


def _slow_governor(seen: dict[str, Any], strength: float) -> None:
    """Let the first frequency policies save power."""
    policies = seen["tuning"]["governors"]
    few = min(len(policies), _count(strength))
    seen["tuning"] = {**seen["tuning"], "governors": ["powersave"] * few + policies[few:]}


def _bare_node(seen: dict[str, Any], strength: float) -> None:
    """Leave the last NUMA nodes without memory."""
    nodes = seen["tuning"]["nodes"]
    seen["tuning"] = {**seen["tuning"], "nodes": [{**node, "gib": 0} if n >= len(nodes) - _count(strength) else node for n, node in enumerate(nodes)]}


def _slow_rdma(seen: dict[str, Any], strength: float) -> None:
    """Let the first port carry RDMA at a rate that is lower than its link's, by half of the strength and at most nine tenths."""
    for nic in seen["nics"][:1]:
        nic["rdma_share"] = 1 - min(0.9, strength / 2)


def _count(strength: float) -> int:
    """Return how many pieces a strength means: one up to 1, above that as many."""
    return max(1, int(strength))


FAULTS: dict[str, Callable[[dict[str, Any], float], None]] = {
    "missing-drive": _missing_drive,
    "swapped-drive": _swapped_drive,
    "used-drive": _used_drive,
    "wrong-firmware": _wrong_firmware,
    "narrow-link": _narrow_link,
    "port-down": _port_down,
    "na-fields": _na_fields,
    "json-prefix": _json_prefix,
    "media-errors": _media_errors,
    "failed-self-test": _failed_self_test,
    "no-pfc": _no_pfc,
    "link-partner-errors": _link_partner_errors,
    "gpu-ecc": _gpu_ecc,
    "gpu-firmware": _gpu_firmware,
    "gpu-narrow": _gpu_narrow,
    "gpu-partition": _gpu_partition,
    "gpu-link-off": _gpu_link_off,
    "gpu-weak": _gpu_weak,
    "cores-off": _cores_off,
    "lost-log": _lost_log,
    "logged-error": _logged_error,
    "port-errors": _port_errors,
    "bit-errors": _bit_errors,
    "interface-errors": _interface_errors,
    "hot-optic": _hot_optic,
    "written-drive": _written_drive,
    "hot-drive": _hot_drive,
    "power-losses": _power_losses,
    "kernel-faults": _kernel_faults,
    "slow-governor": _slow_governor,
    "bare-node": _bare_node,
    "slow-rdma": _slow_rdma,
}


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"lab_rack_for": rack_for}
