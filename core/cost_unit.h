#pragma once

#include <cstdint>
#include <string>

namespace cairn::core {

/// Names the unit of a graph's costs, and says where the costs come from.
struct CostUnit {
  std::string name;  ///< "ns", "steps", ...; empty if unknown
  /// Where the costs come from, such as "measured on an EPYC" or the name of a cost model. Empty if unknown.
  std::string source;

  bool operator==(const CostUnit&) const = default;
  bool known() const { return !name.empty(); }
  /// Returns the number of seconds in one unit if the unit is ns, us, ms or s. Returns 0 for any other unit.
  double seconds() const;
};

inline constexpr const char* kNanoseconds = "ns";

/// Formats a cost with its unit: "12345 ns", or "12345 cost units" if the unit is unknown.
std::string cost_text(std::int64_t cost, const CostUnit& unit);
/// Returns the text of the unit alone, such as "ns", or "cost units" if the unit is unknown.
std::string to_string(const CostUnit& unit);
/// Formats a duration with a suitable prefix, such as "3.42 ms". `seconds` must be >= 0.
std::string duration_text(double seconds);

/// Throws InputError unless the name is one printable line of at most 16 bytes and the source is one printable line of
/// at most 400 bytes.
void check_cost_unit(const CostUnit& unit);

}  // namespace cairn::core
