"""A target as the lane needs it: the real probe's start, adoption, lock, journals, polls, stop and pack around a replayed soak.

`python target.py VERB ROOT ...` with VERB one of prepare, start, poll, collect, stop; `run` is the detached job. Only the load is not real:
the rows of a soak that was made beforehand (script.py) are written line by line over the seconds that the job is given.
The file ROOT/boot_id stands for the kernel's: removing what runs and changing it is a reboot.
"""

import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "playbooks", "roles", "probe", "files"))

from probe import clock, hostlock, job_main, jobs, pack, reboot  # noqa: E402

reboot.rebooted = lambda *_: False  # the replayed load is of one boot and cannot go on in another

FIRST_BOOT = "b007-0001"  # as in the script
DOCUMENTS = ("engine.json", "arm.json", "client.json", "workload.json")
PACED = ("records.jsonl", "telemetry.jsonl")
AT_THE_END = ("phases.jsonl", "coldness.jsonl", "counters.jsonl")


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


def start(root, job, attempt, fence, seconds, script):
    hostlock.take(root, attempt, int(fence))
    with open(os.path.join(script, "job.json"), encoding="utf-8") as file:
        played = json.load(file)  # what the job of the load that is replayed was told, and where its KV lay
    spec = {
        "schema": 1,
        "job": job,
        "kind": "soak",
        "fence": int(fence),
        "engine": {"base_url": "http://127.0.0.1:9", "model": "lab", **played["engine"]},
        "workload": played["workload"],
        "phases": {},
        "limits": {"request_timeout_s": 9, "disk_quota_bytes": 1 << 30, "deadline_s": 3600},
        "soak": {**played["soak"], "seconds": float(seconds), "telemetry_s": 1},
        "script": script,
    }
    jobs.pinned_copy = lambda folder: folder
    jobs.command = lambda folder, *words: [sys.executable, "-I", "-S", "-B", os.path.abspath(__file__), "run", root, *words[2:]]
    return jobs.start(root, spec)


def run(root, *words):
    """Be the job: `--dir FOLDER --lock-fd N`."""
    folder, lock = words[1], int(words[3])
    job_main._work = replay
    return job_main.run(folder, lock)


def replay(job, _key):
    """Write the script's rows over the job's seconds; count the start where nothing that we do can take it back."""
    root = os.path.dirname(os.path.dirname(job.folder))
    note(root, "began " + job.spec["job"])
    try:
        return _replay(job), None
    except job_main.Ended as error:
        return ("stopped", None) if error.kind == "stopped" else ("error", job_main._error(error))


def _replay(job):
    script = job.spec["script"]
    rows = {name: read_rows(os.path.join(script, name)) for name in PACED + AT_THE_END}
    for name in DOCUMENTS:
        with open(os.path.join(script, name), encoding="utf-8") as file:
            job.write(name, json.load(file))
    begin, seconds, done = time.monotonic(), float(job.spec["soak"]["seconds"]), dict.fromkeys(PACED, 0)
    while any(done[name] < len(rows[name]) for name in PACED):
        share = min(1.0, (time.monotonic() - begin) / seconds)
        for name in PACED:
            upto = int(share * len(rows[name]))
            for row in rows[name][done[name] : upto]:
                job.journals.put(name, row, stamped=False)
            done[name] = upto
        job.sleep(0.1)
    for name in AT_THE_END:
        for row in rows[name]:
            job.journals.put(name, row, stamped=False)
    return "done"


def read_rows(path):
    """Return the rows of a journal without their numbers: the probe's writer gives new ones."""
    with open(path, encoding="utf-8") as file:
        return [{key: value for key, value in json.loads(line).items() if key != "seq"} for line in file]


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
    told = {"prepare": prepare, "start": start, "run": run, "poll": poll, "collect": collect, "stop": stop}[verb](place, *sys.argv[3:])
    if isinstance(told, int):
        raise SystemExit(told)
    print(json.dumps(told))
