"""Does a replay tool give back the very bytes that the servers sent?

Crawls a small synthetic web, puts archive and index into a pywb collection, asks pywb for every
page (raw, `id_`), and compares each body with what the server answers. pywb is not among the
project's own packages: name the program of an environment that has it.

    python benchmarks/replay.py PATH/TO/wayback
"""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from gossamer.archive.cdxj import index_file
from gossamer.sim.running import RunningWeb
from gossamer.sim.web.web import preset

PORT = 18_099
LONGEST_START_S = 60.0


def crawl(web: RunningWeb, out: Path) -> None:
    subprocess.run(
        [
            *(sys.executable, "-m", "gossamer.cli.main", "crawl", *web.seeds(), "--out", str(out), "--json"),
            *("--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "--politeness-ms", "10"),
        ],
        check=True,
        capture_output=True,
    )


def collection(out: Path, folder: Path) -> None:
    made = folder / "collections" / "crawl"
    (made / "indexes").mkdir(parents=True)
    shutil.copytree(out / "archive", made / "archive")
    shutil.copy(out / "index" / "index.cdxj", made / "indexes" / "index.cdxj")
    (folder / "config.yaml").write_text("recorder: null\n", "utf-8")


def get(port: int, path: str, host: str = "") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def wait_for(port: int) -> None:
    until = time.monotonic() + LONGEST_START_S
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            time.sleep(0.2)
        else:
            return


def main() -> None:
    wayback = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as scratch, RunningWeb(preset("small", compressed=0.5, chunked=0.3)) as web:
        folder = Path(scratch)
        crawl(web, folder / "out")
        collection(folder / "out", folder)
        process = subprocess.Popen(
            [wayback, "-p", str(PORT), "-b", "127.0.0.1", "-t", "2"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(PORT)
            same, different = compare(web, folder / "out")
        finally:
            process.terminate()
            process.wait()
    print(f"replay: {same} bodies the same byte for byte, {len(different)} not {different[:3]}")
    sys.exit(bool(different) or not same)


def compare(web: RunningWeb, out: Path) -> tuple[int, list[str]]:
    lines = [line for path in sorted((out / "archive").iterdir()) for line in index_file(path)]
    stamps = {json.loads(line.split(" ", 2)[2])["url"]: line.split(" ", 2)[1] for line in lines}
    keys = Counter(line.split(" ", 1)[0] for line in lines)
    shared = {json.loads(line.split(" ", 2)[2])["url"] for line in lines if keys[line.split(" ", 1)[0]] > 1}
    same, different = 0, []
    for page in sorted(web.truth().pages):
        host, _, path = page.removeprefix("http://").partition("/")
        stamp = stamps.get(page)
        if stamp is None or page in shared:
            # Archived under another spelling of its URL; or replay tools take `www.` and bare hosts for one.
            continue
        status, replayed = get(PORT, f"/crawl/{stamp}id_/{page}")
        _, served = get(web.port, "/" + path, host)
        if status == 200 and replayed == served:
            same += 1
        else:
            different.append(f"{page} ({status})")
    return same, different


if __name__ == "__main__":
    main()
