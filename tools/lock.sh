#!/usr/bin/env bash
# Resolve pyproject.toml into the two hashed locks. They name no index; uv.lock, which would, stays out of git.
set -euo pipefail
cd "$(dirname "$0")/.."
options=(--quiet --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header)
uv pip compile "${options[@]}" pyproject.toml -o requirements/run.txt
uv pip compile "${options[@]}" --extra dev pyproject.toml -c requirements/run.txt -o requirements/dev.txt
