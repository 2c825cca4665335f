"""`npu-smi info -t board -i N` and `npu-smi info -t ecc -i N`: one Ascend card each, as `Key : Value` lines.

Observations, labelled `gpu` (the NPU ID; ECC also `chip` where the chips of a card are told one by one).
board: gpu.serial, gpu.address, gpu.product, gpu.firmware (text; label `block`: firmware, software).
ecc: gpu.ecc_correctable, gpu.ecc_uncorrectable (1; label `memory`: the counter's name).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gates.model import Reading
from gates.readers.common import Collector, available, decode, exact, once

_LINE = re.compile(r"^\s*([A-Za-z][A-Za-z0-9 ()/_-]{1,60}?)\s*: ?(.*)$")
_ECC = re.compile(r"(?:HBM|DDR) (Single|Double) Bit (?:Aggregate Total )?(?:Error Count|Err Cnt)", re.IGNORECASE)
_BOARD = {"Serial Number": "gpu.serial", "PCIe Bus Info": "gpu.address", "Product Name": "gpu.product"}
_BLOCKS = {"Firmware Version": "firmware", "Software Version": "software"}


def read_npu_smi_board(data: bytes) -> Reading:
    """Read a card's identity. A serial number that is `NA` or missing is a problem."""
    found = Collector()
    fields = once(_fields(data, found), found)
    card = fields.get("NPU ID", "")
    if not card.isdecimal():
        found.absent("NPU ID", card or None)
        return found.reading()
    for key, quantity in _BOARD.items():
        if available(fields.get(key, "")):
            found.see(quantity, fields[key].lower() if quantity == "gpu.address" else fields[key], "text", gpu=card)
        elif quantity == "gpu.serial" or key not in fields:  # `NA` is what some cards have no more of; a line that is not there was cut
            found.absent(key, fields.get(key), gpu=card)
    for key, block in _BLOCKS.items():
        if available(fields.get(key, "")):
            found.see("gpu.firmware", fields[key], "text", gpu=card, block=block)
        else:
            found.absent(key, fields.get(key), gpu=card)
    return found.reading()


def read_npu_smi_ecc(data: bytes) -> Reading:
    """Read a card's ECC counters. A kind of memory that a card lacks is all `NA`; a card that tells no double-bit count at all is a problem."""
    found = Collector()
    card, chip, counted = "", "", False
    chips, count = 0, ""
    for key, value in _fields(data, found):
        if key == "NPU ID":
            card = value
        elif key == "Chip Count":
            count = value
        elif key in ("Chip ID", "Chip Id"):
            chip, chips = value, chips + 1
        elif (match := _ECC.fullmatch(key)) and available(value):
            labels = {"gpu": card, "memory": key} | ({"chip": chip} if chip else {})
            number = exact(value)
            if not card.isdecimal() or number is None or number < 0:
                found.absent(key, value, **labels)
                continue
            double = match[1].lower() == "double"
            counted = counted or double
            found.see("gpu.ecc_uncorrectable" if double else "gpu.ecc_correctable", number, "1", **labels)
    if not counted:
        found.trouble("unknown_shape", "No count of double-bit errors is told.", "未报告双比特错误计数。")
    if count != str(chips):  # each chip's counters end with its id
        text = "The card names {n} chips, the counters of {m} of them are whole.", "该卡有 {n} 个芯片，计数完整的有 {m} 个。"
        found.trouble("rows_incomplete", *text, n=count or "?", m=chips)
    return found.reading()


def _fields(data: bytes, found: Collector) -> Iterator[tuple[str, str]]:
    text = decode(data, found)
    for line in (text or "").splitlines():
        match = _LINE.match(line)
        if match:
            yield match[1].strip(), match[2].strip()
