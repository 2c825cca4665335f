"""The package managers of a target: dpkg with apt-get, and rpm. Each installs from files only, leaves what is there alone, says what it would do.

Commands rather than Ansible's modules: those of apt want python3-apt on the target and fetch what a file needs from the host's own sources.
`rpm --install` (never --upgrade) asks no repository either.
"""

import os
import re
from abc import ABC, abstractmethod
from typing import Any, Dict, Iterable, List, Optional, Set

from hardware.host import Host, Refused

DEB = {"debian", "ubuntu"}
RPM = {"rhel", "fedora", "centos", "suse", "opensuse", "sles", "openeuler", "kylin", "anolis", "rocky", "almalinux", "ol", "openanolis", "hce", "uos"}


class Manager(ABC):
    """What dpkg and rpm have in common. `distribution` is ID-VERSION_ID of os-release."""

    kind, neutral, programs = "", "", ()  # type: ignore[var-annotated]

    def __init__(self, host: Host, distribution: str) -> None:
        self.host, self.distribution = host, distribution
        self.architecture = self._architecture()
        self._known: Optional[Dict[str, Dict[str, Any]]] = None

    def takes(self, row: Dict[str, Any]) -> bool:
        """Tell whether a carried package is of this host's kind, distribution (12 serves 12.5 too) and architecture."""
        told = row["distribution"]
        return (
            row["kind"] == self.kind
            and (self.distribution == told or self.distribution.startswith(told + "."))
            and row["architecture"] in (self.architecture, self.neutral)
        )

    def installed(self) -> Dict[str, Dict[str, Any]]:
        """Return the packages that are wholly there, by name: {version, provides}."""
        return {name: row for name, row in self._all().items() if row["whole"]}

    def present(self) -> Dict[str, str]:
        """Return the version of each package that is there, be it half."""
        return {name: row["version"] for name, row in self._all().items()}

    @abstractmethod
    def has(self, what: str) -> bool:
        """Tell whether a dependency is met by what is installed."""

    @abstractmethod
    def leftovers(self, name: str) -> List[str]:
        """Return the files of settings that a package left when it was removed once: they were there before us."""

    @abstractmethod
    def evidence(self, name: str) -> str:
        """Return the command that shows a package."""

    @abstractmethod
    def try_install(self, files: List[str], names: Set[str]) -> None:
        """Raise Refused where the installation would fail, or would change what is there."""

    @abstractmethod
    def install(self, files: List[str]) -> None:
        """Install these files and forget what was known."""

    @abstractmethod
    def removable(self, names: List[str]) -> List[str]:
        """Return those that can go without taking away anything else."""

    @abstractmethod
    def remove(self, names: List[str], keep_settings: List[str]) -> None:
        """Take packages away, those of the second list without their settings."""

    def _change(self, what: str, argv: List[str]) -> None:
        """Run what changes packages, and forget what was known. Raises Refused with the reason, which scripts print on either stream."""
        self._known = None
        code, out, err = self.host.ask(argv)
        if code:
            raise Refused(
                "`{0}` ended with {1}: {2}. What it did until then is on record: put it right and deploy again, or remove.",
                "`{0}` 退出码 {1}：{2}。此前所做的更改已记录：请排除后重新部署，或执行清除。",
                what,
                code,
                _reason(out + "\n" + err),
            )

    def _all(self) -> Dict[str, Dict[str, Any]]:
        if self._known is None:
            self._known = self._read()
        return self._known

    @abstractmethod
    def _read(self) -> Dict[str, Dict[str, Any]]: ...

    @abstractmethod
    def _architecture(self) -> str: ...


class Deb(Manager):
    """dpkg, by apt-get, which knows no source while we use it: so it can fetch nothing."""

    kind, neutral, programs = "deb", "all", ("dpkg", "dpkg-query", "apt-get")
    settings = (
        "Dir::Etc::sourcelist=/dev/null",
        "Dir::Etc::sourceparts=/dev/null",
        "Dir::Cache::pkgcache=",  # the host's own index of packages stays as it is
        "Dir::Cache::srcpkgcache=",
        "APT::Get::AutomaticRemove=false",
        "Dpkg::Options::=--force-confold",
        "DPkg::Lock::Timeout=120",
    )

    def has(self, what: str) -> bool:
        """Tell whether a package of this name, or one that provides it, is installed."""
        return any(what == name or what in row["provides"] for name, row in self.installed().items())

    def leftovers(self, name: str) -> List[str]:
        """Return the settings that dpkg keeps of a package that is not there; it would replace those that nobody changed."""
        status, _, files = self.host.ask(["dpkg-query", "-W", "-f", "${db:Status-Status}\n${Conffiles}", name])[1].partition("\n")
        return [line.split()[0] for line in files.splitlines() if line.strip()] if status == "config-files" else []

    def evidence(self, name: str) -> str:
        """Return the command that shows a package."""
        return "dpkg-query -W %s" % name

    def try_install(self, files: List[str], names: Set[str]) -> None:
        """Let apt-get say what it would do; only these names may be installed, and nothing upgraded or removed."""
        code, out, err = self.host.ask(self._apt("--simulate", "--no-remove", "install", *files))
        whole, touched = set(self.installed()), []
        for verb, told in re.findall(r"^(Inst|Remv|Purg) (\S+)", out, re.M):
            name = told.split(":")[0]
            if verb != "Inst" or name not in names or name in whole:  # one that broke off half-way is put right
                touched.append(name)
        if code or touched:
            raise Refused(
                "The packages cannot be installed without changing what is there ({0}); nothing was changed.",
                "无法在不改动现有软件包的情况下安装（{0}）；未做任何更改。",
                ", ".join(sorted(touched)) or _reason(out + "\n" + err),
            )

    def install(self, files: List[str]) -> None:
        """Install these files."""
        self._change("apt-get install", self._apt("--no-remove", "install", *files))

    def removable(self, names: List[str]) -> List[str]:
        """Leave out, one by one, what others need."""
        goes = list(names)
        while goes and self._also(goes):
            holds = [name for name in goes if self._also([name]) - set(goes)]
            if not holds:
                return []
            goes = [name for name in goes if name not in holds]
        return goes

    def remove(self, names: List[str], keep_settings: List[str]) -> None:
        """Purge what left nothing behind before us, remove the rest."""
        for verb, some in (("remove", keep_settings), ("purge", names)):
            if some:
                self._change("apt-get %s" % verb, self._apt(verb, *some))

    def _also(self, names: List[str]) -> Set[str]:
        """Return what apt-get would take away besides these."""
        out = self.host.need(self._apt("--simulate", "remove", *names))
        return {name.split(":")[0] for name in re.findall(r"^(?:Remv|Purg) (\S+)", out, re.M)} - set(names)

    def _apt(self, *words: str) -> List[str]:
        settings = [word for one in self.settings for word in ("-o", one)]
        return ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--yes", "--quiet", "--no-install-recommends", *settings, *words]

    def _read(self) -> Dict[str, Dict[str, Any]]:
        found = {}
        out = self.host.need(["dpkg-query", "-W", "-f", "${Package}\t${Architecture}\t${Version}\t${db:Status-Status}\t${Provides}\n"])
        for line in out.splitlines():
            name, architecture, version, status, provides = line.split("\t")
            if status not in ("not-installed", "config-files") and architecture in (self.architecture, self.neutral):
                found[name] = {"version": version, "whole": status == "installed", "provides": _names(provides)}
        return found

    def _architecture(self) -> str:
        return self.host.need(["dpkg", "--print-architecture"]).strip()


class Rpm(Manager):
    """rpm itself, which asks no repository."""

    kind, neutral, programs = "rpm", "noarch", ("rpm",)

    def has(self, what: str) -> bool:
        """Tell whether anything installed provides a capability or a file."""
        return self.host.ask(["rpm", "--query", "--whatprovides", what])[0] == 0

    def leftovers(self, name: str) -> List[str]:  # noqa: ARG002 - rpm keeps none under a package's name: what was changed stays as FILE.rpmsave
        """Return nothing."""
        return []

    def evidence(self, name: str) -> str:
        """Return the command that shows a package."""
        return "rpm -q %s" % name

    def try_install(self, files: List[str], names: Set[str]) -> None:  # noqa: ARG002 - rpm itself replaces nothing
        """Let rpm try it: dependencies, conflicts, signatures as this host wants them. --install never replaces what is there."""
        code, out, err = self.host.ask(["rpm", "--install", "--test", *files])
        if code:
            raise Refused(
                "The packages cannot be installed beside what is there ({0}); nothing was changed.",
                "无法与现有软件包并存安装（{0}）；未做任何更改。",
                _reason(out + "\n" + err),
            )

    def install(self, files: List[str]) -> None:
        """Install these files."""
        self._change("rpm --install", ["rpm", "--install", *files])

    def removable(self, names: List[str]) -> List[str]:
        """Leave out, one by one, what others need."""
        goes = list(names)
        while goes and self._held(goes):
            holds = next((name for name in goes if not self._held([one for one in goes if one != name])), goes[0])
            goes = [name for name in goes if name != holds]
        return goes

    def remove(self, names: List[str], keep_settings: List[str]) -> None:
        """Take packages away."""
        self._change("rpm --erase", ["rpm", "--erase", *names, *keep_settings])

    def _held(self, names: List[str]) -> bool:
        return bool(names) and self.host.ask(["rpm", "--erase", "--test", *names])[0] != 0

    def _read(self) -> Dict[str, Dict[str, Any]]:
        out = self.host.need(["rpm", "--query", "--all", "--queryformat", "%{NAME}\t%{EPOCHNUM}\t%{VERSION}-%{RELEASE}\n"])
        rows = [line.split("\t") for line in out.splitlines()]
        return {name: {"version": version if epoch == "0" else epoch + ":" + version, "whole": True} for name, epoch, version in rows}

    def _architecture(self) -> str:
        return os.uname().machine


def manager_of(host: Host) -> Manager:
    """Return the package manager of this host by its os-release. Raises Refused where it is none that we know, or its programs lack."""
    if host.prefix:
        raise Refused(
            "This is a simulated host: it has no packages of its own, and those of the machine below it are not touched.",
            "这是模拟主机：它没有自己的软件包，其所在机器的软件包不作改动。",
        )
    told = _os_release(host)
    words = {word.lower() for word in [told.get("ID", ""), *told.get("ID_LIKE", "").split()]}
    made = Deb if words & DEB else Rpm if words & RPM else None
    if made is None:
        raise Refused(
            "Which packages this host takes is not known: its os-release says ID={0}. Install what targets.packages names by hand, "
            "then take the section out; nothing was changed.",
            "无法得知本主机使用哪种软件包：os-release 中 ID={0}。请手工安装 targets.packages 所列软件包后删去该小节；未做任何更改。",
            told.get("ID", ""),
        )
    for program in made.programs:
        if host.ask([program, "--version"])[0] == 127:
            raise Refused("This host has no {0}; nothing was changed.", "本主机没有 {0}；未做任何更改。", program)
    return made(host, "%s-%s" % (told.get("ID", ""), told.get("VERSION_ID", "")))


def _os_release(host: Host) -> Dict[str, str]:
    text = host.text(os.path.join(host.etc, "os-release")) or host.text("/usr/lib/os-release") or ""
    return {key: value.strip("\"'") for key, _, value in (line.partition("=") for line in text.splitlines()) if value}


def _names(relations: str) -> List[str]:
    """Return the names in a list of dpkg's relations, without versions and architectures."""
    return [part.split("(")[0].split(":")[0].strip() for part in relations.split(",") if part.strip()]


def _reason(text: str) -> str:
    """Return what a package manager gave as its reason, without the lines that it says anyway."""
    return " ".join(_telling(text.splitlines()))[-600:]


def _telling(lines: Iterable[str]) -> List[str]:
    chatter = (
        "Reading ",
        "Building ",
        "Note, selecting",
        "The following",
        "Inst ",
        "Conf ",
        "(Reading",
        "Selecting",
        "Preparing",
        "Unpacking",
        "Setting up",
        "Get:",
        "Need to get",
        "After this",
        "debconf:",
    )
    return [line.strip() for line in lines if line.strip() and not line.startswith(chatter)]
