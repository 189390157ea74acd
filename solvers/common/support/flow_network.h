#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace cairn::solvers {

/// Computes maximum flows and minimum cuts. Each arc is stored together with an opposite arc of capacity 0. An object
/// can be used for several networks one after another, or several times for one network with changed capacities, so
/// that its arrays are allocated only once.
class FlowNetwork {
 public:
  /// Capacity of an arc without a limit. The capacities of all arcs with a limit must add up to at most this number.
  static constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;

  FlowNetwork();
  ~FlowNetwork();
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  /// Removes all arcs and makes a network of `node_count` nodes.
  void reset(std::int32_t node_count);
  /// Adds an arc. Returns its number.
  std::int32_t add_arc(std::int32_t from, std::int32_t to, std::int64_t capacity);
  void set_capacity(std::int32_t arc, std::int64_t capacity) { arcs_[arc].capacity = capacity; }

  /// Computes a maximum flow by the Boykov-Kolmogorov algorithm of Boost.Graph. Returns the flow, which is the capacity
  /// of a minimum cut. The flow must be below 2^62.
  std::int64_t solve(std::int32_t source, std::int32_t sink);
  /// Returns the largest source side of a minimum cut: entry v is 1 if no path of the residual network leads from node
  /// v to the sink. May be called only after solve().
  const std::vector<std::uint8_t>& source_side() const { return source_side_; }

 private:
  struct Arc {
    std::int32_t from, to;
    std::int64_t capacity;
  };
  struct Sorted;

  void sort_arcs();
  void find_source_side(std::int32_t sink);

  std::int32_t node_count_ = 0;
  std::vector<Arc> arcs_;  ///< the arc opposite to arc a is arc a ^ 1, where ^ is exclusive or
  std::vector<std::uint8_t> source_side_;
  std::unique_ptr<Sorted> sorted_;  ///< the arcs, sorted as Boost's graph type requires
};

}  // namespace cairn::solvers
