#pragma once

// Pictures that several pages draw: bytes over time, and address over time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/pipeline/report/html_report.h"
#include "cairn/pipeline/report/internal/html.h"

namespace cairn::pipeline::html {

/// At most about 1600 entries: of each run of neighbours the lowest and the highest, in their order.
MemoryCurve thinned(const MemoryCurve& curve);
/// What a path draws: the curve as steps, up to the time `end`.
std::string step_path(const Axes& axes, const MemoryCurve& curve, double end);

struct NamedCurve {
  std::string_view name;
  const MemoryCurve* curve;
  double end;
};
/// Before "</svg>" of the chart with the id `memory`, and behind it: with kCurveScript, the pointer over that chart
/// shows what every curve has at that time.
std::string curve_cursor(const Axes& axes);
std::string curve_data(const Axes& axes, std::span<const NamedCurve> curves);
extern const std::string_view kCurveScript;

/// Addresses [offset, offset + size) during the times [lower, upper).
struct Rectangle {
  std::int64_t lower = 0, upper = 0;
  std::int64_t offset = 0, size = 0;
};
/// Each with its classes of colour and its text, which need be safe. Of more than 6000 the largest by bytes x time are
/// drawn so, and on what the others cover, all at once, lies a grey: the size of the page is limited, whatever their
/// number. O(n log n).
std::string rectangles_svg(const Axes& axes, const std::vector<Rectangle>& rectangles,
                           const std::function<std::string(std::size_t)>& css,
                           const std::function<std::string(std::size_t)>& text);
/// Also the class of its colour.
std::string_view kind_name(ReportBuffer::Kind kind);
/// A sentence about what is grey, where anything is.
std::string rectangles_note(std::size_t count);

}  // namespace cairn::pipeline::html
