#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "cairn/core/text.h"
#include "cairn/pipeline/report/html_report.h"
#include "cairn/pipeline/report/internal/charts.h"
#include "cairn/pipeline/report/internal/html.h"

namespace cairn::pipeline {
namespace {

using namespace html;

/// What both kinds of plans are drawn from.
struct Drawing {
  std::string_view time;  ///< its unit: "step" or "time"
  std::vector<Rectangle> rectangles;
  std::vector<std::size_t> buffer_of;                       ///< a rectangle's place in the plan's buffers
  std::vector<Rectangle> shared;                            ///< bytes of two rectangles at one time: counted once
  std::function<std::string(std::size_t)> name, css;        ///< of a buffer
  std::vector<std::pair<std::string, std::string>> legend;  ///< class of colour, what it stands for
};

struct Section {
  std::int64_t lower = 0, upper = 0;  ///< times, half-open
};

/// Bytes live at every time: (from this time on, bytes), and 0 at the end.
std::vector<std::pair<std::int64_t, std::int64_t>> load_of(const Drawing& drawing) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;
  for (const Rectangle& r : drawing.rectangles) {
    changes.emplace_back(r.lower, r.size);
    changes.emplace_back(r.upper, -r.size);
  }
  for (const Rectangle& r : drawing.shared) {
    changes.emplace_back(r.lower, -r.size);
    changes.emplace_back(r.upper, r.size);
  }
  std::sort(changes.begin(), changes.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> load;
  std::int64_t bytes = 0;
  for (const auto& [time, change] : changes) {
    bytes += change;
    if (!load.empty() && load.back().first == time) {
      load.back().second = bytes;
    } else {
      load.emplace_back(time, bytes);
    }
  }
  return load;
}

std::vector<Section> tight_sections(const std::vector<std::pair<std::int64_t, std::int64_t>>& load) {
  std::int64_t most = 0;
  for (const auto& [time, bytes] : load) most = std::max(most, bytes);
  std::vector<Section> tight;
  for (std::size_t i = 0; i + 1 < load.size() && most > 0; ++i) {
    if (load[i].second != most) continue;
    if (tight.empty() || tight.back().upper != load[i].first) tight.push_back({load[i].first, 0});
    tight.back().upper = load[i + 1].first;
  }
  return tight;
}

/// Bands over the height of the chart; those that a pixel cannot keep apart are one.
std::string tight_bands(const Axes& axes, const std::vector<Section>& tight) {
  constexpr double kNarrowest = 3;  // to be seen
  std::string path;
  double drawn_to = -std::numeric_limits<double>::infinity();
  for (const Section& section : tight) {
    const double right = std::max(axes.x(real(section.upper)), axes.x(real(section.lower)) + kNarrowest);
    const double left = std::max(axes.x(real(section.lower)), drawn_to);
    if (right - left < 0.5) continue;
    path += fmt::format("M{:.1f} {:.1f}H{:.1f}V{:.1f}H{:.1f}z", left, axes.top, right, axes.bottom, left);
    drawn_to = right;
  }
  return fmt::format("<path class='tight' d='{}'/>\n", path);
}

std::string tight_text(const Drawing& drawing, const std::vector<Section>& tight) {
  if (tight.empty()) return "";
  const std::int64_t first = tight.front().lower, last = tight.back().upper - 1;
  if (tight.size() == 1) {
    return fmt::format(" The red band marks the tight section, where the load is largest: {} {}{}.", drawing.time,
                       first, first == last ? "" : fmt::format(" to {}", last));
  }
  return fmt::format(" Red bands mark the {} tight sections, where the load is largest, from {} {} to {}.",
                     tight.size(), drawing.time, first, last);
}

/// Arena, bound and capacity.
std::string levels(const Axes& axes, const PlanReport& report) {
  std::string svg = level_line(axes, report.proved_bytes, "proved", "bound", 0.55);
  svg += level_line(axes, report.plan.bytes, "arena", "arena", 0.15);
  if (report.capacity_bytes) svg += level_line(axes, *report.capacity_bytes, "capacity", "limit");
  return svg;
}

std::string tiles(const PlanReport& report) {
  const core::Plan& plan = report.plan;
  std::string html = "<div class='tiles'>";
  html += tile("Arena", core::format_bytes(plan.bytes), escaped(report.status),
               plan.bytes == report.proved_bytes ? "good" : "");
  html += tile(
      "Live at once", core::format_bytes(plan.lower_bound),
      plan.bytes == plan.lower_bound ? "the arena has no byte more" : "arena: " + change(plan.lower_bound, plan.bytes));
  if (report.capacity_bytes) {
    const bool fits = plan.bytes <= *report.capacity_bytes;
    html += tile("Capacity", core::format_bytes(*report.capacity_bytes),
                 fits                                           ? "the plan fits"
                 : report.proved_bytes > *report.capacity_bytes ? "proved too small"
                                                                : "no plan found that fits",
                 fits ? "good" : "bad");
  }
  if (!report.conflict.empty())
    html += tile("Conflict", grouped(static_cast<std::int64_t>(report.conflict.size())),
                 "buffers that do not fit together");
  return html + "</div>\n";
}

Axes axes_of(const PlanReport& report, const Drawing& drawing) {
  Axes axes;
  std::int64_t lower = std::numeric_limits<std::int64_t>::max(), upper = 0;
  for (const Rectangle& r : drawing.rectangles) {
    lower = std::min(lower, r.lower);
    upper = std::max(upper, r.upper);
  }
  if (lower < upper && lower > upper / 8) axes.x_min = real(lower);
  axes.x_max = std::max({axes.x_min + 1, axes.x_min * (1 + 1e-9), real(upper)});  // apart, even where times are huge
  std::int64_t most = report.plan.bytes;
  if (report.capacity_bytes && *report.capacity_bytes < 2 * most) most = std::max(most, *report.capacity_bytes);
  axes.y_max = std::max(1.0, 1.06 * real(most));
  return axes;
}

std::string load_chart(const PlanReport& report, const Drawing& drawing) {
  const auto load = load_of(drawing);
  if (load.empty()) return "";
  Axes axes = axes_of(report, drawing);
  axes.height = 260;
  axes.bottom = 220;
  MemoryCurve whole;
  for (const auto& [time, bytes] : load) {
    whole.time.push_back(real(time));
    whole.bytes.push_back(bytes);
  }
  const MemoryCurve curve = thinned(whole);
  const std::vector<Section> tight = tight_sections(load);
  const std::string path = step_path(axes, curve, axes.x_max);
  std::string html = fmt::format("<section><h2>Load over time</h2><p class='note'>Bytes that are live at once.{}</p>\n",
                                 tight_text(drawing, tight));
  html += svg_open(axes, "memory", "Load over time") + axis_lines(axes, drawing.time) + tight_bands(axes, tight);
  html += fmt::format("<path class='area' d='{}V{:.1f}H{:.1f}Z'/>\n<path class='curve schedule' d='{}'/>\n", path,
                      axes.bottom, axes.x(curve.time.front()), path);
  const NamedCurve named{"live", &curve, axes.x_max};
  return html + levels(axes, report) + curve_cursor(axes) + "</svg>\n" + curve_data(axes, {&named, 1}) + "</section>\n";
}

std::string forbidden_areas(const Axes& axes, const PlanReport& report) {
  std::string svg;
  for (const core::AddressRange& range : report.forbidden) {
    const double lower = real(range.lower), upper = std::min(real(range.upper), axes.y_max);
    if (lower > axes.y_max) continue;
    svg += range.lower == range.upper
               ? fmt::format(
                     "<line class='wall' x1='{0:.1f}' x2='{1:.1f}' y1='{2:.1f}' y2='{2:.1f}'><title>wall at {3}"
                     "</title></line>\n",
                     axes.left, axes.right, axes.y(lower), grouped(range.lower))
               : fmt::format(
                     "<rect class='forbidden' x='{:.1f}' y='{:.2f}' width='{:.1f}' height='{:.2f}'><title>"
                     "forbidden: {} to {}</title></rect>\n",
                     axes.left, axes.y(upper), axes.right - axes.left, axes.y(lower) - axes.y(upper),
                     grouped(range.lower), grouped(range.upper));
  }
  return svg;
}

std::string address_chart(const PlanReport& report, const Drawing& drawing) {
  if (drawing.rectangles.empty()) return "";
  Axes axes = axes_of(report, drawing);
  axes.height = 560;
  axes.bottom = 520;
  const core::Plan& plan = report.plan;
  std::vector<std::uint8_t> in_conflict(plan.buffers.size(), 0);
  for (const std::int32_t b : report.conflict) in_conflict[b] = 1;
  std::string html = fmt::format(
      "<section><h2>Where every buffer lies</h2><p class='note'>Address over time: one rectangle a buffer.{}{}</p>",
      rectangles_note(drawing.rectangles.size()),
      report.conflict.empty() ? "" : " Those with a red border do not fit into the capacity together.");
  html += "<div class='legend'>";
  for (const auto& [css, what] : drawing.legend)
    html += fmt::format("<span><i style='background:var(--{})'></i>{}</span>", css, escaped(what));
  html += "</div>\n" + svg_open(axes, "plan", "Address over time of every buffer") + axis_lines(axes, drawing.time);
  html += rectangles_svg(
      axes, drawing.rectangles,
      [&](std::size_t i) {
        const std::size_t b = drawing.buffer_of[i];
        return drawing.css(b) + (report.conflict.empty() ? "" : in_conflict[b] != 0 ? " conflict" : " faint");
      },
      [&](std::size_t i) {
        const core::Buffer& buffer = plan.buffers[drawing.buffer_of[i]];
        return fmt::format("{}\n{} ({} bytes)\n{} {} to {}\noffset {}", escaped(drawing.name(drawing.buffer_of[i])),
                           core::format_bytes(buffer.size), grouped(buffer.size), drawing.time, buffer.first,
                           buffer.last, grouped(buffer.offset));
      });
  html += forbidden_areas(axes, report);
  return html + tight_bands(axes, tight_sections(load_of(drawing))) + levels(axes, report) + "</svg></section>\n";
}

std::string page(const PlanReport& report, const Drawing& drawing) {
  std::string html = page_begin(report.name);
  html += fmt::format("<p class='sub'>plan of {} buffers \u00b7 alignment {} \u00b7 {:.2f} s</p>\n",
                      grouped(static_cast<std::int64_t>(report.plan.buffers.size())), report.plan.alignment,
                      report.seconds);
  html += tiles(report) + load_chart(report, drawing) + address_chart(report, drawing);
  return html + page_end(report.version, kCurveScript);
}

constexpr std::size_t kClasses = 8;  // of colour

/// "conv" of "conv2_1/weights": the letters that an id begins with.
std::string_view prefix_of(std::string_view id) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  return id.substr(0, static_cast<std::size_t>(std::find_if_not(id.begin(), id.end(), letter) - id.begin()));
}

/// Colours buffers by the prefix of their id where there are few, by their size otherwise.
void colour_specs(Drawing& drawing, const PlanReport& report, const std::vector<core::BufferSpec>& specs) {
  std::map<std::string, std::size_t, std::less<>> prefixes;
  for (const core::BufferSpec& spec : specs) {
    prefixes.emplace(prefix_of(spec.id), 0);
    if (prefixes.size() > kClasses) break;
  }
  if (prefixes.size() > 1 && prefixes.size() <= kClasses) {
    std::size_t next = 0;
    for (auto& [prefix, index] : prefixes) {
      index = next++;
      drawing.legend.emplace_back(fmt::format("class{}", index), prefix.empty() ? "others" : prefix);
    }
    drawing.css = [prefixes, &specs](std::size_t b) {
      return fmt::format("class{}", prefixes.find(prefix_of(specs[b].id))->second);
    };
    return;
  }
  std::uint64_t largest = 1;
  for (const core::Buffer& b : report.plan.buffers) largest = std::max(largest, static_cast<std::uint64_t>(b.size));
  const auto top = static_cast<int>(std::bit_width(largest));
  const auto class_of = [top](std::int64_t size) {
    const auto below =
        static_cast<std::size_t>(top - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size))));
    return std::min(below, kClasses - 1);
  };
  std::set<std::size_t> met;
  for (const core::Buffer& b : report.plan.buffers) {
    if (b.size > 0) met.insert(class_of(b.size));
  }
  for (const std::size_t index : met) {
    const std::int64_t least = std::int64_t{1} << std::max(0, top - 1 - static_cast<int>(index));
    drawing.legend.emplace_back(fmt::format("class{}", index),
                                index + 1 < kClasses ? core::format_bytes(least) + " or more" : "less");
  }
  drawing.css = [class_of, &report](std::size_t b) {
    return fmt::format("class{}", class_of(report.plan.buffers[b].size));
  };
}

}  // namespace

std::string plan_report(const PlanReport& report, const std::vector<core::BufferSpec>& specs) {
  Drawing drawing;
  drawing.time = "time";
  drawing.name = [&](std::size_t b) { return specs[b].id; };
  for (std::size_t b = 0; b < specs.size(); ++b) {
    const core::Buffer& buffer = report.plan.buffers[b];
    if (buffer.size == 0) continue;
    std::int64_t lower = buffer.first;
    const auto add = [&](std::int64_t upper) {
      drawing.rectangles.push_back({lower, upper, buffer.offset, buffer.size});
      drawing.buffer_of.push_back(b);
    };
    for (const auto& [gap_lower, gap_upper] : specs[b].gaps) {
      add(gap_lower);
      lower = gap_upper;
    }
    add(buffer.last + 1);
  }
  colour_specs(drawing, report, specs);
  return page(report, drawing);
}

std::string plan_report(const PlanReport& report, const core::Graph& graph, const core::Schedule& schedule) {
  const std::vector<ReportBuffer> buffers = report_buffers(graph, schedule, report.plan);
  Drawing drawing;
  drawing.time = "step";
  drawing.name = [&](std::size_t b) { return buffers[b].name; };
  drawing.css = [&](std::size_t b) { return std::string(kind_name(buffers[b].kind)); };
  std::vector<const core::Buffer*> latest(graph.value_count(), nullptr);
  std::set<ReportBuffer::Kind> kinds;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const core::Buffer& buffer = report.plan.buffers[b];
    drawing.rectangles.push_back({buffer.first, buffers[b].last + 1, buffer.offset, buffer.size});
    drawing.buffer_of.push_back(b);
    kinds.insert(buffers[b].kind);
    if (buffer.scratch) continue;
    const core::ValueId taken = graph.value(buffer.alias_of);
    if (taken != core::kNoValue && latest[taken] != nullptr)
      drawing.shared.push_back(
          {buffer.first, buffer.first + 1, buffer.offset, std::min(buffer.size, latest[taken]->size)});
    latest[graph.value({buffer.node, buffer.output})] = &buffer;
  }
  for (const ReportBuffer::Kind kind : kinds) drawing.legend.emplace_back(kind_name(kind), kind_name(kind));
  return page(report, drawing);
}

}  // namespace cairn::pipeline
