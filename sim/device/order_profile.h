#pragma once

#include <cstdint>
#include <cstring>

#include "cairn/core/machine/team.h"
#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/rewind.h"
#include "cairn/sim/schedule_batch.h"

/// Evaluates schedules that run every node once. A team evaluates several candidates at once: each has a lane, which is
/// a part of a machine word, so that one instruction handles the lanes of a word.
namespace cairn::sim::device {

/// Positions (steps, counted from 1) of two candidates in a word of 32 bits.
struct PairWord {
  using Position = std::uint16_t;
  static constexpr int kPositions = 2;

#ifdef CAIRN_DEVICE_PASS
  CAIRN_HD static std::uint32_t highest(std::uint32_t a, std::uint32_t b) { return __vmaxu2(a, b); }
  CAIRN_HD static std::uint32_t lowest(std::uint32_t a, std::uint32_t b) { return __vminu2(a, b); }
  CAIRN_HD static std::uint32_t equal(std::uint32_t a, std::uint32_t b) { return __vcmpeq2(a, b); }
#else
  CAIRN_HD static std::uint32_t highest(std::uint32_t a, std::uint32_t b) {
    return join(low(a) > low(b) ? a : b, high(a) > high(b) ? a : b);
  }
  CAIRN_HD static std::uint32_t lowest(std::uint32_t a, std::uint32_t b) {
    return join(low(a) < low(b) ? a : b, high(a) < high(b) ? a : b);
  }
  CAIRN_HD static std::uint32_t equal(std::uint32_t a, std::uint32_t b) {
    return join(low(a) == low(b) ? ~0U : 0U, high(a) == high(b) ? ~0U : 0U);
  }
#endif
  CAIRN_HD static bool is_set(std::uint32_t mask, int lane) { return (mask >> 16 * lane & 1U) != 0; }

 private:
  CAIRN_HD static std::uint32_t low(std::uint32_t word) { return word & 0xFFFFU; }
  CAIRN_HD static std::uint32_t high(std::uint32_t word) { return word >> 16; }
  CAIRN_HD static std::uint32_t join(std::uint32_t with_low, std::uint32_t with_high) {
    return low(with_low) | high(with_high) << 16;
  }
};

/// Position of one candidate in a word of 32 bits, for graphs of 65,535 nodes and more.
struct SingleWord {
  using Position = std::uint32_t;
  static constexpr int kPositions = 1;

  CAIRN_HD static std::uint32_t highest(std::uint32_t a, std::uint32_t b) { return a > b ? a : b; }
  CAIRN_HD static std::uint32_t lowest(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }
  CAIRN_HD static std::uint32_t equal(std::uint32_t a, std::uint32_t b) { return a == b ? ~0U : 0U; }
  CAIRN_HD static bool is_set(std::uint32_t mask, int /*lane*/) { return mask != 0; }
};

/// The lanes of kWords words, which are handled together. There are kCount lanes, one per candidate.
template <class Word, int kWords>
struct Lanes {
  static constexpr int kCount = kWords * Word::kPositions;
  using Position = typename Word::Position;

  /// Positions of one node in the candidates of all lanes: 1 .. n, or 0 if a candidate lacks the node.
  struct alignas(4 * kWords) Record {
    Position of[kCount];
  };
  struct Words {
    std::uint32_t word[kWords];
    CAIRN_HD bool is_set(int lane) const {
      return Word::is_set(word[lane / Word::kPositions], lane % Word::kPositions);
    }
  };

  CAIRN_HD static Words load(const Record& from) {
    const Record record = from;  // loads the record in one access
    Words words;
    memcpy(&words, &record, sizeof words);
    return words;
  }
  CAIRN_HD static void store(const Words& words, Record& to) {
    Record record;
    memcpy(&record, &words, sizeof words);
    to = record;
  }
  CAIRN_HD static Words all(std::uint32_t word) {
    Words words;
    for (int i = 0; i < kWords; ++i) words.word[i] = word;
    return words;
  }
  CAIRN_HD static Words highest(Words a, const Words& b) {
    CAIRN_UNROLL
    for (int i = 0; i < kWords; ++i) a.word[i] = Word::highest(a.word[i], b.word[i]);
    return a;
  }
  CAIRN_HD static Words lowest(Words a, const Words& b) {
    CAIRN_UNROLL
    for (int i = 0; i < kWords; ++i) a.word[i] = Word::lowest(a.word[i], b.word[i]);
    return a;
  }
  CAIRN_HD static Words equal(Words a, const Words& b) {
    CAIRN_UNROLL
    for (int i = 0; i < kWords; ++i) a.word[i] = Word::equal(a.word[i], b.word[i]);
    return a;
  }
};

/// Arrays that profile_orders() needs, shared by a team.
template <class Lanes, class Sum>
struct OrderSpace {
  typename Lanes::Record* position = nullptr;  ///< position of each node, node_count records
  /// Position of each value's last read, or 0 if the value is kept. Has value_count records.
  typename Lanes::Record* last = nullptr;
  /// For each step i and each lane, memory after step i minus memory after step i - 1. Has node_count records.
  Sum* change = nullptr;

  static CAIRN_HD std::int64_t bytes(std::int64_t nodes, std::int64_t values) {
    return records(nodes) + records(values) + aligned(static_cast<std::int64_t>(sizeof(Sum)) * Lanes::kCount * nodes);
  }
  static CAIRN_HD OrderSpace in(std::byte* memory, std::int64_t nodes, std::int64_t values) {
    std::byte* const last = memory + records(nodes);
    return {reinterpret_cast<typename Lanes::Record*>(memory), reinterpret_cast<typename Lanes::Record*>(last),
            reinterpret_cast<Sum*>(last + records(values))};
  }

 private:
  static CAIRN_HD std::int64_t records(std::int64_t count) {
    return aligned(static_cast<std::int64_t>(sizeof(typename Lanes::Record)) * count);
  }
  static CAIRN_HD std::int64_t aligned(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }
};

/// The highest value, and the first index at which it occurs.
template <class Sum>
struct Peak {
  Sum value = -1;
  std::int32_t place = INT32_MAX;

  struct Higher {
    CAIRN_HD Peak operator()(const Peak& a, const Peak& b) const {
      if (a.value != b.value) return a.value > b.value ? a : b;
      return a.place < b.place ? a : b;
    }
  };
};

/// Evaluates candidates first .. first + Lanes::kCount - 1 of a batch for profile_orders(), one per lane. The member
/// functions are the stages of the evaluation and must be called in the order in which they are defined. The threads of
/// the team wait for each other at the end of each stage. kSingle says whether every node has one output.
template <bool kSingle, class Lanes, class Sum, class Id, class Team>
class OrderLanes {
 public:
  using Words = typename Lanes::Words;
  using Record = typename Lanes::Record;
  static constexpr int kCandidates = Lanes::kCount;

  CAIRN_HD OrderLanes(const Team& team, const TablesView<Id>& graph, const BatchView<Id>& batch, std::int64_t first,
                      const OrderSpace<Lanes, Sum>& space)
      : team_(team),
        graph_(graph),
        space_(space),
        amounts_(graph.template amounts<Sum>()),
        outputs_(kSingle ? amounts_.size : amounts_.outputs),
        n_(graph.node_count) {
    CAIRN_UNROLL
    for (int lane = 0; lane < kCandidates; ++lane) {
      const std::int64_t c = first + lane;
      rows_[lane] = c < batch.count && batch.length[c] == n_ ? batch.steps + batch.begin[c] : nullptr;
    }
  }

  /// Sets the position of each node, counted from 1. The position is 0 if the candidate lacks the node.
  CAIRN_HD void find_positions() {
    using Position = typename Lanes::Position;
    for (std::int32_t v = team_.rank(); v < n_; v += team_.size()) Lanes::store(Lanes::all(0), space_.position[v]);
    team_.sync();
    for (std::int32_t i = team_.rank(); i < n_; i += team_.size()) {
      CAIRN_UNROLL
      for (int lane = 0; lane < kCandidates; ++lane) {
        if (rows_[lane] == nullptr) continue;
        const std::uint32_t v = rows_[lane][i];
        if (v < static_cast<std::uint32_t>(n_)) space_.position[v].of[lane] = static_cast<Position>(i + 1);
      }
    }
    team_.sync();
  }

  /// Sets the position of each value's last read. Finds the invalid lanes, in which a node is missing or reads a value
  /// before it is produced.
  CAIRN_HD void find_last_reads() {
    std::uint32_t bad = 0;  // one bit per lane
    for (std::int32_t x = team_.rank(); x < graph_.value_count; x += team_.size()) {
      const Words own = Lanes::load(space_.position[kSingle ? x : graph_.producer[x]]);
      Words last = own, early = own;
      for (std::int32_t e = graph_.reader_begin[x]; e < graph_.reader_begin[x + 1]; ++e) {
        const Words read = Lanes::load(space_.position[graph_.readers[e]]);
        last = Lanes::highest(last, read);
        early = Lanes::lowest(early, read);
      }
      Record at, earliest;
      Lanes::store(own, at);
      Lanes::store(early, earliest);
      CAIRN_UNROLL
      for (int lane = 0; lane < kCandidates; ++lane) {
        if (at.of[lane] == 0 || earliest.of[lane] != at.of[lane]) bad |= 1U << lane;
      }
      Lanes::store(graph_.keep[x] != 0 ? Lanes::all(0) : last, space_.last[x]);
    }
    bad_ = team_.reduce(bad, core::Or());
  }

  /// Sets the change of memory by each step: the bytes of the step's outputs minus the bytes of the values that the
  /// step frees.
  CAIRN_HD void find_changes() const {
    for (std::int32_t v = team_.rank(); v < n_; v += team_.size()) {
      const Words at = Lanes::load(space_.position[v]);
      Sum change[kCandidates];
      CAIRN_UNROLL
      for (int lane = 0; lane < kCandidates; ++lane) change[lane] = outputs_[v];
      const auto free = [&](std::uint32_t x) {
        const Words freed = Lanes::equal(Lanes::load(space_.last[x]), at);
        const Sum bytes = amounts_.size[x];
        CAIRN_UNROLL
        for (int lane = 0; lane < kCandidates; ++lane) change[lane] -= freed.is_set(lane) ? bytes : 0;
      };
      free(static_cast<std::uint32_t>(v));
      if constexpr (!kSingle) {
        for (std::int32_t x = graph_.further_begin[v]; x < graph_.further_begin[v + 1]; ++x) free(x);
      }
      const std::int32_t begin = kSingle ? graph_.predecessor_begin[v] : graph_.nodes[v].begin;
      const std::int32_t end = kSingle ? graph_.predecessor_begin[v + 1] : graph_.nodes[v].end;
      for (std::int32_t e = begin; e < end; ++e) free(graph_.template input<kSingle>(e));
      Record place;
      Lanes::store(at, place);
      CAIRN_UNROLL
      for (int lane = 0; lane < kCandidates; ++lane) {
        const std::int64_t i = place.of[lane];
        if (i > 0) space_.change[(i - 1) * kCandidates + lane] = change[lane];
      }
    }
    team_.sync();
  }

  /// Returns the outcome of the candidate in one lane, by adding up the changes of memory along its steps.
  CAIRN_HD Outcome outcome(int lane) const {
    Outcome outcome;
    if (rows_[lane] == nullptr || (bad_ >> lane & 1U) != 0) return outcome;
    const std::int32_t stretch = (n_ + team_.size() - 1) / team_.size();
    const std::int32_t begin = team_.rank() * stretch < n_ ? team_.rank() * stretch : n_;
    const std::int32_t end = begin + stretch < n_ ? begin + stretch : n_;
    const Sum* change = space_.change + lane;
    Sum own = 0, total = 0;
    for (std::int32_t i = begin; i < end; ++i) own += change[static_cast<std::int64_t>(i) * kCandidates];
    Sum live = team_.scan(own, total);
    Peak<Sum> peak;
    for (std::int32_t i = begin; i < end; ++i) {
      const std::int32_t v = rows_[lane][i];
      const Sum during = live + outputs_[v] + amounts_.scratch[v];
      if (during > peak.value) peak = {during, i};
      live += change[static_cast<std::int64_t>(i) * kCandidates];
    }
    peak = team_.reduce(peak, typename Peak<Sum>::Higher{});
    outcome.valid = true;
    outcome.cost = graph_.cost_once;
    if (n_ > 0) {
      outcome.peak = static_cast<std::int64_t>(peak.value) * (sizeof(Sum) == sizeof(std::int32_t) ? graph_.unit : 1);
      outcome.peak_step = peak.place;
    }
    return outcome;
  }

 private:
  const Team& team_;
  const TablesView<Id>& graph_;
  const OrderSpace<Lanes, Sum>& space_;
  const Amounts<Sum> amounts_;
  const Sum* const outputs_;
  const std::int32_t n_;
  /// Steps of each lane's candidate. nullptr if the number of steps is not the number of nodes.
  const Id* rows_[kCandidates];
  std::uint32_t bad_ = 0;  ///< one bit per lane
};

template <bool kSingle, class Lanes, class Sum, class Id, class Team, class Put>
CAIRN_HD void profile_orders_of(const Team& team, const TablesView<Id>& graph, const BatchView<Id>& batch,
                                std::int64_t first, const OrderSpace<Lanes, Sum>& space, const Put& put) {
  OrderLanes<kSingle, Lanes, Sum, Id, Team> lanes(team, graph, batch, first, space);
  lanes.find_positions();
  lanes.find_last_reads();
  lanes.find_changes();
  CAIRN_UNROLL
  for (int lane = 0; lane < Lanes::kCount; ++lane) put(lane, lanes.outcome(lane));
}

/// Evaluates candidates first .. first + Lanes::kCount - 1 of a batch. Each must be a permutation of the nodes;
/// otherwise it is reported as invalid. The position of each node is written while the steps are read. The last read of
/// an output is the highest position among its readers. A step frees the values of which it is the last read. The
/// memory profile is a prefix sum of the changes of memory. Every thread calls put(lane, outcome) for each lane. Takes
/// O((nodes + values + edges) / threads) time for a team of that many threads.
template <class Lanes, class Sum, class Id, class Team, class Put>
CAIRN_HD void profile_orders(const Team& team, const TablesView<Id>& graph, const BatchView<Id>& batch,
                             std::int64_t first, const OrderSpace<Lanes, Sum>& space, const Put& put) {
  if (graph.single_output()) {
    profile_orders_of<true>(team, graph, batch, first, space, put);
  } else {
    profile_orders_of<false>(team, graph, batch, first, space, put);
  }
}

}  // namespace cairn::sim::device
