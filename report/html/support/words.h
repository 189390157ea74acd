#pragma once

// These functions format numbers as the pages show them.

#include <cstdint>
#include <string>
#include <string_view>

#include "cairn/report/html/report.h"

namespace cairn::report::html {

/// Formats a number with its thousands separated: 1234567 -> "1,234,567".
std::string grouped(std::int64_t value);
/// Formats the change from one number to another: "+12.5%".
std::string change(std::int64_t from, std::int64_t to);
/// Formats the fraction part / whole as a percentage: "97.5%". Returns "0%" if the whole is 0.
std::string share(std::int64_t part, std::int64_t whole);
/// Formats a cost with its unit: 1500000 ns -> "1.5 ms". Costs in an unknown unit are not scaled.
std::string cost_text(std::int64_t cost, const std::string& unit);
/// Formats a change of bytes: "52.83 MiB", an arrow to the right, then "26.33 MiB".
std::string from_to(std::int64_t from_bytes, std::int64_t to_bytes);

/// Returns text that is safe inside an HTML or SVG element: printable, with `&` and `<` escaped.
std::string escaped(std::string_view text);

/// Returns a page that contains only the graph and its baseline. The caller adds further contents.
Report of_graph(std::string command, const core::Graph& graph, const std::string& name);

}  // namespace cairn::report::html
