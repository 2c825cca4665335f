"""Take a picture of every page, in both languages, wide and narrow, light and dark: `python -m tests.e2e.shots /tmp/shots [NAME...]`.

The pages show hand-made data in the contract's shape, so that rare states (a stop, a refusal, a form) are seen as well.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browser import chromium, served, sign_in
from tests.people import PASSWORD, enrol

SHOTS = ((1280, "zh-CN", "light"), (1280, "en", "dark"), (390, "zh-CN", "dark"), (390, "en", "light"))


def pages() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Return name -> (path, login, data)."""
    from tests.integration import web_data as d

    usual = {
        "board": [d.item(), stopped()],
        "overview": d.overview(),
        "attempt": d.attempt(),
        "events": d.events(),
        "samples": d.samples(),
        "pending": [d.pending()],
    }
    manual = d.step("unpacking", "manual", "Unpacking inspection", "开箱检验", "waiting", 0, params={"form": d.FORM})
    form = d.attempt(
        gate="G1",
        title=d.TITLES["G1"],
        status="waiting",
        steps=[manual],
        may={"cancel": True, "retry": False, "extend": False, "judge": False, "claim_cause": False, "form": True},
        sealed_figures=False,
    )
    broken = d.attempt(
        status="error",
        problem=d.both("Step run-3-candidate: gpu01 is unreachable: Connection timed out.", "步骤 run-3-candidate：主机 gpu01 无法连接：连接超时。"),
        may={"cancel": True, "retry": True, "extend": False, "judge": False, "claim_cause": False, "form": False},
    )
    start = d.overview(
        next=d.item()["next"]
        | {
            "kind": "start",
            "gate": "G3",
            "label": d.both("Start G3", "启动 G3"),
            "reason": d.both("G3 may start. It counts as attempt 1 of 2.", "G3 可以启动。将计为第 1 次（共 2 次）。"),
        },
        simulated=True,
    )
    here, there = f"/engagements/{d.ENGAGEMENT}", f"/attempts/{d.ATTEMPT}"
    return {
        "board": ("/", "li.wei", usual),
        "words": ("/words", "", usual),
        "new_not_mine": ("/engagements/new", "viewer", usual),
        "engagement_not_mine": (here, "viewer", usual),
        "cancel_not_mine": (f"{there}/cancel", "wang.fang", usual),
        "empty": ("/", "viewer", usual | {"board": [], "pending": []}),
        "engagement": (here, "li.wei", usual | {"overview": start}),
        "stopped": (here, "li.wei", usual | {"overview": d.overview() | stopped()}),
        "plan": (f"{here}/plan", "wang.fang", usual),
        "register": (f"{here}/register", "li.wei", usual),
        "wipes": (f"{here}/wipes", "li.wei", usual),
        "revised": (f"{here}/plan", "li.wei", usual | {"changes": revised()}),
        "revise": (f"{here}/plan/revise", "li.wei", usual),
        "account": ("/account", "li.wei", usual),
        "new": ("/engagements/new", "li.wei", usual),
        "attempt": (there, "li.wei", usual),
        "error": (there, "li.wei", usual | {"attempt": broken}),
        "verdict": (there, "wang.fang", usual | {"attempt": d.finished()}),
        "judged": (there, "wang.fang", usual | {"attempt": judged()}),
        "rehearsal": (there, "li.wei", usual | {"attempt": d.attempt(rehearsal=True, simulated=True, sealed_figures=False)}),
        "form": (f"{there}/steps/{manual['id']}", "li.wei", usual | {"attempt": form}),
        "cancel": (f"{there}/cancel", "li.wei", usual),
        "inbox": (
            "/sign-off",
            "wang.fang",
            usual
            | {
                "pending": [
                    d.pending(),
                    d.pending(object_kind="plan", object_id=d.PLAN, title=d.both("Seal the plan, revision 1", "封存计划第 1 版"), mine=False),
                ]
            },
        ),
        "decide": (f"/sign-off/sign_off/{d.ATTEMPT}", "wang.fang", usual | {"attempt": d.finished()}),
        "whatif": (f"{there}/whatif", "wang.fang", usual | {"attempt": judged()}),
        "missing": ("/nothing-here", "li.wei", usual),
        "api": ("/api/v1/docs", "li.wei", usual),
        "sign-in": ("/sign-in", "", usual),
    }


def revised() -> Any:
    """Return what a revision changes that waits for the parties."""
    from app.plans.revise import Preview

    rows = [
        {"path": "g3.agreement_max", "before": "0.05", "after": "0.03"},
        {"path": "policy.attempts.G3", "before": "2", "after": "3"},
        {"path": "workload.tiers", "before": "[8, 16, 32]", "after": "[8, 16]"},
    ]
    return Preview(1, True, "sha256:" + "1" * 64, "sha256:" + "1" * 64, rows)


def judged() -> dict[str, Any]:
    """Return an attempt with a verdict that the judge itself gave to synthetic evidence."""
    from gates.judge import judge
    from tests import bundles
    from tests.integration import web_data as d

    document = judge(bundles.g3_evidence().bundle())
    return d.finished(verdict=document["verdict"], because=document["because"], document=document)


STRICTER = "g3:\n  ttft_p50_drop_min: {limit: '0.28'}\n"


def under_another_plan() -> dict[str, Any]:
    """Return what the judge itself says of synthetic evidence under a stricter plan."""
    from gates.plan import changed_plan, load_yaml
    from gates.whatif import what_if
    from tests import bundles

    bundle = bundles.g3_evidence().bundle()
    return what_if(bundle, changed_plan(bundle.plan, load_yaml(STRICTER)))


def stopped() -> dict[str, Any]:
    """Return an engagement that was stopped at G3."""
    from tests.integration import web_data as d

    why = d.both(
        "Stop-loss: attempt 1 at G3 failed, and the plan stops the joint test after a fail of G3. Only both parties together can lift it.",
        "已止损：G3 第 1 次尝试不通过，按计划 G3 不通过即终止联测。只有双方共同确认才能解除。",
    )
    gates = [
        d.gate("G1", "passed", "pass", 1),
        d.gate("G2", "passed", "conditional", 2, because=["fragile"]),
        d.gate("G3", "stopped", "fail", 1, rehearsals=3),
        d.gate("G4", "locked"),
    ]
    action = {
        "kind": "lift",
        "gate": "G3",
        "enabled": False,
        "label": d.both("Decide on the stop-loss", "决定是否解除止损"),
        "reason": why,
        "attempt_id": d.ATTEMPT,
        "step_id": None,
        "why_not": None,
    }
    return d.item(code="HT-2026-03", customer="北辰云计算有限公司", site="怀来数据中心", state="stopped", state_reason=why, gates=gates, next=action)


def main(out: Path, names: list[str]) -> None:
    """Take the pictures."""
    out.mkdir(parents=True, exist_ok=True)
    with prepared() as patch, chromium() as browser:
        from app.main import create_app
        from tests.integration.web_data import replace_use_cases

        with served(create_app()) as base:
            for name, (path, login, data) in pages().items():
                if names and name not in names:
                    continue
                replace_use_cases(patch, data)
                told = under_another_plan() if name == "whatif" else None
                patch.setattr("app.web.pages.whatif.what_if", lambda _s, told=told, **_: told)
                for width, language, theme in SHOTS:
                    context = contexts(browser, base, login, width)
                    page = context.new_page()
                    page.on("console", lambda m, name=name: print(f"{name}: {m.type}: {m.text}") if m.type in ("error", "warning") else None)
                    page.on("pageerror", lambda e, name=name: print(f"{name}: {e}"))
                    page.goto(f"{base}{path}?lang={language}&theme={theme}")
                    page.wait_for_timeout(900 if name in ("attempt", "rehearsal", "error") else 100)
                    if name == "whatif":
                        page.fill("textarea[name=text]", STRICTER)
                        page.click("form.card button.primary")
                    page.screenshot(path=out / f"{name}-{width}-{language}-{theme}.png", full_page=True)
                    wide = page.evaluate("document.documentElement.scrollWidth")
                    if wide > width:
                        print(f"{name}: {wide} px wide on a screen of {width} px ({language})")
                    page.close()


KEPT: dict[tuple[str, int], Any] = {}


def contexts(browser: Any, base: str, login: str, width: int) -> Any:
    """Return the browser context of a person at a screen width, signed in once."""
    if (login, width) not in KEPT:
        context = browser.new_context(viewport={"width": width, "height": 900 if width > 800 else 844}, reduced_motion="reduce")
        if login:
            page = context.new_page()
            sign_in(page, base, login, PASSWORD)
            page.close()
        KEPT[login, width] = context
    return KEPT[login, width]


class prepared:  # noqa: N801
    """A fresh database with the cast, in a folder of its own."""

    def __enter__(self) -> pytest.MonkeyPatch:
        from app.kit.db import write_session
        from app.kit.migrate import upgrade
        from app.settings import settings

        self.patch = pytest.MonkeyPatch()
        self.folder = tempfile.TemporaryDirectory(prefix="qg-shots-")
        self.patch.setenv("QUADGATE_STATE_DIR", self.folder.name)
        self.patch.setenv("QUADGATE_DATABASE_URL", "")
        settings.cache_clear()
        upgrade()
        with write_session() as s:
            enrol(s)
        return self.patch

    def __exit__(self, *_error: object) -> None:
        self.patch.undo()
        self.folder.cleanup()


def _names() -> Iterator[str]:
    yield from sys.argv[2:]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/shots"), list(_names()))
