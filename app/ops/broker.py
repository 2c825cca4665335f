"""The broker as operations see it; the looking itself stands in the kit, since the engine's tick looks too."""

from __future__ import annotations

from app.kit.broker import PATIENCE_S, answers, client, depths

__all__ = ["PATIENCE_S", "answers", "client", "depths"]
