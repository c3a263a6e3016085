"""A real Milvus server from the package `milvus`, alone in a network namespace because it listens on every interface.

    python -m tests.milvus_server pytest -m milvus     runs a command beside a server of its own
    python -m tests.milvus_server --secured pytest ... the same, and the server wants a key and TLS
    python -m tests.milvus_server                      a shell beside it, in the same namespace

The server's own wrapper ignores settings that its template lacks and moves ports after a crash, so the configuration
file is written here.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import importlib.util
import lzma
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

PORT, HEALTH_PORT = 19530, 9091
ADDRESS = "INCDSI_TEST_MILVUS"  # where tests find the server: host:port
SECURED = "INCDSI_TEST_MILVUS_SECURED"  # the same of a server that wants a key and TLS
CERTIFICATE = "INCDSI_TEST_MILVUS_CERTIFICATE"  # the file of its certificate
KEY = "root:Milvus"  # what such a server begins with
INSIDE = "INCDSI_INSIDE_NAMESPACE"
GAP = re.compile(r"\{\{ *(?P<name>\w+)(\(\w+\))?(: *(?P<default>[^} ]*))? *\}\}")
_LIBC = ctypes.CDLL(None)
STARTS_IN = 120.0  # seconds, on a busy machine


def missing() -> str | None:
    """Why there can be no server here; None when there can."""
    if importlib.util.find_spec("milvus") is None:
        return "the package milvus is not installed"
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    alone = subprocess.run(["unshare", "-rn", "true"], capture_output=True)
    return None if alone.returncode == 0 else "this machine lets nobody make a network namespace"


class MilvusServer:
    """One server process with its files in a folder; it can be killed and started again on the same files."""

    def __init__(self, folder: Path, secured: bool = False) -> None:
        self.folder = folder
        self.secured = secured
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{PORT}"

    @property
    def certificate(self) -> Path:
        """What a client knows a secured server by."""
        return self.folder / "server.pem"

    def start(self) -> None:
        """Return when it is healthy."""
        (self.folder / "conf").mkdir(parents=True, exist_ok=True)
        (self.folder / "conf" / "milvus.yaml").write_text(yaml.safe_dump(self._configuration()))
        shutil.copy(_package() / "data" / "glog.conf", self.folder / "conf")
        programs = _programs()
        environment = {
            **os.environ,
            "MILVUSCONF": str(self.folder / "conf"),
            "LD_LIBRARY_PATH": str(programs),
            "MILVUS_RUN_DIR": str(self.folder / "run"),
        }
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [programs / "milvus", "run", "standalone"],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                preexec_fn=_die_with_parent,
            )
        self._wait()

    def revive(self) -> bool:
        """Start it again if it has ended, as whatever supervises a server does; whether it had."""
        with self._starting:
            if self._process is None or self._process.poll() is None:
                return False
            with contextlib.suppress(RuntimeError):  # it ended once more: the next call tries again
                self.start()
            return True

    def crash(self) -> None:
        """SIGKILL, and leave the rest to whoever supervises it."""
        with self._starting:
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def stop(self) -> None:
        """As one should: SIGTERM, and what is left of it after ten seconds is killed."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """SIGKILL, as power would: nothing is said goodbye to."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def _configuration(self) -> dict[str, Any]:
        plain = _configuration(self.folder)
        if self.secured:
            key = self.folder / "server.key"
            if not key.exists():
                certify(self.certificate, key)
            plain["common"]["security"].update(authorizationEnabled=True, tlsMode=1)
            plain["tls"] = {"serverPemPath": str(self.certificate), "serverKeyPath": str(key), "caPemPath": ""}
        return plain

    def _wait(self) -> None:
        assert self._process is not None
        give_up = time.monotonic() + STARTS_IN
        while time.monotonic() < give_up:
            if self._process.poll() is not None:
                raise RuntimeError(f"the server ended at once; see {self.folder / 'server.log'}")
            health = f"http://127.0.0.1:{HEALTH_PORT}/healthz"
            with contextlib.suppress(OSError), urllib.request.urlopen(health, timeout=1) as answer:
                if answer.read() == b"OK":
                    return
            time.sleep(0.1)
        raise RuntimeError(f"the server was not healthy after {STARTS_IN:g} s; see {self.folder / 'server.log'}")


def _die_with_parent() -> None:
    """Between fork and exec: whatever ends this process ends the server."""
    _LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _configuration(folder: Path) -> dict[str, Any]:
    """The package's template with its own defaults, and over it what this server needs."""
    paths = ("etcd_data_dir", "local_storage_dir", "rocksmq_data_dir", "system_log_path")
    places = {name: str(folder / name) for name in paths} | {"etcd_log_path": str(folder / "etcd.log")}

    def filled(gap: re.Match[str]) -> str:
        return places.get(gap["name"], gap["default"] or "")

    text = (_package() / "data" / "config.yaml.template").read_text()
    plain: dict[str, Any] = yaml.safe_load(re.sub(GAP, filled, text))
    plain["proxy"]["timeTickInterval"] = 20  # ms that a Strong read waits for
    for check in ("checkInterval", "checkChannelInterval", "checkSegmentInterval", "distPullInterval"):
        plain["queryCoord"][check] = 50
    plain["common"]["gracefulStopTimeout"] = 2  # else SIGTERM hangs for minutes
    plain["common"]["session"]["ttl"] = 10  # back soon after SIGKILL, not after 40 s; shorter, a busy machine ends it
    plain["quotaAndLimits"]["enabled"] = False
    plain["log"]["level"] = "warn"
    return plain


def certify(certificate: Path, key: Path) -> None:
    """A certificate for this machine, signed by nobody else."""
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run([*made, "-keyout", key, "-out", certificate, *subject], check=True, capture_output=True)


def _package() -> Path:
    found = importlib.util.find_spec("milvus")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _programs() -> Path:
    """The server and its libraries, unpacked once."""
    packed = _package() / "data" / "bin"
    name = hashlib.sha256(str(sorted((one.name, one.stat().st_size) for one in packed.iterdir())).encode()).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "incdsi"
    unpacked = cache / f"milvus-{name[:12]}"
    if not unpacked.exists():
        cache.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=cache))
        for file in packed.glob("*.lzma"):
            target = part / file.name.removesuffix(".lzma")
            with lzma.open(file) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out)
            target.chmod(0o755)
        with contextlib.suppress(OSError):  # another process was quicker
            part.rename(unpacked)
        shutil.rmtree(part, ignore_errors=True)
    return unpacked


def set_link(up: bool) -> None:
    """Bring the namespace's loopback up or down."""
    flags = struct.pack("16sh14x", b"lo", 0x1 if up else 0x0)  # IFF_UP
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, flags)  # SIOCSIFFLAGS


@contextlib.contextmanager
def running(folder: Path | None = None, secured: bool = False) -> Iterator[MilvusServer]:
    """A server in this namespace; its files go when it does, unless a folder is given."""
    with contextlib.ExitStack() as stack:
        where = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        server = MilvusServer(where, secured)
        stack.callback(server.kill)
        stack.callback(server.stop)
        server.start()
        yield server


def enter(module: str, arguments: Sequence[str]) -> None:
    """Go on in a network namespace of one's own, with loopback up; ends this process with what happened there."""
    if os.environ.get(INSIDE) == "1":
        set_link(up=True)
        return
    if reason := missing():
        sys.exit(f"no Milvus server: {reason}")
    again = ["unshare", "-rn", sys.executable, "-m", module, *arguments]
    sys.exit(subprocess.run(again, env={**os.environ, INSIDE: "1"}).returncode)


def main(command: Sequence[str]) -> int:
    enter("tests.milvus_server", command)
    secured = list(command[:1]) == ["--secured"]
    with running(secured=secured) as server:
        told = {SECURED: server.address, CERTIFICATE: str(server.certificate)} if secured else {ADDRESS: server.address}
        shell = [os.environ.get("SHELL", "/bin/sh")]
        print(f"Milvus at {server.address}, in this namespace alone", file=sys.stderr)
        return subprocess.run(list(command[secured:]) or shell, env={**os.environ, **told}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
