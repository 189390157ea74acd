#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"

/// Persistent schedules of heterogeneous chains, found by the dynamic program of Beaumont et al. ("Optimal
/// checkpointing for heterogeneous chains", 2019, section 4). As in Rockmate (Zhao et al. 2023, section 4.3), a stage
/// can run forward in several ways. Each way has its own backward part.
///
/// Stages 0 to n - 1 run forward in this order and backward in reverse order. The last stage contains the loss. The
/// input of stage s is called its checkpoint. Stage s - 1 makes it; the checkpoint of stage 0 has 0 bytes. A checkpoint
/// is either freed right after the run that reads it, or stays in memory until its stage has run backward. A schedule
/// of which this is true for all checkpoints is persistent.
namespace cairn::solvers {

/// What happens to the checkpoint that enters a stage. kReleased: the checkpoint can be freed as soon as the stage no
/// longer needs it. kHeld: the checkpoint is needed elsewhere even after the stage is done.
enum ChainEntry : std::uint8_t { kReleased, kHeld };

/// One way to run a stage forward and, later, backward. Arrays are indexed by ChainEntry.
struct ChainWay {
  std::int64_t forward_time = 0, backward_time = 0;
  /// Bytes that the forward run saves for the backward run. The stage's checkpoint and output are not counted.
  std::int64_t saved = 0;
  bool reads_entering = false;  ///< whether the backward part needs the stage's checkpoint
  bool reads_leaving = false;   ///< whether the backward part needs the stage's output
  /// Peak in bytes of the forward run. Includes checkpoint and output, excludes ChainStage::held.
  std::int64_t forward_peak[2] = {0, 0};
  /// Peak in bytes of the backward run. It excludes only what earlier stages have saved.
  std::int64_t backward_peak[2] = {0, 0};
};

/// The forward and the backward part of a stage in one run, after all later stages have run backward. At that time the
/// stage's output is no longer needed, so it need not be made.
struct ChainTurn {
  std::int64_t time = 0;
  /// Whether the turn reads the stage's checkpoint. If not, the turn needs nothing from the forward part.
  bool reads_entering = true;
  std::int64_t peak[2] = {0, 0};  ///< peak in bytes, excluding only what earlier stages have saved
};

struct ChainStage {
  std::int64_t checkpoint = 0;    ///< bytes of the stage's input
  std::int64_t forward_time = 0;  ///< time of the forward run that saves nothing
  /// Peak in bytes of that forward run. It includes and excludes the same bytes as ChainWay::forward_peak.
  std::int64_t forward_peak[2] = {0, 0};
  std::vector<ChainWay> ways;
  std::vector<ChainTurn> turns;
  /// Bytes in memory, other than checkpoints and saved values, while all later stages have run backward and this stage
  /// has not. These are gradients that earlier stages will read, values that stay to the end, and values held for
  /// earlier stages.
  std::int64_t held = 0;
  std::int64_t held_first = 0;  ///< the same bytes at the time when the stage runs forward for the first time
};

struct ChainProblem {
  std::vector<ChainStage> stages;
};

struct ChainStep {
  enum class Kind : std::uint8_t {
    forward,      ///< saves nothing; later steps decide whether the checkpoint stays in memory
    way_forward,  ///< saves the values that ways[option] needs for its backward part
    way_backward,
    turn  ///< runs forward and backward in one run, by turns[option]
  };
  std::int32_t stage = 0;
  Kind kind = Kind::forward;
  std::int32_t option = 0;
  bool operator==(const ChainStep&) const = default;
};

/// Least memory of any persistent schedule, and a schedule that needs only this memory.
struct LeastMemory {
  std::int64_t bytes = 0;
  std::vector<ChainStep> steps;
};
/// Computes the least memory exactly. O(n^2 (n + ways)).
LeastMemory least_chain_memory(const ChainProblem& problem);

/// A table of the least time for each amount of memory from 0 to `most_bytes`. Memory is divided into at most `levels`
/// levels of unit() bytes. Byte counts are rounded up to units, so a schedule that fits into a level fits into the
/// level's bytes. The times are exact if all byte counts of the problem are multiples of the unit. Such a unit is
/// chosen if it needs no more than `levels` levels. Takes O(n^2 (n + ways) levels) time and at most 8 n^2 levels bytes.
class ChainTable {
 public:
  /// Fills the table. The problem must outlive the table.
  ChainTable(const ChainProblem& problem, std::int64_t most_bytes, std::int64_t levels, core::Stopwatch& watch);

  /// Returns whether the table is filled. If not, the watch expired too early, and there is no answer.
  bool complete() const { return complete_; }
  std::int64_t unit() const { return unit_; }
  std::int64_t top() const { return top_; }  ///< the highest level
  /// Returns the least time within a level. Returns infinity if there is no persistent schedule. Times are added up in
  /// doubles, which are exact up to 2^53.
  double time(std::int64_t level) const;
  /// Returns a schedule that takes time(level). Returns no steps if this time is infinite. O(n (n + ways)).
  std::vector<ChainStep> steps(std::int64_t level) const;

 private:
  std::size_t row(std::int32_t first, std::int32_t last, ChainEntry entry) const;
  std::int64_t levels_of(std::int64_t bytes) const { return bytes <= 0 ? 0 : (bytes + unit_ - 1) / unit_; }
  void fill(std::int32_t first, std::int32_t last, ChainEntry entry);

  const ChainProblem& problem_;
  std::int64_t unit_ = 1, top_ = 0;
  bool complete_ = false;
  /// Whether a stage's checkpoint is ever held for the stage before it. Indexed by stage.
  std::vector<std::uint8_t> holds_;
  bool any_held_ = false;
  std::vector<double> time_;  ///< times in rows of top_ + 1 levels
};

}  // namespace cairn::solvers
