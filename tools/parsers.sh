#!/usr/bin/env bash
# Make var/parsers: the sources of the pinned vLLM, LMCache, SGLang and Mooncake releases, without what they compute with, and a small virtual
# environment that can import their argument and configuration parsers. About 490 MB are downloaded and 160 MB kept; a second call does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-var/parsers}
wanted=$(cat lanes/config/releases.txt requirements/parsers.txt tools/parsers.sh | sha256sum | cut -d' ' -f1)
[ "$(cat "$folder/.ready" 2>/dev/null || true)" = "$wanted" ] && exit 0

rm -rf "$folder"
mkdir -p "$folder/wheels" "$folder/src"
.venv/bin/python -m venv "$folder/venv"
pip=("$folder/venv/bin/python" -m pip --quiet --disable-pip-version-check)
echo "Fetching the pinned engines' sources into $folder: about half a minute" >&2
"${pip[@]}" install --require-hashes -r requirements/parsers.txt
"${pip[@]}" download --no-deps --require-hashes --only-binary :all: --python-version 3.11 --implementation cp --abi cp311 --abi abi3 \
  --platform manylinux_2_34_x86_64 --platform manylinux_2_28_x86_64 --dest "$folder/wheels" -r lanes/config/releases.txt 2>&1 |
  { grep -v 'is ignored: it is neither a file nor a directory' || true; }
"$folder/venv/bin/python" - "$folder" <<'END'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
for wheel in sorted((folder / "wheels").glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if entry.filename.endswith((".py", ".json", "METADATA")) or entry.filename == "mooncake/mooncake_master":
                archive.extract(entry, folder / "src")
END
rm -rf "$folder/wheels"
echo "$wanted" >"$folder/.ready"
