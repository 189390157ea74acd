#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cairn/core/limit.h"

/// This file finds persistent schedules of heterogeneous chains by the dynamic program of Beaumont et al. ("Optimal
/// checkpointing for heterogeneous chains", 2019, section 4). As in Rockmate (Zhao et al. 2023, section 4.3), a stage
/// can run forward in several ways. Each way has its own backward part.
///
/// A chain has stages 0 to n - 1, which run forward in this order and backward in reverse order. The last stage
/// contains the loss. The input of a stage is called its checkpoint. The stage before makes it; the checkpoint of stage
/// 0 has 0 bytes. A stage can run forward several times before it runs backward. In a persistent schedule, each time a
/// checkpoint is made, there are two possibilities: it is freed right after the next forward run of its stage, or it
/// stays in memory until its stage has run backward.
///
/// A checkpoint or saved values that a later run reads may be moved to the host until then, as in Beaumont et al.
/// ("Efficient combination of rematerialization and offloading for training DNNs", 2021). On the host, they take no
/// device memory while the later stages run forward and backward. The program of Beaumont et al. models the queue of
/// copies on the link between device and host. Here, each move has a price instead, which is added to the time of the
/// schedule. So the program for schedules without moves also finds, for given prices, the best persistent schedule with
/// moves.
namespace cairn::solvers {

/// Price of a move to the host and back if this move is not possible.
inline constexpr double kNoMove = std::numeric_limits<double>::infinity();

/// Says what happens to the checkpoint of a stage. kReleased: it can be freed as soon as the stage no longer needs it.
/// kHeld: it must stay in memory, because the backward part of the stage before reads it later.
enum ChainEntry : std::uint8_t { kReleased, kHeld };

/// Describes one way to run a stage forward and, later, backward. Peaks are indexed by ChainEntry.
struct ChainWay {
  std::int64_t forward_time = 0, backward_time = 0;
  /// Bytes that the forward run keeps in memory for the backward run. The stage's checkpoint and output are not
  /// counted.
  std::int64_t saved = 0;
  /// - move_time: time charged if saved values are on the host while later stages run.
  /// - stays: bytes of the saved values that cannot be moved to the host and stay in memory.
  double move_time = kNoMove;
  std::int64_t stays = 0;
  bool reads_entering = false;  ///< whether the backward part needs the stage's checkpoint
  bool reads_leaving = false;   ///< whether the backward part needs the stage's output
  /// Peak in bytes of the forward run. It includes the stage's checkpoint and output, but not ChainStage::held.
  std::int64_t forward_peak[2] = {0, 0};
  /// Peak in bytes of the backward run. It includes everything in memory except what earlier stages have saved.
  std::int64_t backward_peak[2] = {0, 0};
};

/// Describes a turn: one run of the forward part of a stage and directly afterwards of its backward part, when all
/// later stages have run backward. At that time, no other stage needs this stage's output, so the turn need not compute
/// it.
struct ChainTurn {
  std::int64_t time = 0;
  /// Whether the turn reads the stage's checkpoint. If not, the turn needs nothing from the forward pass.
  bool reads_entering = true;
  /// peak in bytes, including everything in memory except what earlier stages have saved
  std::int64_t peak[2] = {0, 0};
};

struct ChainStage {
  std::int64_t checkpoint = 0;    ///< bytes of the stage's input
  double move_time = kNoMove;     ///< time charged if the checkpoint is on the host while later stages run
  std::int64_t forward_time = 0;  ///< time of the forward run that saves nothing for the backward part
  /// Peak in bytes of the forward run that saves nothing. It counts the same bytes as ChainWay::forward_peak.
  std::int64_t forward_peak[2] = {0, 0};
  std::vector<ChainWay> ways;
  std::vector<ChainTurn> turns;
  /// Bytes in memory, other than checkpoints and saved values, at the times when all later stages have run backward and
  /// this stage has not. These are gradients that this stage or earlier ones will read, values that stay to the end,
  /// and values held for earlier stages.
  std::int64_t held = 0;
  std::int64_t held_first = 0;  ///< like `held`, but during the first forward run of this stage
};

struct ChainProblem {
  std::vector<ChainStage> stages;
};

/// Returns roughly the number of choices that a ChainTable compares for each level of memory. O(n) for n stages.
std::int64_t chain_choices(const ChainProblem& problem);

struct ChainStep {
  enum class Kind : std::uint8_t {
    /// A forward run that saves nothing. Whether the checkpoint stays in memory depends on the later steps.
    forward,
    way_forward,  ///< the forward run of ways[option], which saves values for the backward run
    way_backward,
    turn  ///< turns[option], which runs the forward and the backward part together
  };
  std::int32_t stage = 0;
  Kind kind = Kind::forward;
  std::int32_t option = 0;
  /// Says what is moved to the host after this forward run, and moved back before the stage runs again.
  bool moves_checkpoint = false, moves_saved = false;
  bool operator==(const ChainStep&) const = default;
};

/// Holds the least memory of any persistent schedule, and the steps of a schedule that needs only this memory.
struct LeastMemory {
  std::int64_t bytes = 0;
  std::vector<ChainStep> steps;
};
/// Computes exactly the least memory of any persistent schedule. O(n^2 (n + w)) time for n stages with w ways and turns
/// each.
LeastMemory least_chain_memory(const ChainProblem& problem);

/// Computes a table of the least time for each amount of memory from 0 to `most_bytes`. Memory is counted in units of
/// unit() bytes, and a level is a number of units, at most `levels`. The byte counts of the problem are rounded up to
/// units, so a schedule that the table finds for a level never needs more bytes than the level has. The times are exact
/// if all byte counts are multiples of the unit. If `levels` allows such a unit, it is chosen. Takes O(n^2 (n + w)
/// levels) time and at most 8 n^2 levels bytes of memory, for n stages with w ways and turns each.
class ChainTable {
 public:
  /// Fills the table. The problem must outlive the table.
  ChainTable(const ChainProblem& problem, std::int64_t most_bytes, std::int64_t levels, core::Stopwatch& watch);

  /// Returns whether the table is filled. If not, the watch expired too early, and time() and steps() must not be
  /// called.
  bool complete() const { return complete_; }
  std::int64_t unit() const { return unit_; }
  std::int64_t top() const { return top_; }
  /// Returns the least time of the persistent schedules within the level. Returns infinity if no schedule is within the
  /// level. Times are added up in doubles, which are exact up to 2^53.
  double time(std::int64_t level) const;
  /// Returns a schedule that takes time(level). Returns no steps if this time is infinite. O(n (n + w)) for n stages
  /// with w ways and turns each.
  std::vector<ChainStep> steps(std::int64_t level) const;

 private:
  std::size_t row(std::int32_t first, std::int32_t last, ChainEntry entry) const;
  std::int64_t levels_of(std::int64_t bytes) const { return bytes <= 0 ? 0 : (bytes + unit_ - 1) / unit_; }
  void fill(std::int32_t first, std::int32_t last, ChainEntry entry);

  const ChainProblem& problem_;
  std::int64_t unit_ = 1, top_ = 0;
  bool complete_ = false;
  /// Whether the checkpoint of a stage can be kHeld, because a backward part of the stage before reads it. Indexed by
  /// stage.
  std::vector<std::uint8_t> holds_;
  bool any_held_ = false;
  std::vector<double> time_;  ///< rows of top_ + 1 times, one time for each level; see row()
};

}  // namespace cairn::solvers
