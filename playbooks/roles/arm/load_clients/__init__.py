"""How third-party clients are started against an engine, and where each leaves its result. Pure; runs on the controller."""

from __future__ import annotations

from load_clients.commands import ENVIRONMENT, TOOLS, Work, describe

__all__ = ["ENVIRONMENT", "TOOLS", "Work", "describe"]
