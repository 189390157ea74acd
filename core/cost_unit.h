#pragma once

#include <cstdint>
#include <string>

namespace cairn::core {

/// What the costs of a graph are counted in, and where they come from.
struct CostUnit {
  std::string name;    ///< "ns", "steps", ...; empty: not known
  std::string source;  ///< in words, as "measured on an EPYC" or a model's name; empty: not known

  bool operator==(const CostUnit&) const = default;
  bool known() const { return !name.empty(); }
  /// Seconds of one unit; 0 where it is no time (ns, us, ms and s are).
  double seconds() const;
};

inline constexpr const char* kNanoseconds = "ns";

/// "12345 ns"; "12345 cost units" where the unit is not known.
std::string cost_text(std::int64_t cost, const CostUnit& unit);
/// The unit alone: "ns", "cost units".
std::string to_string(const CostUnit& unit);
/// "3.42 ms" with the prefix that suits, for times of 0 s or more.
std::string duration_text(double seconds);

/// Throws InputError unless name and source are one printable line, of at most 16 and 400 bytes.
void check_cost_unit(const CostUnit& unit);

}  // namespace cairn::core
