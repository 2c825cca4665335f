"""What docker-compose.yml promises, held against the code: graces longer than the work, nobody root, no secret outside of a file."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from app.engine.hints import celery_app
from app.settings import ROOT
from gates.model import StepKind
from gates.registry import GATES

SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
LONG_LIVED = sorted(set(SERVICES) - {"migrate"})


def seconds(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([sm])", text).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "m": 60}[unit]


def grace(service: str) -> int:
    return seconds(SERVICES[service]["stop_grace_period"])


def test_a_worker_may_end_its_longest_task_and_the_runner_its_longest_playbook() -> None:
    assert grace("worker") > celery_app("memory://").conf.task_time_limit
    playbooks = [step.timeout_s for gate in GATES.values() for step in declared(gate) if step.kind == StepKind.PLAYBOOK]
    assert grace("runner") > max(playbooks) >= 7200


def declared(gate: Any) -> list[Any]:
    from gates.plan import parse_plan

    return list(gate.steps(parse_plan({})) if callable(gate.steps) else gate.steps)


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
