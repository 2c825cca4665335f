"""A target as the lane needs it: the real probe's start, adoption, lock, journals, polls, resumption, stop and pack around a replayed load.

`python target.py VERB ROOT ...` with VERB one of prepare, bring, start, poll, collect, stop; `run` is the detached job. Only the load is not real:
the rows of a job that was made beforehand (script.py, gate_script.py) are written line by line over the seconds that the job is given.
The file ROOT/boot_id stands for the kernel's: removing what runs and changing it is a reboot. In another boot a soak is replayed from its
first request on, with the id of that boot: each boot has a monotonic clock of its own.
"""

import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "playbooks", "roles", "probe", "files"))

from probe import clock, hostlock, job_main, jobs, pack, reboot  # noqa: E402

reboot.require_medium = lambda _: None  # the KV of a load that is replayed lies nowhere

FIRST_BOOT = "b007-0001"  # as in the script
DOCUMENTS = ("engine.json", "arm.json", "client.json", "workload.json")
PACED = ("records.jsonl", "telemetry.jsonl")
BESIDE = ("phases.jsonl", "coldness.jsonl", "counters.jsonl")
EVENTS = "events.jsonl"
KERNEL = "kernel.jsonl"  # the host's log: read once before the load of each boot, and behind it
ONCE = ("store", "cool")  # phases that no later boot does again
RUN_S, SOAK_MAX_S = 1.0, 6.0  # in which a run is replayed, and a soak at the longest


def boot_of(root):
    """Let this process be in the boot that the target is in."""
    path = os.path.join(root, "boot_id")
    try:
        with open(path, encoding="ascii") as file:
            clock._BOOT[:] = [file.read().strip()]
    except FileNotFoundError:
        clock._BOOT[:] = [FIRST_BOOT]


def prepare(root):
    os.makedirs(root, exist_ok=True)
    time.sleep(1.0)  # under way for a while, so that a cancel can find it so
    note(root, "prepared")
    return {"state": "done"}


def bring(root, source, out):
    """Do what a survey or a deployment does: bring home the files that a host has of it."""
    os.makedirs(out, exist_ok=True)
    pack.pack_dir(source, os.path.join(out, "pack.tar"))
    note(root, "brought " + os.path.basename(os.path.dirname(source)))
    return {"state": "done"}


def start(root, job, attempt, fence, seed, seconds, script):
    hostlock.take(root, attempt, int(fence))
    with open(os.path.join(script, "job.json"), encoding="utf-8") as file:
        played = json.load(file)  # what the job of the load that is replayed was told, and where its KV lay
    spec = {
        "schema": 1,
        "job": job,
        "kind": played["kind"],
        "fence": int(fence),
        "host": played["host"],
        "engine": {"base_url": "http://127.0.0.1:9", "model": "lab", **played["engine"]},
        "arm": played["arm"],
        "workload": {**played["workload"], "seed": int(seed)},
        "phases": {},
        "limits": {"request_timeout_s": 9, "disk_quota_bytes": 1 << 30, "deadline_s": 3600},
        "script": script,
    }
    if spec["kind"] == "soak":
        spec["soak"] = {**played["soak"], "seconds": min(float(seconds), SOAK_MAX_S), "telemetry_s": 1}
    jobs.pinned_copy = lambda folder: folder
    jobs.command = lambda folder, *words: [sys.executable, "-I", "-S", "-B", os.path.abspath(__file__), "run", root, *words[2:]]
    answer = jobs.start(root, spec)
    return answer if spec["kind"] == "soak" else {**answer, "expected_s": RUN_S}


def run(root, *words):
    """Be the job: `--dir FOLDER --lock-fd N`."""
    folder, lock = words[1], int(words[3])
    job_main._work = replay
    return job_main.run(folder, lock)


def replay(job, _key):
    """Write the script's rows over the job's seconds; count the start where nothing that we do can take it back."""
    root = os.path.dirname(os.path.dirname(job.folder))
    note(root, f"began {job.spec['job']} in {clock.boot_id()}")
    try:
        return _replay(job), None
    except job_main.Ended as error:
        return ("stopped", None) if error.kind == "stopped" else ("error", job_main._error(error))


def _replay(job):
    script, is_soak = job.spec["script"], job.spec["kind"] == "soak"
    done = job.earlier.phases
    rows = {name: [row for row in read_rows(os.path.join(script, name)) if row.get("phase") not in done] for name in BESIDE}
    paced = {name: read_rows(os.path.join(script, name)) for name in PACED if is_soak or name == "records.jsonl"}
    for name in DOCUMENTS:
        with open(os.path.join(script, name), encoding="utf-8") as file:
            told = json.load(file)
        if name == "arm.json":
            job.write(name, told)
        else:
            job.write_own(name, {**told, "seed": job.spec["workload"]["seed"]} if name == "workload.json" else told)
    if is_soak:  # what comes before the load is on record before it, so that another boot finds it done
        before = [row for row in paced["records.jsonl"] if row["phase"] != "soak"]
        paced["records.jsonl"] = [row for row in paced["records.jsonl"] if row["phase"] == "soak"]
        if not job.earlier.boots:
            put(job, "records.jsonl", before)
        else:
            rows["coldness.jsonl"] = [row for row in rows["coldness.jsonl"] if row["when"] != "after_cool"]
            job.journals.put(EVENTS, {"kind": "host_rebooted", "detail": {"boots_before": job.earlier.boots}})
        for name in BESIDE:
            put(job, name, [row for row in rows[name] if not _ends_the_load(row)])
            rows[name] = [row for row in rows[name] if _ends_the_load(row)]
    kernel = read_rows(os.path.join(script, KERNEL)) if is_soak else []
    put(job, KERNEL, kernel[:1])
    begin, seconds, written = time.monotonic(), float(job.spec["soak"]["seconds"]) if is_soak else RUN_S, dict.fromkeys(paced, 0)
    while any(written[name] < len(paced[name]) for name in paced):
        share = min(1.0, (time.monotonic() - begin) / seconds)
        for name in paced:
            upto = int(share * len(paced[name]))
            put(job, name, paced[name][written[name] : upto])
            written[name] = upto
        job.sleep(0.1)
    for name in BESIDE:
        put(job, name, rows[name])
    put(job, KERNEL, kernel[1:])
    if not is_soak:
        end_by_its_clock(rows["phases.jsonl"])
    put(job, EVENTS, read_rows(os.path.join(script, EVENTS)) if is_soak else [])  # the sentinel's windows
    return "done"


def end_by_its_clock(phases):
    """Let what the probe stamps from now on be of the clock of the run that was replayed: runs of one boot lie one behind the other."""
    last, now = max(row["ended_ns"] for row in phases), time.monotonic_ns()
    clock.mono_ns = lambda: last + (time.monotonic_ns() - now) // 1000


def _ends_the_load(row):
    """Tell whether a row of a soak is written behind its load: its phase, and what was read after it."""
    return row.get("phase", "soak") == "soak" and row.get("when", "after") in ("after", "after_tier")


def put(job, name, rows):
    for row in rows:
        job.journals.put(name, row, stamped=False)


def read_rows(path):
    """Return the rows of a journal, of the boot that we are in and without their numbers: the probe's writer gives new ones."""
    with open(path, encoding="utf-8") as file:
        text = file.read().replace(f'"{FIRST_BOOT}"', json.dumps(clock.boot_id()))
    return [{key: value for key, value in json.loads(line).items() if key != "seq"} for line in text.splitlines()]


def poll(root, job, offsets, out):
    answer = jobs.poll(root, job, json.loads(offsets))
    chunks = answer.pop("chunks")
    write(out, "chunks.json", json.dumps(chunks))
    return answer


def collect(root, job, out):
    answer = jobs.poll(root, job, {}, 0)
    answer.pop("chunks")
    if answer["state"] in ("exited", "dead"):
        os.makedirs(out, exist_ok=True)
        pack.pack_dir(jobs.job_dir(root, job), os.path.join(out, "pack.tar"), job)
    return answer


def stop(root, attempt):
    """End what an attempt runs here."""
    ours = [entry["job"] for entry in jobs.list_jobs(root)["jobs"] if entry["job"].startswith(attempt + "-")]
    answers = [jobs.stop(root, job, 5.0) for job in ours]
    return {"state": "running" if any(a["state"] == "running" for a in answers) else "stopped", "jobs": answers, "measured": bool(ours)}


def note(root, text):
    """Add a line to the target's own diary, which nothing of ours reads or removes."""
    with open(os.path.join(root, "diary"), "a", encoding="utf-8") as file:
        file.write(text + "\n")


def write(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + ".tmp"), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(os.path.join(folder, name + ".tmp"), os.path.join(folder, name))


if __name__ == "__main__":
    verb, place = sys.argv[1:3]
    boot_of(place)
    told = {"prepare": prepare, "bring": bring, "start": start, "run": run, "poll": poll, "collect": collect, "stop": stop}[verb](
        place, *sys.argv[3:]
    )
    if isinstance(told, int):
        raise SystemExit(told)
    print(json.dumps(told))
