"""The probe's readings of the kernel's log: what is new since the reading before, whether that still stood there, and why nothing could be read."""

import pytest

from gates.readers.kernel_log import told_in
from gates.readers.soak_kernel import digest as judged_digest
from tests.unit.probe.kit import SOURCES  # puts the probe on the path
from tests.unit.readers.test_fixtures import FIXTURES

assert SOURCES
from probe import kernel_log  # noqa: E402 - behind the path
from probe.kernel_log import KernelLog, digest  # noqa: E402

BOOT = "[    0.000000] Linux version 6.8\n"


class Kernel:
    """A host whose programs answer as they are told to."""

    def __init__(self, ring=BOOT, ring_problem="", journal="", journal_problem="it is not installed"):
        self.ring, self.ring_problem, self.journal, self.journal_problem = ring, ring_problem, journal, journal_problem
        self.asked = []

    def __call__(self, argv):
        self.asked.append(argv[0])
        return (self.ring, self.ring_problem) if argv[0] == "dmesg" else (self.journal, self.journal_problem)


def readings(kernel, *between):
    """Return the rows of a reading at the begin and one behind each change of the kernel's log."""
    log = KernelLog("gpu01", ask=kernel)
    log.read()
    for change in between:
        change(kernel)
        log.read()
    return log.rows()


def adds(text):
    def change(kernel):
        kernel.ring += text

    return change


def becomes(text, problem=""):
    def change(kernel):
        kernel.ring, kernel.ring_problem = text, problem

    return change


def test_only_what_is_new_since_the_reading_before_is_brought():
    first, second, third = readings(Kernel(), adds("[   60.100000] nvme nvme4: starting error recovery\n"), adds(""))
    assert (first["begins"], first["joined"], first["lines"], first["tool"], first["problem"]) == (True, True, [], "dmesg", None)
    assert (second["begins"], second["joined"], second["lines"]) == (False, True, ["[60.100000] nvme nvme4: starting error recovery"])
    assert (third["joined"], third["lines"], third["kept"]) == (True, [], 0)
    assert second["sha256"] == digest(second["lines"]) == judged_digest(second["lines"])
    assert second["host"] == "gpu01"


def test_a_log_that_was_overwritten_or_cleared_is_not_joined_and_what_stands_there_is_brought():
    rows = readings(Kernel(), becomes("[   99.000000] nvme nvme4: Reconnecting in 10 seconds...\n"), becomes(""), becomes("[  100.000000] x\n"))
    assert [row["joined"] for row in rows] == [True, False, False, False]
    assert rows[1]["lines"] == ["[99.000000] nvme nvme4: Reconnecting in 10 seconds..."]
    assert rows[2]["problem"]


def test_where_the_ring_may_not_be_read_the_journal_is_and_where_neither_may_be_that_is_said():
    refused = "dmesg: read kernel buffer failed: Operation not permitted"
    kernel = Kernel("", refused, "[    1.000000] gpu01 kernel: Linux version 6.8\n", "")
    (row,) = readings(kernel)
    assert (row["tool"], row["problem"], kernel.asked) == ("journalctl", None, ["dmesg", "journalctl"])
    first, second = readings(Kernel("", refused), adds(""))
    assert (first["joined"], first["lines"], second["joined"]) == (False, [], False)
    assert refused in first["problem"]
    assert "journalctl: it is not installed" in first["problem"]


def test_the_same_program_is_asked_all_the_time():
    kernel = Kernel(journal="[    1.000000] gpu01 kernel: another form\n", journal_problem="")
    rows = readings(kernel, becomes("", "it gave no answer within 20 s"))
    assert (rows[1]["tool"], rows[1]["problem"]) == ("dmesg", "dmesg: it gave no answer within 20 s")


def test_secrets_in_a_line_are_struck_out():
    text = "[    9.000000] nvme-cli[9]: connect --dhchap-secret=DHHC-1:00:abcdef: password=hunter22 Authorization: Bearer abc.def\n"
    line = readings(Kernel(), adds(text))[1]["lines"][0]
    assert "abcdef" not in line
    assert "hunter22" not in line
    assert "abc.def" not in line
    assert "--dhchap-secret=***" in line


def test_a_host_that_writes_without_end_fills_no_disk_and_its_faults_are_still_brought(monkeypatch):
    monkeypatch.setattr(kernel_log, "WHOLE_BYTES", 200)
    monkeypatch.setattr(kernel_log, "MOST_BYTES", 400)
    noise = "".join(f"[{n:5d}.000000] veth{n}: entered promiscuous mode\n" for n in range(1, 50))
    fault = "[   60.000000] nvme nvme4: starting error recovery\n"
    row = readings(Kernel(), adds(noise + fault))[1]
    assert row["passed_over"] > 40
    assert row["left_out"] == 0
    assert row["lines"][-1].endswith("starting error recovery")
    storm = readings(Kernel(), adds(fault * 3 + "".join(fault.replace("60.", f"{n}.") for n in range(61, 90))))[1]
    assert storm["left_out"] > 0
    assert storm["kept"] == len(storm["lines"]) > 0


@pytest.mark.parametrize("name", ["good-ring-with-faults.txt", "good-journal.txt"])
def test_no_line_that_the_judge_would_count_is_passed_over_as_noise(name):
    text = (FIXTURES / "kernel-log" / name).read_text()
    for told in told_in(text.splitlines()):
        assert not told.family or kernel_log._MAY_TELL.search(told.line), told.line


def test_the_log_is_read_when_the_load_begins_and_once_more_at_its_end():
    log = KernelLog("gpu01", ask=Kernel())
    log.begin()
    log.begin()  # a driver whose host rebooted may say so again
    log.end()
    log.end()
    assert [(row["begins"], row["joined"]) for row in log.rows()] == [(True, True), (False, True)]
    assert log.rows() == []
