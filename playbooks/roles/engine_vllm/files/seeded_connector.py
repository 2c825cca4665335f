"""vLLM's example connector, with keys as products make them: rooted at PYTHONHASHSEED.

vLLM chains its block hashes to a root that follows from PYTHONHASHSEED, and LMCache and vLLM's own tiers name what they store by those hashes: an
engine that runs under another seed finds nothing of it. The example connector names its folders by the tokens alone and would hide that.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.example_connector import ExampleConnector  # type: ignore[import-not-found]

_ROOT = hashlib.sha256(os.environ.get("PYTHONHASHSEED", "").encode()).hexdigest()[:8]


class SeededExampleConnector(ExampleConnector):  # type: ignore[misc]
    """Keeps KV in folders whose names follow from the tokens and from PYTHONHASHSEED."""

    def _generate_foldername_debug(self, token_ids: Any, mm_hashes: Any, create_folder: bool = False) -> str:
        """Return the folder of a prompt, made where that is asked for."""
        place, name = os.path.split(super()._generate_foldername_debug(token_ids, mm_hashes, create_folder=False))
        folder = os.path.join(place, f"{_ROOT}-{name}")
        if create_folder:
            os.makedirs(folder, exist_ok=True)
        return folder
