#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/error.h"
#include "cairn/core/host_device.h"
#include "cairn/solvers/order/device/pumpkin.h"

/// Implements solve_pumpkin() (pumpkin.h) for any Machine (core/machine/support/machine.h).
namespace cairn::solvers {

__extension__ typedef __int128 Int128;

/// The problem in the machine's memory, and the numbering of its multisets. A layer contains the multisets of one size,
/// sorted by the number of branches of the last kind, ties by that of the last kind but one, and so on. The rank of a
/// multiset is its position in the layer. Multisets are not stored but computed from their ranks. A rank is computed by
/// counting the multisets that come before.
struct PumpkinSpace {
  const core::Segment* keys;
  const core::Segment* rests;  ///< segments after the first step, kind by kind
  /// For each kind, the index of its first segment in `rests`; the last entry is the end of the last kind.
  const std::int64_t* rests_begin;
  const std::int64_t*
      kinds_before;  ///< number of multisets of kinds before k, of size 0..s, at index k * (branches + 1) + s
  std::int32_t kinds;
  std::int64_t branches;
  std::int64_t released;

  CAIRN_HD std::int64_t up_to(std::int32_t kind, std::int64_t size) const {
    return size < 0 ? 0 : kinds_before[kind * (branches + 1) + size];
  }

  /// Calls visit(kind, rank) for each kind in the multiset, the last kind first, until visit() returns false. `rank` is
  /// the rank, in the layer below, of the multiset without one branch of that kind. O(kinds + branches).
  template <class Visit>
  CAIRN_HD void for_each_kind(std::int64_t rank, std::int64_t size, const Visit& visit) const {
    // The kinds are visited from the last to the first. `before` counts the multisets of the layer below that rank
    // before the result because they have fewer branches of a kind visited already.
    std::int64_t before = 0;
    for (std::int32_t kind = kinds; kind-- > 0 && size > 0;) {
      // `up_to(size) - up_to(size - x)` multisets have fewer than x branches of this kind.
      const std::int64_t all = up_to(kind, size);
      std::int64_t left = size;
      while (rank >= all - up_to(kind, left - 1)) --left;
      rank -= all - up_to(kind, left);
      const std::int64_t all_below = up_to(kind, size - 1);
      if (left < size && !visit(kind, before + all_below - up_to(kind, left) + rank)) return;
      before += all_below - up_to(kind, left - 1);
      size = left;
    }
  }
};

/// The segments of all states of one size.
struct PumpkinLayer {
  const core::Segment* segments;
  /// For each rank of a state, the index of the state's first segment; the last entry is the end of the last state.
  const std::int64_t* begin;
};

/// The schedule in which a given kind starts first. It begins with the key (the first step) of that kind. The segments
/// of the other branches and of the kind's rest follow, merged by sort value (Theorem 6.8).
struct PumpkinCandidate {
  core::Segment key;
  const core::Segment* others;
  const core::Segment* others_end;
  const core::Segment* rest;
  const core::Segment* rest_end;

  /// Calls meet(peak, valley) for each segment in turn, until meet() returns false. Memory is counted relative to the
  /// beginning. Returns the last valley.
  template <class Meet>
  CAIRN_HD std::int64_t forwards(const Meet& meet) const {
    std::int64_t bytes = key.change();
    if (!meet(key.rise, bytes)) return bytes;
    const core::Segment* a = others;
    const core::Segment* b = rest;
    while (a != others_end || b != rest_end) {
      const bool take_b = a == others_end || (b != rest_end && core::sorts_before(*b, *a));
      const core::Segment next = take_b ? *b++ : *a++;
      const std::int64_t peak = bytes + next.rise;
      bytes += next.change();
      if (!meet(peak, bytes)) return bytes;
    }
    return bytes;
  }

  /// Calls meet(peak, valley) for each segment, from the last to the first. `end` is the memory after the last segment.
  template <class Meet>
  CAIRN_HD void backwards(std::int64_t end, const Meet& meet) const {
    std::int64_t bytes = end;
    const core::Segment* a = others_end;
    const core::Segment* b = rest_end;
    while (a != others || b != rest) {
      const bool take_b = b != rest && (a == others || !core::sorts_before(*(b - 1), *(a - 1)));
      const core::Segment next = take_b ? *--b : *--a;
      const std::int64_t peak = bytes + next.drop;
      bytes -= next.change();
      meet(peak, bytes);
    }
    meet(bytes + key.drop, bytes - key.change());
  }
};

/// Measure by which candidates are compared. For a profile and a height h, let left(h) be the lowest value reached from
/// the beginning without going above h, and right(h) the lowest value reached from the end without going above h. If A
/// dominates B, then the peak, left(h) and right(h) of A are at most those of B for every h: when B reaches a value
/// without going above h, A has reached a value at most as low without going above h. If all three are equal, A and B
/// dominate each other, because left and right determine the segments before and after the lowest valley. If a segment
/// without change lies between these, only one thing about it matters: whether its peak is the highest of the profile.
///
/// One of the candidates for a state dominates all others (Theorem 3.1). So it has the lowest peak and, among the
/// candidates with that peak, the smallest sum of left(h) over all heights h below the peak. One pass over a candidate
/// computes this sum, so candidates need not be stored.
///
/// Candidates with the same peak and the same left also have the same right. To prove it, let D be a dominant schedule,
/// and let C be a candidate with the peak and the left of D. C dominates all schedules that begin with the key of some
/// branch B. Memory is a submodular function of the set of steps that have run: it is a sum over the branches, less
/// what is freed once all keys have run. There are two cases:
/// - C is at its lowest when a non-empty set Z has run. Consider the schedule that follows C until then, and continues
/// with D without Z. It is nowhere above D and begins with B. So C's right is nowhere above D's.
/// - Otherwise C is lowest only at the beginning. Let Z be the set that has run when D is at its lowest after its peak,
/// for the last time. No set that contains Z has less memory, because D would go there. So C restricted to Z is nowhere
/// above C, and D can follow it. If B is in Z, the combined schedule begins with B. If B is not in Z, the combined
/// schedule must reach the peak, where C is no higher. In that case C and Z together have as little memory as Z. So D
/// can as well go to their union, which contains B.
struct PumpkinSum {
  std::int64_t highest = 0, lowest = 0;  ///< highest and lowest value so far
  /// Sum of left(h) over the heights from 0 to `highest`; exact, because it is below 2^62 * 2^62.
  Int128 left = 0;

  CAIRN_HD void meet(std::int64_t peak, std::int64_t valley) {
    if (peak > highest) {
      left += Int128{peak - highest} * lowest;
      highest = peak;
    }
    if (valley < lowest) lowest = valley;
  }
};

/// The segments from one end of a profile to its lowest valley, in order from that end. A segment begins when an ascent
/// goes higher than everything before, and ends at the next valley that is lower than everything before.
struct PumpkinWing {
  std::int64_t highest, lowest;
  std::int64_t peak;  ///< peak of the last segment
  std::int64_t count = 0;
  std::int64_t from = 0;  ///< value at which the last segment begins

  CAIRN_HD explicit PumpkinWing(std::int64_t start) : highest(start), lowest(start), peak(start) {}
  /// Adds the ascent to `top` and the descent to `valley`. If this creates a segment or makes the last one longer,
  /// calls put(number, ascent, descent) for that segment.
  template <class Put>
  CAIRN_HD void meet(std::int64_t top, std::int64_t valley, const Put& put) {
    if (top > highest) highest = top;
    if (valley >= lowest) return;
    if (count == 0 || highest > peak) {
      peak = highest;
      from = lowest;
      ++count;
    }
    lowest = valley;
    put(count - 1, peak - from, peak - valley);
  }
};

/// Returns the number of the candidate's segments. If `out` is not null, writes them to `out`, which has room for n
/// segments.
CAIRN_HD inline std::int64_t write_segments(const PumpkinCandidate& candidate, core::Segment* out, std::int64_t n) {
  PumpkinWing left(0);
  const std::int64_t end = candidate.forwards([&](std::int64_t peak, std::int64_t valley) {
    left.meet(peak, valley, [&](std::int64_t i, std::int64_t ascent, std::int64_t descent) {
      if (out != nullptr) out[i] = {ascent, descent};
    });
    return true;
  });
  PumpkinWing right(end);
  candidate.backwards(end, [&](std::int64_t peak, std::int64_t valley) {
    right.meet(peak, valley, [&](std::int64_t i, std::int64_t ascent, std::int64_t descent) {
      if (out != nullptr) out[n - 1 - i] = {descent, ascent};
    });
  });
  // Between the two wings (the segments from either end), there is a segment without change if neither wing reaches the
  // height of the profile.
  const bool flat = left.highest > left.peak && left.highest > right.peak;
  if (flat && out != nullptr) out[left.count] = {left.highest - left.lowest, left.highest - left.lowest};
  return left.count + right.count + (flat ? 1 : 0);
}

/// The data of ChooseFirst and WriteSegments, the two passes over a layer.
struct PumpkinPass {
  PumpkinSpace space;
  PumpkinLayer below;
  std::uint8_t* first;  ///< for each state of this layer, the kind that starts first
  std::int64_t size;    ///< number of branches in each of the layer's multisets
  std::int64_t begin;   ///< first state that this launch computes

  CAIRN_HD PumpkinCandidate candidate(std::int32_t kind, std::int64_t others) const {
    PumpkinCandidate made{space.keys[kind], below.segments + below.begin[others],
                          below.segments + below.begin[others + 1], space.rests + space.rests_begin[kind],
                          space.rests + space.rests_begin[kind + 1]};
    if (size == 1) made.key.drop += space.released;
    return made;
  }
};

/// Chooses the kind that starts first in a state, and counts the segments of the resulting schedule.
struct ChooseFirst {
  static constexpr int kThreads = 1;
  PumpkinPass pass;
  std::int32_t* counts;

  template <class Team>
  CAIRN_HD void operator()(const Team& /*team*/, std::int64_t index) const {
    const std::int64_t rank = pass.begin + index;
    std::int32_t best = -1;
    PumpkinCandidate best_candidate{};
    std::int64_t peak = 0;
    Int128 left = 0;
    pass.space.for_each_kind(rank, pass.size, [&](std::int32_t kind, std::int64_t others) {
      const PumpkinCandidate candidate = pass.candidate(kind, others);
      PumpkinSum sum;
      candidate.forwards([&](std::int64_t top, std::int64_t valley) {
        sum.meet(top, valley);
        return best < 0 || sum.highest <= peak;
      });
      if (best < 0 || sum.highest < peak || (sum.highest == peak && sum.left < left)) {
        best = kind;
        best_candidate = candidate;
        peak = sum.highest;
        left = sum.left;
      }
      return true;
    });
    pass.first[rank] = static_cast<std::uint8_t>(best);
    counts[rank] = static_cast<std::int32_t>(write_segments(best_candidate, nullptr, 0));
  }
};

struct WriteSegments {
  static constexpr int kThreads = 1;
  PumpkinPass pass;
  const std::int64_t* layer_begin;
  core::Segment* layer_segments;

  template <class Team>
  CAIRN_HD void operator()(const Team& /*team*/, std::int64_t index) const {
    const std::int64_t rank = pass.begin + index;
    const std::int32_t first = pass.first[rank];
    pass.space.for_each_kind(rank, pass.size, [&](std::int32_t kind, std::int64_t others) {
      if (kind != first) return true;
      write_segments(pass.candidate(kind, others), layer_segments + layer_begin[rank],
                     layer_begin[rank + 1] - layer_begin[rank]);
      return false;
    });
  }
};

/// Reads the order from the table. The first entry is the kind that starts first in the set of all branches, the next
/// entry the kind that starts first in the set without this branch, and so on.
struct WalkBack {
  static constexpr int kThreads = 1;
  PumpkinSpace space;
  const std::uint8_t* first;         ///< the kind that starts first, for each state, layer after layer
  const std::int64_t* layers_begin;  ///< first state of each size
  std::uint8_t* order;

  template <class Team>
  CAIRN_HD void operator()(const Team& /*team*/, std::int64_t /*index*/) const {
    std::int64_t rank = 0;
    for (std::int64_t size = space.branches; size > 0; --size) {
      const std::uint8_t chosen = first[layers_begin[size] + rank];
      order[space.branches - size] = chosen;
      space.for_each_kind(rank, size, [&](std::int32_t kind, std::int64_t others) {
        if (kind != chosen) return true;
        rank = others;
        return false;
      });
    }
  }
};

std::vector<std::int64_t> count_of_kinds_before(const PumpkinProblem& problem);

template <class Machine>
class PumpkinSolver {
 public:
  PumpkinSolver(Machine& machine, const PumpkinProblem& problem, const PumpkinOptions& options)
      : machine_(machine), problem_(problem), options_(options) {}

  PumpkinAnswer solve() {
    const std::vector<std::int64_t> states = count_states(problem_);
    if (states.empty()) throw core::InputError("a pumpkin of so many branches has too many states for any table");
    const std::int64_t widest = *std::max_element(states.begin(), states.end());
    std::vector<std::int64_t> layers_begin{0};
    for (const std::int64_t count : states) layers_begin.push_back(layers_begin.back() + count);

    upload_problem();
    const std::int64_t offsets = widest + 1;
    if (!fits(layers_begin.back() + widest * kCount + 2 * offsets * kWord)) return std::move(answer_);
    auto first = array<std::uint8_t>(layers_begin.back());
    auto counts = array<std::int32_t>(widest);
    auto begin = array<std::int64_t>(offsets), begin_below = array<std::int64_t>(offsets);
    ArrayOf<core::Segment> segments, segments_below;
    machine_.fill(begin.data(), 0, 2 * kWord);  // without branches there are no segments
    answer_.segments_of_layer.push_back(0);

    const auto branches = static_cast<std::int64_t>(states.size()) - 1;
    for (std::int64_t size = 1; size <= branches; ++size) {
      std::swap(begin, begin_below);
      std::swap(segments, segments_below);
      PumpkinPass pass{space_, {segments_below.data(), begin_below.data()}, first.data() + layers_begin[size], size, 0};
      const std::int64_t count = states[size];
      if (!in_chunks(count, size, [&](std::int64_t chunk_begin, std::int64_t chunk) {
            pass.begin = chunk_begin;
            machine_.launch(ChooseFirst{pass, counts.data()}, chunk);
          }))
        return std::move(answer_);
      machine_.exclusive_sum(counts.data(), begin.data(), count);
      std::int64_t total = 0;
      machine_.download(begin.data() + count, 1, &total);
      answer_.segments_of_layer.push_back(total);
      if (segments.size() < total) {
        release(segments);
        if (!fits(total * kSegment)) return std::move(answer_);
        segments = array<core::Segment>(total);
      }
      if (!in_chunks(count, 0, [&](std::int64_t chunk_begin, std::int64_t chunk) {
            pass.begin = chunk_begin;
            machine_.launch(WriteSegments{pass, begin.data(), segments.data()}, chunk);
          }))
        return std::move(answer_);
    }

    auto layers = copy(layers_begin);
    auto order = array<std::uint8_t>(branches);
    machine_.launch(WalkBack{space_, first.data(), layers.data(), order.data()}, 1);
    answer_.order.resize(static_cast<std::size_t>(branches));
    machine_.download(order.data(), branches, answer_.order.data());
    answer_.segments.resize(static_cast<std::size_t>(answer_.segments_of_layer.back()));
    machine_.download(segments.data(), answer_.segments_of_layer.back(), answer_.segments.data());
    return std::move(answer_);
  }

 private:
  template <class T>
  using ArrayOf = typename Machine::template ArrayOf<T>;
  static constexpr std::int64_t kCount = sizeof(std::int32_t), kWord = sizeof(std::int64_t),
                                kSegment = sizeof(core::Segment);

  template <class T>
  ArrayOf<T> array(std::int64_t count) {
    taken_ += count * static_cast<std::int64_t>(sizeof(T));
    answer_.bytes = std::max(answer_.bytes, taken_);
    return machine_.template array<T>(count);
  }
  template <class T>
  void release(ArrayOf<T>& array) {
    taken_ -= array.size() * static_cast<std::int64_t>(sizeof(T));
    array = {};
  }
  template <class T>
  ArrayOf<T> copy(const std::vector<T>& from) {
    auto to = array<T>(static_cast<std::int64_t>(from.size()));
    machine_.upload(from.data(), to.size(), to.data());
    return to;
  }

  bool fits(std::int64_t more) {
    if (taken_ + more <= options_.memory_bytes) return true;
    answer_.end = PumpkinAnswer::End::too_large;
    answer_.bytes = taken_ + more;
    return false;
  }

  void upload_problem() {
    std::vector<core::Segment> keys, rests;
    std::vector<std::int64_t> rests_begin{0};
    for (const PumpkinKind& kind : problem_.kinds) {
      keys.push_back(kind.key);
      rests.insert(rests.end(), kind.rest.begin(), kind.rest.end());
      rests_begin.push_back(static_cast<std::int64_t>(rests.size()));
    }
    keys_ = copy(keys);
    rests_ = copy(rests);
    rests_begin_ = copy(rests_begin);
    kinds_before_ = copy(count_of_kinds_before(problem_));
    space_ = {keys_.data(),
              rests_.data(),
              rests_begin_.data(),
              kinds_before_.data(),
              static_cast<std::int32_t>(keys.size()),
              problem_.branches(),
              problem_.released};
  }

  /// Calls launch(begin, count) for one chunk of the states after another. Returns false if `go_on` returned false.
  template <class Launch>
  bool in_chunks(std::int64_t states, std::int64_t work_of_state, const Launch& launch) {
    for (std::int64_t begin = 0; begin < states; begin += options_.chunk) {
      const std::int64_t count = std::min(options_.chunk, states - begin);
      launch(begin, count);
      if (!options_.go_on) continue;
      std::int64_t done;  // this copy returns after all launches, which a device would otherwise queue without limit
      machine_.download(kinds_before_.data(), 1, &done);
      if (options_.go_on(count * work_of_state)) continue;
      answer_.end = PumpkinAnswer::End::stopped;
      return false;
    }
    return true;
  }

  Machine& machine_;
  const PumpkinProblem& problem_;
  const PumpkinOptions& options_;
  PumpkinAnswer answer_;
  std::int64_t taken_ = 0;
  ArrayOf<core::Segment> keys_, rests_;
  ArrayOf<std::int64_t> rests_begin_, kinds_before_;
  PumpkinSpace space_{};
};

template <class Machine>
PumpkinAnswer solve_pumpkin(Machine& machine, const PumpkinProblem& problem, const PumpkinOptions& options) {
  return PumpkinSolver<Machine>(machine, problem, options).solve();
}

}  // namespace cairn::solvers
