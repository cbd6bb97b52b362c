"""A headless Chromium, driven through its DevTools protocol over a pipe: no package is needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    # Tests may run as root and in containers, where Chromium's own sandbox cannot start.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--hide-scrollbars",
)
_TIMEOUT_S = 60.0


def find_chromium() -> str | None:
    """Return the path of a Chromium on this machine, None without one."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Tab:
    """One page of a browser; events that came while we waited for something else are kept."""

    def __init__(self, process: "subprocess.Popen[bytes]", to_browser: int, from_browser: int):
        self._process = process
        self._to_browser, self._from_browser = to_browser, from_browser
        self._parts: list[bytes] = []
        self._messages: deque[bytes] = deque()
        self._last_id = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        """Make a page and listen to it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command and return its result; raises RuntimeError where the browser refuses."""
        self._last_id += 1
        message: dict[str, object] = {"id": self._last_id, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        _write_all(self._to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, address: str) -> None:
        """Go to a page and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def look(self, width: int, height: int, *, dark: bool = False, print_: bool = False) -> None:
        """Set the size of the window, the colour scheme, and whether it is as on paper."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        media = "print" if print_ else "screen"
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; raises RuntimeError where it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Click with the mouse in the middle of the first element that matches."""
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            "return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def press(self, key: str) -> None:
        """Press a key that has a text of its own, such as Enter."""
        text = "\r" if key == "Enter" else key
        code = 13 if key == "Enter" else ord(key.upper())
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                text=text if kind == "keyDown" else "",
                windowsVirtualKeyCode=code,
            )

    def accessible(self, role: str) -> list[str]:
        """Return what a screen reader says of every element of this role."""
        root = self.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        nodes = self.call("Accessibility.queryAXTree", nodeId=root, role=role)["nodes"]
        return [node.get("name", {}).get("value", "") for node in nodes if not node["ignored"]]

    def screenshot(self, *, whole: bool = True) -> bytes:
        """Return the page as a PNG; only what the window shows if not ``whole``."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the page was opened."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Return what the browser logged and what scripts threw since the page was opened."""
        names = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        return [str(event["params"]) for event in self.events if event.get("method") in names]

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _TIMEOUT_S
        while not self._messages:
            ready, _, _ = select.select([self._from_browser], [], [], 1.0)
            if ready:
                # Only what is new is searched: an answer can have megabytes.
                *ends, rest = os.read(self._from_browser, 1 << 20).split(b"\0")
                for end in ends:
                    self._messages.append(b"".join([*self._parts, end]))
                    self._parts.clear()
                self._parts.append(rest)
            elif self._process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError("Chromium does not answer.")
        message: dict[str, Any] = json.loads(self._messages.popleft())
        return message


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


@contextmanager
def browser(executable: str, profile: Path) -> Iterator[Tab]:
    """Start Chromium with an empty profile in the folder ``profile``; end it afterwards."""
    to_browser, from_us = os.pipe()[::-1]
    from_browser, to_us = os.pipe()
    # The protocol is spoken on the descriptors 3 and 4, whatever ours are called.
    line = f'exec "$0" "$@" 3<&{from_us} 4>&{to_us}'
    process = subprocess.Popen(
        ["bash", "-c", line, executable, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(from_us, to_us),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_environment(profile),
    )
    os.close(from_us)
    os.close(to_us)
    try:
        tab = Tab(process, to_browser, from_browser)
        tab.attach()
        yield tab
    finally:
        os.close(to_browser)  # Chromium ends when nobody can command it any more
        os.close(from_browser)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment(profile: Path) -> Mapping[str, str]:
    # Not the user's own settings, nor anything written next to them.
    return {**os.environ, "HOME": str(profile), "LANG": "C.UTF-8"}
