"""What the templates show, made of what the use cases return: shapes, links, groups. No number is computed and no rule decided here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from app.kit.clock import now
from app.kit.i18n import N_, language_tag, translate
from app.kit.words import word
from app.reports.checks import check_row, claim_rows, claims_matrix, untested, value_text
from app.reports.format import duration
from app.reports.headline import advisory_of
from app.reports.thresholds import section_rows, threshold_rows
from app.reports.words import Words
from app.web.render import time_of, unbroken

Data = dict[str, Any]
_BEFORE_A_UNIT = re.compile(r"(?<=\d) (?=[%°µA-Za-z\u4e00-\u9fff])")
MEASURING = frozenset({"job"})
ENDED = frozenset({"finished", "canceled", "error"})

# How a gate looks, by its state: symbol of the posts, symbol of the badge, colour, and how the rail goes on.
GATE_LOOKS: dict[str, tuple[str, str, str, str]] = {
    "locked": ("open", "v-none", "", "shut"),
    "ready": ("here", "s-queued", "v-active", "here"),
    "running": ("here", "s-running", "v-active", "here"),
    "error": ("open", "s-error", "v-fail", "here"),
    "consent": ("conditional", "v-conditional", "v-conditional", "here"),
    "sign_off": ("pass", "s-waiting", "v-pass", "here"),
    "passed": ("pass", "v-pass", "v-pass", "done"),
    "rectify": ("fail", "v-fail", "v-fail", "here"),
    "extend": ("here", "v-none", "v-inconclusive", "here"),
    "again": ("here", "v-none", "v-inconclusive", "here"),
    "stopped": ("fail", "v-fail", "v-fail", "here"),
    "not_concluded": ("shut", "v-none", "v-inconclusive", "here"),
}
ENGAGEMENT_LOOKS: dict[str, tuple[str, str]] = {
    "draft": ("s-queued", ""),
    "active": ("s-running", "v-active"),
    "stopped": ("v-fail", "v-fail"),
    "not_concluded": ("v-inconclusive", "v-inconclusive"),
    "concluded": ("v-pass", "v-pass"),
    "closed": ("s-finished", ""),
}
BUTTONS: dict[str, str] = {
    "seal": N_("Open the sign-off inbox"),
    "consent": N_("Open the sign-off inbox"),
    "sign_off": N_("Open the sign-off inbox"),
    "lift": N_("Open the sign-off inbox"),
    "close": N_("Open the sign-off inbox"),
    "start": N_("Start the attempt"),
    "retry": N_("Try the failed step again"),
    "extend": N_("Extend the attempt"),
    "follow": N_("Follow it live"),
    "form": N_("Fill in the form"),
}
SECTIONS: dict[str, str] = {  # of a plan, in the order in which a page shows them
    "workload": N_("Workload"),
    "arms": N_("Arms"),
    "decision": N_("Decision rule"),
    "policy": N_("Attempts, fails, sign-off"),
    "platform": N_("Platform"),
    "calendar": N_("Calendar"),
    "evidence": N_("Evidence"),
    "not_tested": N_("Not tested, by agreement"),
    "expected": N_("Expected, for the chances only"),
    "rig": N_("Rig"),
    "plan": N_("The plan itself"),
}
DECISION_KINDS = {"seal": "plan", "consent": "conditional", "sign_off": "sign_off", "lift": "stop_loss", "close": "close"}


def engagement_card(item: Data) -> Data:
    """Return an engagement of the board with its looks."""
    badge, colour = ENGAGEMENT_LOOKS.get(item["state"], ("v-none", ""))
    return item | {"badge": badge, "colour": colour, "gates": [gate_look(gate) for gate in item["gates"]]}


def gate_look(gate: Data) -> Data:
    """Return a gate with its looks: the verdict's own shape where one stands."""
    shape, badge, colour, rail = GATE_LOOKS.get(gate["state"], GATE_LOOKS["locked"])
    verdict = gate["verdict"]
    if verdict and gate["state"] != "running":
        shape, colour = ("pass" if verdict == "pass" else verdict), f"v-{verdict}"
    return gate | {"live": gate["state"] == "running", "look": {"shape": shape, "badge": badge, "colour": colour, "rail": rail}}


def next_step(overview: Data, pending: Iterable[Data], locale: str) -> Data:
    """Return the one next action with its button: a link to look or decide, a form that starts or retries."""
    action: Data = overview["next"]
    kind, here = action["kind"], f"/engagements/{overview['id']}"
    links = {"follow": f"/attempts/{action['attempt_id']}", "form": f"/attempts/{action['attempt_id']}"}
    posts = {"start": f"{here}/gates/{action['gate']}/attempts", "retry": f"/attempts/{action['attempt_id']}/retry"}
    posts["extend"] = f"/attempts/{action['attempt_id']}/extend"
    if kind in DECISION_KINDS:
        wanted = DECISION_KINDS[kind]
        found = next((p for p in pending if p["engagement_id"] == overview["id"] and p["object_kind"] == wanted), None)
        links[kind] = f"/sign-off/{found['object_kind']}/{found['object_id']}" if found else "/sign-off"
    button = translate(BUTTONS[kind], locale) if kind in BUTTONS else ""
    return action | {"href": links.get(kind, ""), "post": posts.get(kind, ""), "button": button}


def marks(engagement: Data, *, simulated: bool, rehearsal: bool = False) -> Data:
    """Return what every page of an engagement must say on top."""
    stopped = engagement["state_reason"] if engagement["state"] == "stopped" else None
    return {"simulated": simulated, "rehearsal": rehearsal, "stopped": stopped}


def attempt_name(attempt: Data, locale: str) -> str:
    """Return "attempt 2" or "rehearsal 1"."""
    return translate(N_("rehearsal {n}") if attempt["rehearsal"] else N_("attempt {n}"), locale, n=attempt["number"])


def steps(attempt: Data, locale: str) -> list[Data]:
    """Return the steps with their state and how long each took, or has been going on."""
    return [step | {"words": step_words(step, locale)} for step in attempt["steps"]]


def step_words(step: Data, locale: str) -> str:
    """Return the state of a step in words, with its duration."""
    begun, ended = time_of(step["started_at"]), time_of(step["finished_at"])
    state = word("step", step["status"], locale)
    if begun is None:
        return state
    return f"{state} · {duration(_seconds(begun, ended or now()), language_tag(locale))}"


def _seconds(begun: datetime, ended: datetime) -> str:
    seconds = max(0.0, (ended - begun).total_seconds())
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"


def mark(attempt: Data) -> str:
    """Return what must change before a live page is worth loading anew.

    Between queued and running only the badge changes, and a verdict is shown once its reports are printed: so the end is one change, not four.
    """
    status = "going" if attempt["status"] in {"queued", "running"} else attempt["status"]
    waiting = ",".join(step["key"] for step in attempt["steps"] if step["status"] == "waiting")
    end = (attempt["verdict_hash"], len(attempt["reports"])) if attempt["status"] in ENDED else ()
    return "|".join(str(part) for part in (status, attempt["cancel_requested_at"], waiting, *end))


def editions(reports: Iterable[Data], locale: str) -> list[Data]:
    """Return the reports of an attempt, the one in the reader's language first."""
    return sorted(reports, key=lambda report: (report["language"] != language_tag(locale), report["language"]))


def claimable(attempt: Data) -> bool:
    """Return whether a claim about the rig makes sense on this page: the attempt ended, nothing is said about the product, and none is approved."""
    silent = attempt["verdict"] not in {"pass", "conditional", "fail"}
    return attempt["status"] in ENDED and silent and not attempt["rehearsal"] and not attempt["excused"]


def verdict_tables(document: Mapping[str, Any], locale: str) -> Data:
    """Return checks, claims and their table arm x claim as rows, formatted as in the printed report."""
    words = Words(language_tag(locale))
    rows = [_on_a_page(check_row(check, words)) for check in document["checks"]]
    groups = [{"severity": severity, "rows": [row for row in rows if row["severity"] == severity]} for severity in ("blocking", "advisory")]
    claims = list(document.get("claims") or [])
    intervals = any(row["interval"] for row in rows)  # a gate without any shows no empty column
    agreed, others = untested(document)
    return {
        "checks": groups,
        "beside": advisory_of(rows, words),
        "intervals": intervals,
        "matrix": claims_matrix(claims, words),
        "claims": [_on_a_page(row) for row in claim_rows(claims, words)],
        "not_tested": agreed,
        "not_asked": others,
    }


def _on_a_page(row: Data) -> Data:
    """Return a row as a page shows it; a rule of this design is no field of the plan that a reader could look up, so it names no source."""
    source = str(row.get("source") or "")
    return row | {"reason": unbroken(str(row["reason"] or "")), "source": "" if source.startswith("DESIGN ") else source}


def otherwise(told: Data, locale: str) -> Data:
    """Return what another plan or judge would change, with the values of checks as the printed report has them."""
    language = language_tag(locale)

    def side(row: Data, value: Data) -> Data:
        limit, unit = value.get("limit") or {}, str(value.get("unit") or row.get("unit") or "1")
        text = value_text(value["value"], unit, str(row.get("quantity") or ""), (limit.get("low"), limit.get("high")), language)
        return value | {"shown": text if value["value"] is not None else ""}

    def rows(checks: Iterable[Data]) -> list[Data]:
        return [row | {"from": side(row, row["from"]), "to": side(row, row["to"])} for row in checks]

    read = [file | {"checks": rows(file["checks"])} for file in told["read"]]
    return told | {"stored": rows(told["stored"]), "checks": rows(told["checks"]), "read": read}


def together(text: str) -> str:
    """Return a text in which a line never breaks between a number and its unit."""
    return _BEFORE_A_UNIT.sub("\u00a0", text)


def thresholds(plan: Data, locale: str) -> list[Data]:
    """Return the sealed limits, gate by gate, as rows; validity, which serves two gates, stands once."""
    words = Words(language_tag(locale))
    groups: list[Data] = []
    validity: list[dict[str, str]] = []
    for gate in ("G1", "G2", "G3", "G4"):
        rows = [row | {"limit": together(row["limit"])} for row in threshold_rows(plan, gate, words)]
        groups.append({"code": gate, "title": word("gate", gate, locale), "rows": [r for r in rows if not r["source"].startswith("validity.")]})
        validity = [r for r in rows if r["source"].startswith("validity.")] or validity
    return [*groups, {"code": "G3, G4", "title": translate(N_("Validity of the measurement"), locale), "rows": validity}]


def sealed_beside(plan: Data, locale: str) -> list[Data]:
    """Return everything else that the seal covers: all sections of the plan that hold no limit of a gate, whatever they are, as rows."""
    words, limits = Words(language_tag(locale)), {"g1", "g2", "g3", "g4", "validity"}
    groups = []
    for section in (*(name for name in SECTIONS if name in plan), *(name for name in plan if name not in SECTIONS)):
        if section not in limits:
            rows = [row | {"limit": together(row["limit"])} for row in section_rows(plan, [section], words)]
            groups.append({"code": section, "title": translate(SECTIONS[section], locale) if section in SECTIONS else "", "rows": rows})
    return groups


def plan_changes(changes: Iterable[Data], locale: str) -> list[Data]:
    """Return the changed fields of a plan with their titles, where the reports have one."""
    words = Words(language_tag(locale))
    return [change | {"title": words.of("thresholds", change["path"], "")} for change in changes]
