"""A real browser for tests: Chromium, headless, driven by the DevTools protocol through two pipes.

Nothing is needed beside the browser: with ``--remote-debugging-pipe`` it reads commands from file
descriptor 3 and writes answers and events to 4, JSON with a zero byte behind each.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_S = 60.0


def find():
    """The browser's path, or ``None``."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """One page: what it said, what it fetched, and what a user can do to it."""

    def __init__(self, send, receive):
        self._send, self._receive = send, receive
        self._number = 0
        self._session = None
        self.complaints = []
        self.fetched = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Give a command and wait for its answer; events on the way are kept."""
        self._number += 1
        order = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            order["sessionId"] = self._session
        self._send(order)
        while True:
            told = self._receive()
            if told.get("id") == self._number:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]
            self._note(told)

    def _note(self, event):
        kind, told = event.get("method"), event.get("params", {})
        if kind == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or str(details))
        elif kind == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(told["args"]))
        elif kind == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.fetched.append(told["request"]["url"][:80])

    def open(self, path, *, width=1280, height=900):
        """Load a file and wait until it has drawn itself."""
        phone = width < 600
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=phone,
        )  # fmt: skip
        self.call("Page.navigate", url=path.resolve().as_uri())
        until = time.monotonic() + PATIENCE_S
        while self.run("document.readyState") != "complete":
            assert time.monotonic() < until, "the page never finished loading"
            time.sleep(0.02)
        self.settle()

    def settle(self):
        """Wait until two pictures were shown: whatever was asked to be drawn has been drawn."""
        self.run(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
        )

    def run(self, expression):
        """The value of an expression in the page."""
        told = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def text(self, selector):
        """Text of the first element that the selector finds."""
        return self.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def texts(self, selector):
        """Texts of all of them."""
        query = f"document.querySelectorAll({json.dumps(selector)})"
        return self.run(f"Array.from({query}, e => e.textContent)")

    def box(self, selector):
        """Where an element stands in the window, scrolled into sight."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{found}.scrollIntoView({{block: 'center'}}), 1")
        self.settle()
        return self.run(
            f"(b => ({{x: b.x, y: b.y, width: b.width, height: b.height}}))"
            f"({found}.getBoundingClientRect())"
        )

    def mouse(self, kind, x, y, **more):
        """One event of a real mouse, with the left button unless it only turns its wheel."""
        given = {"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
        if kind == "mouseWheel":
            given = {"type": kind, "x": x, "y": y}
        self.call("Input.dispatchMouseEvent", **(given | more))

    def click(self, selector):
        """Press and let go in the middle of an element."""
        box = self.box(selector)
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y, buttons=0)
        self.settle()

    def drag(self, selector, start, end, **more):
        """Drag within an element, from and to shares of its width."""
        box = self.box(selector)
        y = box["y"] + box["height"] / 2
        places = [box["x"] + share * box["width"] for share in (start, (start + end) / 2, end)]
        self.mouse("mousePressed", places[0], y, **more)
        for x in places[1:]:
            self.mouse("mouseMoved", x, y, **more)
        self.mouse("mouseReleased", places[2], y, **(more | {"buttons": 0}))
        self.settle()

    def key(self, name, **more):
        """Press a key."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, **more)
        self.settle()

    def picture(self, path):
        """The whole page as PNG."""
        told = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(told["data"]))


def _high(descriptor):
    """The same open file under a number that is in nobody's way, closed in other programs."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


@contextmanager
def browser(path):
    """A browser with one page; its process and its profile are gone afterwards."""
    to_browser, ours_out = (_high(end) for end in os.pipe())
    ours_in, from_browser = (_high(end) for end in os.pipe())
    profile = tempfile.mkdtemp(prefix="logquake-chromium-")
    words = [
        path, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-dev-shm-usage", "--disable-background-networking", "--remote-debugging-pipe",
        f"--user-data-dir={profile}", "about:blank",
    ]  # fmt: skip

    def take_places():
        os.dup2(to_browser, 3)
        os.dup2(from_browser, 4)

    process = subprocess.Popen(
        words,
        preexec_fn=take_places,  # noqa: PLW1509 - the tests have one thread
        close_fds=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    buffer = bytearray()
    # Not select(): it refuses descriptors from 1024 on, and a long run of tests may hold as many.
    answers = select.poll()
    answers.register(ours_in, select.POLLIN)

    def send(order):
        os.write(ours_out, json.dumps(order).encode() + b"\0")

    def receive():
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in buffer:
            left_ms = 1000 * max(0, until - time.monotonic())
            assert answers.poll(left_ms), "the browser is silent"
            got = os.read(ours_in, 1 << 16)
            assert got, "the browser has gone"
            buffer.extend(got)
        line, _, rest = bytes(buffer).partition(b"\0")
        buffer[:] = rest
        return json.loads(line)

    try:
        yield Page(send, receive)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        os.close(ours_out)
        os.close(ours_in)
        shutil.rmtree(profile, ignore_errors=True)
