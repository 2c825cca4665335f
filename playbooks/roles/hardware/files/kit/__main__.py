"""Where the archive begins."""

import sys

from hardware.cli import main

sys.exit(main(sys.argv[1:]))
