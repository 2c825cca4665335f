#!/usr/bin/env bash
# Make .venv from the hashed lock. `run` installs what Quadgate runs on, `dev` what tests and checks need as well.
# With uv where it is at hand (seconds), else with pip. QUADGATE_WHEELHOUSE=DIR installs without any index.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-run}

python=""
for candidate in python3.11 python3.12 python3; do
  if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then
    python=$(command -v "$candidate")
    break
  fi
done
if [ -z "$python" ]; then
  echo "Quadgate needs Python 3.11 or 3.12 and found neither: install the package python3.11 (Debian 12) or python3 (Ubuntu 24.04)." >&2
  exit 1
fi

if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c 'import sys' 2>/dev/null; then
  rm -rf .venv
  if command -v uv >/dev/null 2>&1; then
    uv venv --quiet --python "$python" .venv
  elif ! "$python" -m venv .venv 2>/dev/null; then
    rm -rf .venv
    echo "The virtual environment cannot be made: install the package python3-venv (or uv)." >&2
    exit 1
  fi
fi

offline=()
[ -n "${QUADGATE_WHEELHOUSE:-}" ] && offline=(--no-index --find-links "$QUADGATE_WHEELHOUSE")
echo "Setting up .venv ($kind): about half a minute with uv, two to three with pip" >&2
if command -v uv >/dev/null 2>&1; then
  uv pip install --quiet --python .venv/bin/python --require-hashes --compile-bytecode ${offline[@]+"${offline[@]}"} -r "requirements/$kind.txt"
else
  .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip --upgrade >/dev/null
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes ${offline[@]+"${offline[@]}"} -r "requirements/$kind.txt"
fi

# The checkout itself is put on the path; nothing is built, so nothing else has to be downloaded.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
pwd >"$site/quadgate.pth"
printf '#!%s/.venv/bin/python\nfrom app.cli import main\n\nmain()\n' "$PWD" >.venv/bin/quadgate
chmod +x .venv/bin/quadgate
touch .venv/.ready
[ "$kind" = dev ] && touch .venv/.ready-dev
exit 0
