"""nginx on loopback, one worker process on a core of its own, started and stopped here.

It counts what it served: every answer is a line of its log, which is buffered and costs the
rival nothing. Its configuration, log and certificate are in a folder that is thrown away.

TLS is 1.3 with a key on P-256, and every new connection a full handshake: nginx hands out no sessions to
resume. wrk, which asks one server all the time, would resume all of them, at a third of the CPU; a
crawler that meets thousands of hosts for the first time resumes none.
"""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote

from benchmarks.peers.measure import SERVER_CORE, pinned
from benchmarks.peers.pages import page_name

ADDRESS = "127.0.0.2"  # documentation links to 127.0.0.1 and localhost, at ports where nobody listens
_FLUSH_S = 1.0
_STOP_WITHIN_S = 10.0
_CONFIG = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
events {{ worker_connections 16384; }}
http {{
  types {{ text/html html htm; text/plain txt; text/css css; application/javascript js; image/png png; }}
  default_type application/octet-stream;
  log_format counted '$status $request_uri $sent_http_content_type';
  access_log {folder}/access.log counted buffer=256k flush={flush_s:.0f}s;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  sendfile on; tcp_nopush on; tcp_nodelay on;
  keepalive_timeout {keep_s}; keepalive_requests 10000000;
  open_file_cache max=8000 inactive=600s; open_file_cache_valid 600s;
  ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
  ssl_protocols TLSv1.2 TLSv1.3; ssl_session_tickets off; ssl_session_cache none;
  server {{
    {listen}
    root {root};
    {more}
  }}
}}
"""


class Served(dict[str, int]):
    """Pages served with 200, each with how often; `requests` is all that was asked for."""

    requests = 0


class Nginx:
    """A server of one folder; `with` starts and stops it."""

    def __init__(
        self,
        folder: Path,
        root: Path,
        *,
        addresses: tuple[str, ...] = (ADDRESS,),
        names: tuple[str, ...] = ("localhost",),
        keeps_alive: bool = True,
        core: int | None = SERVER_CORE,
        more: str = "",
    ) -> None:
        self._folder = folder
        self._addresses = addresses
        self._names = names
        self._core = core
        self.port, self.tls_port = free_port(), free_port()
        self._text = _CONFIG.format(
            folder=folder,
            flush_s=_FLUSH_S,
            keep_s=75 if keeps_alive else 0,
            listen=" ".join(
                f"listen {address}:{self.port} backlog=4096; listen {address}:{self.tls_port} ssl backlog=4096;"
                for address in addresses
            ),
            root=root,
            more=more,
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._log_at = 0

    @property
    def ca_file(self) -> Path:
        """The certificate to trust."""
        return self._folder / "cert.pem"

    def url(self, path: str, *, tls: bool = False) -> str:
        """Return the address of a page."""
        origin = f"https://{self._addresses[0]}:{self.tls_port}" if tls else f"http://{self._addresses[0]}:{self.port}"
        return origin + path

    def __enter__(self) -> Self:
        make_certificate(self._folder, self._names)
        config = self._folder / "nginx.conf"
        config.write_text(self._text, "utf-8")
        command = ["nginx", "-p", str(self._folder), "-c", str(config)]
        with nullcontext() if self._core is None else pinned(self._core):
            self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self._wait_until_ready()
        return self

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        for _ in range(100):
            if self._process.poll() is not None:
                break
            try:
                socket.create_connection((self._addresses[0], self.port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        told = self._folder / "error.log"
        raise SystemExit(f"peers: nginx does not start: {told.read_text('utf-8') if told.exists() else 'no log'}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(_STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def count_from_here(self) -> None:
        """Forget what was served so far."""
        time.sleep(_FLUSH_S + 0.2)
        self._log_at = self._log.stat().st_size

    def served(self) -> Served:
        """Return the HTML pages that were served with 200 since `count_from_here`."""
        time.sleep(_FLUSH_S + 0.2)
        with self._log.open("rb") as log:
            log.seek(self._log_at)
            lines = log.read().decode("latin-1").splitlines()
        served = Served()
        served.requests = len(lines)
        for line in lines:
            status, target, kind = line.split(" ", 2)
            if status == "200" and kind.startswith("text/html"):
                name = page_name(unquote(target.partition("?")[0]))
                served[name] = served.get(name, 0) + 1
        return served

    @property
    def _log(self) -> Path:
        return self._folder / "access.log"


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def make_certificate(folder: Path, names: tuple[str, ...]) -> None:
    """Make a key and a certificate for these names, signed by itself."""
    kind = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=peers"
    alternatives = "subjectAltName=" + ",".join(f"DNS:{name}" for name in names)
    files = ["-keyout", "key.pem", "-out", "cert.pem", "-addext", alternatives]
    subprocess.run([*kind.split(), *files], check=True, capture_output=True, cwd=folder)
