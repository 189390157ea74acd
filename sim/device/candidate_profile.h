#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/saturating.h"
#include "cairn/sim/device/graph_tables.h"

namespace cairn::sim::device {

struct Outcome {
  bool valid = false;
  std::int64_t peak = 0, cost = 0;
  std::int32_t peak_step = -1;
};

/// The arrays of sim::Outcomes as plain pointers.
struct OutcomesView {
  std::uint8_t* valid = nullptr;
  std::int64_t* peak = nullptr;
  std::int64_t* cost = nullptr;
  std::int32_t* peak_step = nullptr;  ///< nullptr if the steps are not wanted
  // The pointers below are nullptr if no candidate can have transfers.
  std::int64_t* host_peak = nullptr;
  core::Defect::Kind* defect = nullptr;

  CAIRN_HD void put(std::int64_t c, const Outcome& outcome) const {
    valid[c] = outcome.valid ? 1 : 0;
    peak[c] = outcome.peak;
    cost[c] = outcome.cost;
    if (peak_step != nullptr) peak_step[c] = outcome.peak_step;
  }
};

/// A functor for rewind()'s parameter `visit` that does nothing, for callers that need only the outcome.
struct IgnoreSteps {
  CAIRN_HD void operator()(std::int32_t, std::int64_t, std::int64_t) const {}
};

/// A functor for rewind()'s parameter `visit` that stores the memory profile of a valid schedule in the order of
/// sim::Profiles. The caller must store the first entry, which is 0.
struct StoreProfile {
  std::int64_t* profile;

  CAIRN_HD void operator()(std::int32_t i, std::int64_t during, std::int64_t after) const {
    // 32 bits suffice, because the index is below 2^32. With a 64-bit index, nvcc would add it to the pointer at every
    // step.
    const std::uint32_t at = 2 * static_cast<std::uint32_t>(i) + 1;
    profile[at] = during;
    profile[std::uint64_t{at} + 1] = after;
  }
};

/// The set of those values of a candidate that are in memory, stored as one word per value. On a CPU, this form is the
/// fastest.
class ValueWords {
 public:
  /// `words` must have room for value_count words. The word of a value is 0 if the value is in memory; otherwise, it is
  /// the value's bytes plus kMark.
  template <class Id>
  ValueWords(const TablesView<Id>& graph, std::uint64_t* words) : words_(words), count_(graph.value_count) {
    for (std::int32_t x = 0; x < count_; ++x) words_[x] = graph.at_end[x];
  }
  /// Marks value x as in memory. Returns the bytes that this adds: 0 if x is in memory already, else the bytes of x
  /// plus kMark.
  std::uint64_t add(std::int32_t x) {
    const std::uint64_t added = words_[x];
    words_[x] = 0;
    return added;
  }
  /// Marks value x as not in memory. `held` is the value's bytes plus kMark. Returns the bytes that this removes:
  /// `held` if x was in memory, else 0.
  std::uint64_t remove(std::int32_t x, std::uint64_t held) {
    const std::uint64_t removed = held - words_[x];
    words_[x] = held;
    return removed;
  }
  bool empty() const {
    bool any = false;
    for (std::int32_t x = 0; x < count_; ++x) any |= words_[x] == 0;
    return !any;
  }

 private:
  std::uint64_t* words_;
  std::int32_t count_;
};

/// The set of those values of a candidate that are in memory, stored as one bit per value. This form is for a GPU,
/// where the bits of many candidates fit into shared memory. Each thread of a warp handles one candidate. For each k,
/// the k-th words of the warp's candidates are side by side. So each candidate's words are in a bank of their own, and
/// threads never access the same bank.
class ValueBits {
 public:
  static CAIRN_HD std::int64_t words(std::int64_t values) { return (values + 31) / 32; }

  /// The candidate's words are words[0], words[stride], words[2 * stride], and so on, words(value_count) of them.
  template <class Id>
  CAIRN_HD ValueBits(const TablesView<Id>& graph, std::uint32_t* words, std::int32_t stride)
      : words_(words),
        size_(graph.in_bytes.size),
        stride_(stride),
        count_(static_cast<std::int32_t>(ValueBits::words(graph.value_count))) {
    CAIRN_UNROLL_BY(4)
    for (std::int32_t k = 0; k < count_; ++k) words_[k * stride_] = graph.bits_at_end[k];
  }
  CAIRN_HD std::uint64_t add(std::int32_t x) {
    std::uint32_t& word = words_[(x >> 5) * stride_];
    const std::uint32_t old = word, bit = 1U << (x & 31);
    word = old | bit;
    return (old & bit) != 0 ? 0 : static_cast<std::uint64_t>(size_[x]);
  }
  CAIRN_HD std::uint64_t remove(std::int32_t x, std::uint64_t held) {
    std::uint32_t& word = words_[(x >> 5) * stride_];
    const std::uint32_t old = word, bit = 1U << (x & 31);
    word = old & ~bit;
    return (old & bit) != 0 ? held & ~kMark : 0;
  }
  CAIRN_HD bool empty() const {
    std::uint32_t any = 0;
    CAIRN_UNROLL_BY(4)
    for (std::int32_t k = 0; k < count_; ++k) any |= words_[k * stride_];
    return any == 0;
  }

 private:
  std::uint32_t* words_;
  const std::int64_t* size_;
  std::int32_t stride_, count_;
};

/// Returns whether no pinned node runs more than once. The answer has a meaning only if every pinned node runs.
template <class Id>
CAIRN_HD bool pins_hold(const TablesView<Id>& graph, const Id* steps, std::int32_t length) {
  if (graph.pinned_count == 0 || length == graph.node_count) return true;
  std::int32_t pinned = 0;
  CAIRN_UNROLL_BY(4)
  for (std::int32_t i = 0; i < length; ++i) {
    const std::uint32_t v = steps[i];
    if (v < static_cast<std::uint32_t>(graph.node_count)) pinned += graph.pinned[v];
  }
  return pinned == graph.pinned_count;
}

/// Does the work of rewind(), whose check of pinned nodes must be done before. kSingle says whether every node has one
/// output.
template <bool kSingle, class Id, class Values, class Visit>
CAIRN_HD Outcome rewind_steps(const TablesView<Id>& graph, const Id* steps, std::int32_t length, Values& values,
                              const Visit& visit) {
  const auto n = static_cast<std::uint32_t>(graph.node_count);
  Outcome outcome;
  std::int64_t peak = -1, cost = 0;
  std::int32_t peak_step = -1;
  auto live = static_cast<std::uint64_t>(graph.kept_bytes);
  CAIRN_UNROLL_BY(1)
  for (std::int32_t i = length; i-- > 0;) {
    const std::uint32_t v = steps[i];
    if (v >= n) return outcome;
    const NodeRecord node = graph.nodes[v];
    const auto after = static_cast<std::int64_t>(live & ~kMark);
    live -= values.remove(static_cast<std::int32_t>(v), node.held);
    if constexpr (!kSingle) {
      for (std::int32_t x = graph.further_begin[v]; x < graph.further_begin[v + 1]; ++x) {
        live -= values.remove(x, kMark | static_cast<std::uint64_t>(graph.in_bytes.size[x]));
      }
    }
    CAIRN_UNROLL_BY(2)
    for (std::int32_t e = node.begin(); e < node.end(); ++e) {
      live += values.add(static_cast<std::int32_t>(graph.template input<kSingle>(e)));
    }
    const std::int64_t during = static_cast<std::int64_t>(live & ~kMark) + node.extra;
    if (during >= peak) {
      peak = during;
      peak_step = i;
    }
    cost = core::saturating_add(cost, node.cost);
    visit(i, during, after);
  }
  if (!values.empty()) return outcome;
  outcome.valid = true;
  outcome.peak = length > 0 ? peak : 0;
  outcome.cost = cost;
  outcome.peak_step = peak_step;
  return outcome;
}

/// Evaluates any schedule, also one with recomputation. Goes from the last step to the first and tracks which values
/// are in memory. A value is in memory before step i in two cases: step i reads the value, or the value is in memory
/// after step i and step i does not produce it. With u_i for the node of step i, this gives
///     after(i - 1) = after(i) - sizes of outputs of u_i that are in memory after i
///                             + sizes of inputs of u_i that are not in memory after i
///     during(i)    = after(i - 1) + sizes of outputs of u_i + scratch(u_i)
/// The schedule is valid if nothing is in memory before the first step, if every required node occurs, and if no pinned
/// node occurs twice.
///
/// `values` is a new ValueWords or ValueBits. Calls visit(i, during, after) for every step, from the last to the first.
/// If the schedule turns out to be invalid at some step, the calls end there. If a pinned node runs again, visit() is
/// not called at all. Takes O(T + sum of in-degrees and outputs) time for T steps.
template <class Id, class Values, class Visit>
CAIRN_HD Outcome rewind(const TablesView<Id>& graph, const Id* steps, std::int32_t length, Values values,
                        const Visit& visit) {
  if (!pins_hold(graph, steps, length)) return {};
  return graph.single_output() ? rewind_steps<true>(graph, steps, length, values, visit)
                               : rewind_steps<false>(graph, steps, length, values, visit);
}

}  // namespace cairn::sim::device
