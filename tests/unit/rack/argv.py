"""What a survey runs for an output of a name, for tests that bring an output of their own."""

from __future__ import annotations

from tests.unit.rack.simulate import rdma_pairs, survey_spec

_SEEN = """{"Devices": [{"DevicePath": "/dev/nvme0n1"}]}
--- rdma
[{"ifname": "mlx5_0", "netdev": "ens8f0np0"}]
--- tools
%s
--- npus
NPU ID : 0
NPU ID : 1
"""
_SITE = {
    "mdadm": ["mdadm", "--detail", "--export", "/dev/md/qg-array"],
    "xfs-info": ["xfs_info", "/mnt/quadgate/array"],
    "findmnt": ["findmnt", "-J", "-M", "/mnt/quadgate/array"],
    "perftest": ["ib_write_bw", "-d", "mlx5_0", "--report_gbits", "127.0.0.1"],
    "sonic-pfcwd": ["ssh", "leaf1", "show", "pfcwd", "stats", "--empty"],
    "lspci": ["lspci", "-D", "-vvv"],
    "rvs": ["rvs", "-c", "gst.conf", "-d", "3"],
}


def commands() -> dict[str, list[str]]:
    """Return {name: argv} of all that this release's own surveys run on a host of every kind."""
    found: dict[str, list[str]] = {}
    for tools in ("amd-smi", "rocm-smi npu-smi"):
        for plan in ("survey", "storage"):
            spec = survey_spec(_SEEN % tools, plan, "h", ["engine", "storage"], [], {}, stress={"config": "gst.conf"})
            found |= {command["name"]: command["argv"] for command in spec["commands"]}
    pair = {"host": "h", "interface": "ens8f0np0", "far_host": "h", "far_interface": "ens3f0np0", "far_address": "192.0.2.1"}
    links = '[{"ifname": "mlx5_0", "netdev": "ens8f0np0"}]'
    return found | {command["name"]: command["argv"] for command in rdma_pairs.rdma_survey({"pairs": [pair]}, "h", links, [])["commands"]}


def argv_of(name: str, tool: str) -> list[str]:
    """Return what is run for an output: as a survey has it, with the name's own device or interface."""
    known, subject = commands(), name.partition(".")[2]
    if tool in _SITE:
        return _SITE[tool]
    like = next(one for one in known if one == name or one.partition(".")[0] == tool)
    own = like.partition(".")[2]
    return [word.replace(own, subject) if own else word for word in known[like]]
