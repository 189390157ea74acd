#pragma once

// Numbers as the pages write them.

#include <cstdint>
#include <string>

#include "cairn/report/html/report.h"

namespace cairn::report::html {

/// 1234567 -> "1,234,567"
std::string grouped(std::int64_t value);
/// The change from one to the other: "+12.5%".
std::string change(std::int64_t from, std::int64_t to);
/// "97.5%"; 0 where the whole is 0.
std::string share(std::int64_t part, std::int64_t whole);
/// 1500000 ns -> "1.5 ms"; costs in an unknown unit stay as they are.
std::string cost_text(std::int64_t cost, const std::string& unit);
/// "52.83 MiB → 26.33 MiB"
std::string from_to(std::int64_t from_bytes, std::int64_t to_bytes);

/// A page about this graph and its baseline, with nothing else.
Report of_graph(std::string command, const core::Graph& graph, const std::string& name);

}  // namespace cairn::report::html
