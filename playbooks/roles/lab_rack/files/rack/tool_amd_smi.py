"""amd-smi static, metric, firmware and topology --json: a list of GPUs, or from version 26 on the same list below `gpu_data`; and partition."""

import json
import sys
from typing import Any, Dict, List

CAUSES = ("prochot", "ppt", "socket_thermal", "vr_thermal", "hbm_thermal")


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Answer `static`, `metric`, `firmware`, `topology`, `partition` and `version`."""
    version = rack["tools"]["amd_smi"]
    if argv[1:2] == ["version"]:
        print("AMDSMI Tool: %s+lab | AMDSMI Library version: %s | ROCm version: 7.0.0" % (version, version))
        return 0
    answer = {"static": _gpu, "metric": _metric, "firmware": _firmware, "topology": _place, "partition": _partition}.get(" ".join(argv[1:2]))
    if answer is None or not rack["gpus"]:
        sys.stderr.write("AMDSMI_STATUS_NO_DRV: no AMD GPU is found\n")
        return 1
    if argv[1] == "partition":
        print(json.dumps({"current_partition": [answer(index, gpu) for index, gpu in enumerate(rack["gpus"])]}, indent=4))
        return 0
    gpus = [answer(index, gpu) for index, gpu in enumerate(rack["gpus"])]
    if argv[1] == "topology":
        gpus = [{**gpu, "links": [_link(index, to, rack["gpus"]) for to in range(len(rack["gpus"]))]} for index, gpu in enumerate(gpus)]
    print(json.dumps({"gpu_data": gpus} if int(version.split(".")[0]) >= 26 else gpus, indent=4))
    return 0


def _gpu(index: int, gpu: Dict[str, Any]) -> Dict[str, Any]:
    asic = {
        "market_name": gpu["model"],
        "vendor_id": "0x1002",
        "vendor_name": "Advanced Micro Devices Inc. [AMD/ATI]",
        "device_id": gpu["device_id"],
        "rev_id": "0x00",
    }
    asic.update({"asic_serial": gpu["serial"], "oam_id": index, "num_compute_units": 80, "target_graphics_version": "gfx942"})
    return {
        "gpu": index,
        "asic": asic,
        "bus": {
            "bdf": gpu["address"],
            "max_pcie_width": gpu["link"]["rated_width"],
            "max_pcie_speed": {"value": int(float(gpu["link"]["rated_gt"])), "unit": "GT/s"},
            "pcie_interface_version": "Gen 5",
            "slot_type": "OAM",
        },
        "vbios": {
            "name": "AMD MI308X_HW_SRIOV_CVS_1VF",
            "build_date": "2025/05/20 11:02",
            "part_number": "113-M3080202-101",
            "version": gpu["vbios"],
        },
        "board": {"model_number": "N/A", "product_serial": "N/A", "fru_id": "N/A", "product_name": gpu["model"], "manufacturer_name": "AMD"},
        "limit": {
            "max_power": {"value": 650, "unit": "W"},
            "slowdown_edge_temperature": "N/A",
            "slowdown_hotspot_temperature": {"value": 100, "unit": "C"},
            "slowdown_vram_temperature": {"value": 105, "unit": "C"},
        },
        "vram": {"type": "HBM3", "vendor": "N/A", "size": {"value": gpu["vram_mb"], "unit": "MB"}, "bit_width": 8192},
    }


def _metric(index: int, gpu: Dict[str, Any]) -> Dict[str, Any]:
    ecc = {"total_correctable_count": 0, "total_uncorrectable_count": gpu.get("uncorrectable", 0), "total_deferred_count": 0}
    link = gpu["link"]
    return {
        "gpu": index,
        "usage": {"gfx_activity": {"value": 0, "unit": "%"}, "umc_activity": {"value": 0, "unit": "%"}},
        "power": {"socket_power": {"value": 141, "unit": "W"}, "gfx_voltage": "N/A", "throttle_status": "UNTHROTTLED"},
        "temperature": {"edge": "N/A", "hotspot": {"value": gpu.get("hotspot_c", 37 + index % 3), "unit": "C"}, "mem": {"value": 29, "unit": "C"}},
        "throttle": {
            "accumulation_counter": 814_000,
            **{cause + "_accumulated": 0 for cause in CAUSES},
            **{cause + "_violation_status": "ACTIVE" if cause in gpu.get("throttled", []) else "NOT ACTIVE" for cause in CAUSES},
        },
        "pcie": {
            "width": link["width"],
            "speed": {"value": int(float(link["rated_gt"])), "unit": "GT/s"},
            "bandwidth": "N/A",
            "replay_count": 0,
            "nak_sent_count": 0,
        },
        "ecc": ecc,
    }


def _partition(index: int, gpu: Dict[str, Any]) -> Dict[str, Any]:
    mode = gpu.get("partition", {"compute": "SPX", "memory": "NPS1"})
    return {"gpu_id": index, "memory": mode["memory"], "accelerator_type": mode["compute"], "accelerator_profile_index": 0, "partition_id": "0"}


def _place(index: int, gpu: Dict[str, Any]) -> Dict[str, Any]:
    return {"gpu": index, "bdf": gpu["address"]}


def _link(index: int, to: int, gpus: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Return the link of one GPU to another: all are meshed, one hop apart, but for those that a GPU lost (`dark`: indices)."""
    here = index == to
    dark = to in gpus[index].get("dark", []) or index in gpus[to].get("dark", [])
    row = {"gpu": to, "bdf": gpus[to]["address"], "weight": 0 if here else 15, "link_status": "DISABLED" if dark else "ENABLED"}
    row.update({"link_type": "SELF" if here else "XGMI", "num_hops": 0 if here else 1, "bandwidth": "N/A"})
    return row


def _firmware(index: int, gpu: Dict[str, Any]) -> Dict[str, Any]:
    blocks = {"CP_MEC1": "149", "RLC": "38", "SDMA0": "20", "PM": "04.85.110.00", **gpu.get("firmware", {})}
    return {"gpu": index, "fw_list": [{"fw_id": name, "fw_version": version} for name, version in blocks.items()]}
