#include "cairn/pipeline/report/internal/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace cairn::pipeline::html {

// `frame` and `curves` come before this.
const std::string_view kCurveScript = R"js(
const chart = document.getElementById('memory'), tip = document.getElementById('tip');
const size = b => { const u = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']; let i = 0;
  while (b >= 1024 && i < 5) { b /= 1024; ++i; } return b.toFixed(i ? 2 : 0) + ' ' + u[i]; };
const held = (c, t) => { if (t > c.end) return null; let lo = 0, hi = c.t.length;
  while (hi - lo > 1) { const mid = (lo + hi) >> 1; if (c.t[mid] <= t) lo = mid; else hi = mid; } return c.b[lo]; };
if (chart) {
  const cursor = chart.querySelector('.cursor');
  chart.addEventListener('pointermove', e => {
    const box = chart.getBoundingClientRect(), x = (e.clientX - box.left) / box.width * frame.width;
    const t = frame.from + (x - frame.left) / (frame.right - frame.left) * (frame.to - frame.from);
    const inside = t >= frame.from && t <= frame.to;
    cursor.style.visibility = tip.style.visibility = inside ? 'visible' : 'hidden';
    if (!inside) return;
    cursor.setAttribute('x1', x); cursor.setAttribute('x2', x);
    tip.textContent = curves.map(c => { const b = held(c, t);
      return c.name + ': ' + (b === null ? 'done' : size(b)); }).join('\n');
    tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
    tip.style.top = (e.clientY + 14) + 'px';
  });
  chart.addEventListener('pointerleave', () => { cursor.style.visibility = tip.style.visibility = 'hidden'; });
}
)js";

namespace {

constexpr std::size_t kMostPoints = 1600;
constexpr std::size_t kMostRectangles = 6000;

struct Box {
  double left, right, top, bottom;
};
Box box_of(const Axes& axes, const Rectangle& r) {
  return {axes.x(real(r.lower)), axes.x(real(r.upper)), axes.y(real(r.offset) + real(r.size)), axes.y(real(r.offset))};
}

/// The cells of a raster over the chart that any of the rectangles touches, as one path.
std::string covered_path(const Axes& axes, const std::vector<Rectangle>& rectangles,
                         std::span<const std::size_t> which) {
  constexpr double kCell = 2;
  const auto columns = static_cast<std::size_t>(std::ceil((axes.right - axes.left) / kCell));
  const auto rows = static_cast<std::size_t>(std::ceil((axes.bottom - axes.top) / kCell));
  // Counts of rectangles as sums over the cells to the left and above: each changes four corners.
  std::vector<std::int32_t> count((columns + 1) * (rows + 1), 0);
  const auto cell = [&](double from, double at, std::size_t most) {
    return static_cast<std::size_t>(std::clamp((at - from) / kCell, 0.0, static_cast<double>(most)));
  };
  for (const std::size_t i : which) {
    const Box box = box_of(axes, rectangles[i]);
    const std::size_t left = cell(axes.left, box.left, columns - 1), top = cell(axes.top, box.top, rows - 1);
    const std::size_t right = cell(axes.left, box.right, columns - 1) + 1;
    const std::size_t bottom = cell(axes.top, box.bottom, rows - 1) + 1;
    for (const auto& [row, sign] : {std::pair{top, 1}, {bottom, -1}}) {
      count[row * (columns + 1) + left] += sign;
      count[row * (columns + 1) + right] -= sign;
    }
  }
  std::string path;
  for (std::size_t row = 0; row < rows; ++row) {
    std::int32_t* line = count.data() + row * (columns + 1);
    std::partial_sum(line, line + columns + 1, line);
    for (std::size_t c = 0; c <= columns && row > 0; ++c) line[c] += line[c - columns - 1];
    for (std::size_t c = 0; c < columns;) {
      std::size_t end = c;
      while (end < columns && line[end] > 0) ++end;
      if (end > c) {
        path += fmt::format("M{:.0f} {:.0f}h{:.0f}v{:.0f}h-{:.0f}z", axes.left + kCell * static_cast<double>(c),
                            axes.top + kCell * static_cast<double>(row), kCell * static_cast<double>(end - c), kCell,
                            kCell * static_cast<double>(end - c));
      }
      c = end + 1;
    }
  }
  return path;
}

}  // namespace

MemoryCurve thinned(const MemoryCurve& curve) {
  const std::size_t count = curve.bytes.size();
  if (count <= kMostPoints) return curve;
  const std::size_t runs = kMostPoints / 2;
  MemoryCurve thin;
  for (std::size_t run = 0; run < runs; ++run) {
    const auto begin = curve.bytes.begin() + static_cast<std::ptrdiff_t>(run * count / runs);
    const auto end = curve.bytes.begin() + static_cast<std::ptrdiff_t>((run + 1) * count / runs);
    auto [low, high] = std::minmax_element(begin, end);
    for (const auto at : {std::min(low, high), std::max(low, high)}) {
      // The first point of a run stands for all before it, so the curve has no gap.
      thin.time.push_back(at == std::min(low, high) ? curve.time[static_cast<std::size_t>(begin - curve.bytes.begin())]
                                                    : curve.time[static_cast<std::size_t>(at - curve.bytes.begin())]);
      thin.bytes.push_back(*at);
      if (low == high) break;
    }
  }
  return thin;
}

std::string step_path(const Axes& axes, const MemoryCurve& curve, double end) {
  std::string path;
  for (std::size_t i = 0; i < curve.bytes.size(); ++i) {
    const double x = axes.x(curve.time[i]), y = axes.y(real(curve.bytes[i]));
    path += i == 0 ? fmt::format("M{:.1f} {:.1f}", x, y) : fmt::format("H{:.1f}V{:.1f}", x, y);
  }
  return path + fmt::format("H{:.1f}", axes.x(end));
}

std::string curve_cursor(const Axes& axes) {
  return fmt::format("<line class='cursor' x1='0' x2='0' y1='{}' y2='{}'/>", axes.top, axes.bottom);
}

std::string curve_data(const Axes& axes, std::span<const NamedCurve> curves) {
  std::string data;
  for (const NamedCurve& c : curves) {
    data += fmt::format("{}{{name:'{}',end:{:.17g},t:[{:.17g}],b:[{}]}}", data.empty() ? "" : ",", c.name, c.end,
                        fmt::join(c.curve->time, ","), fmt::join(c.curve->bytes, ","));
  }
  return fmt::format(
      "<script>const frame={{width:{},left:{},right:{},from:{:.17g},to:{:.17g}}},curves=[{}];</script>\n", axes.width,
      axes.left, axes.right, axes.x_min, axes.x_max, data);
}

std::string rectangles_svg(const Axes& axes, const std::vector<Rectangle>& rectangles,
                           const std::function<std::string(std::size_t)>& css,
                           const std::function<std::string(std::size_t)>& text) {
  std::vector<std::size_t> drawn(rectangles.size());
  std::iota(drawn.begin(), drawn.end(), std::size_t{0});
  std::string svg;
  if (drawn.size() > kMostRectangles) {
    const auto area = [&](std::size_t i) {
      return real(rectangles[i].size) * (real(rectangles[i].upper) - real(rectangles[i].lower));
    };
    std::stable_sort(drawn.begin(), drawn.end(), [&](std::size_t a, std::size_t b) { return area(a) > area(b); });
    svg += fmt::format("<path class='others' d='{}'/>\n",
                       covered_path(axes, rectangles, std::span(drawn).subspan(kMostRectangles)));
    drawn.resize(kMostRectangles);
    std::sort(drawn.begin(), drawn.end());
  }
  for (const std::size_t i : drawn) {
    const Box box = box_of(axes, rectangles[i]);
    svg += fmt::format(
        "<rect class='buffer {}{}' x='{:.2f}' y='{:.2f}' width='{:.2f}' height='{:.2f}'><title>{}</title></rect>\n",
        css(i), box.bottom - box.top < 2 ? " thin" : "", box.left, box.top, box.right - box.left, box.bottom - box.top,
        text(i));
  }
  return svg;
}

std::string_view kind_name(ReportBuffer::Kind kind) {
  static constexpr std::array<std::string_view, 5> kNames{"forward", "backward", "recomputed", "kept", "scratch"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string rectangles_note(std::size_t count) {
  if (count <= kMostRectangles) return "";
  return fmt::format(" The {} largest of {} are drawn one by one, the others are grey.", kMostRectangles, count);
}

}  // namespace cairn::pipeline::html
