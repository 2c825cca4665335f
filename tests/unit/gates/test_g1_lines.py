"""A line that is taken out of a text hides its fault: the survey's own account of each output, and what belongs together, tell that it is gone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gates.model import Verdict
from tests.unit.gates.test_g1_arrived import GPUS, asked, check, judged
from tests.unit.gates.test_g1_other_gpus import rocm, with_tools
from tests.unit.rack.simulate import accounted, evidence

Files = dict[str, bytes]
FAIL, INCONCLUSIVE, PASS = Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS


def lacking(files: Files, path: str, word: bytes) -> Files:
    """Return the files without the lines of one of them that hold a word."""
    lines = files[path].splitlines(keepends=True)
    kept = [line for line in lines if word not in line]
    assert len(kept) < len(lines)
    return {**files, path: b"".join(kept)}


@pytest.fixture(scope="module")
def faulty() -> Files:
    return accounted(evidence(dict.fromkeys(("kernel-faults", "slow-governor", "bare-node"), 1)))


@pytest.mark.parametrize(
    ("name", "path", "word"),
    [
        ("g1.kernel.log", "kernel-log.out", b"timeout, aborting"),
        ("g1.host.governor", "host-tuning.out", b"powersave"),
        ("g1.host.numa", "host-tuning.out", b"/cpulist"),
    ],
)
def test_a_fault_whose_line_is_gone_is_inconclusive_and_never_a_pass(faulty, name, path, word):
    assert check(judged(faulty), name).verdict is FAIL
    files = faulty
    for host in ("evidence/survey/array01/", GPUS):
        if word in files[host + path]:
            files = lacking(files, host + path, word)
    result = check(judged(files), name)
    assert (result.verdict, "is not what it wrote" in result.reason.en, "与其所写不符" in result.reason.zh) == (INCONCLUSIVE, True, True)


def test_a_queue_that_is_gone_from_a_switchs_table_is_no_calm_switch(whole):
    path, files = "evidence/survey/array01/sonic-pfcwd.leaf1.out", asked(whole, "good-stormed.txt")
    files = accounted({**files, path: files[path].replace(b"2/2 ", b"0/0 ")})  # one queue of two has stormed
    assert check(judged(files), "g1.link.pfc_storms").verdict is FAIL
    assert check(judged(lacking(files, path, b"Ethernet0:3")), "g1.link.pfc_storms").verdict is INCONCLUSIVE


@pytest.mark.parametrize("key", ["stdout_bytes", "stdout_sha256"])
def test_an_account_that_one_command_lacks_or_that_is_wrong_is_a_problem(whole, key):
    path, files = "evidence/survey/gpu01/commands.json", accounted(whole)
    assert check(judged(files), "g1.kernel.log").verdict is PASS

    def edited(value: Any) -> Files:
        rows = json.loads(files[path])
        row = next(row for row in rows if row["name"] == "kernel-log")
        row.pop(key) if value is None else row.update({key: value})
        return {**files, path: json.dumps(rows).encode()}

    for value in (None, True, "0", 7):
        assert check(judged(edited(value)), "g1.kernel.log").verdict is INCONCLUSIVE, value


def test_a_survey_of_an_earlier_release_kept_no_account_and_is_read_as_it_stands(whole):
    assert check(judged(whole), "g1.kernel.log").verdict is PASS


@pytest.mark.parametrize("word", [b"policy0/scaling_governor", b"policy0/affected_cpus", b"policy96/", b"node1/cpulist"])
def test_a_policy_or_a_node_that_is_gone_is_told_by_the_processors_without_any_account(whole, word):
    result = check(judged(lacking(whole, f"{GPUS}host-tuning.out", word)), "g1.host.governor")
    assert result.verdict is INCONCLUSIVE, result.reason.en


def test_one_policy_a_processor_is_what_an_earlier_survey_shows_and_a_missing_one_is_named(whole):
    root = b"/sys/devices/system"
    lines = [b"%s/cpu/cpufreq/policy%d/scaling_governor:performance\n" % (root, n) for n in range(4)]
    lines += [b"%s/node/node0/cpulist:0-3\n" % root, b"%s/node/node0/meminfo:Node 0 MemTotal:  1024 kB\n" % root, b"/proc/cmdline:ro iommu=pt\n"]
    path = "evidence/survey/array01/host-tuning.out"
    assert check(judged({**whole, path: b"".join(lines)}), "g1.host.governor").verdict is PASS
    result = check(judged({**whole, path: b"".join(lines[:2] + lines[3:])}), "g1.host.governor")
    assert (result.verdict, "no frequency policy is told for processors 2" in result.reason.en) == (INCONCLUSIVE, True)


def test_an_uncorrectable_error_whose_line_is_gone_is_no_card_without_error(whole):
    files = with_tools(whole, rocm(ue=3))
    assert check(judged(files), "g1.gpu.ecc").verdict is FAIL
    assert check(judged(lacking(files, f"{GPUS}gpu-ras.out", b":ue: 3")), "g1.gpu.ecc").verdict is INCONCLUSIVE


def test_a_counter_and_a_module_that_are_cut_off_are_told_by_the_account(whole):
    for name, path in (("g1.link.counters", "ethtool-stats.ens8f0np0.out"), ("g1.memory", "dmidecode.out")):
        files, full = accounted(whole), f"evidence/survey/array01/{path}"
        lines = files[full].splitlines(keepends=True)
        assert check(judged({**files, full: b"".join(lines[:-3])}), name).verdict is INCONCLUSIVE
