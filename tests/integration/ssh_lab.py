"""Two OpenSSH servers on 127.0.1.1 and 127.0.1.2 that are two hosts of a playbook lab."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.integration.playbook_lab import PlaybookLab, playbook_lab
from tests.needs import SSHD
from tests.ports import free_port

ADDRESSES = {"gpu01": "127.0.1.1", "gpu02": "127.0.1.2"}


@contextmanager
def sshd(folder: Path, address: str, port: int, programs: Path | None = None) -> Iterator[str]:
    """Run one server with a key of its own; give its public host key. `programs` comes first on the PATH of its sessions."""
    key = folder / f"host-{address}"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    lines = [
        f"ListenAddress {address}:{port}",
        f"HostKey {key}",
        f"AuthorizedKeysFile {folder / 'client.pub'}",
        f"PidFile {folder / f'{address}.pid'}",
        "StrictModes no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        f"UsePAM {'yes' if os.geteuid() == 0 else 'no'}",
        "PrintMotd no",
        "Subsystem sftp internal-sftp",
        *([f"SetEnv PATH={programs}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"] if programs else []),
    ]
    config = folder / f"sshd-{address}.conf"
    config.write_text("".join(f"{line}\n" for line in lines))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    log = folder / f"sshd-{address}.log"
    server = subprocess.Popen([str(SSHD), "-D", "-f", str(config), "-E", str(log)], stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 20
        while True:
            assert server.poll() is None, log.read_text()
            try:
                socket.create_connection((address, port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.05)
        yield Path(f"{key}.pub").read_text()
    finally:
        server.terminate()
        server.wait(10)


@contextmanager
def ssh_lab(programs: Mapping[str, Path] | None = None) -> Iterator[PlaybookLab]:
    """Two hosts behind SSH, with pinned host keys, as the service describes them to Ansible. `programs`: a folder first on PATH, by host."""
    keys = Path(tempfile.mkdtemp(prefix="qg-ssh-"))
    port = free_port()
    try:
        with ExitStack() as stack:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / "client")], check=True)
            known = ""
            for name, address in ADDRESSES.items():
                public = stack.enter_context(sshd(keys, address, port, (programs or {}).get(name)))
                known += f"[{address}]:{port} {' '.join(public.split()[:2])}\n"
            (keys / "known_hosts").write_text(known)
            strict = f"-o UserKnownHostsFile={keys / 'known_hosts'} -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes"
            made = stack.enter_context(playbook_lab())
            for name, address in ADDRESSES.items():
                made.add(
                    name,
                    ansible_connection="ssh",
                    ansible_host=address,
                    ansible_port=port,
                    ansible_user=getpass.getuser(),
                    ansible_python_interpreter=sys.executable,
                    ansible_ssh_private_key_file=str(keys / "client"),
                    ansible_remote_tmp=str(made.folder / f"tmp-{name}"),
                    ansible_ssh_common_args=strict,
                    ansible_ssh_transfer_method="piped",  # this sshd has no sftp, and trying it first costs seconds
                )
            yield made
    finally:
        shutil.rmtree(keys, ignore_errors=True)
