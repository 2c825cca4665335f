"""`hardware.pyz PART VERB < order.json`: prints {part, verb, changed, checks, facts}; a refusal is one sentence on stderr and exit code 1."""

import json
import sys
from typing import List

from hardware import array, fabric, volume, wipe
from hardware.host import Host, Refused

PARTS = {"fabric": fabric, "array": array, "volume": volume, "wipe": wipe}
VERBS = {"apply": "apply", "plan": "apply", "remove": "remove", "plan-remove": "remove", "show": "show"}


def main(argv: List[str]) -> int:
    """Carry out one part of the order that stands on stdin."""
    if len(argv) != 2 or argv[0] not in PARTS or argv[1] not in VERBS:
        sys.stderr.write("usage: hardware.pyz {%s} {%s} < order.json\n" % ("|".join(PARTS), "|".join(VERBS)))
        return 64
    part, verb = argv
    try:
        host = Host(json.load(sys.stdin), verb)
        does = getattr(PARTS[part], VERBS[verb], None)
        if does is None:
            raise Refused("%s cannot be done to %s; it is not undone either." % (verb, part))
        facts = does(host)
    except Refused as error:
        sys.stderr.write("%s\n" % error)
        return 1
    except OSError as error:  # a file system that is full, read-only, or that squashes root: a sentence, and no traceback
        sys.stderr.write(
            "%s %s stopped at %s: %s. What was done until then is on record; put it right and do it again.\n"
            % (part, verb, error.filename, error.strerror)
        )
        return 1
    wrong = [row for row in host.checks if row["state"] != "ok"]
    json.dump({"part": part, "verb": verb, "changed": host.changed, "checks": host.checks, "wrong": wrong, "facts": facts}, sys.stdout)
    return 0
