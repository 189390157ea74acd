#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/error.h"
#include "cairn/core/host_device.h"
#include "cairn/solvers/order/device/pumpkin.h"
#include "cairn/solvers/order/device/pumpkin_layers.h"

/// Implements solve_pumpkin() (pumpkin.h) for any Machine (core/machine/support/machine.h). A branch is one of the
/// parallel chains to be merged, and all branches with equal memory profiles are of one kind. A state is a multiset of
/// branches. The rank of a state is its number among all states of the same size (PumpkinRanks).
namespace cairn::solvers {

/// Holds the problem in the machine's memory.
template <class Table>
struct PumpkinSpace {
  PumpkinRanks ranks;
  const typename Table::Segment* keys;
  const typename Table::Segment* rests;  ///< segments after the first step, kind by kind
  /// For each kind, the index of its first segment in `rests`; the last entry is the end of the last kind.
  const std::int64_t* rests_begin;
  std::int64_t released;
};

/// Describes the schedule of a state in which a branch of a given kind starts first. The schedule begins with the key
/// (the first step) of this branch. Two lists of segments follow, merged by sort value (Theorem 6.8): `others`, from
/// the dominant schedule of all other branches, and `rest`, from this branch's other steps.
template <class Table>
struct PumpkinCandidate {
  using Segment = typename Table::Segment;
  core::Segment key;
  const Segment* others;
  const Segment* others_end;
  const Segment* rest;
  const Segment* rest_end;

  /// Calls meet(peak, valley) for each segment in turn, until meet() returns false. `peak` is the highest memory during
  /// the segment, and `valley` the memory after it, both relative to the memory before the schedule. Returns the last
  /// valley.
  template <class Meet>
  CAIRN_HD std::int64_t forwards(const Meet& meet) const {
    std::int64_t bytes = key.change();
    if (!meet(key.rise, bytes)) return bytes;
    const Segment* a = others;
    const Segment* b = rest;
    while (a != others_end || b != rest_end) {
      const bool take_b = a == others_end || (b != rest_end && core::sorts_before(unpacked(*b), unpacked(*a)));
      const core::Segment next = unpacked(take_b ? *b++ : *a++);
      const std::int64_t peak = bytes + next.rise;
      bytes += next.change();
      if (!meet(peak, bytes)) return bytes;
    }
    return bytes;
  }

  /// Calls meet(peak, valley) for each segment, from the last to the first. Here, `valley` is the memory before the
  /// segment. `end` is the memory after the last segment.
  template <class Meet>
  CAIRN_HD void backwards(std::int64_t end, const Meet& meet) const {
    std::int64_t bytes = end;
    const Segment* a = others_end;
    const Segment* b = rest_end;
    while (a != others || b != rest) {
      const bool take_b = b != rest && (a == others || !core::sorts_before(unpacked(*(b - 1)), unpacked(*(a - 1))));
      const core::Segment next = unpacked(take_b ? *--b : *--a);
      const std::int64_t peak = bytes + next.drop;
      bytes -= next.change();
      meet(peak, bytes);
    }
    meet(bytes + key.drop, bytes - key.change());
  }
};

/// Measures a candidate, i.e. one of the schedules for a state, so that the best one can be chosen. For a profile and a
/// height h, let left(h) be the lowest value reached from the beginning without going above h, and right(h) the lowest
/// value reached from the end without going above h. If profile A dominates profile B, then the peak, left(h) and
/// right(h) of A are at most those of B for every h: when B reaches a value without going above h, A has reached a
/// value at most as low without going above h. If all three are equal, A and B dominate each other, because left and
/// right determine the segments before and after the lowest valley. If a segment that leaves memory unchanged lies
/// between these two groups of segments, only one thing about it matters: whether its peak is the highest of the
/// profile.
///
/// One of the candidates for a state dominates all others (Theorem 3.1). So this candidate has the lowest peak and,
/// among the candidates with that peak, the smallest sum of left(h) over all heights h below the peak. One pass over a
/// candidate computes this sum, so candidates need not be stored.
///
/// Candidates with equal peaks and with equal left(h) for all h also have equal right(h) for all h. To prove this, let
/// D be a dominant schedule, and let C be a candidate with the same peak and the same left(h) as D. Let B be the branch
/// whose key C runs first. C dominates all schedules that begin with this key. Memory is a submodular function of the
/// set of steps that have run: it is a sum over the branches, less what is freed once all keys have run. There are two
/// cases:
/// - C is at its lowest when a non-empty set Z has run. Consider the schedule that follows C until then, and continues
/// with the steps outside Z in the order of D. Because memory is submodular, this schedule is nowhere above D. It
/// begins with the key of B, so C dominates it. Thus right(h) of C is at most right(h) of D for every h.
/// - Otherwise C is lowest only at the beginning. Take the lowest value that D has after its peak, and let Z be the set
/// of steps that have run at the last moment at which D has this value. No set that contains Z has less memory, because
/// the dominant schedule D would go on to such a set. Consider the schedule that runs the steps of Z in the order of C,
/// and then the other steps in the order of D. Because memory is submodular, its first part is nowhere above C. If Z
/// contains the key of B, this schedule begins with that key, so C dominates it, and the claim follows as in the first
/// case. If Z does not contain that key, the schedule reaches the peak at some moment of its first part. Let X be the
/// set that C has run when it reaches the same steps of Z. C is not above the peak then, so submodularity implies that
/// the union of X and Z has no more memory than Z. This union contains the key of B. So the argument holds with the
/// union in place of Z.
template <class Table>
struct PumpkinSum {
  using Sum = typename Table::Sum;
  std::int64_t highest = 0, lowest = 0;  ///< highest and lowest value so far
  /// Sum of left(h) over the heights from 0 to `highest`. It is exact, because meet() adds products of two numbers
  /// below 2^62, or below 2^31 in a NarrowTable.
  Sum left = 0;

  CAIRN_HD void meet(std::int64_t peak, std::int64_t valley) {
    if (peak > highest) {
      left += Sum{peak - highest} * lowest;
      highest = peak;
    }
    if (valley < lowest) lowest = valley;
  }
};

/// Finds the segments from one end of a profile to its lowest valley, in order from that end. A segment begins when an
/// ascent goes higher than everything before, and ends at the next valley that is lower than everything before.
struct PumpkinWing {
  std::int64_t highest, lowest;
  std::int64_t peak;  ///< peak of the last segment
  std::int64_t count = 0;
  std::int64_t from = 0;  ///< value at which the last segment begins

  CAIRN_HD explicit PumpkinWing(std::int64_t start) : highest(start), lowest(start), peak(start) {}
  /// Adds the ascent to `top` and the descent to `valley`. If these two create a segment or make the last segment
  /// longer, calls put(number, ascent, descent) for that segment.
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

/// Returns the number of the candidate's segments. If `out` is not null, also writes them to `out`; n must then be the
/// number that a call without `out` returned.
template <class Table>
CAIRN_HD std::int64_t write_segments(const PumpkinCandidate<Table>& candidate, typename Table::Segment* out,
                                     std::int64_t n) {
  PumpkinWing left(0);
  const std::int64_t end = candidate.forwards([&](std::int64_t peak, std::int64_t valley) {
    left.meet(peak, valley, [&](std::int64_t i, std::int64_t ascent, std::int64_t descent) {
      if (out != nullptr) out[i] = Table::packed(ascent, descent);
    });
    return true;
  });
  PumpkinWing right(end);
  candidate.backwards(end, [&](std::int64_t peak, std::int64_t valley) {
    right.meet(peak, valley, [&](std::int64_t i, std::int64_t ascent, std::int64_t descent) {
      if (out != nullptr) out[n - 1 - i] = Table::packed(descent, ascent);
    });
  });
  // A wing is the list of segments from one end of the profile to its lowest valley. If neither wing contains the
  // highest value of the profile, one more segment lies between the wings. It rises to this value and falls back to the
  // same valley, so it leaves memory unchanged.
  const bool flat = left.highest > left.peak && left.highest > right.peak;
  const std::int64_t height = left.highest - left.lowest;
  if (flat && out != nullptr) out[left.count] = Table::packed(height, height);
  return left.count + right.count + (flat ? 1 : 0);
}

/// Holds the data of ChooseFirst and WriteSegments, the two passes over a layer (all states with one number of
/// branches).
template <class Table>
struct PumpkinPass {
  PumpkinSpace<Table> space;
  PumpkinLayer<Table> below;
  std::uint8_t* first;  ///< for each state of this layer, the kind that starts first
  std::int64_t size;    ///< number of branches in each of the layer's multisets
  std::int64_t begin;   ///< first state that this launch computes

  CAIRN_HD PumpkinCandidate<Table> candidate(std::int32_t kind, std::int64_t others) const {
    PumpkinCandidate<Table> made{unpacked(space.keys[kind]), below.segments + below.begin(others),
                                 below.segments + below.begin(others + 1), space.rests + space.rests_begin[kind],
                                 space.rests + space.rests_begin[kind + 1]};
    if (size == 1) made.key.drop += space.released;
    return made;
  }
};

/// Chooses the kind that starts first in a state, and counts the segments of the resulting schedule.
template <class Table>
struct ChooseFirst {
  static constexpr int kThreads = 1;
  PumpkinPass<Table> pass;
  typename Table::Offset* counts;

  template <class Team>
  CAIRN_HD void operator()(const Team& /*team*/, std::int64_t index) const {
    const std::int64_t rank = pass.begin + index;
    std::int32_t best = -1;
    PumpkinCandidate<Table> best_candidate{};
    std::int64_t peak = 0;
    typename Table::Sum left = 0;
    pass.space.ranks.for_each_kind(rank, pass.size, [&](std::int32_t kind, std::int64_t others) {
      const PumpkinCandidate<Table> candidate = pass.candidate(kind, others);
      PumpkinSum<Table> sum;
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
    counts[rank] = static_cast<typename Table::Offset>(write_segments(best_candidate, nullptr, 0));
  }
};

template <class Table>
struct WriteSegments {
  static constexpr int kThreads = 1;
  PumpkinPass<Table> pass;
  PumpkinLayer<Table> layer;  ///< the layer to write, whose offsets are known
  typename Table::Segment* segments;

  template <class Team>
  CAIRN_HD void operator()(const Team& /*team*/, std::int64_t index) const {
    const std::int64_t rank = pass.begin + index;
    const std::int32_t first = pass.first[rank];
    pass.space.ranks.for_each_kind(rank, pass.size, [&](std::int32_t kind, std::int64_t others) {
      if (kind != first) return true;
      const std::int64_t begin = layer.begin(rank);
      write_segments(pass.candidate(kind, others), segments + begin, layer.begin(rank + 1) - begin);
      return false;
    });
  }
};

/// Reads the order from the table. The first entry is the kind that starts first in the set of all branches, the next
/// entry is the kind that starts first in the set without this first branch, and so on.
struct WalkBack {
  static constexpr int kThreads = 1;
  PumpkinRanks ranks;
  const std::uint8_t* first;         ///< the kind that starts first, for each state, layer after layer
  const std::int64_t* layers_begin;  ///< first state of each size
  std::uint8_t* order;

  template <class Team>
  CAIRN_HD void operator()(const Team& /*team*/, std::int64_t /*index*/) const {
    std::int64_t rank = 0;
    for (std::int64_t size = ranks.branches; size > 0; --size) {
      const std::uint8_t chosen = first[layers_begin[size] + rank];
      order[ranks.branches - size] = chosen;
      ranks.for_each_kind(rank, size, [&](std::int32_t kind, std::int64_t others) {
        if (kind != chosen) return true;
        rank = others;
        return false;
      });
    }
  }
};

std::vector<std::int64_t> count_of_kinds_before(const PumpkinProblem& problem);

/// Holds the numbers of a problem that decide whether its table is a NarrowTable or a WideTable.
struct PumpkinScale {
  std::int64_t unit = 1;  ///< common divisor of all sizes, in bytes
  /// Sum of all rises, all drops and `released`, in units; no value of a profile is above this sum.
  std::int64_t sum = 0;
  std::int64_t segments = 0;  ///< number of segments of all branches; no state has more segments

  bool fits_narrow() const { return sum <= NarrowTable::kMostSum && segments <= NarrowTable::kMostSegments; }
};
PumpkinScale scale_of(const PumpkinProblem& problem);

/// Solves the dynamic program of solve_pumpkin() on a Machine, one layer (all states of one size) after another.
template <class Machine, class Table>
class PumpkinSolver {
 public:
  PumpkinSolver(Machine& machine, const PumpkinProblem& problem, const PumpkinOptions& options)
      : machine_(machine), problem_(problem), options_(options), unit_(scale_of(problem).unit) {}

  PumpkinAnswer solve() {
    const std::vector<std::int64_t> states = count_states(problem_);
    if (states.empty()) throw core::InputError("a pumpkin of so many branches has too many states for any table");
    const std::int64_t widest = *std::max_element(states.begin(), states.end());
    std::vector<std::int64_t> layers_begin{0};
    for (const std::int64_t count : states) layers_begin.push_back(layers_begin.back() + count);

    upload_problem();
    if (!fits(layers_begin.back() + bytes_of_offsets(widest))) return std::move(answer_);
    auto first = array<std::uint8_t>(layers_begin.back());
    sums_ = array<std::int32_t>(Layer::groups(widest));
    for (Arrays* arrays : {&layer_, &below_}) {
      arrays->offset = array<typename Table::Offset>(widest + 1);
      arrays->group_begin = array<std::int64_t>(Layer::groups(widest) + 1);
    }
    // The first layer has a single state, without branches and without segments.
    machine_.fill(layer_.offset.data(), 0, 2 * std::int64_t{sizeof(typename Table::Offset)});
    machine_.fill(layer_.group_begin.data(), 0, std::int64_t{sizeof(std::int64_t)});
    answer_.segments_of_layer.push_back(0);

    const auto branches = static_cast<std::int64_t>(states.size()) - 1;
    for (std::int64_t size = 1; size <= branches; ++size) {
      if (!solve_layer(size, states[size], first.data() + layers_begin[size])) return std::move(answer_);
    }

    auto layers = copy(layers_begin);
    auto order = array<std::uint8_t>(branches);
    machine_.launch(WalkBack{space_.ranks, first.data(), layers.data(), order.data()}, 1);
    answer_.order.resize(static_cast<std::size_t>(branches));
    machine_.download(order.data(), branches, answer_.order.data());
    std::vector<Segment> segments(static_cast<std::size_t>(answer_.segments_of_layer.back()));
    machine_.download(layer_.segments.data(), answer_.segments_of_layer.back(), segments.data());
    for (const Segment& segment : segments) {
      const core::Segment in_units = unpacked(segment);
      answer_.segments.push_back({in_units.rise * unit_, in_units.drop * unit_});
    }
    return std::move(answer_);
  }

  /// Returns the bytes that a layer of `states` states and the layer below it need besides their segments.
  static std::int64_t bytes_of_offsets(std::int64_t states) {
    return 2 * (states + 1) * std::int64_t{sizeof(typename Table::Offset)} +
           2 * (Layer::groups(states) + 1) * std::int64_t{sizeof(std::int64_t)} +
           Layer::groups(states) * std::int64_t{sizeof(std::int32_t)};
  }

 private:
  template <class T>
  using ArrayOf = typename Machine::template ArrayOf<T>;
  using Layer = PumpkinLayer<Table>;
  using Segment = typename Table::Segment;

  /// Owns the arrays of a PumpkinLayer.
  struct Arrays {
    ArrayOf<Segment> segments;
    ArrayOf<std::int64_t> group_begin;
    ArrayOf<typename Table::Offset> offset;

    Layer view() const { return {segments.data(), group_begin.data(), offset.data()}; }
  };

  /// Solves the `count` states of `size` branches. Returns false if the table does not fit into memory or `go_on` ended
  /// the search.
  bool solve_layer(std::int64_t size, std::int64_t count, std::uint8_t* first) {
    std::swap(layer_, below_);
    PumpkinPass<Table> pass{space_, below_.view(), first, size, 0};
    if (!in_chunks(count, size, [&](std::int64_t chunk_begin, std::int64_t chunk) {
          pass.begin = chunk_begin;
          machine_.launch(ChooseFirst<Table>{pass, layer_.offset.data()}, chunk);
        }))
      return false;
    const std::int64_t groups = Layer::groups(count);
    machine_.launch(SumGroup<Table>{count, layer_.offset.data(), sums_.data()}, groups);
    machine_.exclusive_sum(sums_.data(), layer_.group_begin.data(), groups);
    std::int64_t total = 0;
    machine_.download(layer_.group_begin.data() + groups, 1, &total);
    answer_.segments_of_layer.push_back(total);
    if (layer_.segments.size() < total) {
      release(layer_.segments);
      if (!fits(total * std::int64_t{sizeof(Segment)})) return false;
      layer_.segments = array<Segment>(total);
    }
    return in_chunks(count, 0, [&](std::int64_t chunk_begin, std::int64_t chunk) {
      pass.begin = chunk_begin;
      machine_.launch(WriteSegments<Table>{pass, layer_.view(), layer_.segments.data()}, chunk);
    });
  }

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
    const auto in_units = [&](const core::Segment& segment) {
      return Table::packed(segment.rise / unit_, segment.drop / unit_);
    };
    std::vector<Segment> keys, rests;
    std::vector<std::int64_t> rests_begin{0};
    for (const PumpkinKind& kind : problem_.kinds) {
      keys.push_back(in_units(kind.key));
      std::transform(kind.rest.begin(), kind.rest.end(), std::back_inserter(rests), in_units);
      rests_begin.push_back(static_cast<std::int64_t>(rests.size()));
    }
    keys_ = copy(keys);
    rests_ = copy(rests);
    rests_begin_ = copy(rests_begin);
    kinds_before_ = copy(count_of_kinds_before(problem_));
    space_ = {{kinds_before_.data(), static_cast<std::int32_t>(keys.size()), problem_.branches()},
              keys_.data(),
              rests_.data(),
              rests_begin_.data(),
              problem_.released / unit_};
  }

  /// Divides the states into chunks, and calls launch(begin, count) for one chunk after another. `work_of_state` is the
  /// number of candidates of a state, from which the number passed to `go_on` is computed. Returns false if `go_on`
  /// returned false.
  template <class Launch>
  bool in_chunks(std::int64_t states, std::int64_t work_of_state, const Launch& launch) {
    for (std::int64_t begin = 0; begin < states; begin += options_.chunk) {
      const std::int64_t count = std::min(options_.chunk, states - begin);
      launch(begin, count);
      if (!options_.go_on) continue;
      std::int64_t done;  // this copy waits for all launches; without it, a device would queue launches without limit
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
  const std::int64_t unit_;
  PumpkinAnswer answer_;
  std::int64_t taken_ = 0;
  ArrayOf<Segment> keys_, rests_;
  ArrayOf<std::int64_t> rests_begin_, kinds_before_;
  Arrays layer_, below_;
  ArrayOf<std::int32_t> sums_;  ///< number of segments of each group of states (PumpkinLayer)
  PumpkinSpace<Table> space_{};
};

template <class Machine>
PumpkinAnswer solve_pumpkin(Machine& machine, const PumpkinProblem& problem, const PumpkinOptions& options) {
  if (scale_of(problem).fits_narrow()) return PumpkinSolver<Machine, NarrowTable>(machine, problem, options).solve();
  return PumpkinSolver<Machine, WideTable>(machine, problem, options).solve();
}

}  // namespace cairn::solvers
