"""A Docker daemon and the images that docker-compose.yml names, also where no registry can be reached.

A daemon that runs is used. Else, as root, one is started for the lane with a data folder of its own, without bridge or firewall rules,
and stopped by its process id. Images that are neither there nor to be pulled are built on a base that debootstrap makes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BASE = "quadgate-test-base"
PYTHON, POSTGRES, REDIS, NGINX = "python:3.11-slim-bookworm", "postgres:15-bookworm", "redis:7-bookworm", "nginx:1.26-bookworm"
LACKING = "Docker's daemon (dockerd) or docker-compose is not on this machine; on Debian install docker.io, docker-compose and debootstrap."


def compose_argv() -> list[str] | None:
    """Return the command of compose: the old program or the plugin, whichever is there."""
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    found = shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
    return ["docker", "compose"] if found else None


def answers() -> bool:
    """Tell whether a daemon answers."""
    return bool(shutil.which("docker")) and subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


def why_not() -> str:
    """Return why the lane cannot run here, empty when it can."""
    if compose_argv() is None or not (answers() or shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")):
        return LACKING
    if not answers() and os.geteuid() != 0:
        return "No Docker daemon answers, and only root may start one."
    return ""


@contextmanager
def daemon() -> Iterator[None]:
    """Have a daemon for the length of the block."""
    if answers():
        yield
        return
    folder = Path(os.environ.get("QUADGATE_DOCKER_DIR") or tempfile.mkdtemp(prefix="qg-docker-"))
    folder.mkdir(exist_ok=True)
    where = f"unix://{folder}/docker.sock"
    argv = ["dockerd", "--bridge=none", "--iptables=false", "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")]
    with (folder / "dockerd.log").open("ab") as log:
        process = subprocess.Popen(
            [*argv, "--pidfile", str(folder / "dockerd.pid"), "-H", where],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
        )
    before = os.environ.get("DOCKER_HOST")
    os.environ["DOCKER_HOST"] = where
    try:
        deadline = time.monotonic() + 120
        while not answers():
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((folder / "dockerd.log").read_text()[-2000:])
            time.sleep(0.5)
        yield
    finally:
        if before is None:
            del os.environ["DOCKER_HOST"]
        else:
            os.environ["DOCKER_HOST"] = before
        process.terminate()
        process.wait(60)
        subprocess.run(["umount", str(folder / "exec/netns/default")], capture_output=True, check=False)  # the daemon leaves it mounted
        if "QUADGATE_DOCKER_DIR" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)


def has(image: str) -> bool:
    """Tell whether the daemon has an image."""
    return _docker("image", "inspect", image, check=False).returncode == 0


def images(build: Path) -> list[str]:
    """Have all images, the service's own built anew from the tree. Returns which of them stand in for a registry's."""
    stand_ins = [image for image in (PYTHON, POSTGRES, REDIS, NGINX) if not has(image) and not _pulled(image)]
    if stand_ins and not has(BASE):
        _make_base(build)
    for image in stand_ins:
        if image == PYTHON:
            _docker("tag", BASE, PYTHON)
        else:
            _build(HERE / "images", image, f"Dockerfile.{image.split(':')[0]}")
    context = build / "context"
    context.mkdir()
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, tracked.decode().split("\0")):
        if (ROOT / name).is_file():
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, context / name)
    service(context, "quadgate:lane")
    return stand_ins


def service(tree: Path, tag: str) -> None:
    """Build the service's own image from a tree, the wheels of the lock put beside it."""
    shutil.copytree(_wheelhouse(), tree / "wheelhouse", copy_function=os.link if _same_disk(tree) else shutil.copy2)
    _build(tree, tag, "Dockerfile")


def _pulled(image: str) -> bool:
    try:
        return subprocess.run(["docker", "pull", "-q", image], capture_output=True, check=False, timeout=60).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _make_base(build: Path) -> None:
    """Import a small Debian as the base of all stand-ins."""
    root = build / "debian"
    packages = "python3,python3-venv,ca-certificates"
    subprocess.run(["debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", root, "http://deb.debian.org/debian"], check=True)
    tar = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
    subprocess.run(["docker", "import", "-", BASE], stdin=tar.stdout, check=True)
    assert tar.wait() == 0
    shutil.rmtree(root)


def _wheelhouse() -> Path:
    """Return a folder with every wheel of the lock: QUADGATE_WHEELHOUSE, or wheelhouse/ of the checkout, gathered when it is not there."""
    given = Path(os.environ.get("QUADGATE_WHEELHOUSE") or ROOT / "wheelhouse")
    if not any(given.glob("*.whl")):
        subprocess.run([ROOT / "tools" / "wheelhouse.sh"], check=True)
    return given


def _same_disk(tree: Path) -> bool:
    return tree.stat().st_dev == _wheelhouse().stat().st_dev


def _build(context: Path, tag: str, file: str) -> None:
    _docker("build", "-q", "--network", "host", "-t", tag, "-f", str(context / file), str(context))


def _docker(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False, env={**os.environ, "DOCKER_BUILDKIT": "0"})
    assert not check or done.returncode == 0, f"docker {' '.join(words)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done
