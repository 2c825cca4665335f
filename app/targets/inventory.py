"""From the section `targets` of an engagement to the inventory of its playbooks."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.kit.errors import Refused
from app.targets.credentials import credential_path, secret_of
from gates.model import ATTENDED
from gates.text import Text

GROUPS = ("engine", "storage", "loadgen", "bmc")
MACHINE_MAX = 150
MODULES = "~/.ansible/tmp"  # where Ansible puts its modules on hosts behind SSH; emptied and removed by playbooks/remove.yml
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True)
class Inventory:
    """Hosts by group with their variables. `secrets` are the values that no event may show."""

    groups: dict[str, list[str]]
    hostvars: dict[str, dict[str, Any]]
    known_hosts: str = ""
    secrets: tuple[str, ...] = ()
    addresses: dict[str, str] = field(default_factory=dict)
    host_keys: dict[str, str] = field(default_factory=dict)  # of the hosts that are reached by SSH: type and key, as pinned

    @property
    def hosts(self) -> list[str]:
        """Return all host names."""
        return list(self.hostvars)

    @property
    def machines(self) -> list[str]:
        """Return what names the machines behind the hosts, whatever an engagement calls them: address and port, or the root on this machine.

        An SSH host is also named by its pinned key, which is the machine's own: entered once by name and once by IP address it is still one. Machines
        that were cloned with their key wait for each other, which costs time and nothing else.
        """
        names = [str(self.hostvars[host]["qg_root"]) if where == "local" else where.lower() for host, where in self.addresses.items()]
        names += [f"key:{hashlib.sha256(key.encode()).hexdigest()}" for key in self.host_keys.values()]
        return list(dict.fromkeys(name if len(name) <= MACHINE_MAX else hashlib.sha256(name.encode()).hexdigest() for name in names))

    def members(self, pattern: str) -> list[str]:
        """Return the hosts of a group, of a host name, or of `all`, in the order of the inventory."""
        if pattern == "all":
            return self.hosts
        if pattern in self.groups:
            return self.groups[pattern]
        return [pattern] if pattern in self.hostvars else []

    def document(self, known_hosts_file: Path, modules: str = "") -> dict[str, Any]:
        """Return the inventory as Ansible's YAML plugin reads it; it may hold secrets, so the file is 0600 and short-lived.

        `modules`: the folder below MODULES in which a run's modules lie on hosts behind SSH, so that a cancel can tell them from those of others.
        """
        hosts = {name: dict(variables) for name, variables in self.hostvars.items()}
        for variables in hosts.values():
            if variables["ansible_connection"] == "ssh":
                # Split as a shell would, and read by ssh as a list of files with %-tokens: the state folder may have any name.
                pinned = shlex.quote('UserKnownHostsFile="' + str(known_hosts_file).replace("%", "%%") + '"')
                variables["ansible_ssh_common_args"] = f"-o {pinned} -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes"
                variables["ansible_remote_tmp"] = f"{MODULES}/{modules}".rstrip("/")
        return {"all": {"hosts": hosts, "children": {group: {"hosts": {name: {} for name in names}} for group, names in self.groups.items()}}}


def ways(targets: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Return in which ways the hosts of an engagement are reached, each (connection, credentials): one playbook may ask all that are alike."""
    kinds = ("credential", "password", "become", "become_password")
    described = [host or {} for host in (targets.get("hosts") or {}).values()]
    return frozenset((str(host.get("connection", "ssh")), " ".join(kind for kind in kinds if host.get(kind))) for host in described)


def build(*, code: str, targets: dict[str, Any], state_dir: Path) -> Inventory:
    """Return the inventory of an engagement. Raises Refused with a sentence when a host cannot be reached safely as described."""
    described: dict[str, Any] = targets.get("hosts") or {}
    if not described:
        raise Refused(
            "no_hosts",
            Text(
                "The engagement {engagement} names no target host. Add at least one under targets.hosts.",
                "项目 {engagement} 未列出任何目标主机。请在 targets.hosts 下至少添加一台。",
            ),
            engagement=code,
        )
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    hostvars: dict[str, dict[str, Any]] = {}
    keys: list[str] = []
    secrets: list[str] = []
    addresses: dict[str, str] = {}
    host_keys: dict[str, str] = {}
    for name, host in described.items():
        host = host or {}
        _check_name(name)
        for group in host.get("groups") or []:
            groups.setdefault(str(group), []).append(name)
        if host.get("connection", "ssh") == "local":
            hostvars[name] = _local(host, state_dir / "lab" / code / name)
            addresses[name] = "local"
        else:
            hostvars[name], where, host_keys[name] = _ssh(name, host)
            keys.append(f"{where} {host_keys[name]}")
            addresses[name] = f"{hostvars[name]['ansible_host']}:{hostvars[name]['ansible_port']}"
        passwords = _passwords(host)
        hostvars[name].update({**_become(host), **passwords})
        secrets += passwords.values()
    groups[ATTENDED] = [] if set(groups["engine"]) & set(groups["loadgen"]) or not groups["loadgen"] else list(groups["engine"])
    for name in groups[ATTENDED]:
        hostvars[name]["qg_attend"] = {**((described[name] or {}).get("attend") or {})}  # needed at entry: app/engagements/drivers.py
    return Inventory(groups, hostvars, "".join(f"{line}\n" for line in keys), tuple(secrets), addresses, host_keys)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name in (*GROUPS, ATTENDED):
        raise Refused(
            "host_name",
            Text(
                "The target host name {name} is not usable: letters, digits, dot, dash and underscore only, and no group name.",
                "目标主机名 {name} 不可用：仅限字母、数字、点、横线和下划线，且不能与分组同名。",
            ),
            name=repr(name),
        )


def _local(host: dict[str, Any], root: Path) -> dict[str, Any]:
    """Return the variables of a lab host that is this machine."""
    return {
        "ansible_connection": "local",
        "ansible_python_interpreter": host.get("python") or sys.executable,
        "qg_root": host.get("root") or str(root),
    }


def _passwords(host: dict[str, Any]) -> dict[str, str]:
    """Return the variables that hold secrets, read from where the engagement says. They go into the run's own 0600 inventory, nowhere else."""
    wanted = (("password", "ansible_password"), ("become_password", "ansible_become_password"))
    return {variable: secret_of(host[reference]) for reference, variable in wanted if host.get(reference)}


def _become(host: dict[str, Any]) -> dict[str, Any]:
    """Return the variables that let the playbooks become another user (sudo), root where none is named."""
    if not host.get("become"):
        return {}
    return {"ansible_become": True, "ansible_become_method": "sudo", "ansible_become_user": host.get("become_user") or "root"}


def root_of(user: str) -> str:
    """Return where everything of ours lies on a host that names no `root`: below /var/lib, which nobody clears, if we may write there.

    systemd-tmpfiles clears /var/tmp of what nobody touched for 30 days. Without root there is no better folder that is everywhere; the records
    of what was changed carry the sticky bit there, which keeps them.
    """
    return "/var/lib/quadgate" if user == "root" else "/var/tmp/quadgate"  # noqa: S108 - on the target, 0700 by the probe role


def _ssh(name: str, host: dict[str, Any]) -> tuple[dict[str, Any], str, str]:
    """Return the variables of a remote host, its place as known_hosts names it, and its pinned key: type and key, without the comment."""
    address, port = str(host.get("address") or name), int(host.get("port") or 22)
    pinned = str(host.get("host_key") or "")
    if not pinned:
        raise Refused(
            "host_key_missing",
            Text(
                "The host {name} ({address}) has no pinned SSH host key, so nobody could tell whether it is the right machine. "
                "Read it at the machine's console (ssh-keyscan -p {port} {address} shows it too, check the fingerprint) and enter it as "
                "targets.hosts.{name}.host_key.",
                "主机 {name}（{address}）未登记 SSH 主机公钥，无法确认其身份。请在该机控制台读取（也可用 ssh-keyscan -p {port} {address} "
                "查看并核对指纹），填入 targets.hosts.{name}.host_key。",
            ),
            name=name,
            address=address,
            port=port,
        )
    where = address if port == 22 else f"[{address}]:{port}"
    variables: dict[str, Any] = {
        "ansible_connection": "ssh",
        "ansible_host": address,
        "ansible_port": port,
        "ansible_python_interpreter": host.get("python") or "/usr/bin/python3",
        "qg_root": host.get("root") or root_of(str(host.get("user") or "")),
    }
    if host.get("user"):
        variables["ansible_user"] = host["user"]
    if host.get("credential"):
        variables["ansible_ssh_private_key_file"] = str(credential_path(host["credential"]))
    return variables, where, " ".join(pinned.split()[:2])
