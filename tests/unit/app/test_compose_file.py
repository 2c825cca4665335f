"""What docker-compose.yml promises, held against the code: graces longer than the work, nobody root, no secret outside of a file."""

from __future__ import annotations

import re
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from app.engine import removal, wiping
from app.engine.drive import GRACE_S
from app.engine.policy import ROUND_S
from app.engine.steps import job
from app.settings import ROOT, settings
from app.worker.tasks import HEAVY_S, app
from gates.model import StepKind
from gates.plan import parse_plan
from gates.registry import GATES

SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
LONG_LIVED = sorted(set(SERVICES) - {"migrate"})


def seconds(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([smh])", text).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def grace(service: str) -> int:
    return seconds(SERVICES[service]["stop_grace_period"])


def test_a_worker_may_end_the_longest_of_its_tasks() -> None:
    limits = {name: task.time_limit or app.conf.task_time_limit for name, task in app.tasks.items() if not name.startswith("celery.")}
    assert set(limits) >= {"advance", "advance_heavy", "tick", "canary", "heartbeat"}
    assert grace("worker") > max(limits.values()) >= HEAVY_S


def test_the_runner_may_end_the_longest_of_all_playbooks() -> None:
    """Of steps as gates declare them, of starts and collects, of stops, removals and wipes: whatever lives in it is not to be cut off midway."""
    plan = parse_plan({})
    steps = [step for gate in GATES.values() for step in (gate.steps(plan) if callable(gate.steps) else gate.steps)]
    playbooks = [step.timeout_s for step in steps if step.kind == StepKind.PLAYBOOK]
    site = SimpleNamespace(targets={"engine": {"start_timeout_s": 10**7}})
    specs = [{**asdict(step), "timeout_s": 10**8} for step in steps if step.kind == StepKind.JOB]
    jobs = [SimpleNamespace(current=SimpleNamespace(spec=spec, result={"journal_bytes": 10**14}), engagement=site) for spec in specs]
    started, collected = [job.start_timeout_s(one) for one in jobs], [job.collect_timeout_s(one) for one in jobs]  # type: ignore[arg-type]
    others = [removal.TIMEOUT_S, wiping.time_limit_s(1), wiping.time_limit_s(5000), ROUND_S, settings().stop_seconds]
    assert grace("runner") > max(playbooks + started + collected + others) + GRACE_S
    assert wiping.time_limit_s(24) == 1800 + 24 * wiping.DRIVE_S  # an array's drives, each as long as a sanitize can take


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_nobody_is_root_and_nothing_is_written_outside_of_volumes(name: str) -> None:
    service = SERVICES[name]
    assert not service["user"].startswith("0")
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service["image"].endswith(":latest")
    assert ":" in service["image"]


@pytest.mark.parametrize("name", LONG_LIVED)
def test_whatever_stays_up_has_a_health_check_a_grace_and_comes_back(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert grace(name) >= 15
    assert service["restart"] == "unless-stopped"


def test_secrets_are_files_and_no_password_stands_in_an_environment_or_an_argument() -> None:
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert all(set(secret) == {"file"} for secret in document["secrets"].values())
    for service in SERVICES.values():
        for name, value in (service.get("environment") or {}).items():
            assert "PASSWORD" not in name or name.endswith("_FILE")
            assert "://" not in str(value) or "@" not in str(value)
        assert "requirepass $$(cat /run/secrets/" in str(service.get("command")) or "pass" not in str(service.get("command"))


def test_playbooks_live_where_somebody_reaps_them_and_only_the_proxy_is_reached_from_outside() -> None:
    assert SERVICES["runner"]["init"] is True
    assert [name for name, service in SERVICES.items() if service.get("ports")] == ["proxy"]
    assert [name for name in SERVICES if "targets" in SERVICES[name].get("networks", [])] == ["runner"]
    proxy = (ROOT / "ops" / "nginx.conf").read_text(encoding="utf-8")
    assert "proxy_buffering off;" in proxy
    assert re.search(r"location ~ \^/\(metrics\|readyz\|healthz\)\$ \{\s*return 404;", proxy)


def test_evidence_and_database_are_volumes_of_their_own() -> None:
    assert "evidence:/state/evidence" in SERVICES["web"]["volumes"]
    assert SERVICES["web"]["volumes"] == SERVICES["worker"]["volumes"] == SERVICES["runner"]["volumes"]
    assert any(volume.startswith("database:") for volume in SERVICES["postgres"]["volumes"])
