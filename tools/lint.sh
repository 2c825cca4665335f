#!/usr/bin/env bash
# Every check that reads the code and runs none of it. All of them run; the first failure decides the exit code.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
failed=0
check() {
  echo "== $1"
  shift
  "$@" || failed=1
}
check "ruff" .venv/bin/ruff check -q .
check "format" .venv/bin/ruff format -q --check .
check "types" .venv/bin/mypy
check "import contracts" .venv/bin/lint-imports
check "file sizes" .venv/bin/python tools/file_sizes.py
PATH="$PWD/.venv/bin:$PATH" check "playbooks" .venv/bin/ansible-lint --offline -q playbooks
if command -v shellcheck >/dev/null 2>&1; then
  check "shell" shellcheck tools/*.sh ops/*.sh lanes/compose/images/*.sh .ci/run
else
  echo "== shell: NOT RUN, shellcheck is not installed"
  [ "${CI:-}" = true ] && failed=1
fi
exit $failed
