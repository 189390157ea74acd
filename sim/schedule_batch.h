#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

namespace cairn::sim {

/// A batch as plain arrays. Candidate c runs the nodes steps[begin[c]] .. steps[begin[c] + length[c] - 1]. The entries
/// from there to the next candidate's steps are padding. An entry that is not below the graph's node count is not a
/// node, which makes the candidate invalid.
template <class Id>
struct BatchView {
  const Id* steps = nullptr;
  const std::int64_t* begin = nullptr;
  const std::int32_t* length = nullptr;
  std::int64_t count = 0;
};

/// Many schedules of one graph, called candidates, in one array. They need not be valid. Node numbers take 16 bits if
/// the graph has less than 65,535 nodes, else 32.
class ScheduleBatch {
 public:
  explicit ScheduleBatch(core::NodeId node_count);

  /// Appends a candidate. A number that is not the number of a node is stored as an invalid number. Throws InputError
  /// if the candidate has more than 2^31 - 2 steps.
  void add(std::span<const core::NodeId> steps);
  void add(const core::Schedule& schedule) { add(schedule.steps); }
  void clear();

  core::NodeId node_count() const { return node_count_; }
  std::int64_t count() const { return static_cast<std::int64_t>(length_.size()); }
  std::int64_t length(std::int64_t candidate) const { return length_[candidate]; }
  /// Returns the number of entries in the array of steps, padding included.
  std::int64_t total_steps() const;
  /// Returns the candidate as it was added, except that a number that is not the number of a node becomes kNoNode.
  core::Schedule schedule(std::int64_t candidate) const;
  std::int64_t bytes() const;

  bool narrow() const { return std::holds_alternative<std::vector<std::uint16_t>>(steps_); }
  /// Returns the arrays, which are valid until the batch changes. Id must be std::uint16_t if narrow(), else
  /// std::uint32_t.
  template <class Id>
  BatchView<Id> view() const {
    return {std::get<std::vector<Id>>(steps_).data(), begin_.data(), length_.data(), count()};
  }

  /// Makes room for `count` candidates of up to `stride` steps each. The caller must fill in steps() and lengths()
  /// afterwards. All lengths are 0 at first.
  void resize_padded(std::int64_t count, std::int64_t stride);
  template <class Id>
  Id* steps() {
    return std::get<std::vector<Id>>(steps_).data();
  }
  std::int32_t* lengths() { return length_.data(); }

 private:
  core::NodeId node_count_;
  std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>> steps_;
  std::vector<std::int64_t> begin_;
  std::vector<std::int32_t> length_;
};

/// Calls visit(batch.view<Id>()) with the Id that the batch uses.
template <class Visit>
decltype(auto) visit_batch(const ScheduleBatch& batch, const Visit& visit) {
  if (batch.narrow()) return visit(batch.view<std::uint16_t>());
  return visit(batch.view<std::uint32_t>());
}

/// Results of the candidates of a batch, in the batch's order. An invalid candidate has peak 0, cost 0 and peak_step
/// -1. core::evaluate returns its defect.
struct Outcomes {
  std::vector<std::uint8_t> valid;
  std::vector<std::int64_t> peak;       ///< peak in bytes
  std::vector<std::int64_t> cost;       ///< cost in the graph's unit; a cost above 2^63 - 1 is stored as 2^63 - 1
  std::vector<std::int32_t> peak_step;  ///< first step that reaches the peak

  std::int64_t count() const { return static_cast<std::int64_t>(valid.size()); }
  void resize(std::int64_t count);
  bool operator==(const Outcomes&) const = default;
};

}  // namespace cairn::sim
