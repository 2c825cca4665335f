"""A bundle is read only when every byte is what its manifest says, and nothing else lies in it."""

import json
import os
import zipfile

import pytest

from gates.bundle import Unreadable, make_manifest, read_bundle
from gates.canonical import canonical_bytes
from gates.judge import judge
from gates.plan import parse_plan
from tests.bundles import g2_evidence, g4_evidence, soak_plan


@pytest.fixture(scope="module")
def evidence():
    return g2_evidence()


@pytest.fixture
def folder(evidence, tmp_path):
    return evidence.write(tmp_path / "b")


RECORDS = "evidence/run-1/gpu01/records.jsonl"


def refusal(path, **options):
    with pytest.raises(Unreadable) as caught:
        read_bundle(path, **options)
    assert caught.value.text.zh
    return caught.value.text.en


def test_directory_and_zip_of_one_bundle_give_one_verdict_and_one_manifest_hash(evidence, folder, tmp_path):
    first, second = read_bundle(folder), read_bundle(evidence.zip(tmp_path / "b.zip"))
    assert first.manifest_hash == second.manifest_hash
    assert judge(first) == judge(second)


def test_one_changed_byte_is_refused(folder):
    target = folder / RECORDS
    data = bytearray(target.read_bytes())
    data[100] ^= 1
    target.write_bytes(data)
    assert RECORDS in refusal(folder)


def test_a_missing_file_is_refused_by_name(folder):
    (folder / RECORDS).unlink()
    assert "missing" in refusal(folder)


def test_a_file_that_nobody_listed_is_refused(folder):
    (folder / "evidence/run-1/gpu01/extra.txt").write_text("x")
    assert "not in the manifest" in refusal(folder)
    (folder / "evidence/run-1/gpu01/extra.txt").rename(folder / "readme.txt")
    assert "not in the manifest" in refusal(folder)


def test_a_link_is_refused(folder):
    (folder / RECORDS).unlink()
    os.symlink("/etc/hostname", folder / RECORDS)
    assert "link" in refusal(folder)


def test_another_manifest_than_the_report_prints_is_refused(evidence, folder):
    right = read_bundle(folder).manifest_hash
    assert read_bundle(folder, expect_manifest=right.removeprefix("sha256:"))
    assert "expected" in refusal(folder, expect_manifest="sha256:" + "0" * 64)


def edit_manifest(folder, edit):
    path = folder / "manifest.json"
    data = json.loads(path.read_bytes())
    edit(data)
    path.write_bytes(canonical_bytes(data))


@pytest.mark.parametrize(
    "name", ["../outside", "/etc/passwd", "evidence/../../x", "evidence/a/./b", "evidence//x", "verdict.json", "evidence/a\\b", "evidence/\n"]
)
def test_a_path_that_leaves_the_bundle_is_refused(folder, name):
    edit_manifest(folder, lambda d: d["files"].append({**d["files"][-1], "path": name}))
    assert "path" in refusal(folder)


@pytest.mark.parametrize("size", [-1, 2**50, True, "12", None, 1.5])
def test_an_absurd_size_is_refused(folder, size):
    edit_manifest(folder, lambda d: d["files"][0].update(size=size))
    assert "size" in refusal(folder) or "bytes" in refusal(folder)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda d: d.update(plan_hash="sha256:" + "0" * 64), "hash"),
        (lambda d: d["plan"]["g2"].update(repeatability_cv_max="0.5"), "hash"),
        (lambda d: d["plan"]["g2"].pop("runs"), "g2.runs"),
        (lambda d: d.pop("plan"), "lacks plan"),
        (lambda d: d.update(schema=2), "schema"),
        (lambda d: d["files"].append(d["files"][0]), "twice"),
        (lambda d: d.update(files="none"), "list"),
        (lambda d: d["files"][0].update(sha256="x"), "SHA-256"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(folder, edit, says):
    edit_manifest(folder, edit)
    assert says in refusal(folder)


def test_a_manifest_that_is_not_canonical_or_not_json_is_refused(folder):
    path = folder / "manifest.json"
    raw = path.read_bytes()
    path.write_bytes(json.dumps(json.loads(raw), indent=1).encode())
    assert "canonical" in refusal(folder)
    for junk in (b"", b"{", b"[]", b'{"a": NaN}', b'{"a":1,"a":2}', b"\xff\xfe"):
        path.write_bytes(junk)
        refusal(folder)


def test_what_is_no_bundle_is_refused_with_a_sentence(tmp_path):
    assert "does not exist" in refusal(tmp_path / "absent")
    (tmp_path / "text").write_text("hello")
    assert "neither" in refusal(tmp_path / "text")
    assert "no manifest.json" in refusal(tmp_path)


def test_a_zip_bomb_and_a_path_out_of_the_zip_are_refused(evidence, tmp_path):
    bomb = evidence.zip(tmp_path / "bomb.zip")
    with zipfile.ZipFile(bomb, "a", zipfile.ZIP_DEFLATED) as out:
        out.writestr("evidence/run-1/gpu01/zeros", b"\0" * 50_000_000)
    assert "beyond reason" in refusal(bomb)
    slip = evidence.zip(tmp_path / "slip.zip")
    with zipfile.ZipFile(slip, "a") as out:
        out.writestr("../../etc/cron.d/x", b"x")
    assert "leaves the bundle" in refusal(slip)
    twice = evidence.zip(tmp_path / "twice.zip")
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(twice, "a") as out:
        out.writestr(RECORDS, b"x")
    assert "twice" in refusal(twice)


def test_a_truncated_or_damaged_zip_is_refused(evidence, tmp_path):
    whole = evidence.zip(tmp_path / "b.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    refusal(tmp_path / "cut.zip")
    hurt = bytearray(whole)
    hurt[2000] ^= 0xFF
    (tmp_path / "hurt.zip").write_bytes(hurt)
    refusal(tmp_path / "hurt.zip")


@pytest.mark.parametrize("around", [lambda zipped: b"#!/bin/sh\n" + zipped, lambda zipped: zipped + b"tail" * 10])
def test_a_zip_with_something_around_it_is_refused(evidence, tmp_path, around):
    whole = evidence.zip(tmp_path / "b.zip").read_bytes()
    (tmp_path / "around.zip").write_bytes(around(whole))
    assert "before or behind" in refusal(tmp_path / "around.zip")


def test_the_expected_hash_is_read_as_people_paste_it(folder):
    right = read_bundle(folder).manifest_hash
    assert read_bundle(folder, expect_manifest=f" {right.upper()}\n")
    refusal(folder, expect_manifest="")


def test_wall_clocks_in_the_manifest_survive_canonical_json():
    entry = {"path": "evidence/a/b/c", "size": 1, "sha256": "0" * 64, "clocks": {"started_wall_ns": 1_764_437_221_000_000_000}}
    manifest = make_manifest(plan=parse_plan(), gate="G1", attempt={"id": "a"}, simulated=False, created_at="", files=[entry])
    assert manifest["files"][0]["clocks"]["started_wall_ns"] == "1764437221000000000"
    assert canonical_bytes(manifest) == canonical_bytes(json.loads(canonical_bytes(manifest)))


def test_a_journal_that_is_changed_after_the_bundle_was_opened_is_noticed_when_it_is_read(tmp_path):
    folder = g4_evidence(plan=soak_plan()).write(tmp_path / "bundle")
    opened = read_bundle(folder)
    victim = folder / "evidence" / "soak" / "gpu01" / "records.jsonl"
    name = "evidence/soak/gpu01/records.jsonl"
    assert b"".join(opened.blocks(name)) == victim.read_bytes()
    times = victim.stat()
    victim.write_bytes(victim.read_bytes().replace(b'"http_status":200', b'"http_status":500', 1))
    os.utime(victim, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(Unreadable, match="differs"):
        list(opened.blocks(name))
