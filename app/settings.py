"""All settings, in one place. Each is an environment variable QUADGATE_<NAME>, a line of the file `.env`, or a file below /run/secrets."""

from __future__ import annotations

import socket
from functools import lru_cache
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).resolve().parent.parent
SECRETS = Path("/run/secrets")  # where a container finds a setting that is secret, as the file quadgate_<name>


class Settings(BaseSettings):
    """Where things are kept and how the parts find each other."""

    model_config = SettingsConfigDict(env_prefix="QUADGATE_", env_file=".env", extra="ignore", secrets_dir=SECRETS if SECRETS.is_dir() else None)

    state_dir: Path = ROOT / "var"  # database, evidence, runs, broker: everything that a backup must hold
    database_url: str = ""  # empty: SQLite below state_dir
    broker_url: str = ""  # empty: the Unix socket of the broker that `quadgate up` starts
    node: str = socket.gethostname()  # the name of the machine whose worker starts host processes
    runner_socket: str = ""  # empty: a worker starts playbook hosts itself; else the Unix socket of `quadgate runner`, which does it
    web_host: str = "127.0.0.1"
    web_port: Annotated[int, Field(ge=1, le=65535)] = 8765
    public_url: str = ""  # the address that people type, when a proxy stands before the pages
    default_locale: str = "zh_CN"  # of pages and the API for whoever asks for no language: zh_CN or en
    time_zone: str = "UTC"  # of the times that pages, reports and commands show, always named beside them, e.g. Asia/Shanghai
    secure_cookies: bool = False  # true: browsers send the session over https only
    alive_file: str = ""  # touched by worker, beat and runner of a container, and by beat of `quadgate up`, whenever something was done
    log_format: str = "text"  # of the long-running parts: text, or json with one object a line
    otlp_endpoint: str = ""  # of an OpenTelemetry collector (OTLP over HTTP), e.g. http://collector:4318; empty: no traces, nothing loaded
    tick_seconds: float = 1.0  # how often the engine looks for work
    soak_poll_seconds: float = 60.0  # between two polls of a soak, 15 to 300: what a poll costs and this bound how many soaks a machine can have
    lease_seconds: int = 30  # how long a worker that went silent keeps an attempt to itself
    stop_seconds: int = 24  # how long a cancel gives the targets to end everything; who has not answered by then is listed by name
    worker_children: int = 2  # how many moves one worker makes at once; judging and printing leave one of them free
    hosts_max: int = 16  # how many playbooks run on one machine at once, each in a host process of 60 to 100 MB; a stop waits for none
    keep_events_days: int = 400  # of an ended attempt: events and live samples, unless a signed report speaks of it; 0 keeps them for ever
    keep_unjudged_days: int = 180  # evidence of rehearsals and attempts that never counted nor were judged; 0 keeps it for ever
    keep_runs_days: int = 30  # run directories of ended attempts, swept by every worker: their events and evidence are stored elsewhere
    retention_daily: bool = False  # true: workers apply the first two once a day, as `quadgate retention --apply` does; else only a person does
    playbook_dir: Path = ROOT / "playbooks"
    template_dir: Path = ROOT / "templates"

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        """Refuse a zone that this machine cannot tell the time of, before anything is shown in it."""
        if name != "UTC":
            try:
                ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                raise ValueError("no time zone of this machine") from None
        return name

    @property
    def evidence_dir(self) -> Path:
        """Return the content-addressed store: evidence/ab/cdef..."""
        return self.state_dir / "evidence"

    @property
    def runs_dir(self) -> Path:
        """Return the private directories of playbook runs: runs/<attempt>/<step>-<try>/."""
        return self.state_dir / "runs"


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the settings of this process, read once."""
    value = Settings()
    state = value.state_dir.resolve()
    value.state_dir = state
    if not value.database_url:
        value.database_url = f"sqlite:///{state / 'quadgate.db'}"
    if not value.broker_url:
        value.broker_url = f"redis+socket://{state / 'broker' / 'redis.sock'}"
    return value
