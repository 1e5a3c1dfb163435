"""SeaweedFS for tests: an S3 server with one key, and a proxy in front of it that fails on request."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.servers.redis import free_port

KEY, SECRET = "testkey", "testsecret"
BUCKET = "pages"
READY_TRIES, READY_WAIT_S = 200, 0.05


class S3Server:
    """A server with an empty bucket."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program = program
        self.folder = folder
        self.port = free_port()
        self._others = [free_port() for _ in range(7)]
        self._process: subprocess.Popen[bytes] | None = None

    def environment(self, port: int = 0, secret: str = SECRET) -> dict[str, str]:
        """Return what a program needs to use the server, or a proxy at another port."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "us-east-1",
        }

    def client(self) -> Any:
        config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, s3={"addressing_style": "path"})
        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
            config=config,
        )

    def keys(self, prefix: str = "") -> dict[str, int]:
        """Return the objects with a prefix, and their sizes."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return {found["Key"]: found["Size"] for page in pages for found in page.get("Contents", [])}

    def read(self, key: str) -> bytes:
        body: bytes = self.client().get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return body

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True, parents=True)
        identity = {"name": "t", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
        (self.folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        master, volume, filer, *grpc = self._others
        names = ("master", "volume", "filer", "s3")
        self._process = subprocess.Popen(
            [
                self.program, "-logtostderr=true", "server", f"-dir={self.folder}",
                "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
                f"-master.port={master}", f"-volume.port={volume}", "-filer", f"-filer.port={filer}", "-s3",
                f"-s3.port={self.port}", "-s3.port.iceberg=0", "-s3.port.lance=0",
                f"-s3.config={self.folder / 's3.json'}",
                "-volume.max=50", "-master.volumeSizeLimitMB=128", "-master.volumePreallocate=false",
                "-master.telemetry=false", "-master.electionTimeout=500ms", "-volume.preStopSeconds=0",
                *(f"-{name}.port.grpc={port}" for name, port in zip(names, grpc, strict=True)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(self.folder)},
        )  # fmt: skip
        self._await_ready()

    def _await_ready(self) -> None:
        """Return when an object can be written: the parts of the server start one after another."""
        client = self.client()
        pause = threading.Event()
        for _ in range(READY_TRIES):
            with suppress(BotoCoreError, ClientError):
                with suppress(client.exceptions.BucketAlreadyExists, client.exceptions.BucketAlreadyOwnedByYou):
                    client.create_bucket(Bucket=BUCKET)
                client.put_object(Bucket=BUCKET, Key="ready", Body=b"x")
                client.delete_object(Bucket=BUCKET, Key="ready")
                return
            pause.wait(READY_WAIT_S)
        raise RuntimeError("the S3 server did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(20)
            self._process = None


@contextmanager
def running(program: str, folder: Path) -> Iterator[S3Server]:
    server = S3Server(program, folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()


class S3Proxy:
    """A TCP proxy in front of a server. `fault` says what happens to requests that begin from now on.

    `refuse`: no connection; `answer_503`: an error; `cut`: the connection ends after some bytes of the answer;
    `slow`: 0.2 s per piece; `mixed`: every other request has one of these faults.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.fault = ""
        self._count = 0
        self._pause = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                ours, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(ours,), daemon=True).start()

    def _fault(self) -> str:
        if self.fault != "mixed":
            return self.fault
        self._count += 1
        return ("", "answer_503", "", "cut", "", "slow")[self._count % 6]

    def _serve(self, ours: socket.socket) -> None:
        with suppress(OSError), ours:
            while head := ours.recv(1 << 16):
                fault = self._fault()
                if fault == "refuse":
                    return
                if fault == "answer_503":
                    ours.sendall(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    return
                self._forward(ours, head, fault)
                if fault:
                    return

    def _forward(self, ours: socket.socket, head: bytes, fault: str) -> None:
        """Pass one connection on, until one side ends it."""
        with socket.create_connection(("127.0.0.1", self._target)) as theirs:
            theirs.sendall(head)
            answers = threading.Thread(target=self._pump, args=(theirs, ours, fault), daemon=True)
            answers.start()
            self._pump(ours, theirs, "")
            answers.join()

    def _pump(self, source: socket.socket, target: socket.socket, fault: str) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self.fault == "refuse":
                    break
                if fault == "slow":
                    self._pause.wait(0.2)
                target.sendall(data[:20] if fault == "cut" else data)
                if fault == "cut":
                    break
        for side in (source, target):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()


@contextmanager
def proxy(server: S3Server) -> Iterator[S3Proxy]:
    made = S3Proxy(server.port)
    try:
        yield made
    finally:
        made.fault = "refuse"
        made.close()
