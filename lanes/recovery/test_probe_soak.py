"""The soak's sentinel, its planned disturbances, and what a full disk, a kill and a power cut leave, on the simulated engine with real files."""

import itertools
import json
import subprocess
from contextlib import suppress

import pytest

from lanes.probe.test_probe_run import FAST, PHASES, run, with_lab
from tests.unit.probe.kit import build, kill, lines, probe, processes_with, wait_for, workplace, write

QUIET = {**PHASES, "canary": False, "chunk_offsets": False}


@pytest.fixture
def place():
    """Give a folder on the checkout's disk with the zipapp; whatever still runs from it at the end is ended."""
    with workplace("soak-") as folder:
        build(folder)
        yield folder


def soak(place, job="soak", *, lab=None, limits=None, **parts):
    spec = with_lab(place, job, kind="soak", tier=FAST, lab=lab, phases=QUIET, limits={"deadline_s": 120, **(limits or {})})
    spec["soak"].update(parts)
    return spec


def events(folder, kind):
    return [e["detail"] for e in lines(folder / "events.jsonl") if e["kind"] == kind]


def test_a_sentinel_asks_its_prefixes_once_a_window_and_only_after_a_whole_round_of_the_rotation(place):
    folder, end = run(place, soak(place, seconds=4, sentinel={"every_s": 0.2, "prefixes": 3}))
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    windows = events(folder, "sentinel")
    assert len(windows) >= 2
    assert all(w["failed"] == 0 and w["requests"] == 4 and w["ttft_p50_ns"] > 0 for w in windows if w["whole"])
    assert events(folder, "canary") == []  # answers stayed as they were, and nothing hit that was never stored
    asked = [r["prompt"] for r in sorted((r for r in lines(folder / "records.jsonl") if r["phase"] == "soak"), key=lambda r: r["sent_ns"])]
    begun = [n for n, prompt in enumerate(asked) if prompt == 12]
    assert all(later - earlier >= 12 + 4 for earlier, later in itertools.pairwise(begun))
    stored = next(p for p in lines(folder / "phases.jsonl") if p["phase"] == "store")
    assert stored["detail"]["prefixes"] == 12 + 3


def test_from_the_first_request_to_the_end_of_the_last_a_paced_soak_lasts_its_whole_time(place):
    folder, end = run(place, soak(place, seconds=1.2, request_cap=2))  # a request every 0.6 s, each answered long before the next
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    load = [r for r in lines(folder / "records.jsonl") if r["phase"] == "soak"]
    assert max(r["end_ns"] for r in load) - min(r["sent_ns"] for r in load) >= 1_200_000_000


def test_answers_that_change_in_a_soak_are_an_event(place):
    spec = soak(place, lab={"faults": {"corrupt_kv_share": 0.5}, "hbm_tokens": 2048}, seconds=4, sentinel={"every_s": 0.1, "prefixes": 6})
    folder, end = run(place, spec)
    assert end["outcome"] == "done"
    records = [r for r in lines(folder / "records.jsonl") if r["phase"] == "soak" and 12 <= r["prompt"] < 18 and not r["error"]]
    answers = {}
    for record in records:
        answers.setdefault(record["prompt"], set()).add(record["output_sha256"])
    changed = {prompt for prompt, found in answers.items() if len(found) > 1}
    assert changed == {prompt for e in events(folder, "canary") for prompt in e["other_answers"]}


def test_what_the_kernel_writes_under_load_comes_home_and_what_it_wrote_before_does_not(place):
    """A path that is lost and comes back between two readings of the drives leaves these lines and nothing else."""
    tools, ring = place / "bin", place / "ring"
    tools.mkdir()
    ring.write_text("[    0.000000] Linux version 6.8\n[   10.000000] nvme nvme4: starting error recovery\n")
    (tools / "dmesg").write_text(f"#!/bin/sh\ncat {ring}\n")
    (tools / "dmesg").chmod(0o755)
    pull = ["sh", "-c", f"echo '[   99.000000] nvme nvme4: Reconnecting in 10 seconds...' >> {ring}"]
    planned = {"label": "pull", "at_s": 0.2, "seconds": 0.1, "start": pull}
    spec = soak(place, seconds=2, injections=[planned], kernel_log=True)
    folder, end = run(place, {**spec, "path_prefix": [str(tools)]})
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    rows = lines(folder / "kernel.jsonl")
    load = [r for r in lines(folder / "records.jsonl") if r["phase"] == "soak"]
    assert rows[0]["begins"]
    assert rows[0]["lines"] == []
    assert rows[0]["read"]["mono_ns"] <= min(r["sent_ns"] for r in load)
    assert rows[-1]["lines"] == ["[99.000000] nvme nvme4: Reconnecting in 10 seconds..."]
    assert rows[-1]["joined"]
    assert rows[-1]["read"]["mono_ns"] >= max(r["end_ns"] for r in load)
    assert {r["host"] for r in rows} == {spec["host"]}


def test_a_planned_disturbance_is_on_record_with_its_label_before_and_after_and_its_commands_ran(place):
    mark = place / "mark"
    planned = {"label": "path-down", "at_s": 0.3, "seconds": 0.4, "start": ["touch", str(mark)], "stop": ["rm", str(mark)]}
    absent = {"label": "absent", "at_s": 0.1, "seconds": 0.1, "start": [str(place / "no-such-program")]}
    folder, end = run(place, soak(place, seconds=2, injections=[planned, absent]))
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    assert [e["label"] for e in events(folder, "injection_begins")] == ["absent", "path-down"]
    found = {e["label"]: e for e in events(folder, "injection")}
    assert (found["path-down"]["begin_exit"], found["path-down"]["end_exit"], found["absent"]["begin_exit"]) == (0, 0, 127)
    assert found["path-down"]["to_ns"] - found["path-down"]["from_ns"] >= 400_000_000
    assert not mark.exists()


def test_telemetry_tells_total_memory_beside_what_is_available_the_parts_of_the_host_and_pauses_around_the_load(place):
    spec = soak(place, seconds=1)
    spec.update(path_prefix=[str(place / "bin")], ports=["ens8"])
    (place / "bin").mkdir()
    (place / "bin/ethtool").write_text('#!/bin/sh\necho "     rx_prio3_pause_duration: $(cut -d. -f1 /proc/uptime)"\n')
    (place / "bin/ethtool").chmod(0o755)
    folder, end = run(place, spec)
    assert end["outcome"] == "done", (folder / "job.log").read_text()
    ports = json.loads((folder / "ports.json").read_text())["readings"]
    assert [(row["when"], row["ports"]["ens8"]["pauses_us"]["rx_prio3"] > 0) for row in ports] == [("before", True), ("after", True)]
    load = lines(folder / "phases.jsonl")[-1]  # what came before it took nothing from the time that it has
    assert load["detail"]["deadline_ns"] - load["started_ns"] >= (1 + 120) * 10**9
    for row in lines(folder / "telemetry.jsonl"):
        assert 0 < row["host"]["mem_available_bytes"] <= row["host"]["mem_total_bytes"]
        assert {"gpus", "nics", "drives"} <= row.keys()
    before = lines(folder / "counters.jsonl")[0]
    assert {"nfs", "nics", "drives", "page_cache"} <= before.keys()


def test_a_soak_that_does_not_fit_is_refused_with_the_numbers_before_anything_is_stored(place):
    spec = soak(place, limits={"disk_quota_bytes": 1 << 60})
    spec["soak"].update(seconds=10**9, telemetry_s=0.001)
    folder, end = run(place, spec)
    assert (end["outcome"], end["error"]["kind"]) == ("error", "no_room")
    assert "GB free" in end["error"]["message"]
    assert not (folder / "records.jsonl").read_bytes()
    folder, end = run(place, soak(place, "counters", seconds=1, counters=["nvme_media_errors", "no_such_counter"]))
    assert (end["error"]["kind"], "gpu01 has no source of no_such_counter" in end["error"]["message"]) == ("no_counter", True)
    assert "soak" not in {row["phase"] for row in lines(folder / "phases.jsonl")}
    spec = soak(place, "kv", seconds=1)
    spec["engine"]["declared"] = {"kv_bytes_per_token": 10**15}
    folder, end = run(place, spec)
    assert (end["error"]["kind"], (folder / "records.jsonl").read_bytes()) == ("no_room", b"")


@pytest.mark.mounts
def test_a_disk_that_fills_up_ends_a_soak_by_name_with_whole_lines_and_an_exit(place):
    root = place / "root"
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192m", "tmpfs", str(root)], check=True)
    try:
        spec = soak(place, seconds=30, request_cap=600)
        filler = root / "filler"

        def fill():
            """Leave nothing free but what the job set aside."""
            with filler.open("ab", buffering=0) as file:
                for size in (1 << 20, 4096):
                    with suppress(OSError):
                        while True:
                            file.write(b"\0" * size)

        pyz = place / "probe.pyz"
        probe(pyz, "job", "start", "--root", root, "--spec", write(place / "soak.json", spec))
        folder = root / "jobs" / "soak"
        wait_for(lambda: (folder / "telemetry.jsonl").exists() and (folder / "telemetry.jsonl").stat().st_size, what="the load")
        fill()

        def ended():
            found = probe(pyz, "job", "poll", "--root", root, "--job", "soak", "--max-bytes", 0)
            return found if found["state"] in ("exited", "dead") else None

        end = wait_for(ended, what="the end of the job")["exit"]
        assert (end["outcome"], end["error"]["kind"]) == ("error", "disk_full")
        for name in ("records.jsonl", "telemetry.jsonl"):
            assert (folder / name).read_bytes().endswith(b"\n")
        assert end["records"] == len(lines(folder / "records.jsonl"))
        assert probe(pyz, "pack", "--root", root, "--job", "soak", "--out", place / "pack.tar")["files"]
    finally:
        for pid in processes_with(str(root)):
            kill(pid)
        subprocess.run(["umount", "-l", str(root)], check=True)


def test_a_power_cut_leaves_a_dead_job_and_a_pack_of_whole_lines(place):
    spec = soak(place, seconds=60)
    probe(place / "probe.pyz", "job", "start", "--root", place / "root", "--spec", write(place / "soak.json", spec))
    folder = place / "root" / "jobs" / "soak"
    wait_for(lambda: (folder / "telemetry.jsonl").exists() and (folder / "telemetry.jsonl").stat().st_size, what="the load")
    for pid in processes_with(str(folder)):
        kill(pid)
    wait_for(lambda: probe(place / "probe.pyz", "job", "poll", "--root", place / "root", "--job", "soak")["state"] == "dead", what="the death")
    whole = (folder / "records.jsonl").read_bytes()
    whole = whole[: whole.rfind(b"\n") + 1]
    (folder / "records.jsonl").write_bytes(whole + b'{"seq":99' + b"\0" * 512)  # blocks that were allocated and never written
    (folder / "started").write_text('{"pid": 1, "start_ticks": 1, "boot_id": "another"}\n')
    found = probe(place / "probe.pyz", "pack", "--root", place / "root", "--job", "soak", "--out", place / "pack.tar")
    packed = {row["path"]: row for row in found["files"]}
    assert (packed["records.jsonl"]["size"], packed["records.jsonl"]["torn_bytes"]) == (len(whole), 9 + 512)
    assert "exit.json" not in packed
