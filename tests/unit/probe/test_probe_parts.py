import ast
import json
import os
import subprocess
import tarfile

import pytest
from probe import hostlock, metrics, proc
from probe.errors import Ended, ProbeError, Refused
from probe.files import walk_files, write_json
from probe.histogram import Histogram
from probe.jobs import read_lines
from probe.jobspec import check
from probe.journal import Journals
from probe.pack import pack_dir

from app.targets.probe_archive import build_probe
from tests.unit.probe.kit import SOURCES, build, job_spec


def test_the_zipapp_is_the_same_bytes_whenever_it_is_built(tmp_path):
    first = build_probe(tmp_path / "a.pyz")
    for path in SOURCES.glob("probe/*.py"):
        os.utime(path, None)
    assert build_probe(tmp_path / "b.pyz") == first
    assert (tmp_path / "a.pyz").read_bytes() == (tmp_path / "b.pyz").read_bytes()


def test_every_module_is_python_3_8_and_stays_below_300_lines():
    modules = sorted(SOURCES.glob("probe/*.py"))
    assert len(modules) > 10
    for path in modules:
        text = path.read_text()
        ast.parse(text, feature_version=(3, 8))
        assert text.count("\n") < 310, path.name


def test_the_probe_imports_nothing_but_the_standard_library():
    import sys

    for path in SOURCES.glob("probe/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] in sys.stdlib_module_names | {"probe"}, f"{path.name} imports {name}"


def test_a_journal_numbers_its_lines_without_gap_and_writes_each_with_one_write(tmp_path):
    journals = Journals(str(tmp_path), ("records.jsonl",), 1 << 20)
    for n in range(200):
        journals.put("records.jsonl", {"n": n})
    journals.close()
    rows = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert [r["seq"] for r in rows] == [r["n"] for r in rows] == list(range(200))
    assert all(r["boot_id"] and r["mono_ns"] and r["wall_ns"] for r in rows)


def test_a_writer_that_meets_a_fault_of_any_kind_ends_the_job_by_name_and_not_only_itself(tmp_path):
    journals = Journals(str(tmp_path), ("records.jsonl",), 1 << 20)
    with pytest.raises(KeyError, match="no journal of this job"):
        journals.put("ports.jsonl", {"n": 1})
    journals.put("records.jsonl", {"n": object()})
    journals.flush()
    assert journals.failed
    with pytest.raises(Ended, match=r"records\.jsonl cannot be written") as named:
        journals.check()
    assert named.value.kind == "journal"
    journals.close()


def test_a_journal_that_reaches_its_quota_ends_by_name_and_at_a_line_end(tmp_path):
    journals = Journals(str(tmp_path), ("records.jsonl",), 2000)
    for n in range(100):
        journals.put("records.jsonl", {"n": n})
    journals.flush()
    with pytest.raises(Ended, match="disk quota") as caught:
        journals.check()
    journals.close()
    assert caught.value.kind == "quota"
    assert (tmp_path / "records.jsonl").read_bytes().endswith(b"\n")
    assert (tmp_path / "records.jsonl").stat().st_size <= 2000


def test_a_full_disk_ends_by_name(tmp_path):
    os.symlink("/dev/full", tmp_path / "records.jsonl")
    journals = Journals(str(tmp_path), ("records.jsonl",), 1 << 20)
    journals.put("records.jsonl", {})
    journals.flush()
    with pytest.raises(Ended) as caught:
        journals.check()
    assert caught.value.kind == "disk_full"


def test_a_poll_never_splits_a_line_and_always_gets_on(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"aaaa\n" + b"b" * 50 + b"\n" + b"torn")
    assert read_lines(str(path), 0, 8) == {"from": 0, "to": 5, "data": "aaaa\n"}
    assert read_lines(str(path), 5, 8) == {"from": 5, "to": 56, "data": "b" * 50 + "\n"}
    assert read_lines(str(path), 56, 8) == {"from": 56, "to": 56, "data": ""}
    with pytest.raises(ProbeError, match="beyond"):
        read_lines(str(path), 99, 8)


def test_a_pack_holds_whole_lines_lists_what_it_holds_and_is_the_same_twice(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "records.jsonl").write_bytes(b'{"seq":0}\n{"seq":1}\n{"se')
    write_json(str(folder / "exit.json"), {"outcome": "done"})
    (folder / "lock").write_bytes(b"")
    first = pack_dir(str(folder), str(tmp_path / "a.tar"), "j")
    second = pack_dir(str(folder), str(tmp_path / "b.tar"), "j")
    assert first["sha256"] == second["sha256"]
    with tarfile.open(tmp_path / "a.tar") as tar:
        listed = json.load(tar.extractfile("pack.json"))
        assert tar.getnames() == ["exit.json", "records.jsonl", "pack.json"]
        assert tar.extractfile("records.jsonl").read() == b'{"seq":0}\n{"seq":1}\n'
    assert listed["job"] == "j"
    assert listed["files"][1]["torn_bytes"] == 4


def test_the_host_lock_knows_only_upwards(tmp_path):
    root = str(tmp_path)
    hostlock.take(root, "a", 3)
    assert hostlock.take(root, "a", 3)["held"]
    for attempt, fence in (("b", 2), ("b", 3), ("a", 1)):
        with pytest.raises(Refused, match="Only a higher number"):
            hostlock.take(root, attempt, fence)
    hostlock.take(root, "b", 4)
    with pytest.raises(Refused):
        hostlock.release(root, "a", 3)
    assert hostlock.release(root, "b", 4)["held"] is False
    with pytest.raises(Refused):
        hostlock.require_fence(root, 3, "Job x")


def test_metrics_keep_exact_values_and_leave_histograms_out():
    text = """# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="a b"} 1.2e+06
# TYPE vllm:ttft histogram
vllm:ttft_bucket{le="1"} 4
vllm:ttft_sum 3
vllm:ttft_count 4
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 1.0
vllm:num_requests_running{engine="1"} 2.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc NaN
untyped_thing 9007199254740993
"""
    found = metrics.parse(text)
    assert found['vllm:prompt_tokens_total{engine="0",model_name="a b"}'] == "1200000"
    assert found["untyped_thing"] == "9007199254740993"
    assert not [name for name in found if "ttft" in name]
    assert metrics.total(found, "vllm:num_requests_running") == 3
    assert metrics.total(found, "vllm:kv_cache_usage_perc") is None
    assert metrics.total(found, "absent") is None


def test_a_job_file_is_refused_whole_with_every_field_named():
    spec = job_spec("j", 1)
    check(spec)
    spec["workload"]["tiers"] = [{"tier": 0, "requests": 5}, {"tier": 8}]
    spec["limits"]["deadline_s"] = "soon"
    spec["engine"]["base_url"] = "https://x"
    with pytest.raises(ProbeError) as caught:
        check(spec)
    for field in ("workload.tiers[0].tier", "workload.tiers[1].requests", "limits.deadline_s", "engine.base_url"):
        assert field in str(caught.value)


def test_a_pid_alone_is_not_a_process():
    mine = os.getpid()
    assert proc.is_alive(mine, proc.start_ticks(mine))
    assert not proc.is_alive(mine, proc.start_ticks(mine) + 1)
    assert not proc.is_alive(2**22 + 1, None)


def test_the_family_of_a_process_holds_its_grandchildren_by_either_way():
    shell = subprocess.Popen(["sh", "-c", "sleep 30 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    try:
        grandchild = int(shell.stdout.readline())
        assert set(proc.family(os.getpid())) >= {os.getpid(), shell.pid, grandchild}
        assert set(proc._family_by_scan(shell.pid)) == {shell.pid, grandchild} == set(proc.family(shell.pid))
    finally:
        os.kill(grandchild, 9)
        shell.wait()
        shell.stdout.close()


def test_percentiles_never_flatter_and_are_within_a_sixtieth():
    found = Histogram()
    for value in range(1, 100_001):
        found.add(value)
    for share in (0.5, 0.99, 1.0):
        assert share * 100_000 <= found.percentile(share) <= share * 101_600
    assert found.percentile(1.0) == found.max == 100_000
    assert Histogram().percentile(0.5) == 0
    assert Histogram().by_digits() == {}


def test_two_histograms_merged_are_one_of_all_values():
    low, high, both = Histogram(), Histogram(), Histogram()
    for value in range(50):
        low.add(value)
        high.add(value + 50)
        both.add(value)
        both.add(value + 50)
    low.merge(high)
    assert [low.percentile(q / 100) for q in range(101)] == [both.percentile(q / 100) for q in range(101)]
    assert low.count == 100
    assert low.by_digits() == both.by_digits() == {"0": 1, "1": 1, "2": 2, "3": 4, "4": 8, "5": 16, "6": 32, "7": 36}


def test_values_counted_by_their_digits_say_where_percentiles_and_the_largest_lie():
    found, told = Histogram(), {}
    for value in (3, 200_000, 210_000, 5_000_000, 4_194_303, 4_194_304):
        found.add(value)
        told[str(value.bit_length())] = told.get(str(value.bit_length()), 0) + 1
    assert found.by_digits() == told
    assert sum(told.values()) == found.count
    assert str(found.percentile(0.5).bit_length()) == "18"
    assert str(found.max.bit_length()) == max(told, key=int)


def test_a_zipapp_says_who_it_is(tmp_path):
    from tests.unit.probe.kit import probe

    assert probe(build(tmp_path), "version")["probe"] == "0.1.0"
    assert len(list(walk_files(str(tmp_path)))) == 1
