"""What each host does for the RDMA bandwidth test: the far ends that it serves, and the commands that it runs. Pure.

Names of interfaces come from the engagement, names of devices from what the host was seen to have. What was measured is judged from the evidence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

PORT = 18515  # of perftest, by which the two ends find each other; each pair has one of its own from there on
MARGIN_S = 60  # for a start, and for the other hosts, whose turn comes before
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def rdma_far_ends(test: Mapping[str, Any], host: str, links: str, root: str, path_prefix: Sequence[str]) -> list[dict[str, Any]]:
    """Return the supervised processes of the far ends on this host, as `probe engine start` takes them.

    Each lives until its one client came, and no longer than all pairs take together.
    """
    pairs = list(test.get("pairs") or [])
    longest = len(pairs) * (_seconds(test) + MARGIN_S) + MARGIN_S
    found = []
    for port, pair in _numbered(test):
        if pair["far_host"] == host:
            name = f"rdma-{port}"
            found.append(
                {
                    "name": name,
                    "argv": ["timeout", "-k", "5", str(longest), *_test(test, _device(links, pair["far_interface"]), port)],
                    "env": {"PATH": ":".join([*path_prefix, DEFAULT_PATH])},
                    "pid_file": f"{root}/rdma/{name}.pid",
                    "log": f"{root}/rdma/{name}.log",
                }
            )
    return found


def rdma_survey(test: Mapping[str, Any], host: str, links: str, path_prefix: Sequence[str]) -> dict[str, Any]:
    """Return the probe's survey specification: the ports, the speed of each far end that this host is, then its own measurements in turn."""
    commands = [_command("rdma-link", "rdma-link", ["rdma", "-j", "link", "show"], 30)]
    commands[0]["version_argv"] = ["rdma", "-V"]
    for _, pair in _numbered(test):
        if pair["far_host"] == host:  # what the pair can reach hangs on this end too
            name = f"ethtool.far-of.{pair['host']}.{pair['interface']}"
            commands.append(_command(name, "ethtool", ["ethtool", pair["far_interface"]], 30))
    for port, pair in _numbered(test):
        if pair["host"] == host:
            argv = [*_test(test, _device(links, pair["interface"]), port), pair["far_address"]]
            commands.append(_command(f"perftest.{pair['interface']}", "perftest", argv, _seconds(test) + MARGIN_S))
            commands[-1]["version_argv"] = ["ib_write_bw", "--version"]
    return {"host": host, "commands": commands, "path_prefix": list(path_prefix)}


def _numbered(test: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return enumerate(test.get("pairs") or [], int(test.get("port") or PORT))


def _seconds(test: Mapping[str, Any]) -> int:
    return int(test.get("seconds") or 30)


def _test(test: Mapping[str, Any], device: str, port: int) -> list[str]:
    """Return the command of one end; the other's differs by the address alone. The unit stands in the table's header: no flag to remember."""
    argv = [
        "ib_write_bw",
        "-d",
        device,
        "-p",
        str(port),
        "-s",
        str(int(test.get("message_bytes") or 65536)),
        "-q",
        str(int(test.get("queue_pairs") or 4)),
    ]
    argv += ["-D", str(_seconds(test)), "-F", "--report_gbits"]
    return argv + (["-x", str(int(test["gid_index"]))] if test.get("gid_index") is not None else [])


def _device(links: str, interface: str) -> str:
    """Return the RDMA device behind an interface; where the host names none, the interface itself, which the tool then refuses by name."""
    try:
        rows = json.loads(links)
    except ValueError:
        rows = []
    named = [str(row["ifname"]) for row in rows if isinstance(row, dict) and row.get("netdev") == interface and row.get("ifname")]
    return named[0] if len(named) == 1 else interface


def _command(name: str, tool: str, argv: list[str], timeout_s: int) -> dict[str, Any]:
    return {"name": name, "tool": tool, "argv": argv, "timeout_s": timeout_s}


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"rdma_far_ends": rdma_far_ends, "rdma_survey": rdma_survey}
