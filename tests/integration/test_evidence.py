"""Evidence from its registration to a bundle that anybody can judge again."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from app.accounts.actor import SYSTEM
from app.attempts.models import Attempt, VerdictRevision
from app.attempts.usecases import attempt_view, start_attempt
from app.audit.models import AuditRow
from app.evidence import repository, store
from app.evidence.judgement import judge_attempt
from app.evidence.usecases import export_bundle, inputs, manifest
from app.kit.db import write_session
from app.kit.errors import Forbidden, QuadgateError, Refused
from gates.bundle import Unreadable, read_bundle
from gates.canonical import canonical_bytes, sha256_of
from gates.judge import judge
from tests.people import Cast
from tests.scenes import bring, engage, finish, within


def _attempt(s, cast: Cast, **more) -> Attempt:
    attempt = start_attempt(s, engagement_id=engage(s, cast).id, gate="G1", actor=cast.li_wei, **more)
    attempt.status = "running"
    bring(s, attempt, "evidence/survey/gpu01/host.json", b'{"host": "gpu01"}')
    bring(s, attempt, "evidence/survey/array01/commands.json", b"[]")
    return attempt


def test_the_manifest_lists_every_file_in_order_with_its_hash_and_says_the_sealed_plan(cast: Cast) -> None:
    with write_session() as s:
        attempt = _attempt(s, cast)
        made = manifest(s, attempt.id)
        again = manifest(s, attempt.id)
    assert [f["path"] for f in made["files"]] == ["evidence/survey/array01/commands.json", "evidence/survey/gpu01/host.json"]
    assert (made["plan_hash"], made["gate"], made["simulated"]) == (attempt.plan_hash, "G1", True)
    assert made["attempt"] == {"id": attempt.id, "number": 1, "rehearsal": False, "seed": attempt.seed, "status": "finished"}
    assert made == again


def test_the_inputs_hold_what_no_target_can_tell(cast: Cast) -> None:
    with write_session() as s:
        told = inputs(s, _attempt(s, cast).id)
    assert told["hosts"] == {"engine": ["gpu01"], "loadgen": ["gpu01"], "storage": ["array01"]}
    assert told["engagement"]["contract"] == "HT-DEMO-0001"
    assert (told["interruption"], told["g2_baseline"], told["rig_causes"]) == (None, None, [])


def test_a_repeated_step_takes_the_place_of_its_files_and_the_chain_keeps_both_hashes(cast: Cast) -> None:
    with write_session() as s:
        attempt = _attempt(s, cast)
        bring(s, attempt, "evidence/survey/gpu01/host.json", b'{"host": "gpu01", "try": 2}')
        bring(s, attempt, "evidence/survey/gpu01/host.json", b'{"host": "gpu01", "try": 2}')
        rows = [r.data for r in s.execute(select(AuditRow).where(AuditRow.action == "evidence.add").order_by(AuditRow.seq)).scalars()]
        assert len(repository.files_of(s, attempt.id)) == 2
    assert [bool(r["replaces"]) for r in rows] == [False, False, True]


@pytest.mark.parametrize("path", ["/etc/passwd", "evidence/../verdict.json", "evidence//x", "manifest.json", "evidence/a\\b", "evidence/x\n"])
def test_a_path_that_leaves_the_bundle_is_refused(cast: Cast, path: str) -> None:
    with write_session() as s:
        attempt = start_attempt(s, engagement_id=engage(s, cast).id, gate="G1", actor=cast.li_wei)
        with pytest.raises(Refused):
            bring(s, attempt, path, b"x")


def test_a_judgement_can_be_made_again_from_the_exported_bundle_alone(cast: Cast, tmp_path: Path) -> None:
    with write_session() as s:
        attempt = _attempt(s, cast)
        revision = judge_attempt(within(s), attempt_id=attempt.id, actor=SYSTEM)
        finish(s, attempt, None)
        export_bundle(s, attempt_id=attempt.id, dest=tmp_path / "G1.zip", actor=cast.wang_fang)
        export_bundle(s, attempt_id=attempt.id, dest=tmp_path / "again.zip", actor=cast.wang_fang)
        export_bundle(s, attempt_id=attempt.id, dest=tmp_path / "folder", actor=cast.wang_fang)
    assert (tmp_path / "G1.zip").read_bytes() == (tmp_path / "again.zip").read_bytes()
    for path in (tmp_path / "G1.zip", tmp_path / "folder"):
        bundle = read_bundle(path, expect_manifest=revision.manifest_hash)
        fresh = judge(bundle)
        assert json.loads(canonical_bytes(fresh)) == revision.document == bundle.stored_verdict
        assert sha256_of(fresh) == revision.hash
    assert revision.verdict != "pass"  # two empty files prove nothing


def test_one_changed_byte_in_the_export_makes_it_unreadable(cast: Cast, tmp_path: Path) -> None:
    with write_session() as s:
        attempt = _attempt(s, cast)
        export_bundle(s, attempt_id=attempt.id, dest=tmp_path / "bundle", actor=cast.li_wei)
    victim = tmp_path / "bundle" / "evidence" / "survey" / "gpu01" / "host.json"
    victim.write_bytes(victim.read_bytes().replace(b"gpu01", b"gpu02"))
    with pytest.raises(Unreadable, match="differs"):
        read_bundle(tmp_path / "bundle")


def test_judging_again_adds_a_revision_and_replaces_none(cast: Cast) -> None:
    with write_session() as s:
        attempt = _attempt(s, cast)
        first = judge_attempt(within(s), attempt_id=attempt.id, actor=SYSTEM)
        finish(s, attempt, None)
        second = judge_attempt(within(s), attempt_id=attempt.id, actor=cast.li_wei)
        rows = s.execute(select(VerdictRevision).order_by(VerdictRevision.revision)).scalars().all()
        view = attempt_view(s, attempt_id=attempt.id, actor=cast.viewer)
    assert [r.revision for r in rows] == [1, 2]
    assert (first.hash, first.manifest_hash) == (second.hash, second.manifest_hash)
    assert [r["changed"] for r in view["revisions"]] == [[], []]


def test_nobody_judges_an_attempt_early(cast: Cast) -> None:
    with write_session() as s:
        attempt = _attempt(s, cast)
        with pytest.raises(Refused, match="still going on"):
            judge_attempt(within(s), attempt_id=attempt.id, actor=cast.li_wei)
        assert s.execute(select(VerdictRevision)).first() is None


def test_after_the_verdict_the_evidence_is_closed(cast: Cast) -> None:
    with write_session() as s:
        attempt = finish(s, _attempt(s, cast), "fail")
        with pytest.raises(Refused, match="closed"):
            bring(s, attempt, "evidence/late/gpu01/x", b"x")


def test_a_rehearsal_is_not_judged_and_a_viewer_does_not_judge(cast: Cast) -> None:
    with write_session() as s:
        attempt = _attempt(s, cast, rehearsal=True)
        with pytest.raises(Refused, match="never judged"):
            judge_attempt(within(s), attempt_id=attempt.id, actor=cast.li_wei)
        with pytest.raises(Forbidden):
            judge_attempt(within(s), attempt_id=attempt.id, actor=cast.viewer)


def _alter(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(b'{"host": "gpu02"}')


def _make_unreadable(path: Path) -> None:
    path.unlink()
    path.mkdir()  # what a disk error is like for a reader, whoever reads


@pytest.mark.parametrize(
    ("harm", "says"),
    [(_alter, "altered or damaged"), (Path.unlink, "holds no file"), (_make_unreadable, "cannot be read")],
    ids=["altered", "gone", "disk"],
)
def test_a_stored_file_that_cannot_be_had_stops_judgement_and_export_by_its_name_and_no_verdict_comes_of_it(
    cast: Cast, tmp_path: Path, harm: Callable[[Path], None], says: str
) -> None:
    with write_session() as s:
        attempt = _attempt(s, cast)
        lost = repository.files_of(s, attempt.id)[1]
        harm(store.path_of(lost.sha256))
        for dest in (tmp_path / "bundle.zip", tmp_path / "bundle"):
            with pytest.raises(QuadgateError, match=says) as caught:
                export_bundle(s, attempt_id=attempt.id, dest=dest, actor=cast.li_wei)
            assert lost.path in caught.value.text("zh_CN")
            assert list(tmp_path.iterdir()) == []
        with pytest.raises(QuadgateError, match=lost.path):
            judge_attempt(within(s), attempt_id=attempt.id, actor=replace(SYSTEM, via="engine"))
        assert s.execute(select(VerdictRevision)).first() is None


def test_an_export_writes_over_nothing(cast: Cast, tmp_path: Path) -> None:
    (tmp_path / "mine.zip").write_bytes(b"mine")
    with write_session() as s:
        attempt = _attempt(s, cast)
        with pytest.raises(Refused, match="exists already"):
            export_bundle(s, attempt_id=attempt.id, dest=tmp_path / "mine.zip", actor=cast.li_wei)
    assert (tmp_path / "mine.zip").read_bytes() == b"mine"


def test_the_zip_holds_only_what_a_bundle_has(cast: Cast, tmp_path: Path) -> None:
    with write_session() as s:
        attempt = _attempt(s, cast)
        judge_attempt(within(s), attempt_id=attempt.id, actor=SYSTEM)
        export_bundle(s, attempt_id=attempt.id, dest=tmp_path / "b.zip", actor=cast.li_wei)
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        names = archive.namelist()
    assert names == [
        "manifest.json",
        "verdict.json",
        "evidence/inputs.json",
        "evidence/survey/array01/commands.json",
        "evidence/survey/gpu01/host.json",
    ]
