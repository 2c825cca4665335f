"""From the sections `engine` and `offload` of an engagement to a real engine's command line and files, arm by arm. Pure; runs on the controller.

The three tiers of the product are L0 (KV in accelerator memory), L1 (host memory) and L2 (the array, or the medium of another arm); each
offload software has its own names for them. What is rendered here is held against the parsers of the pinned releases by `make test-config`.
"""

from __future__ import annotations

from engine_stack.describe import describe, image_of
from engine_stack.instances import describe_all
from engine_stack.settings import RELEASES, Settings, settings_of

__all__ = ["RELEASES", "Settings", "describe", "describe_all", "image_of", "settings_of"]
