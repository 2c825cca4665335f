"""Do the receipts of one request agree: first byte, first text, end, and the offset of every chunk of text. One moved alone is told by the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gates.readers.strict import at, count

if TYPE_CHECKING:
    from gates.readers.run_pack import Request

_US = 1000  # ns; the driver writes offsets in whole microseconds, rounded down


def contradiction(row: Mapping[str, Any], request: Request) -> str | None:
    """Return which receipts of a row of records.jsonl contradict each other, by field; None where they agree.

    Asked of requests whose text came in order: what has no text, or ended in an error, is a failure and has no TTFT. Offsets are not always
    recorded (repeats, soaks); whether they must be there the job says.
    """
    first = request.first_text_ns
    if request.error is not None or first is None or not request.sent_ns < first <= request.end_ns:
        return None
    byte = count(row.get("first_byte_ns"))
    if byte is None or not request.sent_ns <= byte <= first:
        return "first_byte_ns"
    told = row.get("chunk_offsets_us")
    if not told:
        return None
    offsets = [count(offset) for offset in told] if isinstance(told, list) else [None]
    known = [offset for offset in offsets if offset is not None]
    if len(known) < len(offsets) or known != sorted(known):
        return "chunk_offsets_us"
    if known[0] != request.ttft_ns // _US or known[-1] != request.e2e_ns // _US:
        return "chunk_offsets_us"
    texts = at(row, "chunks", "text")
    return "chunks" if texts is not None and texts != len(known) else None
