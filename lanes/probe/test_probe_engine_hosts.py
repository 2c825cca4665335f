"""One run over two engine hosts by the real probe: each is reset from afar and bears it out, and each cell is measured on each of them."""

from __future__ import annotations

import json

from gates.model import ATTENDED
from gates.readers.run_pack import read_pack
from gates.rules import attended
from gates.steps import ATTEND_PACK, run_step
from lanes.probe.test_probe_attended import PHASES
from lanes.recovery.test_engine_hosts_reboot import ENGINES, Site
from tests.bundles.evidence import Evidence
from tests.bundles.truth import small_plan
from tests.unit.probe.kit import lines, workplace

CELLS = [{"cell": "checkpoint", "bytes": 1}, {"cell": "tier_read", "bytes": 65536, "threads": 2}]


def problems(site: Site) -> list[str]:
    """Return what the judge finds wrong with the rows of the engine hosts."""
    step = run_step(small_plan(), key="run-1", arm="candidate", run_index=1, prompts="g", store=True)
    evidence = Evidence("G3", small_plan(), simulated=True)
    evidence.files["evidence/inputs.json"] = json.dumps({"hosts": {"engine": list(ENGINES), "loadgen": ["load01"]}}).encode()
    for root, host in (("here", "load01"), *((name, name) for name in ENGINES)):
        for path in sorted(site.job(root).iterdir()):
            if path.suffix in (".json", ".jsonl") or path.name in ATTEND_PACK:
                evidence.files[f"evidence/run-1/{host}/{path.name}"] = path.read_bytes()
    bundle = evidence.bundle()
    assert bundle.hosts(ATTENDED) == tuple(ENGINES)
    names = [name for name in step.expects["loadgen"] if name != "pack.json"]
    return [found.message.en for found in attended.problems(bundle, step, read_pack(bundle, "run-1", "load01", names))]


def test_both_hosts_reset_their_engines_measure_every_cell_and_account_for_it() -> None:
    with workplace("three-") as folder:
        site = Site(folder, {"phases": {**PHASES, "cool": "reset"}, "cells": CELLS}, {"reset": "/reset_prefix_cache"})
        assert set(site.order().values()) == {"started"}
        ends = {root: site.ended(root)["exit"]["outcome"] for root in site.orders}
        assert ends == dict.fromkeys(site.orders, "done"), (site.job("here") / "job.log").read_text()
        cool = next(row for row in lines(site.job("here") / "phases.jsonl") if row["phase"] == "cool")
        told = cool["detail"]["hosts"]
        assert {host: (row["restarted"], row["reset"]["on"]["host"]) for host, row in told.items()} == {host: (False, host) for host in ENGINES}
        cells = lines(site.job("here") / "cells.jsonl")
        wanted = [(spec["cell"], host, host, True) for spec in CELLS for host in ENGINES]
        assert [(row["cell"], row["host"], row["on"]["host"], row["cold"]) for row in cells] == wanted
        assert problems(site) == []
        kept = (site.job("here") / "cells.jsonl").read_bytes()
        swapped = [{**row, "host": next(h for h in ENGINES if h != row["host"])} for row in cells]
        (site.job("here") / "cells.jsonl").write_text("".join(json.dumps(row) + "\n" for row in swapped))
        assert any("is not on record of gpu01 exactly once" in words for words in problems(site))
        (site.job("here") / "cells.jsonl").write_bytes(kept)
