"""Which stored files something refers to: rows of every feature, and the manifests that judgements rest on."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlalchemy import MetaData, String, Table, select
from sqlalchemy.orm import Session

from app.attempts.models import VerdictRevision
from app.evidence import store
from app.evidence.models import EvidenceFile
from app.kit.errors import QuadgateError

_ENDS = ("sha256", "manifest_hash")
_NO_FILES = frozenset({"token_sha256"})  # of sessions and API tokens


def readable(s: Session) -> bool:
    """Tell whether every judged manifest can be read: else nobody knows all that is referred to."""
    return all(_manifest(manifest_hash) is not None for manifest_hash in s.scalars(select(VerdictRevision.manifest_hash).distinct()))


def referred(s: Session) -> set[str]:
    """Return the SHA-256 of all files that any row refers to, by a column named `...sha256` or `...manifest_hash`, or a judged manifest lists.

    The tables are read as they stand, so that a feature which is added later is seen without being named here.
    """
    metadata = MetaData()
    metadata.reflect(s.connection())
    found: set[str] = set()
    for table in metadata.sorted_tables:
        for column in _columns(table):
            found |= {
                str(value).removeprefix("sha256:") for value in s.scalars(select(table.c[column]).where(table.c[column].is_not(None)).distinct())
            }
    found |= listed(s.scalars(select(VerdictRevision.manifest_hash).distinct()))
    return {value for value in found if len(value) == 64}


def listed(manifest_hashes: Iterable[str]) -> set[str]:
    """Return the SHA-256 of the files that stored manifests list. A manifest that cannot be read is told by whoever checks the store."""
    return set().union(*(_manifest(manifest_hash) or () for manifest_hash in manifest_hashes))


def _manifest(manifest_hash: str) -> set[str] | None:
    """Return the SHA-256 of the files that a stored manifest lists, None when it cannot be read."""
    try:
        manifest = json.loads(store.read(manifest_hash.removeprefix("sha256:")))
        return {str(entry["sha256"]).removeprefix("sha256:") for entry in manifest["files"]}
    except (QuadgateError, ValueError, KeyError, TypeError):
        return None


def rested_on(s: Session, lost: Iterable[str]) -> dict[str, list[str]]:
    """Return which of these stored files a verdict rests on, as its manifest or as evidence, with the ids of the judged attempts."""
    wanted, found = set(lost), dict[str, set[str]]()
    judged = select(VerdictRevision.attempt_id, VerdictRevision.manifest_hash).distinct()
    for attempt_id, manifest_hash in s.execute(judged):
        manifest = manifest_hash.removeprefix("sha256:")
        for sha256 in wanted & {manifest, *listed([manifest])}:
            found.setdefault(sha256, set()).add(attempt_id)
    rows = select(EvidenceFile.attempt_id, EvidenceFile.sha256).where(EvidenceFile.attempt_id.in_(select(VerdictRevision.attempt_id)))
    for attempt_id, sha256 in s.execute(rows):  # also where the manifest itself is lost
        if sha256 in wanted:
            found.setdefault(sha256, set()).add(attempt_id)
    return {sha256: sorted(attempts) for sha256, attempts in sorted(found.items())}


def _columns(table: Table) -> list[str]:
    return [
        column.name for column in table.columns if column.name.endswith(_ENDS) and column.name not in _NO_FILES and isinstance(column.type, String)
    ]
