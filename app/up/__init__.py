"""The one-machine supervisor: broker, worker, beat and web, started, watched and stopped as one."""

from app.up.supervisor import Health, Supervisor

__all__ = ["Health", "Supervisor"]
