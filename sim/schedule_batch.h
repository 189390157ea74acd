#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"

namespace cairn::sim {

/// A copy of a value between device and host (an evict or a fetch) in a candidate, as the simulator reads it. A
/// candidate's copies form an array, sorted in the order in which the link starts them (core/support/timeline.h). So a
/// walk through the steps meets the starts of copies in the order of the array. The fields by_finish and by_made store
/// two more orders of the same copies.
struct alignas(16) Copy {
  static constexpr std::int32_t kFetch = 1;  ///< copy to the device; without this bit, copy to the host
  static constexpr std::int32_t kLastFetch =
      2;  ///< of all fetches of one evict, the last to finish; the host's copy is freed then
  static constexpr std::int32_t kUnfetched = 4;  ///< an evict without fetches

  core::ValueId value = core::kNoValue;  ///< kNoValue if the transfer cannot be valid
  std::int32_t from = -1;              ///< evict: step that computed the value; fetch: index of its evict in this array
  std::int32_t start = 0, finish = 0;  ///< as in core::Evict and core::Fetch
  std::int32_t index = 0;              ///< index in core::Transfers::evicts or core::Transfers::fetches
  std::int32_t kind = 0;               ///< sum of the constants above
  /// Two permutations of the array, spread over its elements. In element j, by_finish is the index of the j-th copy in
  /// the order by `finish` (evicts before fetches), and by_made is the index of the j-th evict in the order by the step
  /// that computed the value.
  std::int32_t by_finish = 0, by_made = 0;

  bool operator==(const Copy&) const = default;
};

/// A batch as plain arrays. Candidate c runs the nodes steps[begin[c]] .. steps[begin[c] + length[c] - 1]. The entries
/// between these and the next candidate's steps are padding. A step whose entry is not below the graph's node count is
/// not a node, and makes the candidate invalid.
template <class Id>
struct BatchView {
  const Id* steps = nullptr;
  const std::int64_t* begin = nullptr;
  const std::int32_t* length = nullptr;
  std::int64_t count = 0;
  /// Candidate c has the transfers copies[copies_begin[c]] .. copies[copies_begin[c] + copies_count[c] - 1]. These
  /// three pointers are nullptr if no candidate has transfers.
  const Copy* copies = nullptr;
  const std::int64_t* copies_begin = nullptr;
  const std::int32_t* copies_count = nullptr;
};

/// Many schedules of one graph, called candidates, in one array. A candidate need not be a valid schedule. Node numbers
/// take 16 bits if the graph has less than 65,535 nodes, else 32.
class ScheduleBatch {
 public:
  explicit ScheduleBatch(core::NodeId node_count);

  /// Appends a candidate. A number that is not the number of a node is stored as an invalid number. Throws InputError
  /// if the candidate has more than 2^31 - 2 steps.
  void add(std::span<const core::NodeId> steps);
  /// Appends a candidate with its transfers, in O(steps + k log k) for k transfers. A transfer with a number above 2^31
  /// - 1, a second evict of one occurrence, and a fetch without an evict are stored with the value kNoValue.
  void add(const core::Schedule& schedule);
  void clear();

  core::NodeId node_count() const { return node_count_; }
  std::int64_t count() const { return static_cast<std::int64_t>(length_.size()); }
  std::int64_t length(std::int64_t candidate) const { return length_[candidate]; }
  bool has_transfers() const { return !copies_count_.empty(); }  ///< whether a candidate was added with transfers
  /// Returns the number of entries in the array of steps, padding included.
  std::int64_t total_steps() const;
  /// Returns the candidate as it was added, with two exceptions: a number that is not the number of a node becomes
  /// kNoNode, and transfers that cannot be valid may have changed.
  core::Schedule schedule(std::int64_t candidate) const;
  std::int64_t bytes() const;

  bool narrow() const { return std::holds_alternative<std::vector<std::uint16_t>>(steps_); }
  /// Returns the arrays, which are valid until the batch changes. Id must be std::uint16_t if narrow(), else
  /// std::uint32_t.
  template <class Id>
  BatchView<Id> view() const {
    BatchView<Id> view{std::get<std::vector<Id>>(steps_).data(), begin_.data(), length_.data(), count()};
    if (has_transfers()) {
      view.copies = copies_.data();
      view.copies_begin = copies_begin_.data();
      view.copies_count = copies_count_.data();
    }
    return view;
  }

  /// Makes room for `count` candidates of up to `stride` steps each. The caller must fill in steps() and lengths()
  /// afterwards. All lengths are 0 at first.
  void resize_padded(std::int64_t count, std::int64_t stride);
  template <class Id>
  Id* steps() {
    return std::get<std::vector<Id>>(steps_).data();
  }
  std::int32_t* lengths() { return length_.data(); }
  /// Sets the copies of all candidates, as BatchView describes them. There is one count for each candidate.
  void set_copies(std::vector<Copy> copies, const std::vector<std::int32_t>& counts);

 private:
  core::NodeId node_count_;
  std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>> steps_;
  std::vector<std::int64_t> begin_;
  std::vector<std::int32_t> length_;
  std::vector<Copy> copies_;
  std::vector<std::int64_t> copies_begin_;  ///< empty if no candidate has transfers; so is copies_count_
  std::vector<std::int32_t> copies_count_;
};

/// Calls visit(batch.view<Id>()) with the Id that the batch uses.
template <class Visit>
decltype(auto) visit_batch(const ScheduleBatch& batch, const Visit& visit) {
  if (batch.narrow()) return visit(batch.view<std::uint16_t>());
  return visit(batch.view<std::uint32_t>());
}

/// Results of the candidates of a batch, in the batch's order. An invalid candidate has peak 0, cost 0 and peak_step
/// -1; core::evaluate says what is wrong with it.
struct Outcomes {
  std::vector<std::uint8_t> valid;
  std::vector<std::int64_t> peak;  ///< peak in bytes
  /// Cost in the graph's unit; a cost above 2^63 - 1 is stored as 2^63 - 1. With transfers, this is the makespan (the
  /// end of the last step or copy), as in core::Evaluation.
  std::vector<std::int64_t> cost;
  std::vector<std::int32_t> peak_step;  ///< first step that reaches the peak
  // The vectors below are empty if no candidate can have transfers.
  std::vector<std::int64_t> host_peak;     ///< largest number of bytes that copies hold on the host
  std::vector<core::Defect::Kind> defect;  ///< kind of the first defect, as core::evaluate finds it

  std::int64_t count() const { return static_cast<std::int64_t>(valid.size()); }
  void resize(std::int64_t count, bool transfers = false);
  bool operator==(const Outcomes&) const = default;
};

}  // namespace cairn::sim
