#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"

/// Persistent schedules of heterogeneous chains: the dynamic program of Beaumont et al. ("Optimal checkpointing for
/// heterogeneous chains", 2019, section 4), with several ways to run a stage forward that each have a backward part of
/// their own (Zhao et al., "Rockmate", 2023, section 4.3).
///
/// Stages 0 to n - 1 run forward in this order and backward in the other. What enters stage s is its checkpoint, made
/// by stage s - 1 (0 bytes for the first stage); the last stage holds the loss. A checkpoint that is kept beyond the
/// run that reads it stays until its stage has run backward.
namespace cairn::solvers {

/// Whether the checkpoint that enters a stage may go as soon as the stage has no more use for it, or somebody else
/// still needs it when the stage is done.
enum ChainEntry : std::uint8_t { kReleased, kHeld };

/// A way to run a stage forward and, later, backward. Memory in bytes; [ChainEntry].
struct ChainWay {
  std::int64_t forward_time = 0, backward_time = 0;
  std::int64_t saved = 0;       ///< kept from forward to backward, beside the stage's checkpoint and what leaves it
  bool reads_entering = false;  ///< the backward part needs the stage's checkpoint,
  bool reads_leaving = false;   ///< and what leaves the stage
  std::int64_t forward_peak[2] = {0, 0};   ///< checkpoint and what leaves included, ChainProblem::held not
  std::int64_t backward_peak[2] = {0, 0};  ///< everything but what stages before this one have saved
};

/// Forward and backward part at once, where all later stages have run backward: what leaves need not be made.
struct ChainTurn {
  std::int64_t time = 0;
  bool reads_entering = true;     ///< false: it needs nothing of the forward part
  std::int64_t peak[2] = {0, 0};  ///< everything but what stages before this one have saved
};

struct ChainStage {
  std::int64_t checkpoint = 0;            ///< bytes of what enters
  std::int64_t forward_time = 0;          ///< of the forward part where nothing of its inside is kept
  std::int64_t forward_peak[2] = {0, 0};  ///< as ChainWay::forward_peak
  std::vector<ChainWay> ways;
  std::vector<ChainTurn> turns;
  /// In memory beside checkpoints and what is saved while later stages have run backward and this one has not:
  /// gradients on their way down, what stays to the end, what is held for stages further down.
  std::int64_t held = 0;
  std::int64_t held_first = 0;  ///< the same when the stage runs forward for the first time
};

struct ChainProblem {
  std::vector<ChainStage> stages;
};

struct ChainStep {
  enum class Kind : std::uint8_t {
    forward,      ///< keeps nothing of the inside; whether the checkpoint stays follows from what comes later
    way_forward,  ///< keeps what ways[option] saves
    way_backward,
    turn  ///< turns[option]
  };
  std::int32_t stage = 0;
  Kind kind = Kind::forward;
  std::int32_t option = 0;
  bool operator==(const ChainStep&) const = default;
};

/// The least memory of a persistent schedule, in bytes, and one that needs no more. Exact. O(n^2 (n + ways)).
struct LeastMemory {
  std::int64_t bytes = 0;
  std::vector<ChainStep> steps;
};
LeastMemory least_chain_memory(const ChainProblem& problem);

/// The least time for every amount of memory up to `most_bytes`, in `levels` steps of unit() bytes. Bytes are rounded
/// up to units, so what fits here fits; the answer is exact where all bytes of the problem are multiples of the unit,
/// which is chosen so where that takes no more than `levels` levels. O(n^2 (n + ways) levels) time, at most 8 n^2
/// levels bytes.
class ChainTable {
 public:
  /// The problem must outlive it.
  ChainTable(const ChainProblem& problem, std::int64_t most_bytes, std::int64_t levels, core::Stopwatch& watch);

  /// False where the limit ended it: there is no answer then.
  bool complete() const { return complete_; }
  std::int64_t unit() const { return unit_; }
  std::int64_t top() const { return top_; }  ///< the highest level
  /// Infinity: no persistent schedule. Sums are of doubles: exact up to 2^53.
  double time(std::int64_t level) const;
  /// A schedule of that time; none where it is infinite. O(n (n + ways)).
  std::vector<ChainStep> steps(std::int64_t level) const;

 private:
  std::size_t row(std::int32_t first, std::int32_t last, ChainEntry entry) const;
  std::int64_t levels_of(std::int64_t bytes) const { return bytes <= 0 ? 0 : (bytes + unit_ - 1) / unit_; }
  void fill(std::int32_t first, std::int32_t last, ChainEntry entry);

  const ChainProblem& problem_;
  std::int64_t unit_ = 1, top_ = 0;
  bool complete_ = false;
  std::vector<std::uint8_t> holds_;  ///< of each stage: whether its checkpoint is ever held for the stage before
  bool any_held_ = false;
  std::vector<double> time_;  ///< rows of top_ + 1
};

}  // namespace cairn::solvers
