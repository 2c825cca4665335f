"""Drive health: `nvme smart-log -o json`, `nvme id-ctrl -o json`, `smartctl -x --json`.

The two tools use different names and different units: nvme-cli writes the temperature in kelvin, smartctl in degrees Celsius.
Both are given here as health.* quantities, the temperature in K, so that they can be compared.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gates.model import Reading
from gates.readers.common import Collector, exact, load_json, part
from gates.text import Text

DATA_UNIT = 512_000  # bytes of one "data unit" (NVMe base specification, SMART / Health Information log)
ZERO_CELSIUS = Decimal("273")  # nvme-cli and smartctl both convert with the whole number
_HEAT = (  # optional: a drive of an older specification has none of them
    ("warning_temp_time", "health.warning_temperature_time", "s", 60),
    ("critical_comp_time", "health.critical_temperature_time", "s", 60),
    ("thm_temp1_trans_count", "health.throttle1_begun", "1", 1),
    ("thm_temp2_trans_count", "health.throttle2_begun", "1", 1),
    ("thm_temp1_total_time", "health.throttle1_time", "s", 1),
    ("thm_temp2_total_time", "health.throttle2_time", "s", 1),
)
KELVIN_RANGE = (Decimal(230), Decimal(400))  # outside of it the figure is in another unit


def read_nvme_smart_log(data: bytes) -> Reading:
    """Read one drive's SMART log: health.* (temperature in K, hours in h, percentages in %, bytes in B, counts in 1).

    Where the drive tells them: how long it was above its warning and its critical temperature (the log counts minutes) and throttled (seconds),
    in s, and how often it began to throttle (NVMe base specification, SMART / Health Information log).
    """
    found = Collector()
    log = load_json(data, found)
    if log is None:
        return found.reading()
    _critical_warning(part(log, "critical_warning"), found)
    _kelvin(part(log, "temperature"), Decimal(0), found)
    found.number(log, "avail_spare", "health.available_spare", "%")
    found.number(log, "spare_thresh", "health.available_spare_threshold", "%")
    found.number(log, "percent_used", "health.percentage_used", "%")
    found.number(log, "media_errors", "health.media_errors", "1")
    found.number(log, "num_err_log_entries", "health.error_log_entries", "1")
    found.number(log, "power_on_hours", "health.power_on_hours", "h")
    found.number(log, "unsafe_shutdowns", "health.unsafe_shutdowns", "1")
    found.scaled(log, "data_units_written", "health.bytes_written", "B", DATA_UNIT)
    for key, quantity, unit, scale in _HEAT:
        if part(log, key) is not None:
            found.scaled(log, key, quantity, unit, scale)
    return found.reading()


def read_nvme_id_ctrl(data: bytes) -> Reading:
    """Read one controller's identity: drive.serial, drive.model, drive.firmware, drive.capacity (B).

    Where it has them: drive.nqn, drive.cntlid, and drive.error_log_places (1), which the controller counts from 0 (NVMe base specification, ELPE).
    """
    found = Collector()
    document = load_json(data, found)
    if document is None:
        return found.reading()
    found.text(document, "sn", "drive.serial")
    found.text(document, "mn", "drive.model")
    found.text(document, "fr", "drive.firmware")
    found.number(document, "tnvmcap", "drive.capacity", "B")
    nqn, port = part(document, "subnqn"), exact(part(document, "cntlid"))
    if isinstance(nqn, str) and nqn.strip("\x00 "):
        found.see("drive.nqn", nqn.strip("\x00 "), "text")
    if part(document, "elpe") is not None and (last := exact(part(document, "elpe"))) is not None:
        found.see("drive.error_log_places", last + 1, "1")
    elif part(document, "elpe") is not None:
        found.absent("elpe", part(document, "elpe"))
    if port is not None:
        found.see("drive.cntlid", f"{port:f}", "text")
    return found.reading()


def read_smartctl(data: bytes) -> Reading:
    """Read one drive's `smartctl --json`: drive.* and health.*; health.passed is 1 or 0.

    Bits 0 to 2 of the exit status mean that the drive could not be read; bits 3 to 7 are the drive's own verdicts
    (smartctl(8), EXIT STATUS) and are given as health.exit_verdict.
    """
    found = Collector()
    document = load_json(data, found)
    if document is None:
        return found.reading()
    status = exact(part(document, "smartctl", "exit_status"))
    if status is None or status < 0 or status != status.to_integral_value():
        found.absent("smartctl.exit_status", part(document, "smartctl", "exit_status"))
    else:
        if int(status) & 0b111:
            found.trouble(
                "command_failed",
                "smartctl could not read the drive (exit status {status}).",
                "smartctl 无法读取硬盘（退出状态 {status}）。",
                status=status,
            )
        found.see("health.exit_verdict", Decimal(int(status) >> 3), "1")
    found.text(document, "serial_number", "drive.serial")
    found.text(document, "model_name", "drive.model")
    found.text(document, "firmware_version", "drive.firmware")
    passed = part(document, "smart_status", "passed")
    if isinstance(passed, bool):
        found.see("health.passed", Decimal(int(passed)), "1")
    else:
        found.absent("smart_status.passed", passed)
    log = part(document, "nvme_smart_health_information_log")
    _critical_warning(part(log, "critical_warning"), found)
    _kelvin(part(log, "temperature"), ZERO_CELSIUS, found)
    found.number(log, "available_spare", "health.available_spare", "%")
    found.number(log, "percentage_used", "health.percentage_used", "%")
    found.number(log, "media_errors", "health.media_errors", "1")
    found.number(log, "power_on_hours", "health.power_on_hours", "h")
    found.scaled(log, "data_units_written", "health.bytes_written", "B", DATA_UNIT)
    return found.reading()


def _critical_warning(raw: Any, found: Collector) -> None:
    """Read the warning bits: a number, or with `-v` an object whose `value` is the number."""
    value = exact(raw["value"] if isinstance(raw, dict) and "value" in raw else raw)
    if value is None or value < 0:
        found.absent("critical_warning", raw)
        return
    found.see("health.critical_warning", value, "1")


def _kelvin(raw: Any, offset: Decimal, found: Collector) -> None:
    """Give the temperature in kelvin; a figure that no drive can have is in another unit than the tool's."""
    value = exact(raw)
    if value is None:
        found.absent("temperature", raw)
        return
    kelvin = value + offset
    if not KELVIN_RANGE[0] <= kelvin <= KELVIN_RANGE[1]:
        found.trouble(
            "wrong_unit",
            "Temperature {raw} cannot be what this tool writes ({unit}): the unit is doubtful.",
            "温度 {raw} 不可能是该工具的单位（{unit}）：单位存疑。",
            raw=raw,
            unit=Text("degrees Celsius", "摄氏度") if offset else Text("kelvin", "开尔文"),
        )
        return
    found.see("health.temperature", kelvin, "K")
