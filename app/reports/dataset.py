"""The one dataset of an attempt: what the web page, the API and the PDF show. Pure: facts in, words and numbers out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from app.reports import format as f
from app.reports.checks import check_row, claim_rows, claims_matrix, untested
from app.reports.extension import changed_checks, extension_of, is_open
from app.reports.facts import Facts
from app.reports.forms import form_rows
from app.reports.headline import advisory_of, headlines, key_checks
from app.reports.history import attempt_rows, counts
from app.reports.register import open_sentence, register_rows
from app.reports.tables import delivery, diagnostic_rows, evidence_rows, exact_rows, hosts, hour_rows, platform, run_rows
from app.reports.thresholds import threshold_rows
from app.reports.words import Words
from app.settings import settings

SCHEMA = 1
TEMPLATE_VERSION = "1"
_LAST = "G4"  # no gate comes after it


def build(facts: Facts, language: str, *, revision: int = 0, revisions: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """Return the dataset of an attempt in one language.

    `revisions` are the earlier issues of this report: {revision, at, verdict_hash}. Numbers stand in it as printed; the exact
    ones beside them (`*_exact`), and the whole verdict as judged under `source`.
    """
    words = Words(language)
    document = facts.document
    rehearsal = bool(facts.attempt.get("rehearsal"))
    checks = [check_row(check, words) for check in document.get("checks") or []]
    claims = list(document.get("claims") or [])
    return {
        "schema": SCHEMA,
        "language": words.language,
        "basis": facts.basis,
        "document": _document(facts, words, revision, revisions),
        "parties": _parties(facts, words),
        "attempt": {
            "id": facts.attempt["id"],
            "gate": facts.gate,
            "number": facts.attempt["number"],
            "rehearsal": bool(facts.attempt.get("rehearsal")),
            "status": facts.attempt.get("status"),
            "status_text": words.of("run_statuses", facts.attempt.get("status")),
            "started": f.moment(facts.attempt.get("started_at") or facts.attempt.get("created_at")),
            "ended": f.moment(facts.attempt.get("finished_at")),
            "judged": f.moment(facts.verdict["at"]) if facts.verdict else f.MISSING,
        },
        "verdict": _verdict(facts, words),
        "headlines": [] if rehearsal else headlines(document, checks, facts.gate, words),
        "key_checks": [] if rehearsal else [row["id"] for row in key_checks(checks, facts.gate)],
        "advisory": _advisory(checks, words, rehearsal=rehearsal),
        "scope": _scope(facts, words),
        "items": {"rows": list(facts.engagement.get("packing_list") or []), "delivery": delivery(facts.engagement)},
        "hosts": hosts(facts.engagement),
        "platform": platform(facts.plan),
        "forms": [{"title": words.text(form.get("title")), "rows": form_rows(form, words)} for form in facts.forms],
        "plan": {
            "hash": facts.plan_hash,
            "revision": facts.plan_revision,
            "sealed": f.moment(facts.sealed_at) if facts.sealed_at else words("labels.not_sealed"),
        },
        "thresholds": threshold_rows(facts.plan, facts.gate, words),
        "rule": _rule(facts, words),
        "checks": checks,
        "claims": {"matrix": claims_matrix(claims, words), "rows": claim_rows(claims, words)},
        "figures": dict(document.get("figures") or {}),
        "runs": run_rows(document.get("figures") or {}, words),
        "hours": hour_rows(document.get("figures") or {}),
        "diagnostics": diagnostic_rows(document.get("figures") or {}, words),
        "baseline": _baseline(document),
        "attempts": attempt_rows(facts, words),
        "extension": extension_of(facts, words),
        "deviations": register_rows(facts.deviations, words, punch=False),
        "punch": register_rows(facts.deviations, words, punch=True),
        "consequence": _consequence(facts, words),
        "approvals": [_approval(a, words) for a in facts.approvals],
        "judgements": [
            {
                "revision": v["revision"],
                "verdict": v["verdict"],
                "verdict_text": words.of("verdicts", v["verdict"]),
                "at": f.moment(v["at"]),
                "hash": v["hash"],
                "judge_version": v.get("judge_version", ""),
                "changed": changed_checks(v, words),
            }
            for v in facts.verdicts
        ],
        "integrity": {
            "manifest_hash": facts.manifest_hash,
            "verdict_hash": facts.verdict["hash"] if facts.verdict else "",
            "rules_hash": str(document.get("rules_hash") or ""),
            "judge_version": str(document.get("judge_version") or ""),
            "plan_hash": facts.plan_hash,
            "command": f"quadgate judge BUNDLE --expect-manifest {facts.manifest_hash}",
        },
        "evidence": evidence_rows(facts.manifest),
        "exact": exact_rows(checks),
        "source": {"verdict": document, "manifest_hash": facts.manifest_hash},
    }


def document_number(code: str, gate: str, revision: int) -> str:
    """Return the document number: ACC-<code>-<gate>-R<revision>."""
    return f"ACC-{code}-{gate}-R{revision}"


def state(facts: Facts) -> str:
    """Return the state of the document: draft, issued, or signed by both parties."""
    if facts.verdict is None or facts.attempt.get("rehearsal") or not facts.sealed_at or is_open(facts.attempt):
        return "draft"
    return "signed" if facts.signed else "issued"


def _document(facts: Facts, words: Words, revision: int, revisions: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    now = state(facts)
    marks = [kind for kind, holds in (("simulated", facts.simulated), ("rehearsal", bool(facts.attempt.get("rehearsal")))) if holds]
    if now == "draft" and "rehearsal" not in marks:
        marks.append("draft")
    other = Words("en" if words.language == "zh-CN" else "zh-CN")
    prevailing = str((facts.plan.get("plan") or {}).get("language_prevailing") or "zh-CN")
    history = [
        {"revision": f"R{r['revision']}", "at": f.moment(r["at"]), "what": words(_what(previous, r))}
        for previous, r in zip((None, *revisions), (*revisions, _present(facts, revision)), strict=True)
    ]
    return {
        "number": document_number(str(facts.engagement["code"]), facts.gate, revision),
        "revision": revision,
        "gate": facts.gate,
        "gate_name": words.of("gate_names", facts.gate),
        "title": words.of("gates", facts.gate),
        "title_other": other.of("gates", facts.gate),
        "state": now,
        "state_text": words.of("states", f"simulated_{now}" if facts.simulated else now),  # nothing simulated is issued
        "issued_at": facts.issued_at,
        "issued": f.moment(facts.issued_at),
        "simulated": facts.simulated,
        "rehearsal": bool(facts.attempt.get("rehearsal")),
        "marks": [{"kind": kind, "text": words.of("marks", kind), "other": other.of("marks", kind)} for kind in marks],
        "watermark": words.of("watermarks", marks[0]) + " " + other.of("watermarks", marks[0]) if marks else "",
        "prevailing": prevailing,
        "times_text": words("times", zone=settings().time_zone),
        "prevailing_text": words("prevails", language=words.of("languages", prevailing)),
        "template_version": TEMPLATE_VERSION,
        "revisions": history,
    }


def _present(facts: Facts, revision: int) -> dict[str, Any]:
    return {"revision": revision, "at": facts.issued_at, "verdict_hash": facts.verdict["hash"] if facts.verdict else ""}


def _what(previous: dict[str, Any] | None, row: dict[str, Any]) -> str:
    """Return the word for what changed between two issues."""
    if previous is None:
        return "revision_first"
    return "revision_judged" if previous["verdict_hash"] != row["verdict_hash"] else "revision_more"


def _parties(facts: Facts, words: Words) -> dict[str, Any]:
    e = facts.engagement
    people = e.get("people") or {}
    return {
        "code": e["code"],
        "customer": e["customer"],
        "vendor": e["vendor"],
        "site": e["site"],
        "contract": e["contract"],
        "people": [
            {"party": party, "party_text": words.of("parties", party), "name": str(p.get("name", "")), "title": str(p.get("title", ""))}
            for party in ("vendor", "customer")
            for p in people.get(party) or []
        ],
    }


def _verdict(facts: Facts, words: Words) -> dict[str, Any]:
    """Return the verdict in words. A rehearsal is never judged, whatever was computed for practice."""
    document = facts.document
    word = str(document.get("verdict") or "none") if not facts.attempt.get("rehearsal") else "none"
    because = [str(b) for b in document.get("because") or []] if word == "conditional" else []
    return {
        "word": word,
        "text": words.of("verdicts", word),
        "other": Words("en" if words.language == "zh-CN" else "zh-CN").of("verdicts", word),
        "meaning": words.of("verdict_meanings", word),
        "because": because,
        "because_text": words.numbers(words.of("because", b) for b in because),
        "summary": words.text(document.get("summary")) if word != "none" else "",
    }


def _advisory(checks: list[dict[str, Any]], words: Words, *, rehearsal: bool) -> dict[str, Any]:
    """Return the sentence about advisory checks that did not hold, with the ids of those checks; a rehearsal is never judged."""
    found = advisory_of([] if rehearsal else checks, words)
    return {"sentence": found["sentence"], "checks": [row["id"] for row in found["rows"]]}


def _scope(facts: Facts, words: Words) -> dict[str, Any]:
    """Return what stands on page 1 beside the verdict: what was not tested, cache policy, SLA, all tries."""
    agreed, others = untested(facts.document)
    left_out, not_asked = ([_untested(row, words) for row in rows] for rows in (agreed, others))
    if not facts.document:
        left_out = [{"what": str(row.get("claim", "")), "reason": words.text(row.get("reason"))} for row in facts.plan.get("not_tested") or []]
    cache = str((facts.plan.get("arms") or {}).get("array_cache") or "")
    sla = ((facts.plan.get("g3") or {}).get("sla") or {}).get("ttft_p50")
    return {
        "not_tested": [{**row, "reason": row["reason"] or words("not_tested_default")} for row in left_out],
        "not_tested_none": words("not_tested_none"),
        "not_asked": not_asked,
        "array_cache": words.of("array_cache", cache) if facts.gate in ("G2", "G3", "G4") and cache else "",
        "sla": words("no_sla") if facts.gate == "G3" and not sla and not any("SLA" in row["what"] for row in not_asked) else "",
        "tries": counts(facts, words),
        "register": open_sentence(facts.deviations, words),
    }


def _untested(row: dict[str, Any], words: Words) -> dict[str, str]:
    return {"what": words.text(row.get("title")) or str(row.get("claim") or row.get("check") or ""), "reason": words.text(row.get("reason"))}


def _rule(facts: Facts, words: Words) -> dict[str, Any]:
    """Return the decision rule and its risk in sentences."""
    plan = facts.plan.get("decision") or {}
    used = facts.document.get("decision") or {}
    rule = str(used.get("rule") or plan.get("rule") or "simple")
    comparison = str(used.get("comparison") or plan.get("comparison") or "full")
    confidence = f.limit_percent(used.get("confidence") or plan.get("confidence"))
    sentences = [
        words(f"rules.{rule}", confidence=confidence, guard_r=str(plan.get("guard_r", ""))),
        words(f"comparisons.{comparison}", digits=str(plan.get("digits", ""))),
    ]
    if facts.gate == "G3":
        sentences.append(words("pairs", pairs=str(used.get("pairs") or plan.get("pairs") or "")))
    return {"rule": rule, "sentences": sentences, "risk": words.text(facts.document.get("risk"))}


def _consequence(facts: Facts, words: Words) -> dict[str, Any]:
    """Return what follows from the verdict by the sealed plan: the stop-loss text and the objection window after a fail."""
    policy = facts.plan.get("policy") or {}
    word = _verdict(facts, words)["word"]
    days = int(policy.get("objection_days") or 0)
    if word == "fail":
        action = str((policy.get("on_fail") or {}).get(facts.gate) or "stop")
        sentences = [words(f"consequences.{action}", days=days)]
        if facts.verdict:
            until = datetime.fromisoformat(facts.since or str(facts.verdict["at"])) + timedelta(days=days)
            sentences.append(words("objection_until", until=f.moment(until)))
    else:
        way_on = facts.document.get("extension") or {}
        action = "extend" if word == "inconclusive" and way_on.get("may") is True and not facts.attempt.get("extension") else word
        sentences = [words(f"consequences.{action}", pairs=way_on.get("pairs"))]
        sign_off = str((policy.get("sign_off") or {}).get(facts.gate, "recorded"))
        if word == "pass" or (word == "conditional" and sign_off == "required"):
            sentences.append(words(f"ways_on.{'last' if facts.gate == _LAST else 'next'}_{sign_off}"))
    return {"action": action, "stop": word == "fail" and action == "stop", "sentences": sentences}


def _approval(approval: dict[str, Any], words: Words) -> dict[str, Any]:
    return {
        **approval,
        "party_text": words.of("parties", approval["party"]),
        "what": words.of("approval_kinds", approval["object_kind"]),
        "decision_text": words.of("decisions", approval["decision"]),
        "at_text": f.moment(approval["at"]),
    }


def _baseline(document: dict[str, Any]) -> dict[str, Any]:
    """Return the baseline that a passed G2 freezes, formatted; empty when there is none."""
    frozen = (document.get("facts") or {}).get("baseline") or {}
    tiers = frozen.get("tiers") or {}
    rows = [
        {"tier": tier, "ttft_p50": f.ms_of_ns(data.get("ttft_p50_ns")), "throughput": f.tok_s(data.get("output_tokens_per_s"))}
        for tier, data in sorted(tiers.items(), key=lambda item: int(item[0]))
    ]
    return {"hash": str(frozen.get("hash") or ""), "rows": rows} if rows else {}
