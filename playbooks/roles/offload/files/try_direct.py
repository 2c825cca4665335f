"""Write and read one block with O_DIRECT in the KV folder of each medium: `try_direct.py {"NAME": "FOLDER"}`. Python 3.8, standard library.

Offload software falls back to buffered I/O without a word where O_DIRECT is refused; then the page cache answers, and nothing is measured.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
from typing import Dict

SIZE = 65536


def tried(folder: str) -> str:
    """Return an empty text when O_DIRECT works there, else why not."""
    path = os.path.join(folder, ".quadgate-direct")
    page = mmap.mmap(-1, SIZE)
    page.write(b"q" * SIZE)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_DIRECT, 0o600)
        try:
            os.write(descriptor, page)
            os.lseek(descriptor, 0, os.SEEK_SET)
            return "" if os.readv(descriptor, [page]) == SIZE else "a read came back short"
        finally:
            os.close(descriptor)
    except OSError as error:
        return str(error.strerror)
    finally:
        page.close()
        if os.path.exists(path):
            os.unlink(path)


def main(media: Dict[str, str]) -> int:
    """Say which media refuse O_DIRECT."""
    refused = {name: why for name, why in ((name, tried(folder)) for name, folder in sorted(media.items())) if why}
    for name, why in refused.items():
        sys.stderr.write(
            "The medium %s (%s) refuses O_DIRECT: %s. Its reads would come from the page cache. Use another file system there, or set "
            "targets.offload.l2.direct_io to false for every arm.\n" % (name, media[name], why)
        )
    print(json.dumps({"direct": sorted(set(media) - set(refused))}))
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
