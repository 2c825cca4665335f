# Lists the Pythons of a target up to the first that is 3.8 or newer, one a line: `python MAJOR MINOR PATH`; then `os ID VERSION`.
# Plain POSIX shell: it runs before any Python is known. An interpreter that was asked for is tried first and keeps its name.
for name in "$WANTED" python3.13 python3.12 python3.11 python3.10 python3.9 python3.8 python3 /usr/libexec/platform-python; do
  [ -n "$name" ] || continue
  path=$(command -v "$name" 2>/dev/null) || continue
  "$path" -S -c 'import os, sys
new = sys.version_info[:2] >= (3, 8)
print("python", sys.version_info[0], sys.version_info[1], sys.argv[1] if os.path.isabs(sys.argv[1]) else sys.executable)
sys.exit(0 if new else 1)' "$name" 2>/dev/null && break
done
(. /etc/os-release 2>/dev/null && echo "os $ID $VERSION_ID") || echo "os unknown -"
