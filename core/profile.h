#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

namespace cairn::core {

/// A defect of a schedule, or none.
struct Defect {
  enum class Kind : std::uint8_t { none, unknown_node, missing_input, missing_node, pinned_again };
  Kind kind = Kind::none;
  std::int64_t step = -1;  ///< step at which the defect is, except for missing_node
  NodeId node = kNoNode;   ///< unknown_node: the number that is no node; missing_node: the node that never runs
  NodeId input = kNoNode;  ///< missing_input: the node that should have run before
  bool operator==(const Defect&) const = default;
};
std::string describe(const Graph& graph, const Defect& defect);

/// Measures of a schedule: memory in bytes, cost in the graph's unit. If it is invalid, only `defect` is meaningful.
struct Evaluation {
  Defect defect;
  std::int64_t peak = 0;        ///< max over i of during(i); 0 for the empty schedule
  std::int64_t peak_step = -1;  ///< first step that reaches the peak
  std::int64_t cost = 0;        ///< sum over steps of cost(u_i)
  std::int64_t recomputed = 0;  ///< number of steps that run a node again
  bool valid() const { return defect.kind == Defect::Kind::none; }
};

/// The fast evaluator of DESIGN section 2: O(T + sum of in-degrees), and no allocation after the first schedule of a
/// length. Holds work arrays, so each thread needs its own. The graph must outlive it.
class Evaluator {
 public:
  explicit Evaluator(const Graph& graph);

  Evaluation evaluate(std::span<const NodeId> steps);
  Evaluation evaluate(const Schedule& schedule) { return evaluate(schedule.steps); }

  /// Memory over time, (0, during(1), after(1), ..., during(T), after(T)): 2T + 1 entries, in bytes. Throws InputError
  /// if the schedule is invalid.
  std::vector<std::int64_t> profile(std::span<const NodeId> steps);

 private:
  /// Fills the work arrays, which are meaningful only if there is no defect. kSingle: values are nodes; kPinned: some
  /// nodes are pinned.
  template <bool kSingle, bool kPinned>
  Defect trace(std::span<const NodeId> steps);
  Defect trace(std::span<const NodeId> steps);

  GraphView graph_;
  bool pinned_;                          ///< whether any node is pinned
  std::vector<std::int32_t> last_read_;  ///< step that last reads the latest copy of each value; -1: not made
  std::vector<std::int64_t> freed_;      ///< bytes freed after each step; the last entry is unused
  std::int64_t recomputed_ = 0;
};

/// Evaluates one schedule, for callers without a loop.
Evaluation evaluate(const Graph& graph, const Schedule& schedule);

/// A lower bound in bytes on the peak of every schedule: the largest working set of one node (its inputs, outputs and
/// scratch), or everything that is kept if that is more. O(n + m).
std::int64_t peak_lower_bound(const Graph& graph);

/// Explains peak_lower_bound() by what is in memory at once in every schedule.
struct PeakBound {
  enum class Kind : std::uint8_t { input, output, scratch, kept };
  struct Part {
    Kind kind = Kind::input;
    ValueId value = kNoValue;  ///< value that the part holds; kNoValue: the node's scratch
    std::int64_t bytes = 0;    ///< size, not 0; negative for scratch of a node that takes over storage of its inputs
    bool operator==(const Part&) const = default;
  };
  std::int64_t bytes = 0;   ///< peak_lower_bound(), the sum of the parts
  NodeId node = kNoNode;    ///< first node whose working set is the bound; kNoNode: the bound is all that is kept
  std::vector<Part> parts;  ///< inputs, then outputs, then scratch; largest first within a kind
};
std::string_view to_string(PeakBound::Kind kind);
/// Returns the lower bound with the parts that explain it. O(n + m + k log k) for k parts.
PeakBound explain_peak_lower_bound(const Graph& graph);
/// Text such as "'d' needs its inputs 'c' (20 B), 'a' (20 B), 3 more (4 B), its output (10 B) and scratch (5 B) in
/// memory together".
std::string describe(const Graph& graph, const PeakBound& bound);

}  // namespace cairn::core
