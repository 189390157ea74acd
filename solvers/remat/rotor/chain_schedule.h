#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"

/// Persistent schedules of heterogeneous chains, by the dynamic program of Beaumont et al. ("Optimal checkpointing for
/// heterogeneous chains", 2019, section 4), with several ways to run a stage forward that each have a backward part of
/// their own (Zhao et al., "Rockmate", 2023, section 4.3).
///
/// Stages 0 to n - 1 run forward in this order and backward in the other. The input of stage s is its checkpoint, made
/// by stage s - 1 (0 bytes for the first stage); the last stage holds the loss. A checkpoint that is kept beyond the
/// run that reads it stays until its stage has run backward.
namespace cairn::solvers {

/// Whether the checkpoint that enters a stage may be freed as soon as the stage needs it no more (kReleased), or is
/// still needed elsewhere when the stage is done (kHeld).
enum ChainEntry : std::uint8_t { kReleased, kHeld };

/// A way to run a stage forward and, later, backward. Memory is in bytes; arrays are indexed by ChainEntry.
struct ChainWay {
  std::int64_t forward_time = 0, backward_time = 0;
  std::int64_t saved = 0;       ///< bytes kept from forward to backward, beside the stage's checkpoint and output
  bool reads_entering = false;  ///< whether the backward part needs the stage's checkpoint
  bool reads_leaving = false;   ///< whether the backward part needs the stage's output
  std::int64_t forward_peak[2] = {0, 0};   ///< bytes with checkpoint and output, without ChainStage::held
  std::int64_t backward_peak[2] = {0, 0};  ///< bytes of everything except what earlier stages have saved
};

/// Forward and backward part of a stage at once, when all later stages have run backward, so that the stage's output
/// need not be made.
struct ChainTurn {
  std::int64_t time = 0;
  /// Whether the turn needs the stage's checkpoint; false: it needs nothing from the forward part.
  bool reads_entering = true;
  std::int64_t peak[2] = {0, 0};  ///< bytes of everything except what earlier stages have saved
};

struct ChainStage {
  std::int64_t checkpoint = 0;            ///< bytes of the stage's input
  std::int64_t forward_time = 0;          ///< time of the forward part if nothing of its inside is kept
  std::int64_t forward_peak[2] = {0, 0};  ///< bytes of that forward part, as ChainWay::forward_peak
  std::vector<ChainWay> ways;
  std::vector<ChainTurn> turns;
  /// Bytes in memory beside checkpoints and saved values while later stages have run backward and this one has not:
  /// gradients on their way down, values that stay to the end, values held for earlier stages.
  std::int64_t held = 0;
  std::int64_t held_first = 0;  ///< as `held`, when the stage runs forward for the first time
};

struct ChainProblem {
  std::vector<ChainStage> stages;
};

struct ChainStep {
  enum class Kind : std::uint8_t {
    forward,      ///< keeps nothing of the inside; later steps decide whether the checkpoint stays
    way_forward,  ///< keeps what ways[option] saves, for its backward part
    way_backward,
    turn  ///< runs forward and backward at once, by turns[option]
  };
  std::int32_t stage = 0;
  Kind kind = Kind::forward;
  std::int32_t option = 0;
  bool operator==(const ChainStep&) const = default;
};

/// The least memory of a persistent schedule, in bytes, and a schedule that needs no more. Exact. O(n^2 (n + ways)).
struct LeastMemory {
  std::int64_t bytes = 0;
  std::vector<ChainStep> steps;
};
LeastMemory least_chain_memory(const ChainProblem& problem);

/// A table of the least time for every amount of memory up to `most_bytes`, in `levels` steps of unit() bytes. Bytes
/// are rounded up to units, so schedules that fit here fit. The answer is exact if all bytes of the problem are
/// multiples of the unit, which is chosen so if that takes no more than `levels` levels. O(n^2 (n + ways) levels) time,
/// at most 8 n^2 levels bytes.
class ChainTable {
 public:
  /// Fills the table. The problem must outlive it.
  ChainTable(const ChainProblem& problem, std::int64_t most_bytes, std::int64_t levels, core::Stopwatch& watch);

  /// Whether the table is filled; false: the limit ended it and there is no answer.
  bool complete() const { return complete_; }
  std::int64_t unit() const { return unit_; }
  std::int64_t top() const { return top_; }  ///< the highest level
  /// Returns the least time; infinity: no persistent schedule. Sums are doubles: exact up to 2^53.
  double time(std::int64_t level) const;
  /// Returns a schedule of that time; empty if the time is infinite. O(n (n + ways)).
  std::vector<ChainStep> steps(std::int64_t level) const;

 private:
  std::size_t row(std::int32_t first, std::int32_t last, ChainEntry entry) const;
  std::int64_t levels_of(std::int64_t bytes) const { return bytes <= 0 ? 0 : (bytes + unit_ - 1) / unit_; }
  void fill(std::int32_t first, std::int32_t last, ChainEntry entry);

  const ChainProblem& problem_;
  std::int64_t unit_ = 1, top_ = 0;
  bool complete_ = false;
  std::vector<std::uint8_t> holds_;  ///< whether a stage's checkpoint is ever held for the stage before, by stage
  bool any_held_ = false;
  std::vector<double> time_;  ///< times in rows of top_ + 1 levels
};

}  // namespace cairn::solvers
