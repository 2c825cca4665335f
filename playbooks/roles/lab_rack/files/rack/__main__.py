"""One program for all simulated tools: `rack.pyz TOOL ARGUMENTS...`. The programs in bin/ call it with their own name."""

import importlib
import os
import signal
import sys

# Each module has main(argv, rack) -> exit code; rack is the description of this host.
TOOLS = {
    "nvme": "tool_nvme",
    "smartctl": "tool_smartctl",
    "fio": "tool_fio",
    "lspci": "tool_lspci",
    "rdma": "tool_network",
    "ibv_devinfo": "tool_network",
    "ethtool": "tool_network",
    "ip": "tool_network",
    "mlnx_qos": "tool_port",
    "ib_write_bw": "tool_perftest",
    "ib_read_bw": "tool_perftest",
    "amd-smi": "tool_amd_smi",
    "rvs": "tool_rvs",
    "dmidecode": "tool_dmidecode",
    "mdadm": "tool_mdadm",
    "mkfs.xfs": "tool_filesystem",
    "xfs_info": "tool_filesystem",
    "blkid": "tool_filesystem",
    "wipefs": "tool_filesystem",
    "mount": "tool_mount",
    "umount": "tool_mount",
    "findmnt": "tool_mount",
    "lsmod": "tool_system",
    "modprobe": "tool_system",
    "systemctl": "tool_system",
    "docker": "tool_docker",
    "journalctl": "tool_kernel",
    "dmesg": "tool_kernel",
}


def run() -> int:
    """Run the named tool, or `install`."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name == "install":
        import install

        return install.main(sys.argv[2:], sorted(TOOLS))
    if name not in TOOLS:
        sys.stderr.write("rack: unknown tool %r; known: %s\n" % (name, " ".join(sorted(TOOLS))))
        return 2
    import state

    return importlib.import_module(TOOLS[name]).main([name, *sys.argv[2:]], state.load())


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(run())
