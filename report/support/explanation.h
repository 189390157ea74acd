#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/report/explain/support/explain.h"
#include "cairn/report/explain/support/transfers.h"
#include "cairn/report/support/json.h"

/// Formats explanations for `info`, `solve` and `run`: which tensors make up the peak, what recomputation saves
/// (report/explain/support/explain.h), and which values move to the host (report/explain/support/transfers.h).
namespace cairn::report {

/// Explains the baseline's peak and, if there is a schedule, that schedule's peak.
class Explanation {
 public:
  /// Explains only the baseline if `schedule` is nullptr. Throws InputError if the schedule is invalid. The graph must
  /// outlive the object. Takes O(T + edges + n log n) time for T steps and n nodes.
  explicit Explanation(const core::Graph& graph, const core::Schedule* schedule = nullptr);

  /// Adds the key `peak` and, for a schedule, the key `recomputation`. If the graph knows a link to host memory, also
  /// adds the key `offload`. Lists have at most the kListed largest entries.
  void add_to(Json& json) const;
  static constexpr std::size_t kListed = 100;

  /// Returns the tables of --explain if `all` is set. Otherwise returns a few lines: the bytes of each kind of tensor
  /// at the peak, what was recomputed, and what was moved to the host.
  std::string text(bool all) const;

 private:
  struct Side {
    MemoryAt at;
    std::int64_t steps = 0;
    std::vector<MemoryShare> by_row;  ///< bytes and tensors of each row of `rows_`, the largest first
  };
  void choose_rows();
  bool shows_ranges() const { return rows_.names.size() != labels_.layers.size(); }
  Json json_of(const Side& side) const;
  Json recomputation_json() const;
  std::string kinds_text() const;
  std::string layers_text() const;
  std::string tensors_text(const char* whose, const Side& side) const;
  std::string recomputation_text(bool all) const;

  /// Sums up the stays on the host (Absence) of the values of one layer, or of all layers.
  struct OffloadedShare {
    std::int32_t layer = 0;
    std::int64_t times = 0, bytes = 0;
    std::int64_t idle = 0, away = 0;  ///< sums of `idle` and `away` over the absences
  };
  Json offload_json() const;
  Json absence_json(const Absence& absence) const;
  Json wait_json(const CopyWait& wait) const;
  std::vector<OffloadedShare> offloaded_by(const std::vector<std::int32_t>& group_of_layer) const;
  std::string offload_text(bool all) const;
  std::string absences_text() const;
  std::string waits_text() const;

  const core::Graph& graph_;
  TensorLabels labels_;
  LayerRows rows_;
  Side baseline_;
  std::int64_t baseline_cost_ = 0;
  std::optional<Side> schedule_;
  core::Schedule moved_;  ///< the schedule, if the graph knows a link; else empty
  std::optional<TransferSummary> transfers_;
  RecomputationSummary recomputation_;
  std::vector<RecomputedShare> recomputed_by_row_;
};

}  // namespace cairn::report
