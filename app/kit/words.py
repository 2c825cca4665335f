"""The words of all faces: each value of the service's vocabularies, as an English msgid of the catalogue (DESIGN section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.kit.i18n import N_, translate
from gates.text import Text

WORDS: dict[str, dict[str, str]] = {
    "verdict": {
        "pass": N_("Pass"),
        "conditional": N_("Conditional"),
        "fail": N_("Fail"),
        "inconclusive": N_("Inconclusive"),
        "invalid": N_("Invalid"),
        "not_tested": N_("Not tested, by agreement"),
    },
    "because": {
        "guard": N_("inside the guard band"),
        "above_band": N_("above the band"),
        "fragile": N_("one baseline run alone would flip it"),
    },
    "status": {
        "queued": N_("Queued"),
        "running": N_("Running"),
        "waiting": N_("Waiting for a person"),
        "lost_contact": N_("Lost contact"),
        "finished": N_("Finished"),
        "canceled": N_("Canceled"),
        "error": N_("Error"),
    },
    "step": {
        "pending": N_("pending"),
        "starting": N_("starting"),
        "running": N_("running"),
        "polling": N_("running"),
        "collecting": N_("collecting evidence"),
        "waiting": N_("waiting for a person"),
        "done": N_("done"),
        "failed": N_("failed"),
        "canceled": N_("canceled"),
    },
    "engagement": {
        "draft": N_("Draft"),
        "active": N_("Active"),
        "stopped": N_("Stopped"),
        "not_concluded": N_("Not concluded"),
        "concluded": N_("Concluded"),
        "closed": N_("Closed"),
    },
    "party": {"vendor": N_("Vendor"), "customer": N_("Customer")},
    "claim": {
        "holds": N_("holds"),
        "breached": N_("breached"),
        "unknown": N_("unknown"),
        "not_tested": N_("not tested"),
        "not_applicable": N_("not applicable"),
    },
    "severity": {"blocking": N_("Blocking"), "advisory": N_("Advisory")},
    "attribution": {"rig": N_("the rig's"), "product": N_("the product's")},
    "arm": {
        "baseline": N_("baseline"),
        "candidate": N_("candidate"),
        "recompute": N_("recompute"),
        "placebo": N_("placebo"),
        "baseline_tuned": N_("tuned baseline"),
    },
    "gate": {
        "G1": N_("Arrival acceptance"),
        "G2": N_("Single-node baseline"),
        "G3": N_("Main gate"),
        "G4": N_("72 h stability"),
    },
    "gate_state": {
        "locked": N_("Locked"),
        "ready": N_("Ready to start"),
        "running": N_("Running"),
        "error": N_("Ended in an error"),
        "consent": N_("Waiting for consent"),
        "sign_off": N_("Waiting for sign-off"),
        "passed": N_("Passed"),
        "rectify": N_("Rectify and test again"),
        "extend": N_("To be extended"),
        "again": N_("To be tried again"),
        "stopped": N_("Stopped"),
        "not_concluded": N_("Attempts used up"),
    },
    "approval": {
        "plan": N_("Seal the plan"),
        "conditional": N_("Consent to a conditional verdict"),
        "sign_off": N_("Sign off a gate"),
        "rig_cause": N_("Accept a rig cause: the attempt does not count"),
        "soak_cause": N_("Accept the cause of an event: the soak clock restarts there"),
        "waiver": N_("Grant a waiver: no verdict changes"),
        "stop_loss": N_("Lift the stop"),
        "close": N_("Close the engagement"),
        "wipe": N_("Wipe drives of a unit on loan: it cannot be undone"),
        "packing": N_("Put a revised packing list in force"),
    },
    "decision": {"approve": N_("Approved"), "reject": N_("Rejected")},
    "rule": {"simple": N_("simple acceptance"), "interval": N_("one-sided interval"), "guarded": N_("guard band")},
    "comparison": {"full": N_("full values, unrounded"), "rounded": N_("rounded values")},
    "on_fail": {"rectify": N_("rectify and test again"), "stop": N_("stop the engagement")},
    "sign_off": {"required": N_("required"), "recorded": N_("recorded")},
    "phase": {
        "store": N_("storing"),
        "cool": N_("cooling"),
        "warmup": N_("warming up"),
        "canary": N_("checking outputs"),
        "measure": N_("measuring"),
        "repeat": N_("repeating"),
        "soak": N_("soaking"),
    },
    "register_kind": {"deviation": N_("deviation"), "waiver": N_("waiver"), "punch": N_("punch item")},
    "register_kind_long": {
        "deviation": N_("Deviation: something was done otherwise than the plan says"),
        "waiver": N_("Waiver: both parties accept a thing as it is"),
        "punch": N_("Punch item: something is still to be done"),
    },
    "register_state": {
        "open": N_("open"),
        "closed": N_("closed"),
        "proposed": N_("proposed, not granted"),
        "granted": N_("granted by both parties"),
        "rejected": N_("rejected"),
    },
    "severity_of": {"major": N_("major"), "minor": N_("minor")},
    "role": {"admin": N_("administrator"), "engineer": N_("engineer"), "approver": N_("approver"), "viewer": N_("viewer")},
    "token": {"valid": N_("valid"), "revoked": N_("revoked"), "expired": N_("expired")},
    "halt": {
        "stopped": N_("everything ended"),
        "running": N_("NOT ended"),
        "taken_over": N_("goes on under another controller"),
        "unknown": N_("not known"),
    },
    "removal": {"removed": N_("removed"), "left": N_("NOT removed"), "unknown": N_("not known")},
    "packing_state": {
        "proposed": N_("waits for both approvals"),
        "rejected": N_("rejected"),
        "replaced": N_("replaced by a newer proposal"),
        "agreed": N_("approved by both parties"),
    },
    "wipe_way": {
        "sanitize_block": N_("sanitize, block erase"),
        "sanitize_crypto": N_("sanitize, crypto erase"),
        "sanitize_overwrite": N_("sanitize, overwrite"),
        "format_user": N_("format, user data erase"),
        "format_crypto": N_("format, crypto erase"),
    },
    "wipe_state": {
        "proposed": N_("waits for both approvals"),
        "rejected": N_("rejected"),
        "withdrawn": N_("withdrawn"),
        "approved": N_("approved by both parties, not begun"),
        "running": N_("being wiped"),
        "wiped": N_("every drive wiped"),
        "not_wiped": N_("NOT every drive wiped"),
    },
    "wipe_outcome": {"wiped": N_("wiped"), "failed": N_("NOT wiped"), "unknown": N_("not known")},
    "item": {
        "array": N_("array"),
        "drive": N_("drive"),
        "nic": N_("network card"),
        "gpu": N_("accelerator"),
        "server": N_("server"),
        "switch": N_("switch"),
        "cable": N_("cable"),
        "optic": N_("optical module"),
        "transceiver": N_("transceiver"),
        "rail": N_("rail"),
        "accessory": N_("accessory"),
        "document": N_("document"),
        "license": N_("licence"),
        "other": N_("other"),
    },
    "group": {"engine": N_("engine host"), "loadgen": N_("load generator"), "storage": N_("storage"), "bmc": N_("BMC")},
    "via": {"web": N_("web page"), "token": N_("API"), "cli": N_("command line"), "engine": N_("service")},
    "permission": {
        "view": N_("to look"),
        "create_engagement": N_("to create engagements"),
        "revise_plan": N_("to revise plans"),
        "start_attempt": N_("to start attempts"),
        "cancel_attempt": N_("to cancel attempts"),
        "retry_attempt": N_("to retry attempts"),
        "submit_form": N_("to fill in forms"),
        "claim_rig_cause": N_("to claim causes"),
        "judge": N_("to judge"),
        "record_deviation": N_("to keep the register"),
        "remove_from_targets": N_("to remove from targets"),
        "order_wipe": N_("to order wipes"),
        "export_evidence": N_("to export evidence"),
        "approve": N_("to approve"),
        "manage_users": N_("to manage users"),
        "verify_audit": N_("to verify the audit chain"),
    },
    "edition": {"zh-CN": N_("Chinese edition"), "en": N_("English edition")},
}


def word(kind: str, value: object, locale: str) -> str:
    """Return the word for one value of a vocabulary; a value that no table knows stands for itself, so nothing is hidden."""
    text = str(value)
    msgid = WORDS.get(kind, {}).get(text)
    return translate(msgid, locale) if msgid else text


def in_words(kind: str, *values: object) -> Text:
    """Return the words for values of a vocabulary, in both languages and in a row, for a sentence that names them; a dash for none."""
    return Text(en=_row(kind, values, "en"), zh=_row(kind, values, "zh_CN"))


def _row(kind: str, values: Iterable[object], locale: str) -> str:
    return translate(N_(", "), locale).join(word(kind, value, locale) for value in values) or "–"


def choices(kind: str, values: Iterable[object]) -> Text:
    """Return the values of a vocabulary that a field takes, for the sentence that asks for one of them."""
    return offered({str(value): in_words(kind, value) for value in values})


def offered(words: Mapping[str, Text]) -> Text:
    """Return what a field takes, each by its word for people and as programs write it; once, where both are the same."""
    listed = [Text(*(said if said == value else f"{said} ({value})" for said in (word.en, word.zh))) for value, word in words.items()]
    return Text(en=", ".join(one.en for one in listed), zh="、".join(one.zh for one in listed))
