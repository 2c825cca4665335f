"""Entry for `python3 -m probe`; the zipapp has the same two lines at its root."""

from probe.cli import main

main()
