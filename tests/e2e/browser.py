"""A real browser for tests of pages: Debian's Chromium without a window, driven by selenium. One for each test program.

    page = browser.open(path)          a file, or an address on loopback
    page.js("return 1 + 1")            runs in the page
    page.complaints()                  messages of its console: errors, warnings, violations of the Content-Security-Policy
    page.requests()                    requests other than for the page itself

No request reaches the network: names resolve to loopback only.
"""
import atexit
import base64
import importlib.util
import json
import os
import pathlib
import re
import shutil
import tempfile
import time

from harness import Skip

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--lang=en",
         "--hide-scrollbars", "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-default-apps", "--disable-extensions", "--force-device-scale-factor=1",
         "--force-color-profile=srgb", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"]
A4_INCHES = (8.27, 11.69)
# Effects of an event are visible in the frame after the next one.
TWO_FRAMES = """const done = arguments[arguments.length - 1];
    requestAnimationFrame(() => requestAnimationFrame(() => done()));"""


class Page:
    def __init__(self, driver):
        self.driver = driver
        self.address = None
        self._console, self._requested = [], []

    # ---- navigation and appearance ----

    def open(self, where, wait=True):
        """Loads a file or an address; messages of earlier pages are dropped."""
        self.address = str(where) if "://" in str(where) else pathlib.Path(where).resolve().as_uri()
        self.take_logs()
        self._console, self._requested = [], []
        self.driver.get(self.address)
        if wait:
            self.settle()
        return self

    def settle(self):
        self.driver.execute_async_script(TWO_FRAMES)

    def size(self, width, height=900):
        """Size of the viewport in CSS pixels."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        return self

    def colours(self, scheme="light", media=""):
        """light or dark, as the system setting; media "print": as on paper."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.cdp("Emulation.setEmulatedMedia", media=media, features=[feature])
        return self

    def scripts(self, run):
        """Whether pages opened from now on run scripts."""
        self.cdp("Emulation.setScriptExecutionDisabled", value=not run)
        return self

    # ---- contents ----

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def count(self, selector):
        return len(self.driver.find_elements("css selector", selector))

    def text(self, selector="body"):
        return self.js("return document.querySelector(arguments[0]).textContent", selector)

    def texts(self, selector):
        return self.js("return Array.from(document.querySelectorAll(arguments[0]), (e) => e.textContent.trim())",
                       selector)

    def shown(self, selector):
        """How many of them are visible."""
        return self.js("""return Array.from(document.querySelectorAll(arguments[0])).filter((e) =>
            e.getClientRects().length > 0 && getComputedStyle(e).visibility === "visible").length""", selector)

    def overflow_px(self):
        """How much wider the page is than its window: it must never scroll sideways as a whole."""
        return self.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def inked(self, selector):
        """For each canvas: the fraction of its pixels that are drawn."""
        return self.js("""return Array.from(document.querySelectorAll(arguments[0]), (c) => {
            if (c.width * c.height === 0)
                return 0;
            const copy = document.createElement("canvas"); // to read the page's own would change how it is drawn
            copy.width = c.width;
            copy.height = c.height;
            const pen = copy.getContext("2d", {willReadFrequently: true});
            pen.drawImage(c, 0, 0);
            const pixels = pen.getImageData(0, 0, c.width, c.height).data;
            let inked = 0;
            for (let i = 3; i < pixels.length; i += 4)
                inked += pixels[i] > 0;
            return inked / (c.width * c.height); })""", selector)

    # ---- user actions ----

    def keys(self, *keys, on=None):
        """Presses keys; names are those of selenium's Keys: "ARROW_LEFT", "ENTER", "TAB" …"""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys
        if on is not None:
            self.js("document.querySelector(arguments[0]).focus()", on)
        ActionChains(self.driver).send_keys(*(getattr(Keys, key, key) for key in keys)).perform()
        self.settle()

    def drag(self, selector, from_part, to_part, shift=False):
        """Drags over an element, from one part of its width to another, at half of its height."""
        box = self.in_sight(selector)
        y = box["y"] + box["height"] / 2
        modifiers = 8 if shift else 0
        for kind, part in (("mouseMoved", from_part), ("mousePressed", from_part),
                           ("mouseMoved", (from_part + to_part) / 2), ("mouseMoved", to_part),
                           ("mouseReleased", to_part)):
            self.mouse(kind, box["x"] + part * box["width"], y, modifiers=modifiers, button="left", clickCount=1)
        self.settle()

    def hover(self, selector, part=0.5, height_part=0.5):
        box = self.in_sight(selector)
        self.mouse("mouseMoved", box["x"] + part * box["width"], box["y"] + height_part * box["height"])
        self.settle()

    def click(self, selector, part=0.5, height_part=0.5, times=1):
        box = self.in_sight(selector)
        x, y = box["x"] + part * box["width"], box["y"] + height_part * box["height"]
        self.mouse("mouseMoved", x, y)
        for count in range(1, times + 1):
            self.mouse("mousePressed", x, y, button="left", clickCount=count)
            self.mouse("mouseReleased", x, y, button="left", clickCount=count)
        self.settle()

    def wheel(self, selector, delta, ctrl=False):
        box = self.in_sight(selector)
        self.mouse("mouseWheel", box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, deltaX=0, deltaY=delta,
                   modifiers=2 if ctrl else 0)
        self.settle()

    def mouse(self, kind, x, y, **more):
        self.cdp("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def in_sight(self, selector):
        """Scrolls the first such element into view and returns its box."""
        return self.js("const e = document.querySelector(arguments[0]);"
                       "e.scrollIntoView({block: 'center', behavior: 'instant'});"
                       "const {x, y, width, height} = e.getBoundingClientRect();"
                       "return {x, y, width, height};", selector)

    # ---- results ----

    def take_logs(self):
        """Sorts new entries of the browser's log by kind."""
        self._console += self.driver.get_log("browser")
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requested.append(message["params"]["request"]["url"])
            elif message["method"] == "Network.webSocketCreated":
                self._requested.append(message["params"]["url"])

    def complaints(self):
        self.take_logs()
        return [f'{entry["level"]}: {entry["message"][:500]}' for entry in self._console if entry["level"] != "DEBUG"]

    def requests(self):
        """Addresses of all requests, except the page itself and its data: URLs."""
        self.take_logs()
        return [url for url in self._requested if not url.startswith("data:") and url.partition("#")[0] != self.address]

    def heap_bytes(self):
        """JavaScript heap after a garbage collection."""
        self.cdp("HeapProfiler.collectGarbage")
        return self.cdp("Runtime.getHeapUsage")["usedSize"]

    def opening_ms(self):
        """From the start of loading until the page is idle."""
        return self.js("const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd - t.startTime;")

    # ---- pictures ----

    def screenshot(self, path, whole=True):
        data = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        pathlib.Path(path).write_bytes(base64.b64decode(data["data"]))

    def _clip(self, whole):
        if not whole:
            return {}
        size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(16_000, size["height"]), "scale": 1}}

    def print_to(self, path):
        """Prints on A4 and returns how many pages that took."""
        width, height = A4_INCHES
        data = self.cdp("Page.printToPDF", paperWidth=width, paperHeight=height, preferCSSPageSize=True,
                        printBackground=True)
        pdf = base64.b64decode(data["data"])
        pathlib.Path(path).write_bytes(pdf)
        return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


def _start():
    if importlib.util.find_spec("selenium") is None:
        raise Skip("python3-selenium is not installed")
    for program in (CHROMIUM, DRIVER):
        if not os.access(program, os.X_OK):
            raise Skip(f"{program} is not installed")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    # Its own folder and not the test's: the browser outlives a test.
    folder = tempfile.mkdtemp(prefix="wattle-browser-")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS, f"--user-data-dir={folder}/profile", f"--disk-cache-dir={folder}/cache"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    environment = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder,
                   "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
    driver = webdriver.Chrome(options=options, service=Service(DRIVER, env=environment, log_output=os.devnull))
    driver.set_page_load_timeout(60)
    driver.set_script_timeout(60)

    def stop():
        driver.quit()
        for _ in range(20):  # helper processes of the browser still write while they end
            shutil.rmtree(folder, ignore_errors=True)
            if not os.path.exists(folder):
                break
            time.sleep(0.1)

    atexit.register(stop)
    return Page(driver)


_page = None


def page():
    """The program's only browser, started by the first test that uses it and reset to its initial state."""
    global _page
    if _page is None:
        _page = _start()
    return _page.size(1400).colours("light").scripts(True)


def open(where, **options):
    return page().open(where, **options)
