// Implements the dynamic program for chains of stages (dynamic_program.h). The checkpoint of a stage is its input. A
// way is one choice of what the forward run of a stage saves for its backward run. A turn runs a stage forward and
// directly afterwards backward.

#include "cairn/solvers/remat/rotor/dynamic_program.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace cairn::solvers {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();
constexpr std::int64_t kTooMuch = std::numeric_limits<std::int64_t>::max() / 4;

/// A choice of how to complete the range of stages from `first` to `last`, none of which has run backward. To complete
/// stages is to run them until all of them have run backward. A choice makes a few runs. It may leave two smaller
/// ranges to complete.
struct ChainChoice {
  ChainStep::Kind kind = ChainStep::Kind::turn;
  std::int32_t option = 0;  ///< index in ChainStage::turns or ChainStage::ways
  /// Stage at which the range is divided. For forward runs, the stages from `first` to `split - 1` run forward, then
  /// the range from `split` to `last` is completed, and finally the range from `first` to `split - 1`. For a way,
  /// `split` is `first + 1`. For a turn, it is the stage that runs as a turn.
  std::int32_t split = 0;
  std::int64_t needs = 0;  ///< bytes in memory during the runs that the choice makes
  /// bytes that the choice keeps in memory while the range from `split` to `last` is completed
  std::int64_t keeps = 0;
  ChainEntry inner = kReleased;  ///< what happens to the checkpoint of stage `split`
  double time = 0;               ///< time of the runs that the choice makes, and the price of what it moves
  bool moves_checkpoint = false, moves_saved = false;

  /// Returns whether the range from `split` to `last` still has to be completed.
  bool leaves_inner() const { return kind != ChainStep::Kind::turn; }
  /// Returns whether the range from `first` to `split - 1` still has to be completed.
  bool leaves_rest(std::int32_t first) const { return kind != ChainStep::Kind::way_forward && split > first; }
};

/// Calls visit() for a choice, and for the same choice combined with each possible set of moves to the host. The choice
/// keeps `checkpoint` bytes of the stage's checkpoint and, if it is a way, what the way saves.
template <class Visit>
void for_each_move(ChainChoice choice, const ChainStage& stage, std::int64_t checkpoint, const ChainWay* way,
                   const Visit& visit) {
  const auto with_checkpoint = [&](ChainChoice one) {
    visit(one);
    if (checkpoint == 0 || stage.move_time == kNoMove) return;
    one.keeps -= checkpoint;
    one.time += stage.move_time;
    one.moves_checkpoint = true;
    visit(one);
  };
  with_checkpoint(choice);
  if (way == nullptr || way->move_time == kNoMove || way->saved == way->stays) return;
  choice.keeps -= way->saved - way->stays;
  choice.time += way->move_time;
  choice.moves_saved = true;
  with_checkpoint(choice);
}

/// Calls visit() for each choice for the range from `first` to `last`, where the checkpoint of `first` is in memory.
/// All but the last of the following are choices of equations (1) to (3) of Beaumont et al.:
/// - For a single stage: each of its turns.
/// - For several stages: each way of the first stage, which says which values its forward run saves. The paper knows
///   only one way, "all".
/// - For several stages: each `split` up to which the forward parts run. The checkpoint of stage `split` is then kept.
/// - For several stages, if later stages have run backward: each turn of stage `last` that reads nothing from the
///   forward pass.
///
/// Takes O(last - first + w) time for stages with w ways and turns.
template <class Visit>
void for_each_chain_choice(const ChainProblem& problem, std::int32_t first, std::int32_t last, ChainEntry entry,
                           const Visit& visit) {
  const ChainStage& stage = problem.stages[first];
  if (first == last) {
    for (std::size_t k = 0; k < stage.turns.size(); ++k) {
      visit(ChainChoice{.kind = ChainStep::Kind::turn,
                        .option = static_cast<std::int32_t>(k),
                        .split = first,
                        .needs = stage.turns[k].peak[entry],
                        .time = static_cast<double>(stage.turns[k].time)});
    }
    return;
  }
  // Usually all stages after `last` have run backward. But if `last` is the end of the chain, there are no such stages,
  // and the stages of this range run for the first time.
  const bool first_time = last + 1 == static_cast<std::int32_t>(problem.stages.size());
  const auto held = [&](std::int32_t s) {
    return first_time ? problem.stages[s].held_first : problem.stages[last].held;
  };
  for (std::size_t k = 0; k < stage.ways.size(); ++k) {
    const ChainWay& way = stage.ways[k];
    const std::int64_t checkpoint = entry == kHeld || way.reads_entering ? stage.checkpoint : 0;
    const ChainChoice choice{.kind = ChainStep::Kind::way_forward,
                             .option = static_cast<std::int32_t>(k),
                             .split = first + 1,
                             .needs = std::max(held(first) + way.forward_peak[entry], way.backward_peak[entry]),
                             .keeps = way.saved + checkpoint,
                             .inner = way.reads_leaving ? kHeld : kReleased,
                             .time = static_cast<double>(way.forward_time) + static_cast<double>(way.backward_time)};
    for_each_move(choice, stage, checkpoint, &way, visit);
  }
  // Some turns of the last stage read nothing from the forward pass, so they need no forward run before.
  const ChainStage& end = problem.stages[last];
  for (std::size_t k = 0; k < end.turns.size(); ++k) {
    if (first_time || end.turns[k].reads_entering) continue;
    visit(ChainChoice{.kind = ChainStep::Kind::turn,
                      .option = static_cast<std::int32_t>(k),
                      .split = last,
                      .needs = stage.checkpoint + end.turns[k].peak[kReleased],
                      .time = static_cast<double>(end.turns[k].time)});
  }
  // Bytes during the forward runs: if the checkpoint of stage `first` stays in memory (needs), and if it is moved away
  // after the run of that stage (needs_moved).
  std::int64_t needs = held(first) + stage.forward_peak[kHeld], needs_moved = needs;
  auto time = static_cast<double>(stage.forward_time);
  for (std::int32_t split = first + 1; split <= last; ++split) {
    const ChainChoice choice{
        .kind = ChainStep::Kind::forward, .split = split, .needs = needs, .keeps = stage.checkpoint, .time = time};
    for_each_move(choice, stage, stage.checkpoint, nullptr, [&](ChainChoice one) {
      if (one.moves_checkpoint) one.needs = needs_moved;
      visit(one);
    });
    const ChainStage& next = problem.stages[split];
    needs = std::max(needs, held(split) + stage.checkpoint + next.forward_peak[kReleased]);
    needs_moved = std::max(needs_moved, held(split) + next.forward_peak[kReleased]);
    time += static_cast<double>(next.forward_time);
  }
}

/// Writes out the schedule that consists of the chosen runs. choose(first, last, entry, memory) returns the choice for
/// a range of stages, and replaces `memory` by the memory that is left for the range that is completed first. The
/// function is not recursive, because chains can be too long for the call stack.
template <class Memory, class Choose>
std::vector<ChainStep> write_out_chain(std::int32_t stages, Memory memory, const Choose& choose) {
  struct Task {
    std::int32_t first, last;
    ChainEntry entry;
    Memory memory;
    ChainStep step{-1};  // if step.stage is not -1, the task is only to write this step
  };
  std::vector<ChainStep> steps;
  std::vector<Task> tasks{{0, stages - 1, kReleased, memory}};
  while (!tasks.empty()) {
    const Task task = tasks.back();
    tasks.pop_back();
    if (task.step.stage >= 0) {
      steps.push_back(task.step);
      continue;
    }
    Memory inner = task.memory;
    const ChainChoice choice = choose(task.first, task.last, task.entry, inner);
    if (choice.leaves_rest(task.first)) tasks.push_back({task.first, choice.split - 1, task.entry, task.memory});
    switch (choice.kind) {
      case ChainStep::Kind::turn:
        steps.push_back({choice.split, choice.kind, choice.option});
        break;
      case ChainStep::Kind::way_forward:
        steps.push_back({task.first, choice.kind, choice.option, choice.moves_checkpoint, choice.moves_saved});
        tasks.push_back({.step = {task.first, ChainStep::Kind::way_backward, choice.option}});
        break;
      default:
        for (std::int32_t s = task.first; s < choice.split; ++s)
          steps.push_back({s, choice.kind, 0, s == task.first && choice.moves_checkpoint});
    }
    if (choice.leaves_inner()) tasks.push_back({choice.split, task.last, choice.inner, inner});
  }
  return steps;
}

}  // namespace

std::int64_t chain_choices(const ChainProblem& problem) {
  const auto n = static_cast<std::int64_t>(problem.stages.size());
  std::int64_t choices = n * n * n / 3;
  for (const ChainStage& stage : problem.stages) choices += n * static_cast<std::int64_t>(stage.ways.size());
  return std::max<std::int64_t>(choices, 1);
}

LeastMemory least_chain_memory(const ChainProblem& problem) {
  const auto n = static_cast<std::int32_t>(problem.stages.size());
  if (n == 0) return {};
  std::vector<std::int64_t> least(static_cast<std::size_t>(n) * n * 2, kTooMuch);
  const auto at = [&](std::int32_t first, std::int32_t last, ChainEntry entry) -> std::int64_t& {
    return least[(static_cast<std::size_t>(first) * n + last) * 2 + entry];
  };
  const auto bytes_of = [&](const ChainChoice& choice, std::int32_t first, std::int32_t last, ChainEntry entry) {
    std::int64_t bytes = choice.needs;
    if (choice.leaves_inner()) bytes = std::max(bytes, choice.keeps + at(choice.split, last, choice.inner));
    if (choice.leaves_rest(first)) bytes = std::max(bytes, at(first, choice.split - 1, entry));
    return bytes;
  };
  for (std::int32_t length = 1; length <= n; ++length) {
    for (std::int32_t first = 0; first + length <= n; ++first) {
      for (const ChainEntry entry : {kReleased, kHeld}) {
        const std::int32_t last = first + length - 1;
        std::int64_t& best = at(first, last, entry);
        for_each_chain_choice(problem, first, last, entry, [&](const ChainChoice& choice) {
          best = std::min(best, bytes_of(choice, first, last, entry));
        });
      }
    }
  }
  const std::int64_t bytes = at(0, n - 1, kReleased);
  // The total time of a choice is not known here. So of the choices that fit into the memory that is left, take the one
  // whose own runs take the least time.
  const auto choose = [&](std::int32_t first, std::int32_t last, ChainEntry entry, std::int64_t& inner) {
    ChainChoice chosen;
    bool any = false;
    for_each_chain_choice(problem, first, last, entry, [&](const ChainChoice& choice) {
      if (bytes_of(choice, first, last, entry) > inner || (any && choice.time >= chosen.time)) return;
      chosen = choice;
      any = true;
    });
    inner -= chosen.keeps;
    return chosen;
  };
  return {bytes, write_out_chain(n, bytes, choose)};
}

ChainTable::ChainTable(const ChainProblem& problem, std::int64_t most_bytes, std::int64_t levels,
                       core::Stopwatch& watch)
    : problem_(problem), holds_(problem.stages.size() + 1, 0) {
  const auto n = static_cast<std::int32_t>(problem.stages.size());
  std::int64_t divisor = 0;
  for (const ChainStage& stage : problem.stages) {
    for (const std::int64_t bytes :
         {stage.checkpoint, stage.held, stage.held_first, stage.forward_peak[0], stage.forward_peak[1]})
      divisor = std::gcd(divisor, bytes);
    for (const ChainWay& way : stage.ways) {
      for (const std::int64_t bytes :
           {way.saved, way.stays, way.forward_peak[0], way.forward_peak[1], way.backward_peak[0], way.backward_peak[1]})
        divisor = std::gcd(divisor, bytes);
    }
    for (const ChainTurn& turn : stage.turns) divisor = std::gcd(divisor, std::gcd(turn.peak[0], turn.peak[1]));
  }
  divisor = std::max<std::int64_t>(divisor, 1);
  levels = std::max<std::int64_t>(levels, 1);
  unit_ = divisor * std::max<std::int64_t>(1, (most_bytes / divisor + levels - 1) / levels);
  top_ = most_bytes / unit_;
  for (std::int32_t s = 0; s < n; ++s) {
    for (const ChainWay& way : problem.stages[s].ways) {
      if (way.reads_leaving) holds_[s + 1] = 1;
    }
    any_held_ = any_held_ || holds_[s] != 0;
  }
  time_.resize(static_cast<std::size_t>(n) * (n + 1) / 2 * (any_held_ ? 2 : 1) * (top_ + 1), kImpossible);
  for (std::int32_t length = 1; length <= n; ++length) {
    for (std::int32_t first = 0; first + length <= n; ++first) {
      if (watch.charge((length + static_cast<std::int64_t>(problem.stages[first].ways.size())) * (top_ / 16 + 1))
              .expired())
        return;
      fill(first, first + length - 1, kReleased);
      if (holds_[first] != 0) fill(first, first + length - 1, kHeld);
    }
  }
  complete_ = true;
}

/// Returns the index in time_ at which the row of times for this range of stages begins.
std::size_t ChainTable::row(std::int32_t first, std::int32_t last, ChainEntry entry) const {
  const std::size_t n = problem_.stages.size(), from = first;
  const std::size_t pair = from * (2 * n + 1 - from) / 2 + static_cast<std::size_t>(last - first);
  return (any_held_ ? 2 * pair + entry : pair) * static_cast<std::size_t>(top_ + 1);
}

void ChainTable::fill(std::int32_t first, std::int32_t last, ChainEntry entry) {
  double* const best = &time_[row(first, last, entry)];
  for_each_chain_choice(problem_, first, last, entry, [&](const ChainChoice& choice) {
    const std::int64_t keeps = levels_of(choice.keeps), from = std::max(levels_of(choice.needs), keeps);
    if (from > top_) return;
    const double* const inner = choice.leaves_inner() ? &time_[row(choice.split, last, choice.inner)] : nullptr;
    const double* const rest = choice.leaves_rest(first) ? &time_[row(first, choice.split - 1, entry)] : nullptr;
    const auto improve = [&](const auto& time) {
      for (std::int64_t m = from; m <= top_; ++m) best[m] = std::min(best[m], time(m));
    };
    if (inner != nullptr && rest != nullptr) {
      improve([&](std::int64_t m) { return choice.time + inner[m - keeps] + rest[m]; });
    } else if (inner != nullptr) {
      improve([&](std::int64_t m) { return choice.time + inner[m - keeps]; });
    } else if (rest != nullptr) {
      improve([&](std::int64_t m) { return choice.time + rest[m]; });
    } else {
      improve([&](std::int64_t) { return choice.time; });
    }
  });
}

double ChainTable::time(std::int64_t level) const {
  return time_[row(0, static_cast<std::int32_t>(problem_.stages.size()) - 1, kReleased) + level];
}

std::vector<ChainStep> ChainTable::steps(std::int64_t level) const {
  if (time(level) == kImpossible) return {};
  const auto choose = [&](std::int32_t first, std::int32_t last, ChainEntry entry, std::int64_t& memory) {
    const double best = time_[row(first, last, entry) + memory];
    ChainChoice chosen;
    bool any = false;
    for_each_chain_choice(problem_, first, last, entry, [&](const ChainChoice& choice) {
      const std::int64_t keeps = levels_of(choice.keeps);
      if (any || std::max(levels_of(choice.needs), keeps) > memory) return;
      double time = choice.time;
      if (choice.leaves_inner()) time += time_[row(choice.split, last, choice.inner) + memory - keeps];
      if (choice.leaves_rest(first)) time += time_[row(first, choice.split - 1, entry) + memory];
      if (time != best) return;
      chosen = choice;
      any = true;
    });
    memory -= levels_of(chosen.keeps);
    return chosen;
  };
  return write_out_chain(static_cast<std::int32_t>(problem_.stages.size()), level, choose);
}

}  // namespace cairn::solvers
