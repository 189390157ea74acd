"""Tests the HTML reports in headless Chromium: hovering, zooming, panning, searching, clicking, both colour schemes,
and a window that is 400 pixels wide. Each report is opened from its file, and may neither log an error nor use a
network.

usage: report_test.py write CAIRN FOLDER      writes the reports into FOLDER, by the command CAIRN
       report_test.py FOLDER [TEST...]        tests the reports in FOLDER; TEST is a name such as Reports.test_...
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

SYSTEM_PYTHON = "/usr/bin/python3"  # the Python for which Debian packages selenium

WIDE, NARROW = (1280, 900), (400, 800)
MODEL = ["resnet18", "--batch", "2", "--image", "32"]
LIMIT = ["--time-limit", "2s"]
BUFFERS = "id,lower,upper,size\n" + "".join(f"conv{i},{i},{i + 1 + i % 9},{64 + i % 5}\n" for i in range(60))


def write_reports(cairn, folder):
    folder.mkdir(parents=True, exist_ok=True)

    def run(name, *words):
        subprocess.run([cairn, *words, "--report", folder / f"{name}.html", "--quiet"], check=True)

    schedule = folder / "s.json"
    graph = folder / "g.json"
    subprocess.run([cairn, "model", *MODEL, "-o", graph, "--quiet"], check=True)
    (folder / "b.csv").write_text(BUFFERS)
    run("info", "info", graph, "--budget", "70%", *LIMIT)
    run("solve", "solve", graph, "--budget", "60%", "-o", schedule, *LIMIT)
    run("plan", "plan", graph, schedule, "--alignment", "256")
    run("buffers", "plan", "--buffers", folder / "b.csv", "--capacity", "4KiB", "--forbid", "512:520")
    run("run", "run", graph, "--budget", "60%", *LIMIT)
    run("pareto", "pareto", graph, "--points", "6", *LIMIT)
    run("simulate", "simulate", graph, "--random", "3000", "--recompute", "8", "--budget", "90%")
    write_odd_graph(folder / "odd.json")
    run("odd", "solve", folder / "odd.json", "--solver", "none")


NAMES = ["info", "solve", "plan", "buffers", "run", "pareto", "simulate", "odd"]
ODD_NAMES = ["</script><img src=x onerror=alert(1)>", "tab\there\u0007", "<b>&amp;", "a" * 200, "plain"]


def write_odd_graph(path):
    nodes = [{"name": name, "size": 100 + k, "cost": k, "inputs": [k - 1] if k else []}
             for k, name in enumerate(ODD_NAMES)]
    path.write_text(json.dumps({"format": "cairn.graph", "version": 1, "name": ODD_NAMES[0], "nodes": nodes}))


def open_browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--disable-background-networking", "--no-first-run", "--force-device-scale-factor=1"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


class Page:
    """A report that is open in the browser."""

    def __init__(self, browser, path, size=WIDE, dark=False, touch=False):
        self.browser = browser
        browser.get("about:blank")
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": touch})
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": touch, "maxTouchPoints": 2})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        for log in ["browser", "performance"]:
            browser.get_log(log)
        browser.get(path.as_uri())

    def __call__(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def settle(self):
        """Waits for two animation frames, so that all drawing for the next frame is done."""
        self.browser.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self(f"return document.querySelector({json.dumps(selector)})?.textContent ?? null")

    def range(self):
        return tuple(float(value) for value in self("const r = document.getElementById('range').dataset; return [r.from, r.to]"))

    def box(self, chart):
        """Scrolls to a chart, and returns the position and size of its plotting area in the window, in pixels."""
        self(f"document.getElementById('{chart}').scrollIntoView({{block: 'center'}})")
        self.settle()
        return self(f"const b = document.querySelector('#{chart} .u-over').getBoundingClientRect();"
                    "return {x: b.x, y: b.y, width: b.width, height: b.height}")

    def point(self, chart, across, down=0.5):
        box = self.box(chart)
        return box["x"] + across * box["width"], box["y"] + down * box["height"]

    def mouse(self, kind, x, y, **more):
        self.browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def hover(self, chart, across, down=0.5):
        x, y = self.point(chart, across, down)
        self.mouse("mouseMoved", x - 3, y)
        self.mouse("mouseMoved", x, y)
        self.settle()

    def click(self, chart, across, down=0.5):
        self.hover(chart, across, down)
        x, y = self.point(chart, across, down)
        for kind in ["mousePressed", "mouseReleased"]:
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.settle()

    def drag(self, chart, begin, end, modifiers=0):
        x, y = self.point(chart, begin)
        to, _ = self.point(chart, end)
        self.mouse("mouseMoved", x, y, modifiers=modifiers)
        self.mouse("mousePressed", x, y, button="left", clickCount=1, modifiers=modifiers)
        for step in range(1, 9):
            self.mouse("mouseMoved", x + (to - x) * step / 8, y, button="left", buttons=1, modifiers=modifiers)
        self.mouse("mouseReleased", to, y, button="left", clickCount=1, modifiers=modifiers)
        self.settle()

    def wheel(self, chart, across, delta):
        x, y = self.point(chart, across)
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta)
        self.settle()

    def press(self, chart, *keys):
        self(f"document.getElementById('{chart}').focus({{preventScroll: true}})")
        ActionChains(self.browser).send_keys(*keys).perform()
        self.settle()

    def pick(self, selector):
        """Scrolls to an element and clicks it."""
        self(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        self.find(selector).click()
        self.settle()

    def inked(self, chart):
        """Returns the number of different colours in the chart's canvas, which shows whether anything is drawn."""
        return self(f"""
            const canvas = document.querySelector('#{chart} canvas');
            const {{data}} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;""")

    def complaints(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def requests(self):
        """Returns the addresses that the page has requested, without the address of the page itself."""
        asked = []
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith("data:") and url not in ("about:blank", self.browser.current_url):
                    asked.append(url)
        return asked


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = open_browser()
        cls.addClassCleanup(cls.browser.quit)

    def page(self, name, **how):
        return Page(self.browser, FOLDER / f"{name}.html", **how)

    def data(self, name):
        text = (FOLDER / f"{name}.html").read_text()
        begin = text.index('id="data">') + len('id="data">')
        return json.loads(text[begin:text.index("</script>", begin)])

    def charts(self, page):
        return [chart.get_attribute("id") for chart in page.find_all(".chart") if chart.is_displayed()]

    # The following tests look at every page.

    def test_every_page_is_drawn_in_both_schemes_without_a_word_or_a_request(self):
        for name in NAMES:
            for dark in [False, True]:
                with self.subTest(name=name, dark=dark):
                    page = self.page(name, dark=dark)
                    self.assertIn("memory", self.charts(page))
                    for chart in self.charts(page):
                        self.assertGreater(page.inked(chart), 4, chart)
                        page.hover(chart, 0.4)
                    ground = page("return getComputedStyle(document.body).backgroundColor")
                    light = sum(int(part) for part in ground[4:-1].split(",")) > 3 * 128
                    self.assertEqual(light, not dark)
                    self.assertEqual(page.complaints(), [])
                    self.assertEqual(page.requests(), [])

    def test_nothing_is_clipped_or_overlaps_at_400_pixels(self):
        for name in NAMES:
            with self.subTest(name=name):
                page = self.page(name, size=NARROW, touch=True)
                self.assertLessEqual(page("return document.documentElement.scrollWidth"), NARROW[0])
                self.assertEqual(page(OUTSIDE), [])
                self.assertEqual(page(OVERLAPS), [])
                for chart in self.charts(page):
                    self.assertGreater(page(f"return document.querySelector('#{chart} .u-over').clientWidth"), 240)

    def test_every_axis_has_a_name_and_memory_its_unit(self):
        # The chart library uPlot draws the names of axes into a canvas, where they cannot be read. So the test replaces
        # the drawing function by one that records the texts.
        for name in NAMES:
            with self.subTest(name=name):
                labels = self.page(name)("""
                    const drawn = [];
                    const old = CanvasRenderingContext2D.prototype.fillText;
                    CanvasRenderingContext2D.prototype.fillText = function(text, ...more) {
                      drawn.push(text);
                      return old.call(this, text, ...more);
                    };
                    window.dispatchEvent(new Event('resize'));
                    for (const chart of document.querySelectorAll('.chart')) chart.style.width = '95%';
                    return new Promise(done => setTimeout(() => done(drawn), 300));""")
                self.assertTrue(any(label.startswith("memory (") for label in labels), labels)
                self.assertTrue(any(label.startswith("cost so far") or label in ("step", "time") for label in labels), labels)

    # The following tests are about the time axis.

    def test_hover_shows_the_step_its_op_and_the_live_tensors(self):
        data = self.data("solve")
        track = data["tracks"][1]
        page = self.page("solve")
        page.pick("[data-value=step]")
        page.hover("memory", 0.5)
        card = page.find("#step-card")
        step = int(card.get_attribute("data-step"))
        self.assertAlmostEqual(step, 0.5 * max(t["length"] for t in data["tracks"]), delta=3)
        op = data["nodes"]["name"][track["node"][step]]
        tip = page.text(".tip")
        for text in [card.text, tip]:
            self.assertIn(op, text)
        live = sorted((data["tensors"]["bytes"][t] for t, first, last in zip(
            track["lives"]["tensor"], track["lives"]["first"], track["lives"]["last"])
            if first <= step <= last), reverse=True)
        live = [size for size in live if size > 0]
        self.assertIn(f"{len(live)} tensors", card.text)
        shown = [data["tensors"]["bytes"][int(row.get_attribute("data-tensor"))] for row in page.find_all("#live .tensor")]
        self.assertEqual(shown, live[:len(shown)])
        self.assertEqual(len(shown), min(10, len(live)))
        self.assertIn(f"{track['bytes'][step]:,} bytes", card.text)
        page.mouse("mouseMoved", 5, 5)
        page.settle()
        self.assertFalse(page.find(".tip").is_displayed())

    def test_wheel_drag_and_keys_zoom_and_pan_both_charts_and_reset_undoes_it(self):
        page = self.page("solve")
        whole = page.range()
        page.wheel("memory", 0.5, -400)
        zoomed = page.range()
        self.assertGreater(zoomed[0], whole[0])
        self.assertLess(zoomed[1], whole[1])
        self.assertIn("Showing steps", page.text("#range"))
        page.drag("memory", 0.3, 0.6, modifiers=8)  # 8 stands for the Shift key
        panned = page.range()
        self.assertAlmostEqual(panned[1] - panned[0], zoomed[1] - zoomed[0], delta=1e-6 * whole[1])
        self.assertLess(panned[0], zoomed[0])
        page.pick("#reset")
        self.assertEqual(page.range(), whole)

        page.drag("addresses", 0.25, 0.75)
        drawn = page.range()
        self.assertAlmostEqual(drawn[0], 0.25 * whole[1], delta=0.02 * whole[1])
        self.assertAlmostEqual(drawn[1], 0.75 * whole[1], delta=0.02 * whole[1])
        page.press("memory", Keys.ARROW_RIGHT)
        self.assertGreater(page.range()[0], drawn[0])
        page.press("memory", "+")
        self.assertLess(page.range()[1] - page.range()[0], drawn[1] - drawn[0])
        page.press("memory", "0")
        self.assertEqual(page.range(), whole)
        # The whole range is shown already. So the wheel cannot zoom out any further, and scrolls the window instead.
        page.wheel("memory", 0.5, 300)
        self.assertEqual(page.range(), whole)

    def test_two_fingers_zoom_and_one_pans(self):
        page = self.page("solve", size=NARROW, touch=True)
        whole = page.range()
        x, y = page.point("memory", 0.5)

        def touch(kind, *places):
            self.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {
                "type": kind, "touchPoints": [{"x": place, "y": y, "id": k} for k, place in enumerate(places)]})

        touch("touchStart", x - 20, x + 20)
        for spread in range(20, 101, 10):
            touch("touchMove", x - spread, x + spread)
        touch("touchEnd")
        page.settle()
        zoomed = page.range()
        self.assertLess(zoomed[1] - zoomed[0], 0.5 * (whole[1] - whole[0]))
        touch("touchStart", x)
        for offset in range(0, 61, 6):
            touch("touchMove", x - offset)
        touch("touchEnd")
        page.settle()
        panned = page.range()
        self.assertGreater(panned[0], zoomed[0])
        self.assertAlmostEqual(panned[1] - panned[0], zoomed[1] - zoomed[0], delta=1e-6 * whole[1])

    def test_the_axis_can_be_cost_or_steps(self):
        data = self.data("solve")
        page = self.page("solve")
        self.assertAlmostEqual(page.range()[1], max(track["cost"] for track in data["tracks"]))
        page.drag("memory", 0.5, 0.7)
        page.pick("[data-value=step]")
        steps = page.range()
        self.assertLess(steps[1], max(track["length"] for track in data["tracks"]))
        self.assertGreater(steps[0], 0)
        page.pick("#reset")
        self.assertEqual(page.range(), (0, max(track["length"] for track in data["tracks"])))

    # The following tests are about tensors.

    def test_search_finds_a_tensor_and_tells_its_producer_readers_and_recomputations(self):
        data = self.data("solve")
        track = data["tracks"][1]
        again = track["lives"]["tensor"][next(k for k, number in enumerate(track["lives"]["number"]) if number > 0)]
        name = data["tensors"]["name"][again]
        page = self.page("solve")
        page.find("#search").send_keys(name)
        page.settle()
        hits = page.find_all("#hits button")
        self.assertIn(again, [int(hit.get_attribute("data-tensor")) for hit in hits])
        page.pick(f"#hits [data-tensor='{again}']")
        self.assertFalse(page.find("#hits").is_displayed())
        card = page.find("#tensor-card")
        self.assertEqual(int(card.get_attribute("data-tensor")), again)
        self.assertIn(data["nodes"]["name"][data["tensors"]["node"][again]], card.text)
        lives = [k for k, tensor in enumerate(track["lives"]["tensor"]) if tensor == again]
        self.assertIn(f"in memory {len(lives)} times", card.text)
        self.assertIn("computed again", card.text)
        readers = [data["nodes"]["name"][node] for node in data["tensors"]["readers"][again]]
        for reader in readers:
            self.assertIn(reader, page.text("#readers"))

        # A click on the recomputation shows its step, although the zoomed range does not contain the step.
        first = track["lives"]["first"][lives[1]]
        page.drag("memory", 0.02, 0.1)
        before = page.range()
        # While the mouse is over a chart, the page shows the step under the mouse and not the chosen step. So the test
        # moves the mouse away from the charts. It repeats both, because a busy browser may notice a move late, and draws
        # the list of steps anew then, so that a click at the same moment is lost. Each move is to another place, because
        # a browser does not tell the page of a move to the place where the mouse is.
        for attempt in range(50):
            page.pick(f"#lives [data-step='{first}']")
            page.mouse("mouseMoved", 2 + attempt % 2, 2)
            page.settle()
            step = int(page.find("#step-card").get_attribute("data-step"))
            if step == first:
                break
        self.assertEqual(step, first)
        self.assertNotEqual(page.range(), before)
        low, high = page.range()
        self.assertTrue(low <= track["before"][first] <= high)
        page.press("memory", Keys.ESCAPE)
        self.assertEqual(page.find_all("#tensor-card"), [])

        page.find("#search").clear()
        page.find("#search").send_keys("no such tensor")
        page.settle()
        self.assertEqual(page.find_all("#hits button"), [])
        self.assertIn("no tensor or op of that name", page.text("#hits"))

    def test_a_click_into_the_address_chart_chooses_the_tensor_there(self):
        data = self.data("run")
        track = data["tracks"][1]
        lives = track["lives"]
        life = max(range(len(lives["first"])), key=lambda k: lives["bytes"][k] * (lives["last"][k] - lives["first"][k]))
        page = self.page("run")
        middle = (track["before"][lives["first"][life]] + track["before"][min(lives["last"][life], track["length"] - 1)]) / 2
        top = max([track["arena_bytes"]] + [level["bytes"] for level in data["levels"] if level["of_plan"]])
        height = (lives["offset"][life] + lives["bytes"][life] / 2) / (1.06 * top)
        page.click("addresses", middle / page.range()[1], 1 - height)
        tensor = lives["tensor"][life]
        self.assertEqual(int(page.find("#tensor-card").get_attribute("data-tensor")), tensor)
        self.assertIn(data["tensors"]["name"][tensor], page.text(".tip"))
        self.assertGreater(len(page.find_all("#readers .jump")), 0)

    def test_the_peak_is_told_by_kind_layer_and_tensor_and_sums_to_it(self):
        data = self.data("run")
        page = self.page("run")
        self.assertEqual(len(page.find_all("#peak .peak")), 2)
        for group in ["kind", "layer", "tensor"]:
            page.pick(f"[aria-label=Group] [data-value={group}]")
            for track, column in zip(data["tracks"], page.find_all("#peak .peak")):
                self.assertIn(track["name"], column.text)
                self.assertGreater(len(column.find_elements(By.CSS_SELECTOR, ".row")), 1)
        page.pick("#peak .tensor")
        self.assertEqual(len(page.find_all("#tensor-card")), 1)

    def test_what_is_computed_again_can_be_jumped_to(self):
        item = self.data("run")["tracks"][1]["recomputed"]["nodes"][0]
        page = self.page("run")
        page.pick(f"#recomputed [data-step='{item['step']}']")
        self.assertEqual(int(page.find("#step-card").get_attribute("data-step")), item["step"])

    # The following tests are about pictures without a time axis.

    def test_a_point_of_the_curve_opens_its_schedule(self):
        data = self.data("pareto")
        page = self.page("pareto")
        self.assertIn("knee", page.text(".timeline .legend"))
        found = min((point for point in data["tradeoff"]["found"] if not point["marked"]), key=lambda point: point["bytes"])
        other = next(point["track"] for point in data["tradeoff"]["found"] if point["bytes"] == found["bytes"])
        box = page.box("tradeoff")
        # Finds the point in the way of a user: moves the mouse over the chart until the cursor becomes a pointing hand.
        for across in range(0, int(box["width"]), 4):
            for down in range(2, int(box["height"]), 12):
                if page("""
                    const over = document.querySelector('#tradeoff .u-over');
                    over.dispatchEvent(new MouseEvent('mousemove', {clientX: arguments[0], clientY: arguments[1], bubbles: true}));
                    return over.style.cursor === 'pointer' && document.querySelector('.tip').textContent.includes(arguments[2])""",
                        box["x"] + across, box["y"] + down, f"{found['bytes']:,} bytes"):
                    for kind in ["mouseMoved", "mousePressed", "mouseReleased"]:
                        page.mouse(kind, box["x"] + across, box["y"] + down, button="left", clickCount=1)
                    page.settle()
                    self.assertIn(data["tracks"][other]["name"], page.text(".timeline .legend"))
                    return
        self.fail("no point under the pointer")

    def test_the_histogram_tells_its_counts(self):
        page = self.page("simulate")
        histogram = self.data("simulate")["histogram"]
        most = histogram["counts"].index(max(histogram["counts"]))
        box = page.box("histogram")
        for across in range(int(box["width"])):
            page.mouse("mouseMoved", box["x"] + across, box["y"] + box["height"] / 2)
            tip = page.text(".tip")
            if f"{histogram['counts'][most]:,} candidates" in tip:
                return
        self.fail("the largest bar was not found")

    def test_odd_names_are_shown_and_do_nothing(self):
        page = self.page("odd")
        self.assertEqual(page.text("h1"), ODD_NAMES[0])
        self.assertEqual(page("return document.querySelectorAll('img').length"), 0)
        page.find("#search").send_keys("tab")
        page.settle()
        self.assertIn("tab\\u{9}here\\u{7}", page.text("#hits"))
        self.assertEqual(page.complaints(), [])


# This script returns the elements with text that lie outside of the window, or that are narrower than their text.
OUTSIDE = """
const bad = [];
for (const e of document.querySelectorAll('main *')) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
  const b = e.getBoundingClientRect();
  if (!b.width || !b.height || e.closest('details:not([open])')) continue;
  if (b.left < -0.5 || b.right > innerWidth + 0.5) bad.push(e.className + ': ' + e.textContent.slice(0, 60));
  const cut = getComputedStyle(e).textOverflow === 'ellipsis' && e.closest('[title]');
  if (!cut && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline')
    bad.push('clipped ' + e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 60));
}
return bad;"""

# This script returns the pairs of elements with text that overlap each other.
OVERLAPS = """
const boxes = [];
for (const e of document.querySelectorAll('main *')) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
  if (e.closest('.hits, .uplot, select') || e.closest('details:not([open])')) continue;
  for (const b of e.getClientRects()) if (b.width > 1 && b.height > 1) boxes.push({e, b});
}
const bad = [];
boxes.sort((a, b) => a.b.top - b.b.top);
for (let i = 0; i < boxes.length; ++i) {
  for (let j = i + 1; j < boxes.length && boxes[j].b.top < boxes[i].b.bottom - 3; ++j) {
    const [p, q] = [boxes[i], boxes[j]];
    if (p.e.contains(q.e) || q.e.contains(p.e)) continue;
    const wide = Math.min(p.b.right, q.b.right) - Math.max(p.b.left, q.b.left);
    if (wide > 2) bad.push(p.e.textContent.slice(0, 40) + ' | ' + q.e.textContent.slice(0, 40));
  }
}
return bad;"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "write":
        write_reports(sys.argv[2], pathlib.Path(sys.argv[3]))
        sys.exit(0)
    try:
        from selenium import webdriver
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.chrome.service import Service
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.keys import Keys
    except ImportError:
        if not os.path.exists(SYSTEM_PYTHON) or os.path.samefile(sys.executable, SYSTEM_PYTHON):
            skip("no selenium for Python; install the package python3-selenium")
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    for program in ["chromium", "chromedriver"]:
        if shutil.which(program) is None:
            skip(f"no {program}; install the packages chromium and chromium-driver")
    if "snap" in os.path.realpath(shutil.which("chromium")):
        skip("this chromium is a snap, which cannot open the files of a test")
    try:
        open_browser().quit()
    except WebDriverException as error:
        skip(f"Chromium does not start here: {str(error).splitlines()[0]}")
    FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
