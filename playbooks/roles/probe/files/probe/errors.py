"""Errors that become an exit code and a sentence."""

from __future__ import annotations


class ProbeError(Exception):
    """Something failed on this host: exit 1. `kind` is stable, the message says what, where and what to do next."""

    exit_code = 1

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Refused(ProbeError):  # noqa: N818 - the words of the exit codes
    """The probe could do it and must not (fence, other specification, a file system that cannot be cold): exit 3."""

    exit_code = 3


class Ended(ProbeError):  # noqa: N818 - an end is not always an error
    """A job ends by a named cause: deadline, quota, full disk. The kind stands in exit.json."""
