#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/core/cost_unit.h"

namespace cairn::core {

/// The connection between the memory of the device and of the host.
struct Link {
  std::int64_t bytes_per_second = 0;  ///< bandwidth of each direction; > 0
  std::int64_t latency_ns = 0;        ///< time before the first byte of a copy moves; >= 0
  /// Whether both directions carry copies at the same time. Otherwise, one copy at a time uses the link.
  bool duplex = true;
  bool operator==(const Link&) const = default;
};

/// The host's memory, to which a schedule may move values of the device.
struct HostMemory {
  Link link;
  std::int64_t budget = std::numeric_limits<std::int64_t>::max();  ///< bytes that the copies on the host may take
  /// Returns the budget, or nothing if the budget is the largest int64, which stands for no limit.
  std::optional<std::int64_t> limit() const {
    return budget == std::numeric_limits<std::int64_t>::max() ? std::nullopt : std::optional(budget);
  }
  bool operator==(const HostMemory&) const = default;
};

/// Parses a link. The text begins with the name of a preset (`pcie3`, `pcie4`, `pcie5`, `c2c`) or with a bandwidth such
/// as `25GB/s`. Two more parts may follow in any order, each after a comma. One is a latency such as `10us`, which must
/// have a unit and be at most an hour. The other is the word `duplex` or `half`. A bandwidth without a latency has
/// latency 0, and a link is duplex unless the text says `half`. Throws InputError, which says what is accepted, on any
/// other text, on a bandwidth that is not above 0 and on a negative latency.
Link parse_link(std::string_view text);
/// Returns a text that parse_link() reads as the same link, such as "25000000000B/s,10000ns,duplex", if the latency is
/// at most an hour.
std::string to_string(const Link& link);
/// Describes a link for people, such as "25 GB/s with a latency of 10.00 us, both directions at once".
std::string describe(const Link& link);

/// Returns the time that the link needs to copy `bytes`, in units of cost: latency + bytes / bandwidth. The sum is
/// rounded up once. Costs whose unit is not a time (CostUnit::seconds()) count as ns. Saturates at the largest int64.
std::int64_t copy_cost(const Link& link, std::int64_t bytes, const CostUnit& unit);

}  // namespace cairn::core
