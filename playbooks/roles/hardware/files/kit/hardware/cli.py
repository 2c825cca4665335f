"""`hardware.pyz PART VERB < order.json`: prints {part, verb, changed, checks, facts}; a refusal is {en, zh-CN} on stderr and exit code 1."""

import json
import sys
from typing import List

from hardware import array, fabric, packages, volume, wipe
from hardware.host import Host, Refused

PARTS = {"packages": packages, "fabric": fabric, "array": array, "volume": volume, "wipe": wipe}
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
            raise Refused("{0} cannot be done to {1}; it is not undone either.", "不能对 {1} 执行 {0}，也没有相应的撤销操作。", verb, part)
        facts = does(host)
    except Refused as error:
        return _refuse(error)
    except OSError as error:  # a file system that is full, read-only, or that squashes root: a sentence, and no traceback
        return _refuse(
            Refused(
                "{0} {1} stopped at {2}: {3}. What was done until then is on record; put it right and do it again.",
                "{0} {1} 在 {2} 处中止：{3}。此前的更改均已记录；请排除问题后重新执行。",
                part,
                verb,
                error.filename,
                error.strerror,
            )
        )
    wrong = [row for row in host.checks if row["state"] != "ok"]
    json.dump({"part": part, "verb": verb, "changed": host.changed, "checks": host.checks, "wrong": wrong, "facts": facts}, sys.stdout)
    return 0


def _refuse(error: Refused) -> int:
    sys.stderr.write(error.json() + "\n")
    return 1
