#include "cairn/core/internal/transfer_trace.h"

#include <algorithm>
#include <limits>

#include "cairn/core/error.h"

namespace cairn::core {
namespace {

using Kind = Defect::Kind;
using Reason = Defect::Reason;

constexpr std::int32_t kNotMade = -1;
constexpr std::int32_t kOnHost = -2;

class Tracer {
 public:
  Tracer(const Graph& graph, const Schedule& schedule)
      : graph_(graph), schedule_(schedule), moves_(schedule.transfers), length_(schedule.length()) {}

  TransferTrace run() {
    TransferTrace trace;
    if (schedule_.length() > std::numeric_limits<std::int32_t>::max() - 1) {
      throw InputError("the schedule has more than 2^31 - 2 steps");
    }
    trace.defect = check_transfers();
    if (trace.defect.kind == Kind::none) trace.defect = check_steps();
    if (trace.defect.kind == Kind::none) trace.defect = check_end();
    if (trace.defect.kind == Kind::none) trace.defect = check_reads();
    trace.lives = std::move(lives_);
    return trace;
  }

 private:
  static Defect transfer_defect(Kind kind, std::size_t index, Reason reason, ValueId value, const Graph& graph) {
    Defect defect{.kind = kind};
    defect.transfer = static_cast<std::int64_t>(index);
    defect.reason = reason;
    if (value >= 0 && value < graph.value_count()) defect.node = graph.producer(value);
    return defect;
  }

  bool taken_over(ValueId x) const {
    return std::ranges::any_of(graph_.readers(x), [&](NodeId reader) {
      return std::ranges::any_of(graph_.outputs(reader), [&](ValueId out) { return graph_.inplace(out) == x; });
    });
  }

  Reason evict_fault(const Evict& evict) const {
    const ValueId x = evict.value;
    if (x < 0 || x >= graph_.value_count()) return Reason::unknown_value;
    const NodeId v = graph_.producer(x);
    if (graph_.pinned(v)) return Reason::pinned;
    if (taken_over(x)) return Reason::in_place;
    if (graph_.value_size(x) == 0) return Reason::no_bytes;
    if (evict.made < 0 || evict.made >= length_ || schedule_.steps[evict.made] != v) return Reason::not_made;
    if (evict.start < evict.made) return Reason::starts_early;
    if (evict.finish <= evict.start) return Reason::finishes_early;
    return evict.finish > length_ ? Reason::finishes_late : Reason::none;
  }

  Reason fetch_fault(const Fetch& fetch) const {
    if (fetch.evict < 0 || fetch.evict >= std::ssize(moves_.evicts)) return Reason::unknown_value;
    const Evict& evict = moves_.evicts[fetch.evict];
    if (fetch.start < evict.finish - 1) return Reason::starts_early;
    if (fetch.finish <= fetch.start) return Reason::finishes_early;
    const std::int64_t latest = length_ - (graph_.value_kept(evict.value) ? 0 : 1);
    return fetch.finish > latest ? Reason::finishes_late : Reason::none;
  }

  /// Checks the transfers one by one, and sorts them by `finish`, the step before which they are over.
  Defect check_transfers() {
    std::vector<std::pair<std::int64_t, ValueId>> occurrences;
    for (std::size_t e = 0; e < moves_.evicts.size(); ++e) {
      const Evict& evict = moves_.evicts[e];
      if (const Reason reason = evict_fault(evict); reason != Reason::none) {
        return transfer_defect(Kind::bad_evict, e, reason, evict.value, graph_);
      }
      occurrences.emplace_back(evict.made, evict.value);
      evicts_.push_back(static_cast<std::int32_t>(e));
    }
    std::ranges::sort(occurrences);
    const auto twice = std::ranges::adjacent_find(occurrences);
    for (std::size_t e = moves_.evicts.size(); twice != occurrences.end() && e-- > 0;) {
      const Evict& evict = moves_.evicts[e];
      if (std::pair(evict.made, evict.value) != *twice) continue;
      return transfer_defect(Kind::bad_evict, e, Reason::twice, evict.value, graph_);
    }
    for (std::size_t f = 0; f < moves_.fetches.size(); ++f) {
      const Fetch& fetch = moves_.fetches[f];
      if (const Reason reason = fetch_fault(fetch); reason != Reason::none) {
        const ValueId x = reason == Reason::unknown_value ? kNoValue : moves_.evicts[fetch.evict].value;
        return transfer_defect(Kind::bad_fetch, f, reason, x, graph_);
      }
      fetches_.push_back(static_cast<std::int32_t>(f));
    }
    const auto by_finish = [](const auto& all) {
      return [&all](std::int32_t a, std::int32_t b) {
        return all[a].finish != all[b].finish ? all[a].finish < all[b].finish : a < b;
      };
    };
    std::ranges::sort(evicts_, by_finish(moves_.evicts));
    std::ranges::sort(fetches_, by_finish(moves_.fetches));
    return {};
  }

  /// Applies the transfers that are over before `step` begins: each evict ends an occurrence on the device, and each
  /// fetch begins one.
  void finish_transfers(std::int64_t step) {
    for (; next_evict_ < evicts_.size() && moves_.evicts[evicts_[next_evict_]].finish <= step; ++next_evict_) {
      const std::int32_t e = evicts_[next_evict_];
      const std::int32_t slot = evicted_slot_[e];
      if (current_[moves_.evicts[e].value] == slot) current_[moves_.evicts[e].value] = kOnHost;
    }
    for (; next_fetch_ < fetches_.size() && moves_.fetches[fetches_[next_fetch_]].finish <= step; ++next_fetch_) {
      const std::int32_t f = fetches_[next_fetch_];
      const ValueId x = moves_.evicts[moves_.fetches[f].evict].value;
      current_[x] = fetched_slot(f);
    }
  }

  /// Numbers the occurrences: first those of the steps, then those of the fetches. The number of an occurrence is
  /// called its slot, and is its index in lives_.
  void make_slots() {
    for (std::int64_t i = 0; i < length_; ++i) {
      slot_begin_.push_back(static_cast<std::int32_t>(lives_.size()));
      const NodeId v = schedule_.steps[i];
      for (std::int32_t k = 0; k < graph_.output_count(v); ++k) lives_.push_back({v, i, i, k});
      if (lives_.size() > std::numeric_limits<std::int32_t>::max() - moves_.fetches.size() - 1) {
        throw InputError("the schedule makes more than 2^31 - 2 values");
      }
    }
    step_slots_ = static_cast<std::int32_t>(lives_.size());
    for (std::size_t e = 0; e < moves_.evicts.size(); ++e) {
      const Evict& evict = moves_.evicts[e];
      const std::int32_t slot = slot_begin_[evict.made] + graph_.output_ref(evict.value).output;
      evicted_slot_.push_back(slot);
      lives_[slot].evict = static_cast<std::int32_t>(e);
      lives_[slot].last = evict.finish - 1;
    }
    for (std::size_t f = 0; f < moves_.fetches.size(); ++f) {
      const Fetch& fetch = moves_.fetches[f];
      const OutputRef ref = graph_.output_ref(moves_.evicts[fetch.evict].value);
      Lifetime life{ref.node, fetch.start, fetch.start, ref.output};
      life.fetch = static_cast<std::int32_t>(f);
      lives_.push_back(life);
    }
  }

  std::int32_t fetched_slot(std::int32_t fetch) const { return step_slots_ + fetch; }

  Defect check_steps() {
    for (std::int64_t i = 0; i < length_; ++i) {
      const NodeId v = schedule_.steps[i];
      if (v < 0 || v >= graph_.node_count()) return {.kind = Kind::unknown_node, .step = i, .node = v};
    }
    make_slots();
    current_.assign(graph_.value_count(), kNotMade);
    std::vector<std::uint8_t> ran(graph_.node_count(), 0);
    for (std::int64_t i = 0; i < length_; ++i) {
      finish_transfers(i);
      const NodeId v = schedule_.steps[i];
      for (const ValueId x : graph_.inputs(v)) {
        const std::int32_t slot = current_[x];
        if (slot < 0) {
          const Kind kind = slot == kOnHost ? Kind::input_on_host : Kind::missing_input;
          return {.kind = kind, .step = i, .node = v, .input = graph_.producer(x)};
        }
        Lifetime& life = lives_[slot];
        life.last = std::max(life.last, i);
      }
      if (graph_.pinned(v) && ran[v] != 0) return {.kind = Kind::pinned_again, .step = i, .node = v};
      ran[v] = 1;
      for (const ValueId x : graph_.outputs(v)) current_[x] = slot_begin_[i] + graph_.output_ref(x).output;
    }
    finish_transfers(length_);
    for (NodeId v = 0; v < graph_.node_count(); ++v) {
      if (ran[v] == 0 && graph_.required(v)) return {.kind = Kind::missing_node, .node = v};
    }
    return {};
  }

  Defect check_end() {
    for (ValueId x = 0; x < graph_.value_count(); ++x) {
      if (!graph_.value_kept(x)) continue;
      if (current_[x] == kOnHost) return {.kind = Kind::kept_on_host, .node = graph_.producer(x)};
      lives_[current_[x]].last = length_;
    }
    return {};
  }

  Defect check_reads() {
    std::vector<std::uint8_t> fetched(moves_.evicts.size(), 0);
    for (std::size_t f = 0; f < moves_.fetches.size(); ++f) {
      const Fetch& fetch = moves_.fetches[f];
      fetched[fetch.evict] = 1;
      if (lives_[fetched_slot(static_cast<std::int32_t>(f))].last >= fetch.finish) continue;
      return transfer_defect(Kind::bad_fetch, f, Reason::unread, moves_.evicts[fetch.evict].value, graph_);
    }
    const auto unread = std::ranges::find(fetched, 0);
    if (unread == fetched.end()) return {};
    const auto e = static_cast<std::size_t>(unread - fetched.begin());
    return transfer_defect(Kind::bad_evict, e, Reason::unread, moves_.evicts[e].value, graph_);
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const Transfers& moves_;
  std::int64_t length_;
  std::vector<Lifetime> lives_;
  std::vector<std::int32_t> slot_begin_;        ///< for each step, the slot of its first output
  std::int32_t step_slots_ = 0;                 ///< number of slots of steps
  std::vector<std::int32_t> evicted_slot_;      ///< for each evict, slot of the occurrence that it copies
  std::vector<std::int32_t> evicts_, fetches_;  ///< indices of the transfers, ordered by `finish`
  std::size_t next_evict_ = 0, next_fetch_ = 0;
  std::vector<std::int32_t> current_;  ///< for each value, the slot that a step reads now, or kNotMade or kOnHost
};

}  // namespace

TransferTrace trace_transfers(const Graph& graph, const Schedule& schedule) { return Tracer(graph, schedule).run(); }

}  // namespace cairn::core
