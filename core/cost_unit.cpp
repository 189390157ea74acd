#include "cairn/core/cost_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cairn/core/error.h"

namespace cairn::core {

double CostUnit::seconds() const {
  static constexpr std::array<std::pair<std::string_view, double>, 4> kTimes{
      {{kNanoseconds, 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
  for (const auto& [unit, seconds] : kTimes) {
    if (name == unit) return seconds;
  }
  return 0;
}

std::string to_string(const CostUnit& unit) { return unit.known() ? unit.name : "cost units"; }

std::string cost_text(std::int64_t cost, const CostUnit& unit) { return fmt::format("{} {}", cost, to_string(unit)); }

std::string duration_text(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

void check_cost_unit(const CostUnit& unit) {
  const auto check = [](std::string_view what, const std::string& text, std::size_t most) {
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
    if (text.size() > most || std::ranges::any_of(text, is_control))
      throw InputError(fmt::format("{} must be one line of at most {} bytes", what, most));
  };
  check("the unit of costs", unit.name, 16);
  check("the source of costs", unit.source, 400);
}

}  // namespace cairn::core
