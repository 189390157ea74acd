#include "cairn/core/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"

namespace cairn::core {
namespace {

struct Preset {
  std::string_view name;
  std::int64_t bytes_per_second;
  std::int64_t latency_ns;
};

/// Bandwidths that copies of pinned host memory reach on these links, a little below the rates of the standards, and
/// the time that a GPU takes to start a copy.
constexpr std::array<Preset, 4> kPresets{{{"pcie3", 12'000'000'000, 10'000},
                                          {"pcie4", 25'000'000'000, 10'000},
                                          {"pcie5", 50'000'000'000, 10'000},
                                          {"c2c", 450'000'000'000, 5'000}}};

constexpr double kMostLatencySeconds = 3600;

[[noreturn]] void fail(std::string_view text, std::string_view reason) {
  throw InputError(
      fmt::format("link '{}': {}; accepted are pcie3, pcie4, pcie5, c2c, or a bandwidth with an optional "
                  "latency, such as 25GB/s or 25GB/s,10us,half",
                  printable(text), reason));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

std::int64_t parse_bandwidth(std::string_view part, std::string_view text) {
  if (!part.ends_with("/s")) fail(text, fmt::format("'{}' is no bandwidth", printable(part)));
  std::int64_t bytes = 0;
  const std::string fault = size_fault(part.substr(0, part.size() - 2), bytes);
  if (!fault.empty()) fail(text, fmt::format("the bandwidth {}", fault));
  return bytes;
}

std::int64_t parse_latency(std::string_view part, std::string_view text) {
  struct Unit {
    std::string_view name;
    double factor;  ///< length of the unit in seconds
  };
  constexpr std::array<Unit, 2> kSmall{{{"ns", 1e-9}, {"us", 1e-6}}};
  if (part.starts_with('-')) fail(text, "the latency is negative");
  // A number without a unit is refused, because parse_seconds() would read it as seconds, and no link has so large a
  // latency.
  if (!part.empty() && part.back() >= '0' && part.back() <= '9') {
    fail(text, fmt::format("the latency '{}' has no unit", printable(part)));
  }
  double seconds = 0;
  try {
    const auto unit = std::ranges::find_if(kSmall, [&](const Unit& u) { return part.ends_with(u.name); });
    seconds = unit == kSmall.end() ? parse_seconds(part)
                                   : parse_seconds(part.substr(0, part.size() - unit->name.size())) * unit->factor;
  } catch (const InputError&) {
    fail(text, fmt::format("the latency '{}' is not understood", printable(part)));
  }
  if (seconds > kMostLatencySeconds) fail(text, "the latency is above an hour");
  return std::llround(seconds * 1e9);
}

}  // namespace

Link parse_link(std::string_view text) {
  const std::vector<std::string_view> parts = split(text);
  const auto preset = std::ranges::find(kPresets, parts[0], &Preset::name);
  Link link;
  if (preset != kPresets.end()) {
    link = {preset->bytes_per_second, preset->latency_ns, true};
  } else {
    link.bytes_per_second = parse_bandwidth(parts[0], text);
  }
  bool latency_given = false, direction_given = false;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] == "duplex" || parts[i] == "half") {
      if (direction_given) fail(text, "the direction is given twice");
      direction_given = true;
      link.duplex = parts[i] == "duplex";
    } else {
      if (latency_given) fail(text, fmt::format("'{}' is too much", printable(parts[i])));
      latency_given = true;
      link.latency_ns = parse_latency(parts[i], text);
    }
  }
  return link;
}

std::string to_string(const Link& link) {
  return fmt::format("{}B/s,{}ns,{}", link.bytes_per_second, link.latency_ns, link.duplex ? "duplex" : "half");
}

std::string describe(const Link& link) {
  const std::string latency =
      link.latency_ns == 0 ? "" : " with a latency of " + duration_text(static_cast<double>(link.latency_ns) * 1e-9);
  return fmt::format("{:.4g} GB/s{}, {}", static_cast<double>(link.bytes_per_second) * 1e-9, latency,
                     link.duplex ? "both directions at once" : "one direction at a time");
}

std::int64_t copy_cost(const Link& link, std::int64_t bytes, const CostUnit& unit) {
  __extension__ using Wide = __int128;
  constexpr Wide kPerSecond = 1'000'000'000;
  const double seconds = unit.seconds();
  const Wide ns_per_unit = seconds > 0 ? std::max<std::int64_t>(1, std::llround(seconds * 1e9)) : 1;
  const Wide divisor = ns_per_unit * link.bytes_per_second;
  const Wide time = static_cast<Wide>(link.latency_ns) * link.bytes_per_second + static_cast<Wide>(bytes) * kPerSecond;
  const Wide cost = (time + divisor - 1) / divisor;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return cost > kMost ? kMost : static_cast<std::int64_t>(cost);
}

}  // namespace cairn::core
