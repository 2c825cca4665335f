"""docker-compose.yml brought up for real, everything on the loopback: the lane's copy differs from the file in networks and addresses only."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import yaml

from lanes.compose.docker import compose_argv
from lanes.compose.release import PRESENT, Release
from tests.ports import free_port

LONG_LIVED = ("postgres", "redis", "web", "worker", "beat", "runner", "proxy")
PATIENCE_S = 900.0


def local_copy(folder: Path, ports: dict[str, int], release: Release = PRESENT) -> dict[str, Any]:
    """Return a release's docker-compose.yml with every service on the host's network at 127.0.0.1 and the secrets of the lane."""
    document: dict[str, Any] = yaml.safe_load((release.tree / "docker-compose.yml").read_text(encoding="utf-8"))
    document.pop("networks")
    for name, service in document["services"].items():
        for key in ("networks", "ports", "build"):
            service.pop(key, None)
        service["network_mode"] = "host"
        if service["image"].startswith("quadgate:"):
            service["image"] = release.image
            service["environment"] |= {"QUADGATE_NODE": "lane", "QUADGATE_PUBLIC_URL": f"https://localhost:{ports['proxy']}"}
        if name in ("worker", "beat", "runner", "web"):
            service["healthcheck"]["interval"] = "5s"
    services = document["services"]
    services["postgres"]["command"] = ["postgres", "-c", "listen_addresses=127.0.0.1", "-c", f"port={ports['postgres']}"]
    services["postgres"]["healthcheck"]["test"][1] = services["postgres"]["healthcheck"]["test"][1].replace("psql ", f"psql -p {ports['postgres']} ")
    services["redis"]["command"][2] = services["redis"]["command"][2].replace("dir /data", f"dir /data\nbind 127.0.0.1\nport {ports['redis']}")
    services["redis"]["healthcheck"]["test"][1] = services["redis"]["healthcheck"]["test"][1].replace("redis-cli", f"redis-cli -p {ports['redis']}")
    services["web"]["command"] = ["serve", "--host", "127.0.0.1", "--port", str(ports["web"])]
    services["web"]["healthcheck"]["test"][3] = services["web"]["healthcheck"]["test"][3].replace("8765", str(ports["web"]))
    services["proxy"]["healthcheck"]["test"][1] = services["proxy"]["healthcheck"]["test"][1].replace("8443", str(ports["proxy"]))
    services["proxy"]["volumes"] = [
        f"{release.tree}/ops/nginx.conf:/etc/quadgate/nginx.conf:ro",
        f"{folder}/upstream.conf:/etc/quadgate/upstream.conf:ro",
    ]
    for name, secret in document["secrets"].items():
        secret["file"] = str(folder / "secrets" / name)
    return document


class Stack:
    """The services, by the commands an operator would type."""

    def __init__(self, folder: Path, release: Release = PRESENT) -> None:
        self.folder = folder
        self.ports = {name: free_port() for name in ("postgres", "redis", "web", "proxy")}
        self.base = f"https://localhost:{self.ports['proxy']}"
        environment = {**os.environ, "POSTGRES": f"127.0.0.1:{self.ports['postgres']}", "REDIS": f"127.0.0.1:{self.ports['redis']}"}
        subprocess.run([release.tree / "ops" / "secrets.sh", folder / "secrets"], check=True, env=environment, capture_output=True)
        (folder / "upstream.conf").write_text(
            f"listen 127.0.0.1:{self.ports['proxy']} ssl;\nset $upstream http://127.0.0.1:{self.ports['web']};\n", encoding="utf-8"
        )
        self.file = folder / "docker-compose.yml"
        self.carry_in(release)

    def carry_in(self, release: Release) -> None:
        """Lay a release's compose file, which names its image, over the one that is there; nothing is started or replaced."""
        document = local_copy(self.folder, self.ports, release)
        self.file.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False), encoding="utf-8")

    def compose(self, *words: str, check: bool = True, given: str | None = None) -> str:
        """Run one compose command and return what it printed."""
        argv = [*(compose_argv() or []), "-p", "qglane", "-f", str(self.file), *words]
        done = subprocess.run(argv, capture_output=True, text=True, input=given, check=False, cwd=self.folder)
        assert not check or done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout

    def up(self, *words: str) -> None:
        """Start or upgrade everything."""
        self.compose("up", "-d", *words)

    def containers(self, service: str) -> list[str]:
        """Return the ids of a service's running containers."""
        return self.compose("ps", "-q", service).split()

    def kill(self, service: str) -> None:
        """SIGKILL a service's containers; their restart policy brings no killed one back, so they are started again."""
        for container in self.containers(service):
            subprocess.run(["docker", "kill", container], check=True, capture_output=True)
        self.compose("up", "-d", "--no-recreate", "--no-deps", service)

    def health(self, service: str) -> set[str]:
        """Return the health of a service's containers, as Docker sees it."""
        form = "{{.State.Health.Status}}"
        return {
            subprocess.run(["docker", "inspect", "-f", form, c], check=True, capture_output=True, text=True).stdout.strip()
            for c in self.containers(service)
        }

    def all_healthy(self) -> None:
        """Wait until every service that lives long is healthy."""
        state: dict[str, set[str]] = {}

        def healthy() -> bool:
            state.update({name: self.health(name) for name in LONG_LIVED})
            return all(found == {"healthy"} for found in state.values())

        wait_until(healthy, PATIENCE_S, lambda: f"{state}\n{self.compose('logs', '--no-color', '--tail', '30', check=False)[-6000:]}")

    def quadgate(self, *words: str, given: str | None = None) -> str:
        """Run a command of `quadgate` inside the web service."""
        return self.compose("exec", "-T", "web", "quadgate", *words, given=given)

    def run(self, folder: Path, *words: str) -> str:
        """Run a command of `quadgate` in a container of its own that has this folder of the host as /backup, as docs/operations.md says.

        There it is one of `web`; of a service that runs, the old compose program makes none on the host's network, so here it is one of `migrate`,
        which has the same image, volumes, secrets and environment.
        """
        return self.compose("run", "--rm", "--no-deps", "-T", "-v", f"{folder}:/backup", "migrate", *words)

    def started(self) -> dict[str, tuple[str, str, str]]:
        """Return, of every container of the services that live long, its id, its image's id and when it began."""
        form, found = "{{.Image}} {{.State.StartedAt}}", {}
        for service in LONG_LIVED:
            for container in self.containers(service):
                shown = subprocess.run(["docker", "inspect", "-f", form, container], check=True, capture_output=True, text=True).stdout.split()
                found[f"{service} {container}"] = (container, shown[0], shown[1])
        return found

    def revision(self) -> str:
        """Return the schema's revision, as PostgreSQL has it."""
        asked = ["psql", "-h", "/run/postgresql", "-p", str(self.ports["postgres"]), "-U", "quadgate", "-d", "quadgate"]
        return self.compose("exec", "-T", "postgres", *asked, "-Atc", "select version_num from alembic_version").strip()

    def processes(self, service: str) -> str:
        """Return the command lines of all processes in a service's containers."""
        return "\n".join(
            subprocess.run(["docker", "top", c, "-eo", "pid,uid,args"], check=True, capture_output=True, text=True).stdout
            for c in self.containers(service)
        )

    def wipe(self) -> None:
        """Take every container and volume away; the lane waits for no playbook."""
        self.compose("kill", check=False)
        self.compose("down", "-v", "-t", "5", check=False)

    def down(self) -> None:
        """Take everything away, the secrets too."""
        logs = self.compose("logs", "--no-color", check=False)
        keep = os.environ.get("QUADGATE_LANE_OUT")
        if keep:
            Path(keep).mkdir(parents=True, exist_ok=True)
            (Path(keep) / "compose.log").write_text(logs, encoding="utf-8")
        self.wipe()
        shutil.rmtree(self.folder / "secrets", ignore_errors=True)


def wait_until(what: Any, seconds: float, said: Any) -> Any:
    """Wait until something is true; the time is a guard against hanging, no expectation."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := what():
            return value
        time.sleep(1)
    raise AssertionError(f"not within {seconds} s: {said() if callable(said) else said}")
