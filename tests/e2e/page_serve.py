#!/usr/bin/python3
"""The live page in a real browser: it draws, updates itself, keeps the user's settings, and does not grow."""
import http.server
import json
import re
import subprocess
import threading

import browser
from harness import BUILD, TESTS, main, near, test, wait_until
from serving import Server, gpus, powercap

ZONES = ["package-0=50+20*sin@0.7", "package-0/dram=5"]
CARDS = "".join(f"gpu\nname Card {i} <b>bold</b>\npower_mw constant {100000 + 10000 * i}\n"
                f"utilization_percent {90 - 10 * i} 1\nmemory_used_bytes {i + 1}000000000\n" for i in range(10))
LOOKS, FAST_S = 600, 0.004  # capacity of the charts; interval in the test of growth …
MISSING = 40  # … which begins with so many less
HOSTILE = ["<script>window.hit=1</script>", "\"'><img src=x onerror=window.hit=1>", "\u202egnp.exe", "emoji 🔋 ok"]


def machine(workdir):
    environment, _ = powercap(workdir, *ZONES)
    return {**environment, **gpus(workdir, CARDS)}


def script(name):
    """As in the page, where no other script can call its functions."""
    return (TESTS.parent / "src/report/page/assets" / name).read_text()


def looks(page):
    """Content that changes with every update."""
    return page.text("time")


def is_quiet(page, url):
    complaints = page.complaints()
    assert not complaints, complaints[0]
    asked = {request.removeprefix(url) for request in page.requests()}
    assert asked <= {"", "figures", "now.json?history=1"}, asked


@test
def all_is_drawn(workdir):
    """machine with ten GPUs: charts, tables and bars, distinct colours, light and dark, wide and narrow; no error"""
    server = Server(workdir, "--interval", "200ms", env=machine(workdir))
    page = browser.open(server.url)
    titles = page.texts(".live-chart figcaption strong")
    assert titles == ["Power by domain", "Power by owner (attributed)", "GPU utilisation", "GPU memory", "CPU",
                      "Memory", "Temperature"], titles
    server.wait_for_samples(15)
    is_quiet(page, server.url)
    colours = page.js("return Array.from(document.querySelectorAll('#chart-power .swatch'), (swatch) => "
                      "getComputedStyle(swatch).backgroundColor)")
    assert len(set(colours)) == len(colours) == 12, colours
    widths = page.js("return Array.from(document.querySelectorAll('.live-chart'), (chart) =>"
                     "[chart.clientWidth, chart.querySelector('canvas').clientWidth])")
    assert all(canvas <= frame for frame, canvas in widths), widths  # as opened, before its window changes
    for scheme in ("light", "dark"):
        for width in (1400, 400):
            page.colours(scheme).size(width).settle()
            inked = page.inked(".live-chart canvas:first-of-type")
            assert min(inked) > 0.005, (scheme, width, inked)
            assert page.overflow_px() == 0, width
    assert page.count("#domains-table tbody tr") == 12
    assert page.count("#processes-table tbody tr") > 1
    assert page.js("return [...document.querySelectorAll('table')].every(table => "
                   "document.getElementById(table.getAttribute('aria-labelledby')))"), "a table without its heading"
    assert page.count("#domains-table b") == 0 and "<b>bold</b>" in page.text("#domains-table")


@test
def keeps_up(workdir):
    """new samples appear by themselves, rows keep their element, and sorting and focus stay"""
    server = Server(workdir, "--interval", "200ms", env=machine(workdir))
    page = browser.open(server.url)
    page.js("document.querySelector('#domain-gpu-0').marked = true;"
            "document.querySelector('#processes-table thead th:nth-child(2) button').focus()")
    page.keys("ENTER")
    assert page.js("return document.querySelector('#processes-table thead th:nth-child(2)').ariaSort") == "descending"
    for _ in range(3):
        before = looks(page)
        wait_until(lambda: looks(page) != before or server.looks() < 2, "another look", 10)
    wait_until(lambda: server.looks() > 15, "some looks")
    pids = [int(pid) for pid in page.texts("#processes-table tbody td:nth-child(2)")]
    assert pids == sorted(pids, reverse=True), pids
    assert page.js("return document.querySelector('#domain-gpu-0').marked")
    assert page.js("return document.activeElement.textContent") == "PID"
    assert page.js("return document.querySelector('#processes-table thead th:nth-child(2)').ariaSort") == "descending"
    is_quiet(page, server.url)


@test
def one_cursor(workdir):
    """cursor in one chart: shows the same moment in all of them, and the time of day"""
    server = Server(workdir, "--interval", "300ms", env=machine(workdir))
    page = browser.open(server.url)
    near(float(page.texts("#chart-power figcaption .nowrap")[0].split()[-2]), 50, absolute=45)  # a meter may be late
    page.hover("#chart-cpu .canvas", 0.99)
    assert re.search(r"\d:\d\d:\d\d", page.text("#chart-power figcaption")), page.text("#chart-power figcaption")
    server.wait_for_samples(server.looks() + 2)  # the mouse does not move, and neither does the cursor
    assert re.search(r"\d:\d\d:\d\d", page.text("#chart-memory figcaption")), page.text("#chart-memory figcaption")
    page.hover("h1")
    wait_until(lambda: not re.search(r"\d:\d\d:\d\d", page.text("#chart-power figcaption")), "the cursor's end")


@test
def estimates_are_hatched(workdir):
    """no counter, all power estimated: areas are hatched and labelled; measured ones are not"""
    (workdir.folder / "sys").mkdir()
    for environment, is_hatched in (({"WATTLE_SYSFS": str(workdir.folder / "sys")}, True), (machine(workdir), False)):
        server = Server(workdir, "--interval", "200ms", env=environment)
        server.wait_for_samples(3)
        page = browser.open(server.url)
        assert page.count(".ledger-frame.is-estimated") == page.count("#ledger .tag-estimated") == is_hatched
        for chart in ("power", "whose"):
            said = page.text(f"#chart-{chart} figcaption")
            assert ("hatched: estimated" in said) == is_hatched, (chart, said)
        colours = page.js("""const c = document.querySelector("#chart-power canvas"), pen = c.getContext("2d");
            const pixels = new Uint32Array(pen.getImageData(c.width - 40, c.height / 2, 24, 1).data.buffer);
            return new Set(pixels).size""")
        assert colours > 2 or not is_hatched, colours  # one area there: unhatched it would have a single colour


@test
def hostile_commands(workdir):
    """commands that look like markup or change the direction of writing: text, in the page and after each update"""
    server = Server(workdir, "--interval", "200ms", env=machine(workdir))
    for name in HOSTILE:  # busy, so that they are listed
        workdir.start("-c", 'exec -a "$0" /bin/sh -c "while :; do :; done"', name, program="/bin/bash")
    page = browser.open(server.url)
    wait_until(lambda: sum("onerror" in row or "script>" in row for row in page.texts("#processes-table .name bdi")) >= 2,
               "the commands in the table")
    assert page.js("return window.hit") is None and page.count("#rest img") == 0 and page.count("#rest script") == 0
    is_quiet(page, server.url)


@test
def page_survives_server_restart(workdir):
    """server gone: the page shows since when, and continues with the next server by itself"""
    server = Server(workdir, "--interval", "200ms", env=machine(workdir))
    page = browser.open(server.url)
    server.process.terminate()
    server.process.wait()
    wait_until(lambda: "No response since" in page.text("#state"), "the page reports that the server is gone")
    again = Server(workdir, "--interval", "200ms", listen=f"127.0.0.1:{server.port}", env=machine(workdir))
    wait_until(lambda: page.text("#state") == "Live", "the page is live again")
    near(page.js("return document.querySelectorAll('.live-chart').length"), 7)
    assert again.looks() > 0


@test
def without_script(workdir):
    """browser without scripts: the figures, and no empty frames of charts"""
    server = Server(workdir, env=machine(workdir))
    page = browser.page().scripts(False)
    try:
        page.open(server.url, wait=False)
        assert page.find("#domains-table").is_displayed()
        assert "Power now" in page.find(".tiles").text
        assert not page.find("#charts").is_displayed()
    finally:
        page.scripts(True)


class Fast(http.server.BaseHTTPRequestHandler):
    """The real page with updates thousands of times faster than a server's."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.server.page if self.path == "/" else self.server.next_figures()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class FastServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, real):
        super().__init__(("127.0.0.1", 0), Fast)
        page, figures = real.ask("/")[2], real.ask("/figures")[2]
        self.newest, self.before, _ = self.cut(figures, b"newest")
        history, before, after = self.cut(page, b"history")
        self.look = history["sample"]
        for columns in (history, *history["domains"]):  # charts that are nearly full
            columns.update({key: [values[-1]] * (LOOKS - MISSING) for key, values in columns.items()
                            if isinstance(values, list) and key != "domains"})
        history["unix_s"] = [history["unix_s"][-1] - (LOOKS - MISSING - 1 - i) * FAST_S for i in range(LOOKS - MISSING)]
        self.page = before + json.dumps({**history, "interval_s": FAST_S}).encode() + after

    @staticmethod
    def cut(page, name):
        """The data of a block, and the text before and after it."""
        before, block, rest = re.split(rb'(<script type="application/json" id="%s">)' % name, page)
        data, end, after = rest.partition(b"</script>")
        return json.loads(data), before + block, end + after

    def next_figures(self):
        self.look += 1
        self.newest.update(sample=self.look, interval_s=FAST_S, unix_s=[self.newest["unix_s"][0] + FAST_S])
        figures = self.before.replace(b"process-", b"process-%d-" % self.look)  # all processes are others each time
        return figures + json.dumps(self.newest).encode() + b"</script>\n"


@test
def one_way_to_write_figures(workdir):
    """numbers: the script formats as the server's C code, for values of all sizes, on both sides of each rounding"""
    digits = (0, 1, 1.234, 5.556, 9.994, 9.996, 9.9996)
    values = [digit * 10.0 ** power for power in range(-8, 13) for digit in digits]
    times = [0.5, 59.94, 59.96, 60, 61.26, 3599.94, 3599.96, 3629, 3631, 86369, 86371, 1e6]
    asked = [(unit, value) for unit in ("w", "j") for value in values]
    asked += [("bytes", round(value)) for value in values]
    asked += [("percent", value) for value in (0, 0.06, 3.14, 9.96, 42, 99.94, 99.96, 100, 234.6)]
    asked += [("duration", value) for value in (*values[:7 * 9], *times)]
    lines = "".join(f"{unit} {value!r}\n" for unit, value in asked)
    done = subprocess.run([BUILD / "tests/fakes/figures"], input=lines, capture_output=True, text=True, check=True)
    environment, _ = powercap(workdir, *ZONES)
    page = browser.open(Server(workdir, "--interval", "60s", env=environment).url)
    shown = page.js(script("numbers.js") + "return arguments[0].map(([unit, value]) =>"
                    "unit === 'duration' ? duration(value) : quantity(value, unit))", asked)
    pairs = zip(asked, done.stdout.splitlines(), shown, strict=True)
    wrong = [(one, there, here) for one, there, here in pairs if there != here]
    assert not wrong, wrong[:20]


@test
def oldest_samples_are_dropped(workdir):
    """1500 updates: the last 600 are kept, in order, in all columns; a column that begins later is unknown before"""
    environment, _ = powercap(workdir, *ZONES)
    page = browser.open(Server(workdir, "--interval", "60s", env=environment).url)
    kept = page.js("const whenReady = () => {};" + script("live.js") + """
        recent = { unix_s: [], busy_cores: [], domains: [{ power_w: [] }], sample: 0 };
        for (let i = 1; i <= 1500; i++)
            appendLook({ sample: i, unix_s: [i], busy_cores: [i],
                domains: [{ power_w: [i], ...(i > 1000 ? { temperature_c: [i] } : {}) }] });
        return recent;""")
    last = list(range(901, 1501))
    assert kept["sample"] == 1500
    assert kept["unix_s"] == kept["busy_cores"] == kept["domains"][0]["power_w"] == last
    assert kept["domains"][0]["temperature_c"] == [None] * 100 + last[100:]


@test
def no_growth(workdir):
    """hundreds of updates with full charts: memory and number of elements stay constant"""
    environment, _ = powercap(workdir, *ZONES)
    fast = FastServer(Server(workdir, "--interval", "60s", env=environment))
    thread = threading.Thread(target=fast.serve_forever, daemon=True)
    thread.start()
    try:
        page = browser.open(f"http://127.0.0.1:{fast.server_address[1]}/").size(320, 300)
        at = fast.look
        wait_until(lambda: fast.look - at > MISSING + 10, "looks", 30)
        full, elements, at = page.heap_bytes(), page.count("*"), fast.look
        wait_until(lambda: fast.look - at > 80, "many more updates", 60)
        grown = page.heap_bytes() - full
        # The engine itself takes 3 MB until it has settled; the rows alone of as many updates would take 8.
        assert grown < 5 << 20, f"{grown} bytes in {fast.look - at} looks"
        near(page.count("*"), elements, relative=0.02)
        is_quiet(page, page.address)
    finally:
        page.open("about:blank")
        fast.shutdown()
        fast.server_close()
        thread.join()


if __name__ == "__main__":
    main()
