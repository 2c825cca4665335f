"""Long journals into columns: the short way reads what the strict way reads, and refuses what it refuses."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from gates.bundle import Bundle
from gates.readers.run_pack import request_of
from gates.readers.shapes import whole_lines
from gates.readers.soak_records import NO_TEXT, read_records
from gates.readers.soak_telemetry import DEAD, UNSEEN, read_telemetry
from gates.readers.strict import Reader, decode
from tests.bundles import g4_evidence, soak_plan

FOLDER = "evidence/soak/gpu01"


class Files:
    """A bundle of two files, handed out in odd blocks."""

    def __init__(self, **files: bytes) -> None:
        self.files = {f"{FOLDER}/{name}.jsonl": data for name, data in files.items()}

    def has(self, path: str) -> bool:
        return path in self.files

    def bytes(self, path: str) -> bytes:
        return self.files[path]

    def blocks(self, path: str) -> Iterator[bytes]:
        data = self.files[path]
        yield from (data[n : n + 1777] for n in range(0, len(data), 1777))


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return g4_evidence(plan=soak_plan()).bundle()


def dump(rows: list[dict], **how) -> bytes:
    how = {"separators": (",", ":")} | how
    return "".join(json.dumps(row, **how) + "\n" for row in rows).encode()


def rows_of(bundle: Bundle, name: str) -> list[dict]:
    return [json.loads(line) for line in bundle.bytes(f"{FOLDER}/{name}.jsonl").decode().splitlines()]


def strictly(data: bytes) -> tuple[list[tuple], list[str]]:
    """Read records as before there were columns."""
    reader = Reader(Files(records=data), FOLDER)  # type: ignore[arg-type]
    out = []
    for row in reader.journal("records.jsonl"):
        r = request_of(row)
        if r is None:
            reader.trouble("malformed", "records.jsonl", "", "")
        elif r.phase == "soak":
            first = -1 if r.first_text_ns is None else r.first_text_ns
            tokens = -1 if r.completion_tokens is None else r.completion_tokens
            out.append((r.sent_ns, first, r.end_ns, tokens, r.boot_id, r.failure))
    return out, sorted({p.code for p in reader.problems})


def quickly(data: bytes) -> tuple[list[tuple], list[str]]:
    reader = Reader(Files(records=data), FOLDER)  # type: ignore[arg-type]
    found = read_records(reader, "soak")
    columns = (found.sent, found.first, found.end, found.tokens)
    named = [(found.boots[b], found.failures[f]) for b, f in zip(found.boot.tolist(), found.failure.tolist(), strict=True)]
    return [(*row, *names) for row, names in zip(zip(*(c.tolist() for c in columns), strict=True), named, strict=True)], sorted(
        {p.code for p in reader.problems}
    )


def alike(data: bytes) -> bool:
    """Both ways say the same. Where the numbering is broken the order means nothing, and nothing is concluded from it anyway."""
    (quick, problems), (strict, others) = quickly(data), strictly(data)
    in_any_order = "sequence" in problems
    return problems == others and (sorted(map(str, quick)) == sorted(map(str, strict)) if in_any_order else quick == strict)


HARM = {
    "failed": {"error": {"kind": "timeout", "message": 'x "quoted" \u4e2d'}, "first_text_ns": None, "usage": None, "finish_reason": None},
    "http": {"http_status": 500, "error": None},
    "late text": {"first_text_ns": 10**17},
    "text before sending": {"first_text_ns": 1},
    "ends before it was sent": {"end_ns": 1},
    "no tokens": {"usage": {"prompt_tokens": 1, "completion_tokens": None, "cached_tokens": None}},
    "no usage": {"usage": None},
    "another boot": {"boot_id": "b007-0009"},
    "text where a number must be": {"sent_ns": "12"},
    "a negative number": {"prompt": -1},
    "beyond 63 bits": {"mono_ns": 2**64},
    "true for a number": {"max_tokens": True},
    "another phase": {"phase": "warmup"},
    "words with escapes": {"output_head": ["a\nb", "\u4e2d", "\\"]},
    "emoji": {"output_head": ["\U0001f680"]},
    "no words": {"output_head": []},
    "a fraction": {"first_byte_ns": 1.5},
    "another seq": {"seq": 7},
    "seq true": {"seq": True},
}


@pytest.mark.parametrize("harm", HARM, ids=list(HARM))
def test_one_odd_line_in_the_middle_is_read_as_the_strict_reader_reads_it(bundle: Bundle, harm: str):
    rows = rows_of(bundle, "records")[:400]
    rows[250] |= HARM[harm]
    assert alike(dump(rows))


@pytest.mark.parametrize("seed", range(4))
def test_any_mixture_of_odd_lines_gives_the_same_rows_and_the_same_problems(bundle: Bundle, seed: int):
    rng = random.Random(seed)
    rows = rows_of(bundle, "records")[:600]
    for row in rng.sample(rows, 60):
        row |= HARM[rng.choice(list(HARM))]
    assert alike(dump(rows))


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d[:-20],
        lambda d: d.replace(b'"tier":4', b'"tier":4,"tier":4', 1),
        lambda d: d.replace(b'"phase":"soak"', b'"phase":"so\nak"', 1),
        lambda d: d.replace(b'"finish_reason":"length"', b'"finish_reason":"len\x01gth"', 3),
        lambda d: d.replace(b'"max_tokens":', b'"max_tokens":0', 900),
        lambda d: d.replace(b"}\n", b"}}\n", 400),
        lambda d: d.replace(b"}\n", b"} \n", 300),
        lambda d: d.replace(b"\n", b"\n\n", 200),
        lambda d: d.replace(b'"seq":300,', b'"seq":301,', 1),
        lambda d: d.replace(b'"output_head":[]', b'"output_head":[],}', 200),
        lambda d: d.replace(b"NaN", b"1").replace(b'"http_status":200', b'"http_status":NaN', 350),
        lambda d: b"# a note\n" + d,
    ],
)
def test_lines_that_are_no_json_are_refused_alike(bundle: Bundle, edit):
    data = edit(dump(rows_of(bundle, "records")[:600]))
    assert alike(data)


def test_spaces_between_tokens_are_read_strictly_and_come_out_the_same(bundle: Bundle):
    rows = rows_of(bundle, "records")[:200]
    assert quickly(dump(rows, separators=(", ", ": "))) == quickly(dump(rows)) == strictly(dump(rows))


def test_bytes_that_are_no_text_are_a_problem(bundle: Bundle):
    data = dump(rows_of(bundle, "records")[:300])
    reader = Reader(Files(records=data.replace(b"sha256", b"sha2\xff6", 1)), FOLDER)  # type: ignore[arg-type]
    read_records(reader, "soak")
    assert [p.code for p in reader.problems] == ["encoding"]


def test_a_text_before_the_first_token_of_a_whole_shape_counts_as_failure(bundle: Bundle):
    rows = rows_of(bundle, "records")[:400]
    for row in rows[100:]:
        row["first_text_ns"] = row["sent_ns"]
    found = read_records(Reader(Files(records=dump(rows)), FOLDER), "soak")  # type: ignore[arg-type]
    assert found.kinds() == {NO_TEXT: sum(r["phase"] == "soak" for r in rows[100:])}


def test_samples_are_read_alike_by_either_way(bundle: Bundle):
    rows = rows_of(bundle, "telemetry")
    rows[20]["engine"] |= {"alive": False, "rss_bytes": None}
    rows[30] = {**rows[30], "mono_ns": None}
    rows[40]["counters"].pop("aer_fatal")
    rows[50]["metrics"] = {}
    rows[60]["engine"]["pid"] = None
    names = list(rows[0]["counters"])
    quick, strict = (
        read_telemetry(Reader(Files(telemetry=dump(rows, separators=s)), FOLDER), names)  # type: ignore[arg-type]
        for s in ((",", ":"), (", ", ": "))
    )
    assert [quick.life[n] for n in (20, 30, 60)] == [DEAD, UNSEEN, UNSEEN]
    assert quick.counters["aer_fatal"][40] == -1
    for name in ("mono", "boot", "life"):
        assert getattr(quick, name).tolist() == getattr(strict, name).tolist()
    for group in ("gauges", "counters"):
        assert {k: v.tolist() for k, v in getattr(quick, group).items()} == {k: v.tolist() for k, v in getattr(strict, group).items()}
    assert (quick.hits_known, quick.hits_grown) == (strict.hits_known, strict.hits_grown) == (len(rows) - 1, quick.hits_grown)


@pytest.mark.parametrize("size", [1, 7, 64, 10**6])
def test_blocks_of_whole_lines_lose_nothing(size: int):
    data = b"a\nbb\n\nccc\nlast without end"
    parts = list(whole_lines((data[n : n + 3] for n in range(0, len(data), 3)), size))
    assert b"".join(parts) == data
    assert all(p.endswith(b"\n") for p in parts[:-1])
    assert decode('{"a": 1}') == {"a": 1}


@pytest.mark.parametrize("gone", [range(40), range(1), range(7, 9), range(39, 40)])
def test_samples_without_their_number_are_named_and_break_nothing(bundle, gone):
    rows = rows_of(bundle, "telemetry")[:40]
    kept = [{k: v for k, v in row.items() if k != "seq" or n not in gone} for n, row in enumerate(rows)]
    reader = Reader(Files(telemetry=dump(kept)), FOLDER)  # type: ignore[arg-type]
    assert len(read_telemetry(reader, ("aer_fatal",))) == 40
    assert "sequence" in {p.code for p in reader.problems}


def test_the_host_that_each_request_went_to_is_read_the_short_way_as_the_strict_way(bundle: Bundle) -> None:
    names = ["gpu09", "gpu10", None, "gpu-十", 'a "quoted" one', "gpu10"]
    rows = [decode(line) for line in bundle.bytes(f"{FOLDER}/records.jsonl").decode().splitlines()[:600]]
    told = [names[n % len(names)] if n > 5 else names[n % 2] for n in range(len(rows))]
    lines = [json.dumps({**row, **({} if name is None else {"host": name})}, separators=(",", ":")) for row, name in zip(rows, told, strict=True)]
    found = read_records(Reader(Files(records="".join(f"{line}\n" for line in lines).encode()), FOLDER), "store")  # type: ignore[arg-type]
    wanted = [name for row, name in zip(rows, told, strict=True) if row["phase"] == "store"]
    assert wanted.count(None) > 2
    assert [None if code < 0 else found.hosts[code] for code in found.host.tolist()] == wanted
