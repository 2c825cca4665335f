"""How long a cancel takes with one host cut: over real SSH, by the product's own stop playbook. The limit is the 30 s of the specification.

`python bench/cancel.py`: prints the seconds; exit 1 above the limit, or when the cut host is not named. Says NOT RUN without an OpenSSH server.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

LIMIT_S = 30.0


def main() -> int:
    """Measure once."""
    from tests.needs import NEEDS

    if not NEEDS["sshd"].there():
        print(f"NOT RUN: {NEEDS['sshd'].lacking}")
        return 1 if os.environ.get("CI") == "true" else 0
    folder = tempfile.mkdtemp(prefix="qg-")
    os.environ.update(QUADGATE_STATE_DIR=folder, QUADGATE_DATABASE_URL="", QUADGATE_BROKER_URL="")
    try:
        from app.kit.migrate import upgrade
        from tests.integration.cancel_lab import cancel_lab

        upgrade()
        with cancel_lab() as lab:
            attempt, seconds = lab.cancel()
            named = "gpu02" in str((attempt.problem or {}).get("en"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"a cancel with one of two hosts cut ended after {seconds:.1f} s (limit {LIMIT_S:g} s); the cut host is {'' if named else 'NOT '}named")
    return 0 if seconds <= LIMIT_S and named else 1


if __name__ == "__main__":
    raise SystemExit(main())
