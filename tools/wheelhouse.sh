#!/usr/bin/env bash
# Gather every wheel of the lock, for a site without internet: carry wheelhouse/ there and run
# QUADGATE_WHEELHOUSE=$PWD/wheelhouse make setup
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p wheelhouse
.venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip --upgrade >/dev/null
.venv/bin/python -m pip download --quiet --disable-pip-version-check --require-hashes --only-binary :all: -d wheelhouse -r requirements/run.txt
(cd wheelhouse && sha256sum -- *.whl >SHA256SUMS)
echo "wheelhouse/: $(find wheelhouse -name '*.whl' | wc -l) wheels, $(du -sh wheelhouse | cut -f1)"
