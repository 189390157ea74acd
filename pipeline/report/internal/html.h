#pragma once

// What the pages share.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn::pipeline::html {

inline double real(std::int64_t value) { return static_cast<double>(value); }

/// Everything before the page's first section; `graph` is its title and need not be safe.
std::string page_begin(std::string_view graph);
/// Everything after its last one, with a script.
std::string page_end(std::string_view version, std::string_view script = "");

std::string escaped(std::string_view text);
/// 1234567 with thin spaces between groups of three digits.
std::string grouped(std::int64_t value);
/// 0 where the whole is 0.
double percent_of(std::int64_t part, std::int64_t whole);
/// "+12.5%"
std::string change(std::int64_t from, std::int64_t to);

enum class Unit : std::uint8_t { number, bytes, percent };

/// A plotting area of an SVG (y upwards, from 0).
struct Axes {
  double x_min = 0, x_max = 1;  ///< ascending
  double y_max = 1;             ///< positive
  Unit x_unit = Unit::number, y_unit = Unit::bytes;
  double width = 1000, height = 340;
  double left = 78, right = 984, top = 14, bottom = 300;

  double x(double value) const { return left + (right - left) * (value - x_min) / (x_max - x_min); }
  double y(double value) const { return bottom - (bottom - top) * value / y_max; }
};

std::string axis_lines(const Axes& axes, std::string_view x_name);
/// Across the chart at that height, in the colour of the class, named above its end; empty where it is above the chart.
/// `share` of the width, from 0 to 1, is where the name ends.
std::string level_line(const Axes& axes, std::int64_t bytes, std::string_view name, std::string_view css,
                       double share = 1);
/// The budget's; empty without a budget, and where it is above the chart.
std::string budget_line(const Axes& axes, std::optional<std::int64_t> budget_bytes);
std::string svg_open(const Axes& axes, std::string_view id, std::string_view label);

/// A box with one number.
std::string tile(std::string_view name, std::string_view value, std::string_view note, std::string_view css = "");

}  // namespace cairn::pipeline::html
