#!/usr/bin/env python3
"""Makes a report of every command, and writes pictures of these reports, 1,280 and 400 pixels wide, to docs/images/.
Needs Chromium, its driver and python3-selenium, as tests/browser/ does.

usage: screenshots.py CAIRN [FOLDER]      CAIRN: the command; FOLDER: docs/images/
"""

import base64
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

# Switches off the cache of `cairn`, because schedules that an earlier run has stored would change the results of a
# later run.
os.environ["CAIRN_CACHE"] = "/dev/null"

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError:
    if not os.path.exists("/usr/bin/python3") or os.path.samefile(sys.executable, "/usr/bin/python3"):
        sys.exit("no selenium for Python; install the package python3-selenium")
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])

MODEL = ["resnet50", "--batch", "8", "--image", "64"]
TALLEST = {1280: 2000, 400: 1600}  # largest height of a picture, by its width, in pixels; the rest of a page is cut off

# JavaScript that reduces a picture to its most frequent colours, at most 256. Returns these colours, and for each pixel
# the index of the nearest of them, both as base64.
QUANTIZE = """
const [source, done] = arguments;
const image = new Image();
image.onload = () => {
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) || 0) + 1);
  const colors = [...counts].sort((a, b) => b[1] - a[1]).map(([color]) => color);
  const palette = colors.slice(0, 256);
  const parts = color => [color & 255, (color >> 8) & 255, (color >> 16) & 255];
  const places = new Map(palette.map((color, place) => [color, place]));
  const kept = palette.map(parts);
  for (const color of colors.slice(256)) {
    const [r, g, b] = parts(color);
    let best = 0;
    let least = Infinity;
    kept.forEach(([x, y, z], place) => {
      const distance = (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2;
      if (distance < least) [best, least] = [place, distance];
    });
    places.set(color, best);
  }
  const indices = Uint8Array.from(pixels, pixel => places.get(pixel));
  const text = bytes => {
    let all = '';
    for (let k = 0; k < bytes.length; k += 8192) all += String.fromCharCode(...bytes.subarray(k, k + 8192));
    return btoa(all);
  };
  done([image.width, image.height, text(Uint8Array.from(kept.flat())), text(indices)]);
};
image.src = source;
"""


def write_reports(cairn, folder, images):
    """Runs every command of `cairn` that can write a report, and writes these reports. Also writes the curve of cost
    over memory as a picture."""
    def run(name, *words):
        subprocess.run([cairn, *words, "--report", folder / f"{name}.html", "--quiet"], check=True)

    limit = ["--time-limit", "10s"]
    run("info", "info", *MODEL, "--budget", "60%", *limit)
    run("solve", "solve", *MODEL, "--budget", "50%", "-o", folder / "s.json", *limit)
    subprocess.run([cairn, "model", *MODEL, "-o", folder / "g.json", "--quiet"], check=True)
    run("plan", "plan", folder / "g.json", folder / "s.json")
    run("run", "run", *MODEL, "--budget", "50%", "--backend", "host", *limit)
    run("pareto", "pareto", *MODEL, "--time-limit", "30s", "--svg", images / "pareto.svg")
    run("simulate", "simulate", *MODEL, "--random", "200k", "--recompute", "20", "--budget", "95%")
    return ["info", "solve", "plan", "run", "pareto", "simulate"]


def open_browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--disable-lcd-text"]:
        options.add_argument(argument)
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


def png(width, height, palette, indices):
    """Returns the bytes of a PNG file. Each pixel is an index into `palette`, which has three bytes (RGB) per
    colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + indices[row * width:(row + 1) * width] for row in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
            chunk(b"PLTE", palette) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def shoot(browser, page, width, path, dark=False, script="", tallest=None):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    browser.get(page.as_uri())
    browser.execute_async_script(
        script + "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 300)))")
    tall = min(tallest or TALLEST[width], browser.execute_script("return document.documentElement.scrollHeight"))
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {
        "clip": {"x": 0, "y": 0, "width": width, "height": tall, "scale": 1}, "captureBeyondViewport": True})["data"]
    wide, high, palette, indices = browser.execute_async_script(QUANTIZE, "data:image/png;base64," + shot)
    path.write_bytes(png(wide, high, base64.b64decode(palette), base64.b64decode(indices)))
    print(f"{path}: {wide} x {high}, {path.stat().st_size:,} bytes")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    images = pathlib.Path(__file__).resolve().parent.parent / "docs" / "images"
    if len(sys.argv) == 3:
        images = pathlib.Path(sys.argv[2])
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        names = write_reports(sys.argv[1], folder, images)
        browser = open_browser()
        try:
            for name in names:
                for width in TALLEST:
                    shoot(browser, folder / f"{name}.html", width, images / f"report_{name}_{width}.png")
            shoot(browser, folder / "run.html", 1280, images / "report.png", tallest=1150)
            # Selects a recomputed tensor on the page, and takes a picture of the page in dark colours.
            shoot(browser, folder / "run.html", 1280, images / "report_dark_1280.png", dark=True,
                  script="document.querySelector('#recomputed button').click();")
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
