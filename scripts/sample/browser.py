"""A real Chromium without a screen, driven by its own protocol over two pipes: a page, an authenticator, pictures."""

import base64
import fcntl
import json
import os
import subprocess
import time

WAIT_SECONDS_MAX = 30
# Of a hundred; below that, letters have shadows.
QUALITY = 75


def aside(pipe):
    """An end of a pipe, under a number of two digits."""
    moved = fcntl.fcntl(pipe, fcntl.F_DUPFD, 10)
    os.close(pipe)
    return moved


class Browser:
    """A browser with one tab, ended by `end`."""

    def __init__(self, folder):
        to_browser, ours_out = os.pipe()
        ours_in, from_browser = os.pipe()
        # Out of the way of the two numbers that the browser wants.
        to_browser, from_browser = aside(to_browser), aside(from_browser)
        self.asked = 0
        command = [
            "chromium", f"--user-data-dir={folder}/browser", "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--no-proxy-server", "--hide-scrollbars", "--force-color-profile=srgb",
            "--remote-debugging-pipe", "about:blank",
        ]
        # The protocol's pipes are the browser's third and fourth.
        line = f'exec "$@" 3<&{to_browser} 4>&{from_browser} {to_browser}<&- {from_browser}>&-'
        with open(os.path.join(folder, "browser.log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", line, "bash", *command],
                pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        os.close(to_browser)
        os.close(from_browser)
        self.out, self.read = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
        self.rest, self.session = b"", None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable")

    def message(self):
        while b"\0" not in self.rest:
            part = self.read.read1(1 << 20)
            if not part:
                raise SystemExit("pictures: the browser has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **params):
        self.asked += 1
        request = {"id": self.asked, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        self.out.write(json.dumps(request).encode() + b"\0")
        self.out.flush()
        while True:
            answer = self.message()
            if answer.get("id") == self.asked:
                if "error" in answer:
                    raise SystemExit(f"pictures: {method}: {answer['error']}")
                return answer["result"]

    def eval(self, expression):
        said = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return said["result"].get("value")

    def until(self, expression):
        """Waits until an expression is true in the document."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while not self.eval(f"(() => {{ try {{ return Boolean({expression}) }} catch {{ return false }} }})()"):
            if time.monotonic() > end:
                raise SystemExit(f"pictures: not true: {expression}\n{self.eval('document.body.innerText')}")
            time.sleep(0.05)

    def shows(self, text):
        self.until(f"document.body.innerText.includes({json.dumps(text)})")

    def go(self, address):
        """Goes to a view, and waits until it is whole and live."""
        self.ask("Page.navigate", url=address)
        self.until(f"location.href === {json.dumps(address)} && document.body.dataset.live === 'live'")
        self.until("document.querySelector('#blocks').getAttribute('aria-busy') === 'false'")
        self.until("![...document.querySelectorAll('.quiet')].some((it) => it.textContent === 'Loading.')")

    def looks(self, width, height, scale, scheme):
        """Is so many points wide and high, in this scheme of colours."""
        self.size = {"width": width, "deviceScaleFactor": scale, "mobile": width < 500}
        self.ask("Emulation.setDeviceMetricsOverride", height=height, **self.size)
        self.height = height
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def authenticator(self):
        """Gives the tab an authenticator whose owner is there."""
        self.ask("WebAuthn.enable")
        options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
        options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
        self.ask("WebAuthn.addVirtualAuthenticator", options=options)

    def click(self, selector):
        found = f"document.querySelector({json.dumps(selector)})"
        self.until(f"{found} && !{found}.disabled")
        self.eval(f"{found}.click()")

    def write(self, selector, text):
        self.until(f"document.querySelector({json.dumps(selector)})")
        self.eval(f"document.querySelector({json.dumps(selector)}).focus()")
        self.ask("Input.insertText", text=text)

    def picture(self, path, width, high, begin=None, end="main"):
        """Writes the document as a picture, from one element or the top to the end of another, and so high at the most."""
        # So high as the document, or what stands at the bottom of a screen would stand in the middle of the picture.
        self.ask("Emulation.setDeviceMetricsOverride", height=self.eval("document.documentElement.scrollHeight"), **self.size)
        place = "scrollY + document.querySelector({!r}).getBoundingClientRect().{}"
        top = self.eval(place.format(begin, "top")) - 16 if begin else 0
        high = min(high, self.eval(place.format(end, "bottom")) + 16 - top)
        clip = {"x": 0, "y": top, "width": width, "height": high, "scale": 1}
        said = self.ask("Page.captureScreenshot", format="webp", quality=QUALITY, captureBeyondViewport=True, clip=clip)
        self.ask("Emulation.setDeviceMetricsOverride", height=self.height, **self.size)
        with open(path, "wb") as file:
            file.write(base64.b64decode(said["data"]))

    def end(self):
        self.out.close()
        try:
            self.process.wait(WAIT_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

