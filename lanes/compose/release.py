"""What a stack runs, image and compose file: this checkout's, or those of an earlier schema out of the repository's own history."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from lanes.compose import docker

LOCK, SCHEMA, COMPOSE = "requirements/run.txt", "migrations/versions", "docker-compose.yml"
NO_HISTORY = "This checkout's history holds no earlier schema with the same lock of requirements; a shallow clone holds none (git fetch --unshallow)."


@dataclass(frozen=True)
class Release:
    """A tree with docker-compose.yml and ops/, and the image that was built from it."""

    tree: Path
    image: str


PRESENT = Release(docker.ROOT, "quadgate:lane")


def earlier(build: Path) -> Release | None:
    """Build the release of the oldest schema that the wheels of today's lock can run, None where the history holds none."""
    commit = _earlier_commit()
    if commit is None:
        return None
    release = Release(build / "earlier", "quadgate:lane-earlier")
    release.tree.mkdir()
    archive = subprocess.Popen(["git", "archive", commit], cwd=docker.ROOT, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", release.tree], stdin=archive.stdout, check=True)
    assert archive.wait() == 0
    docker.service(release.tree, release.image)
    return release


def revisions(tree: Path) -> list[str]:
    """Return the revisions of a tree's schema, the newest last."""
    return sorted(path.name.partition("_")[0] for path in (tree / SCHEMA).glob("[0-9]*.py"))


def _earlier_commit() -> str | None:
    """Return the last commit of the oldest schema from which today's goes on, migration by migration, and whose requirements are today's."""
    changed = _git("log", "--first-parent", "-m", "--format=%H", "--", LOCK, SCHEMA, COMPOSE).split()
    today, found = _state("HEAD"), None
    for newer in changed:  # the newest first; before each of them another state began
        commit = f"{newer}^1"
        if (state := _state(commit)) is None or today is None:
            break
        lock, schema = state
        if lock == today[0] and schema and schema == today[1][: len(schema)] and len(schema) < len(today[1]):
            found = commit
    return found


def _state(commit: str) -> tuple[str, list[str]] | None:
    """Return the lock and the migrations of a commit as Git names their contents; None where there is no compose file, or no such commit."""
    listed = _git("ls-tree", commit, LOCK, COMPOSE, f"{SCHEMA}/", check=False)
    blobs = {line.partition("\t")[2]: line.partition("\t")[0] for line in listed.splitlines()}
    if LOCK not in blobs or COMPOSE not in blobs:
        return None
    return blobs[LOCK], [f"{name} {blobs[name]}" for name in sorted(blobs) if name.startswith(f"{SCHEMA}/0")]


def _git(*words: str, check: bool = True) -> str:
    done = subprocess.run(["git", *words], cwd=docker.ROOT, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout
