"""The reports: one dataset for all faces, PDFs in two languages that share a revision as long as their facts are the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM, Actor, require
from app.accounts.roles import Permission
from app.attempts.access import find_attempt
from app.audit import chain
from app.evidence import store
from app.evidence import usecases as evidence
from app.evidence.judgement import TRIES, changing
from app.kit import traces
from app.kit.db import Transactions
from app.kit.errors import Refused
from app.kit.i18n import N_
from app.reports import repository
from app.reports.dataset import build, document_number
from app.reports.facts import Facts
from app.reports.models import Report
from app.reports.pdf import render_pdf
from app.reports.words import Words
from gates.transitions import RunStatus

LANGUAGES = ("zh-CN", "en")


def dataset(s: Session, *, attempt_id: str, language: str) -> dict[str, Any]:
    """Return the dataset of an attempt as the web, the API and the PDF show it. Raises NotFound for an unknown attempt."""
    data, _ = _dataset(s, attempt_id, language)
    return data


def render(begin: Transactions, *, attempt_id: str, language: str, actor: Actor = SYSTEM) -> Report:
    """Return the report of an attempt in a language, made if there is none of the present facts. The PDF is made outside any transaction.

    Same facts: the same row. A new judgement or new approvals: the next revision, the former stays. Raises NotFound for an unknown
    attempt, QuadgateError when the PDF cannot be made or stored.
    """
    for _ in range(TRIES):
        with begin() as s:
            data, facts = _dataset(s, attempt_id, language)
            if (found := _issued(s, attempt_id, data)) is not None:
                return found
        with traces.span("report", attempt=attempt_id, language=language, revision=_revision(data)):
            stored = store.put_bytes(render_pdf(data, facts.manifest or None))
        with begin() as s:
            present, now_facts = _dataset(s, attempt_id, language)
            if (found := _issued(s, attempt_id, present)) is not None:
                return found
            if (now_facts.basis, _revision(present)) == (facts.basis, _revision(data)):
                return _keep(s, attempt_id, data, facts, stored, actor)
    raise changing()


def _revision(data: dict[str, Any]) -> int:
    return int(data["document"]["revision"])


def _issued(s: Session, attempt_id: str, data: dict[str, Any]) -> Report | None:
    """Return the report that says all this already."""
    wanted = (_revision(data), str(data["language"]))
    return next((r for r in repository.reports_of(s, attempt_id) if (r.revision, r.language) == wanted), None)


def _keep(s: Session, attempt_id: str, data: dict[str, Any], facts: Facts, stored: store.Stored, actor: Actor) -> Report:
    report = Report(
        attempt_id=attempt_id,
        language=str(data["language"]),
        revision=_revision(data),
        number=document_number(str(facts.engagement["code"]), facts.gate, _revision(data)),
        sha256=stored.sha256,
        size=stored.size,
        manifest_hash=facts.manifest_hash,
        verdict_hash=str(facts.verdict["hash"]) if facts.verdict else "",
        basis=facts.basis,
        at=datetime.fromisoformat(facts.issued_at),
    )
    s.add(report)
    s.flush()
    written = {"number": report.number, "language": report.language, "sha256": report.sha256}
    written |= {"manifest_hash": report.manifest_hash, "basis": report.basis}
    chain.record(s, actor=actor, action="report_rendered", object_kind="report", object_id=report.id, data=written)
    return report


def print_again(begin: Transactions, *, attempt_id: str, actor: Actor) -> list[Report]:
    """Print a judged attempt's report in both languages with what was recorded since: approvals, the register. Same facts, same report.

    Raises Refused while the attempt is not finished, since its own last step prints the first issue.
    """
    require(actor, Permission.RECORD_DEVIATION)
    with begin() as s:
        attempt, _ = find_attempt(s, attempt_id, actor)
        if attempt.status != RunStatus.FINISHED or attempt.verdict is None:
            raise Refused("not_finished", N_("There is no report to print again: the attempt is not finished, or was not judged."))
    return [render(begin, attempt_id=attempt_id, language=language, actor=actor) for language in LANGUAGES]


def latest(s: Session, *, attempt_id: str, language: str) -> Report | None:
    """Return the newest report of an attempt in a language, or None."""
    tag = Words(language).language
    return next((r for r in reversed(repository.reports_of(s, attempt_id)) if r.language == tag), None)


def report_file(s: Session, *, report_id: str, actor: Actor) -> tuple[Report, bytes]:
    """Return a report with its bytes, checked against their hash. Raises NotFound, Forbidden, or QuadgateError for damaged bytes."""
    require(actor, Permission.VIEW)
    report = repository.report(s, report_id)
    return report, store.read(report.sha256)


def _dataset(s: Session, attempt_id: str, language: str) -> tuple[dict[str, Any], Facts]:
    """Build the dataset with its revision: that of the newest reports when their facts are the present ones, else the next."""
    facts = repository.gather(s, attempt_id, evidence.manifest(s, attempt_id))
    rows = repository.reports_of(s, attempt_id)
    newest = rows[-1] if rows else None
    revision = 0 if newest is None else newest.revision if newest.basis == facts.basis else newest.revision + 1
    earlier = {r.revision: {"revision": r.revision, "at": r.at.isoformat(), "verdict_hash": r.verdict_hash} for r in rows if r.revision < revision}
    return build(facts, language, revision=revision, revisions=tuple(earlier.values())), facts
