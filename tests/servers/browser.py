"""A browser for tests: Debian's Chromium, driven over the WebDriver protocol by its own driver.

The protocol is JSON over HTTP, and the tests need a dozen of its commands: a client of a hundred lines instead of a
package that downloads drivers by itself. Nothing of the browser may reach the internet.
"""

from __future__ import annotations

import base64
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers import engines

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # W3C WebDriver, 12: the key of a reference to an element
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--lang=en"),
)
WITHIN_S = 20.0


class Element:
    """An element of a page."""

    def __init__(self, browser: Browser, reference: str) -> None:
        self._browser = browser
        self.reference = reference

    def click(self) -> None:
        self._browser.call("POST", f"/element/{self.reference}/click", {})

    def type(self, text: str) -> None:
        self._browser.call("POST", f"/element/{self.reference}/value", {"text": text})

    @property
    def text(self) -> str:
        return str(self._browser.call("GET", f"/element/{self.reference}/text"))


class Browser:
    """One window."""

    def __init__(self, driver: str, profile: Path, width: int, height: int) -> None:
        self._driver = driver
        arguments = [*ARGUMENTS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        wanted = {
            "capabilities": {
                "alwaysMatch": {
                    "goog:chromeOptions": {"args": arguments},
                    "goog:loggingPrefs": {"browser": "ALL"},
                    "timeouts": {"script": 60_000},
                }
            }
        }
        self._session = ""
        made = self.call("POST", "/session", wanted)
        self._session = f"/session/{made['sessionId']}"

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._driver}{self._session}{path}", data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as error:
            told = json.loads(error.read())["value"]
            raise AssertionError(f"{told['error']}: {told['message'].splitlines()[0]}") from error

    def go(self, url: str) -> None:
        self.call("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script: str, *arguments: Any) -> Any:
        return self.call("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def click_at_once(self, selector: str, text: str) -> None:
        """Wait for an element with a text and click it before the page can draw it anew."""
        script = (
            "const all = [...document.querySelectorAll(arguments[0])];"
            "const found = all.find(each => each.textContent.includes(arguments[1]));"
            "if (found) found.click(); return Boolean(found);"
        )
        self.wait(lambda: self.run(script, selector, text), f"{selector} with {text!r}")

    def all(self, selector: str) -> list[Element]:
        found = self.call("POST", "/elements", {"using": "css selector", "value": selector})
        return [Element(self, each[_ELEMENT]) for each in found]

    def find(self, selector: str, text: str = "") -> Element:
        """Return the first element that a selector matches and that contains a text, as soon as there is one."""

        def search() -> Element | None:
            return next((each for each in self.all(selector) if self._shows(each, text)), None)

        found: Element = self.wait(search, f"{selector} {text}")
        return found

    def _shows(self, element: Element, text: str) -> bool:
        try:
            return not text or text in element.text
        except AssertionError:  # it was replaced since
            return False

    def wait(self, happened: Callable[[], Any], what: str = "it", within_s: float = WITHIN_S) -> Any:
        until = time.monotonic() + within_s
        while not (found := happened()):
            assert time.monotonic() < until, f"did not happen: {what}; the page says: {self.text()[:2000]}"
            time.sleep(0.05)
        return found

    def wait_for_text(self, text: str) -> None:
        self.wait(lambda: text in self.text(), repr(text))

    def text(self) -> str:
        return str(self.run("return document.body.innerText"))

    def press(self, keys: str) -> None:
        steps = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": steps}]})

    def emulate(self, scheme: str) -> None:
        """Prefer light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.cdp("Emulation.setEmulatedMedia", {"features": features})

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.cdp("Emulation.setDeviceMetricsOverride", size)

    def cdp(self, command: str, parameters: dict[str, Any]) -> Any:
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def complaints(self) -> list[str]:
        """Return what the browser reported since the last call: errors of scripts, refusals by policies."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def close(self) -> None:
        self.call("DELETE", "")


@contextmanager
def running_browser(folder: Path, width: int = 1280, height: int = 900) -> Iterator[Browser]:
    """Yield a browser."""
    driver = subprocess.Popen(
        [engines.program("chromium"), "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    output = driver.stdout
    assert output is not None
    try:
        port = next(line.split()[-1].rstrip(".") for line in output if "successfully" in line)
        browser = Browser(f"http://127.0.0.1:{port}", folder / "profile", width, height)
        try:
            yield browser
        finally:
            browser.close()
    finally:
        driver.terminate()
        driver.wait(10)
        output.close()
