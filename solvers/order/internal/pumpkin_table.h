#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/dominance.h"
#include "core/host_device.h"
#include "solvers/limit.h"
#include "solvers/order/internal/chain.h"

namespace cairn::solvers {

/// A chain between a source and a sink. Its first step reads the source, so the rest is a path of its own.
struct Branch {
  Piece key;
  Chain rest;
};

/// The dynamic program of Theorem 8.2 over the sets of branches, layer by layer; two layers of states are in memory at
/// a time, and one byte a state remembers which branch goes first. Branches of equal profile count as one kind, so that
/// there is a state for each multiset: 2^d for d different branches.
class PumpkinTable {
 public:
  /// The source's `released` bytes go once every branch's first step has run.
  PumpkinTable(std::span<const Branch> branches, std::int64_t released);

  std::int64_t states() const { return states_; }
  /// Bytes that solve() may need at most; the largest int64 where that is beyond counting.
  std::int64_t needed_bytes() const { return needed_bytes_; }

  /// False if the watch expired first. Calls `tick`, if there is one, now and then. O(states * kinds * segments).
  bool solve(Stopwatch& watch, int threads, const std::function<void()>& tick = {});
  /// After solve(): the dominant schedule of what lies between source and sink.
  Chain chain(Ropes& ropes) const;

 private:
  struct Kind {
    std::vector<std::int32_t> branches;  ///< equal ones
    std::int64_t stride = 1;             ///< of a state number, for one branch of this kind
  };
  struct State {
    const core::Segment* segments = nullptr;
    std::int32_t count = 0;
  };

  std::int64_t digit(std::int64_t state, std::size_t kind) const {
    return state / kinds_[kind].stride % (static_cast<std::int64_t>(kinds_[kind].branches.size()) + 1);
  }
  void group_branches();
  void count_states();

  std::span<const Branch> branches_;
  std::int64_t released_;
  std::vector<Kind> kinds_;
  std::vector<std::vector<core::Segment>> rests_;  ///< of each kind
  std::vector<std::int64_t> states_of_size_;       ///< multisets of each size
  std::int64_t states_ = 0, needed_bytes_ = 0;
  std::size_t longest_ = 0;          ///< segments a state can have at most
  std::vector<std::uint8_t> first_;  ///< of each state: the kind that goes first
};

/// One candidate of the program, on plain arrays: `key`, then `others` and `rest` merged. Writes the segments to `out`
/// (room for 1 + others + rest) and returns their number, or -1 as soon as memory exceeds `highest`.
CAIRN_HD inline std::int32_t put_first(const core::Segment& key, const core::Segment* others, std::int32_t other_count,
                                       const core::Segment* rest, std::int32_t rest_count, std::int64_t highest,
                                       core::Segment* out) {
  std::int32_t count = 0;
  std::int64_t bytes = 0;
  const auto put = [&](core::Segment next) {
    if (bytes + next.rise > highest) return false;
    bytes += next.change();
    while (count > 0 && core::belong_together(out[count - 1], next)) next = core::joined(out[--count], next);
    out[count++] = next;
    return true;
  };
  if (!put(key)) return -1;
  std::int32_t i = 0, j = 0;
  while (i < other_count && j < rest_count) {
    if (!put(core::sorts_before(rest[j], others[i]) ? rest[j++] : others[i++])) return -1;
  }
  while (i < other_count) {
    if (!put(others[i++])) return -1;
  }
  while (j < rest_count) {
    if (!put(rest[j++])) return -1;
  }
  return count;
}

}  // namespace cairn::solvers
