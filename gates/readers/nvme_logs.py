"""`nvme error-log -o json` and `nvme self-test-log -o json`: what a drive remembers of failed commands and of its own tests.

Observations: errorlog.entries, errorlog.places (1), errorlog.number and errorlog.status (1; label `entry`; the number is the error count, which
only grows and no other error ever bears); selftest.records (1), selftest.running (1 or 0), selftest.result and
selftest.code (1), selftest.power_on_hours (h; label `record`, 0 is the newest).
Result 0 is "completed without error", 15 an unused place (NVMe base specification, Device Self-test log).
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from gates.model import Reading
from gates.readers.common import Collector, exact, load_json, part, rows

UNUSED = 15
PLACES = 20  # of the log page, used or not (NVMe base specification, Device Self-test log): fewer, and a result was left out
_HEX = re.compile(r"(0x[0-9a-fA-F]{1,16})\b.*", re.DOTALL)


def read_nvme_error_log(data: bytes) -> Reading:
    """Read the entries of the error log that hold an error; places with an error count of 0 were never used."""
    found = Collector()
    document = load_json(data, found)
    if document is None:
        return found.reading()
    entries = part(document, "errors")
    if not isinstance(entries, list):
        _shape(found, "errors")
        return found.reading()
    used = 0
    for index, entry in enumerate(rows(entries)):
        number = whole(entry.get("error_count"))
        if number is None:
            found.absent("error_count", entry.get("error_count"), entry=str(index))
        elif number > 0:
            used += 1
            found.see("errorlog.number", number, "1", entry=str(index))
            status = whole(entry.get("status_field"))
            if status is None:
                found.absent("status_field", entry.get("status_field"), entry=str(index))
            else:
                found.see("errorlog.status", status, "1", entry=str(index))
    if len(rows(entries)) != len(entries):
        _shape(found, "errors")
    found.see("errorlog.entries", Decimal(used), "1")
    found.see("errorlog.places", Decimal(len(entries)), "1")
    return found.reading()


def read_nvme_self_test_log(data: bytes) -> Reading:
    """Read the results of the drive's self-tests, the newest first. A log without any result says so by selftest.records 0."""
    found = Collector()
    document = load_json(data, found)
    if document is None:
        return found.reading()
    running, reports = part(document, "Current Device Self-Test Operation"), part(document, "List of Valid Reports")
    operation = whole(running)
    if operation is None:
        found.absent("Current Device Self-Test Operation", running)
    else:
        found.see("selftest.running", Decimal(int(operation > 0)), "1")
    if not isinstance(reports, list):
        _shape(found, "List of Valid Reports")
        return found.reading()
    if len(reports) != PLACES:
        found.trouble(
            "rows_incomplete",
            "The self-test log has {n} places, not {m}: results were left out.",
            "自检日志有 {n} 个位置而非 {m} 个：结果有缺失。",
            n=len(reports),
            m=PLACES,
        )
    number = 0
    for report in rows(reports):
        result = whole(report.get("Self test result"))
        if result is None:
            found.absent("Self test result", report.get("Self test result"), record=str(number))
        elif result != UNUSED:
            _record(report, result, str(number), found)
            number += 1
    found.see("selftest.records", Decimal(number), "1")
    return found.reading()


def _record(report: dict[str, Any], result: Decimal, record: str, found: Collector) -> None:
    found.see("selftest.result", result, "1", record=record)
    for key, quantity, unit in (("Self test code", "selftest.code", "1"), ("Power on hours", "selftest.power_on_hours", "h")):
        value = whole(report.get(key))
        if value is None:
            found.absent(key, report.get(key), record=record)
        else:
            found.see(quantity, value, unit, record=record)


def whole(raw: Any) -> Decimal | None:
    """Return a whole number that is not negative, as a number or as hexadecimal text (`0x4004(INVALID_FIELD)` of newer versions)."""
    value = exact(raw)
    if value is not None:
        return value if value >= 0 and value == value.to_integral_value() else None
    match = _HEX.fullmatch(raw.strip()) if isinstance(raw, str) else None
    return Decimal(int(match[1], 16)) if match else None


def _shape(found: Collector, key: str) -> None:
    found.trouble("unknown_shape", "There is no list `{key}`: this shape is not known.", "没有列表 {key}：不认识这种格式。", key=key)
