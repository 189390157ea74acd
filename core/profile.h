#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

namespace cairn::core {

/// What is wrong with a schedule, or that nothing is.
struct Defect {
  enum class Kind : std::uint8_t { none, unknown_node, missing_input, missing_node, pinned_again };
  Kind kind = Kind::none;
  std::int64_t step = -1;  ///< where, except for missing_node
  NodeId node = kNoNode;   ///< unknown_node: the number that is no node; missing_node: the node that never runs
  NodeId input = kNoNode;  ///< missing_input: the node that was to be computed before
  bool operator==(const Defect&) const = default;
};
std::string describe(const Graph& graph, const Defect& defect);

/// Memory in bytes, cost in the graph's unit. Only `defect` is meaningful for an invalid schedule.
struct Evaluation {
  Defect defect;
  std::int64_t peak = 0;        ///< max over i of during(i); 0 for the empty schedule
  std::int64_t peak_step = -1;  ///< the first step that reaches it
  std::int64_t cost = 0;        ///< sum over steps of cost(u_i)
  std::int64_t recomputed = 0;  ///< steps whose node stood before
  bool valid() const { return defect.kind == Defect::Kind::none; }
};

/// The fast evaluator of DESIGN section 2: O(T + sum of in-degrees), and no allocation after the first schedule of a
/// length. Keeps work arrays: use one a thread. The graph must outlive it.
class Evaluator {
 public:
  explicit Evaluator(const Graph& graph);

  Evaluation evaluate(std::span<const NodeId> steps);
  Evaluation evaluate(const Schedule& schedule) { return evaluate(schedule.steps); }

  /// (0, during(1), after(1), ..., during(T), after(T)); 2T + 1 bytes-valued entries. Throws InputError if invalid.
  std::vector<std::int64_t> profile(std::span<const NodeId> steps);

 private:
  /// Fills the work arrays; what is in them is meaningful only without a defect. kSingle: values are nodes; kPinned:
  /// some are.
  template <bool kSingle, bool kPinned>
  Defect trace(std::span<const NodeId> steps);
  Defect trace(std::span<const NodeId> steps);

  GraphView graph_;
  bool pinned_;  ///< whether any node is
  std::vector<std::int32_t>
      last_read_;                    ///< of each value as it was made last: the step that last reads it; -1: not made
  std::vector<std::int64_t> freed_;  ///< after each step, one place on: bytes. The first place is nobody's
  std::int64_t recomputed_ = 0;
};

/// evaluate() once, for callers without a loop.
Evaluation evaluate(const Graph& graph, const Schedule& schedule);

/// A bound that no schedule of the graph can beat: the largest working set of one node (its inputs, outputs and
/// scratch), and everything that is kept. Bytes. O(n + m).
std::int64_t peak_lower_bound(const Graph& graph);

/// Why no schedule has less than peak_lower_bound(): what is in memory together whatever the schedule.
struct PeakBound {
  enum class Kind : std::uint8_t { input, output, scratch, kept };
  struct Part {
    Kind kind = Kind::input;
    ValueId value = kNoValue;  ///< kNoValue: the node's scratch
    std::int64_t bytes = 0;    ///< not 0; below 0: scratch of a node that takes over storage of its inputs
    bool operator==(const Part&) const = default;
  };
  std::int64_t bytes = 0;   ///< peak_lower_bound(), the sum of the parts
  NodeId node = kNoNode;    ///< whose working set it is, the first such node; kNoNode: all that is kept at the end
  std::vector<Part> parts;  ///< inputs, outputs, scratch; of a kind the largest first
};
std::string_view to_string(PeakBound::Kind kind);
/// O(n + m + k log k) for k parts.
PeakBound explain_peak_lower_bound(const Graph& graph);
/// "'d' needs its inputs 'c' (20 B), 'a' (20 B), 3 more (4 B), its output (10 B) and scratch (5 B) in memory together".
std::string describe(const Graph& graph, const PeakBound& bound);

}  // namespace cairn::core
