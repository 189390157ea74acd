#include "cairn/solvers/order/internal/exact.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cairn/core/random.h"
#include "cairn/solvers/order/internal/exact_search.h"
#include "cairn/solvers/order/internal/min_cut.h"

namespace cairn::solvers {
namespace {

using Word = std::uint64_t;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

bool test(const Word* bits, std::int32_t i) { return (bits[i / 64] >> (i % 64) & 1) != 0; }
void set(Word* bits, std::int32_t i) { bits[i / 64] |= Word{1} << (i % 64); }
void clear(Word* bits, std::int32_t i) { bits[i / 64] &= ~(Word{1} << (i % 64)); }

/// Calls visit(i) for every bit that is set, ascending.
template <class Visit>
void for_each_bit(const Word* bits, std::int32_t words, const Visit& visit) {
  for (std::int32_t w = 0; w < words; ++w) {
    for (Word rest = bits[w]; rest != 0; rest &= rest - 1) visit(64 * w + std::countr_zero(rest));
  }
}

/// Lists of numbers, one after another.
struct Lists {
  std::vector<std::int32_t> begin{0}, items;

  std::span<const std::int32_t> operator[](std::int32_t i) const {
    return {items.data() + begin[i], items.data() + begin[i + 1]};
  }
  void close() { begin.push_back(static_cast<std::int32_t>(items.size())); }
};

/// Rows of bits.
struct BitRows {
  std::int32_t words = 0;
  std::vector<Word> bits;

  Word* operator[](std::int32_t row) { return bits.data() + static_cast<std::size_t>(row) * words; }
  const Word* operator[](std::int32_t row) const { return bits.data() + static_cast<std::size_t>(row) * words; }
};

/// Bytes that come with the first of some steps to run, or go with the last of them.
struct Groups {
  std::vector<std::int64_t> bytes;
  BitRows members;
  Lists of;  ///< the groups of each step
  // The same once more for each item of `of`: the search reads them one after another.
  std::vector<std::int64_t> item_bytes;
  BitRows item_members;
};

/// An ordering problem as the search sees it: from no step to all steps. Memory after a set of steps is the sum of
/// their rise - drop, plus `first` groups that the set touches, minus `last` groups that it holds; that is submodular.
/// Run from the end to the beginning it is a problem of the same form: rise and drop, predecessors and successors,
/// first and last change places.
struct Problem {
  std::int32_t count = 0, words = 0;
  std::int64_t start = 0;  ///< memory before the first step
  std::vector<std::int64_t> rise, drop;
  BitRows needs;  ///< predecessors
  Lists predecessors, successors;
  Groups first, last;
  BitRows related;  ///< of each step its successors and all that share a group with it
};

/// Makes a Problem of the steps between two cuts and shrinks it by rules that keep the least peak. All are instances of
/// one exchange argument. Let an order with memory at most T pass a cut X, and let X' hold X, be reachable from X
/// within T, and have no more memory than any cut between X and X'. Then running X' \ X first, and then the rest in
/// its old order, stays within T, as M(Y + X') <= M(Y) + M(X') - M(Y & X') <= M(Y) for every later cut Y
/// (submodularity). Read backwards in time the same holds.
///  - A step that raises memory in total runs right before the first of its successors, if the peaks of these cover
///    its own: it becomes a `first` group. (One successor: simply part of its rise. On chains these two rules make the
///    segments of Theorem 6.5.)
///  - One that lowers memory runs right after the last of its predecessors, if their peaks cover its own: a `last`
///  group.
///  - A group's last member to run is not one that comes before another member, nor its first one behind another.
class ExchangeRules {
 public:
  ExchangeRules(const StepGraph& graph, const Cut& from, const Cut& to) : graph_(graph), from_(from), to_(to) {
    number();
    relate();
    collect_groups();
    start_ = memory(graph, from);
    while (count() <= kMostReduced && pass()) {
    }
    merge_equal(first_);
    merge_equal(last_);
    renumber();
  }

  std::int32_t words() const { return std::max(1, (static_cast<std::int32_t>(alive_.size()) + 63) / 64); }
  Problem forward() const { return problem(start_, rise_, drop_, before_, after_, first_, last_); }
  Problem backward() const { return problem(end(), drop_, rise_, after_, before_, last_, first_); }

  /// An order of the problem's steps as one of the graph's: the rules undone, the last one first. O(n^2).
  std::vector<StepId> restore(std::span<const std::int32_t> order) const {
    std::vector<std::int32_t> local;
    for (const std::int32_t i : order) local.push_back(alive_[i]);
    for (auto removed = removed_.rbegin(); removed != removed_.rend(); ++removed) {
      const auto is_neighbour = [&](std::int32_t j) {
        return std::find(removed->neighbours.begin(), removed->neighbours.end(), j) != removed->neighbours.end();
      };
      const auto place = removed->before ? std::find_if(local.begin(), local.end(), is_neighbour)
                                         : std::find_if(local.rbegin(), local.rend(), is_neighbour).base();
      local.insert(place, removed->step);
    }
    std::vector<StepId> steps;
    for (const std::int32_t i : local) steps.push_back(original_[i]);
    return steps;
  }

 private:
  struct Group {
    std::int64_t bytes = 0;
    std::vector<Word> members;
  };
  /// A step that runs right before the first of its neighbours, or right after the last; without any, at the very end
  /// or beginning.
  struct Removed {
    std::int32_t step = 0;
    bool before = false;
    std::vector<std::int32_t> neighbours;
  };

  void number() {
    local_.assign(static_cast<std::size_t>(graph_.step_count()), -1);
    for (const StepId s : graph_.any_order()) {
      if (!to_.contains(s) || from_.contains(s)) continue;
      local_[s] = count();
      original_.push_back(s);
      rise_.push_back(graph_[s].rise);
      drop_.push_back(graph_[s].drop);
      alive_.push_back(local_[s]);
    }
    words_ = (count() + 63) / 64;
  }

  static constexpr std::int32_t kMostReduced = kMostExactSteps;

  std::int32_t count() const { return static_cast<std::int32_t>(original_.size()); }

  /// All steps before and behind each; only the nearest in a large problem.
  void relate() {
    const std::size_t bits = static_cast<std::size_t>(count()) * words_;
    before_ = {words_, std::vector<Word>(bits, 0)};
    after_ = before_;
    for (std::int32_t i = 0; i < count(); ++i) {
      for (const StepId p : graph_.predecessors(original_[i])) {
        if (local_[p] >= 0) include(before_, i, local_[p]);
      }
    }
    for (std::int32_t i = count(); i-- > 0;) {
      for (const StepId t : graph_.successors(original_[i])) {
        if (local_[t] >= 0) include(after_, i, local_[t]);
      }
    }
  }

  /// j and all of row j into row i.
  void include(BitRows& rows, std::int32_t i, std::int32_t j) {
    for (std::int32_t w = 0; w < words_ && count() <= kMostReduced; ++w) rows[i][w] |= rows[j][w];
    set(rows[i], j);
  }

  /// What a step holds goes with the last of its successors, unless one is outside.
  void collect_groups() {
    for (StepId s = 0; s < graph_.step_count(); ++s) {
      if (graph_[s].held == 0 || !to_.contains(s)) continue;
      Group group{graph_[s].held, std::vector<Word>(static_cast<std::size_t>(words_), 0)};
      bool inside = true, waiting = false;
      for (const StepId t : graph_.successors(s)) {
        inside = inside && to_.contains(t);
        if (local_[t] < 0) continue;
        waiting = true;
        set(group.members.data(), local_[t]);
      }
      if (inside && waiting) last_.push_back(std::move(group));
    }
  }

  bool pass() {
    bool changed = tidy(first_, before_, rise_);
    changed = tidy(last_, after_, drop_) || changed;
    for (std::size_t k = 0; k < alive_.size(); ++k) {
      const std::int32_t i = alive_[k];
      if (!run_before_successors(i) && !run_after_predecessors(i)) continue;
      changed = true;
      alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(k--));
    }
    return changed;
  }

  /// Drops members that others make superfluous; what only one step decides is that step's own.
  bool tidy(std::vector<Group>& groups, const BitRows& beyond, std::vector<std::int64_t>& own) {
    bool changed = false;
    for (std::size_t g = 0; g < groups.size();) {
      Word* members = groups[g].members.data();
      std::int32_t members_left = 0, only = -1;
      for_each_bit(members, words_, [&](std::int32_t i) {
        for (std::int32_t w = 0; w < words_; ++w) {
          if ((beyond[i][w] & members[w]) != 0) return clear(members, i);
        }
        ++members_left;
        only = i;
      });
      if (members_left == 1) own[only] += groups[g].bytes;
      // What waits for nothing goes at the beginning. (What comes before nothing comes at the end: no peak is there.)
      if (members_left == 0 && &groups == &last_) start_ -= groups[g].bytes;
      if (members_left > 1 && groups[g].bytes > 0) {
        ++g;
        continue;
      }
      changed = true;
      groups[g] = std::move(groups.back());
      groups.pop_back();
    }
    return changed;
  }

  static bool in_any(const std::vector<Group>& groups, std::int32_t i) {
    return std::any_of(groups.begin(), groups.end(), [&](const Group& g) { return test(g.members.data(), i); });
  }

  bool run_before_successors(std::int32_t i) {
    if (rise_[i] < drop_[i] || in_any(last_, i)) return false;
    auto behind = covers(i, after_);
    if (!covered(drop_[i], behind, rise_)) return false;
    become_group(i, rise_[i] - drop_[i], behind, first_);
    removed_.push_back({i, true, std::move(behind)});
    return true;
  }

  bool run_after_predecessors(std::int32_t i) {
    if (rise_[i] > drop_[i] || in_any(first_, i)) return false;
    auto before = covers(i, before_);
    if (!covered(rise_[i], before, drop_)) return false;
    become_group(i, drop_[i] - rise_[i], before, last_);
    removed_.push_back({i, false, std::move(before)});
    return true;
  }

  /// Does the peak of each neighbour stand so many bytes or more above the memory on this side of it? Where there is
  /// none, the step is the last, or the first, of all: its peak must not stand above the memory there.
  static bool covered(std::int64_t bytes, const std::vector<std::int32_t>& neighbours,
                      const std::vector<std::int64_t>& heights) {
    if (neighbours.empty()) return bytes == 0;
    return std::all_of(neighbours.begin(), neighbours.end(), [&](std::int32_t j) { return heights[j] >= bytes; });
  }

  /// Step i no longer counts; its bytes, and the groups it is in, hang on its neighbours of one side.
  void become_group(std::int32_t i, std::int64_t bytes, const std::vector<std::int32_t>& neighbours,
                    std::vector<Group>& groups) {
    Group own{bytes, std::vector<Word>(static_cast<std::size_t>(words_), 0)};
    for (const std::int32_t j : neighbours) set(own.members.data(), j);
    for (Group& group : groups) {
      if (!test(group.members.data(), i)) continue;
      clear(group.members.data(), i);
      for (std::int32_t w = 0; w < words_; ++w) group.members[w] |= own.members[w];
    }
    groups.push_back(std::move(own));
    for (const std::int32_t j : alive_) {
      clear(before_[j], i);
      clear(after_[j], i);
    }
  }

  /// The steps of a row that are not beyond another one of it.
  std::vector<std::int32_t> covers(std::int32_t i, const BitRows& rows) const {
    std::vector<Word> bits(rows[i], rows[i] + words_);
    for_each_bit(rows[i], words_, [&](std::int32_t j) {
      for (std::int32_t w = 0; w < words_; ++w) bits[w] &= ~rows[j][w];
    });
    std::vector<std::int32_t> result;
    for_each_bit(bits.data(), words_, [&](std::int32_t j) { result.push_back(j); });
    return result;
  }

  static void merge_equal(std::vector<Group>& groups) {
    std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.members < b.members; });
    std::size_t kept = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (kept > 0 && groups[kept - 1].members == groups[g].members) {
        groups[kept - 1].bytes += groups[g].bytes;
      } else {
        if (kept != g) groups[kept] = std::move(groups[g]);
        ++kept;
      }
    }
    groups.resize(kept);
  }

  void renumber() {
    new_number_.assign(static_cast<std::size_t>(count()), -1);
    for (std::size_t k = 0; k < alive_.size(); ++k) new_number_[alive_[k]] = static_cast<std::int32_t>(k);
  }

  std::int64_t end() const {
    std::int64_t bytes = start_;
    for (const std::int32_t i : alive_) bytes += rise_[i] - drop_[i];
    for (const Group& group : first_) bytes += group.bytes;
    for (const Group& group : last_) bytes -= group.bytes;
    return bytes;
  }

  Problem problem(std::int64_t start, const std::vector<std::int64_t>& rise, const std::vector<std::int64_t>& drop,
                  const BitRows& before, const BitRows& after, const std::vector<Group>& first,
                  const std::vector<Group>& last) const {
    Problem p;
    p.count = static_cast<std::int32_t>(alive_.size());
    p.words = std::max(1, (p.count + 63) / 64);
    p.start = start;
    p.needs = {p.words, std::vector<Word>(static_cast<std::size_t>(p.count) * p.words, 0)};
    for (std::int32_t k = 0; k < p.count; ++k) {
      p.rise.push_back(rise[alive_[k]]);
      p.drop.push_back(drop[alive_[k]]);
      for (const std::int32_t j : covers(alive_[k], before)) {
        p.predecessors.items.push_back(new_number_[j]);
        set(p.needs[k], new_number_[j]);
      }
      p.predecessors.close();
      for (const std::int32_t j : covers(alive_[k], after)) p.successors.items.push_back(new_number_[j]);
      p.successors.close();
    }
    p.first = groups(p, first);
    p.last = groups(p, last);
    p.related = {p.words, std::vector<Word>(p.needs.bits.size(), 0)};
    for (std::int32_t k = 0; k < p.count; ++k) {
      for (const std::int32_t j : p.successors[k]) set(p.related[k], j);
      for (const Groups* all : {&p.first, &p.last}) {
        for (const std::int32_t g : all->of[k]) {
          for (std::int32_t w = 0; w < p.words; ++w) p.related[k][w] |= all->members[g][w];
        }
      }
    }
    return p;
  }

  Groups groups(const Problem& p, const std::vector<Group>& from) const {
    Groups groups;
    groups.members = {p.words, std::vector<Word>(from.size() * p.words, 0)};
    groups.item_members.words = p.words;
    for (std::size_t g = 0; g < from.size(); ++g) {
      groups.bytes.push_back(from[g].bytes);
      for_each_bit(from[g].members.data(), words_,
                   [&](std::int32_t i) { set(groups.members[static_cast<std::int32_t>(g)], new_number_[i]); });
    }
    for (std::int32_t k = 0; k < p.count; ++k) {
      for (std::int32_t g = 0; g < static_cast<std::int32_t>(from.size()); ++g) {
        if (!test(groups.members[g], k)) continue;
        groups.of.items.push_back(g);
        groups.item_bytes.push_back(groups.bytes[g]);
        groups.item_members.bits.insert(groups.item_members.bits.end(), groups.members[g], groups.members[g] + p.words);
      }
      groups.of.close();
    }
    return groups;
  }

  const StepGraph& graph_;
  const Cut& from_;
  const Cut& to_;
  std::vector<std::int32_t> local_;  ///< of the graph's steps; -1 outside
  std::int32_t words_ = 0;
  std::int64_t start_ = 0;
  std::vector<std::int64_t> rise_, drop_;
  std::vector<StepId> original_;     ///< of the local steps
  std::vector<std::int32_t> alive_;  ///< local steps that are left, in topological order
  std::vector<Removed> removed_;
  std::vector<std::int32_t> new_number_;
  BitRows before_, after_;
  std::vector<Group> first_, last_;
};

/// A set of steps that have run, and what follows from it.
struct State {
  Word* ran;
  Word* ready;
  std::int64_t memory;
  std::uint64_t hash;
};

/// Bottleneck search from no step to all steps: explores all that can be reached without memory above a threshold,
/// states of the most steps first. Moves above it wait until nothing else is left and the threshold rises to the lowest
/// of them: so the threshold is a lower bound all the time.
///
/// By the exchange argument above a state that can be reached from another one, A, and has no more memory than any cut
/// between, supersedes A. Steps that fit under the threshold and leave memory no higher are the simplest case; they run
/// at once. In general a tree over the states keeps the way to each, and when a state Z turns up with no more memory
/// than an ancestor A in it, all that was found behind A gives way to the lowest cut between A and Z (it can be reached
/// too: Lemma 3.13). What is left of the tree then rises strictly from the root to each leaf: the search does not
/// go back above a valley once it is in it.
///
/// A state is live if it can be reached from the root by moves from expanded states, where from a superseded one there
/// is but the way to what supersedes it. If the target can be reached from the root within some threshold, it can from
/// a live state that is open or has a move that waits: walk from the root, each time to a state from which the target
/// can still be reached. So states that are not live are dropped, and visited again where a live one leads there.
template <std::int32_t kWords>
class Search {
 public:
  enum class Status { open, reached, exhausted };

  explicit Search(const Problem& problem) : p_(problem), words_(kWords > 0 ? kWords : problem.words) {
    core::Random random(0x5eed);
    for (std::int32_t i = 0; i < p_.count; ++i) key_.push_back(random.next());
    buffer_.resize(static_cast<std::size_t>(4 * words_));
    State root = scratch(0);
    std::fill(buffer_.begin(), buffer_.end(), 0);
    root.memory = p_.start;
    for (std::int32_t i = 0; i < p_.count; ++i) {
      if (p_.predecessors[i].empty()) set(root.ready, i);
    }
    plant(root);
  }

  /// Looks at `count` states or moves within the threshold, which must not fall from call to call. Exhausted: no order
  /// has a peak within it.
  Status advance(std::int64_t threshold, std::int64_t count, core::Stopwatch& watch) {
    threshold_ = threshold;
    for (; goal_ < 0 && count > 0 && !watch.charge(p_.count).expired(); --count) {
      if (next_threshold() <= threshold_) {
        ++work_;
        const Blocked move = pop(near_);
        follow(move.node, move.step);
      } else if (!open_.empty()) {
        const std::int32_t node = pop(open_).second;
        if (!live(node)) continue;
        work_ += p_.count;
        expand(node);
      } else {
        return Status::exhausted;
      }
    }
    return goal_ >= 0 ? Status::reached : Status::open;
  }

  /// The least threshold that lets another move through; kNever if there is none.
  std::int64_t next_threshold() {
    for (;;) {
      while (!near_.empty() && !live(near_.front().node)) pop(near_);
      if (!near_.empty()) return near_.front().peak;
      if (!refill()) return kNever;
    }
  }

  /// The way to all steps, once it is reached.
  std::vector<std::int32_t> path() const { return path_to(goal_); }

  /// Drops moves above this peak from now on.
  void limit(std::int64_t most) { most_ = std::min(most_, most); }

  /// A peak that some order does not exceed: `completed_path` before the search.
  std::int64_t greedy_peak() {
    completed_path();
    return greedy_peak_;
  }

  /// Some way to all steps: from the state with the most steps on whatever raises the peak least.
  std::vector<std::int32_t> completed_path() {
    std::int32_t best = 0;
    for (std::int32_t node = 0; node < node_count(); ++node) {
      if (size_of(node) > size_of(best)) best = node;
    }
    std::vector<std::int32_t> order = path_to(best);
    State state = load(best, 0);
    std::int64_t peak = std::max(threshold_, p_.start);
    while (static_cast<std::int32_t>(order.size()) < p_.count) {
      std::int32_t choice = -1;
      std::pair<std::int64_t, std::int64_t> least{kNever, kNever};
      for_each_bit(state.ready, words_, [&](std::int32_t i) {
        const Move move = evaluate(state, i);
        const std::pair<std::int64_t, std::int64_t> key{std::max(peak, move.peak), move.after};
        if (choice < 0 || key < least) {
          choice = i;
          least = key;
        }
      });
      peak = least.first;
      run(state, choice, least.second);
      order.push_back(choice);
    }
    greedy_peak_ = peak;
    return order;
  }

  std::int64_t states() const { return states_; }
  std::int64_t work() const { return work_; }
  std::int64_t bytes() const {
    // Numbers of nodes have 31 bits.
    if (node_count() > std::numeric_limits<std::int32_t>::max() / 2) return kNever / 4;
    return static_cast<std::int64_t>(node_.capacity() * sizeof(Node) + links_.capacity() * sizeof(Link) +
                                     bits_.capacity() * sizeof(Word) + table_.capacity() * sizeof(Slot) +
                                     open_.capacity() * sizeof(Open) +
                                     (near_.capacity() + far_.capacity()) * sizeof(Blocked));
  }

 private:
  struct Move {
    std::int64_t peak, after;
  };
  struct Node {
    std::int64_t memory = 0;
    std::uint64_t hash = 0;
    std::int32_t parent = -1;      ///< how it was reached first
    std::int32_t step = kClosure;  ///< the step that was run at the parent, before the closure; kPart
    std::int32_t links = -1;       ///< the other nodes that lead to it: a list in links_
    std::int32_t above = -1;       ///< the live one, of all that lead to it
    std::int32_t superseded_by = -1;
    std::uint32_t checked = 0;  ///< the number of commits when it was last found live; kDead
  };
  struct Link {
    std::int32_t from, next;
  };
  static constexpr std::int32_t kClosure = -1;  ///< no step but the closure
  static constexpr std::int32_t kPart = -2;     ///< reached by those steps to the parent that it holds
  static constexpr std::uint32_t kDead = std::numeric_limits<std::uint32_t>::max();
  using Open = std::pair<std::int32_t, std::int32_t>;  ///< -steps, node
  struct Slot {
    std::uint32_t tag = 0;
    std::int32_t node = -1;
  };
  struct Blocked {
    std::int64_t peak = 0;
    std::int32_t node = 0, step = 0;
    auto operator<=>(const Blocked&) const = default;
  };

  std::int32_t node_count() const { return static_cast<std::int32_t>(node_.size()); }
  Word* bits_of(std::int32_t node) { return bits_.data() + static_cast<std::size_t>(node) * 2 * words_; }
  const Word* bits_of(std::int32_t node) const { return bits_.data() + static_cast<std::size_t>(node) * 2 * words_; }
  std::int32_t size_of(std::int32_t node) const {
    std::int32_t size = 0;
    for (std::int32_t w = 0; w < words_; ++w) size += std::popcount(bits_of(node)[w]);
    return size;
  }

  State scratch(std::int32_t which) {
    Word* words = buffer_.data() + static_cast<std::size_t>(2 * which) * words_;
    return {words, words + words_, 0, 0};
  }
  State load(std::int32_t node, std::int32_t which) {
    State state = scratch(which);
    std::copy(bits_of(node), bits_of(node) + 2 * words_, state.ran);
    state.memory = node_[node].memory;
    state.hash = node_[node].hash;
    return state;
  }

  bool disjoint(const Word* a, const Word* b) const {
    for (std::int32_t w = 0; w < words_; ++w) {
      if ((a[w] & b[w]) != 0) return false;
    }
    return true;
  }
  bool within(const Word* a, const Word* b) const {
    for (std::int32_t w = 0; w < words_; ++w) {
      if ((a[w] & ~b[w]) != 0) return false;
    }
    return true;
  }

  /// Memory while step i runs at the state, and after it.
  Move evaluate(State& state, std::int32_t i) const {
    Move move;
    move.peak = state.memory + p_.rise[i];
    const Groups &first = p_.first, &last = p_.last;
    for (std::int32_t k = first.of.begin[i]; k < first.of.begin[i + 1]; ++k) {
      if (disjoint(row(first.item_members, k), state.ran)) move.peak += first.item_bytes[k];
    }
    move.after = move.peak - p_.drop[i];
    set(state.ran, i);
    for (std::int32_t k = last.of.begin[i]; k < last.of.begin[i + 1]; ++k) {
      if (within(row(last.item_members, k), state.ran)) move.after -= last.item_bytes[k];
    }
    clear(state.ran, i);
    return move;
  }
  const Word* row(const BitRows& rows, std::int32_t i) const {
    return rows.bits.data() + static_cast<std::size_t>(i) * words_;
  }

  void run(State& state, std::int32_t i, std::int64_t after) const {
    set(state.ran, i);
    clear(state.ready, i);
    state.memory = after;
    state.hash ^= key_[i];
    for (const std::int32_t j : p_.successors[i]) {
      if (within(p_.needs[j], state.ran)) set(state.ready, j);
    }
  }

  /// Runs all that fits under the threshold and leaves memory no higher. The result does not depend on the order.
  void close(State& state) const {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::int32_t w = 0; w < words_; ++w) {
        for (Word rest = state.ready[w]; rest != 0; rest &= rest - 1) {
          const std::int32_t i = 64 * w + std::countr_zero(rest);
          const Move move = evaluate(state, i);
          if (move.peak > threshold_ || move.after > state.memory) continue;
          run(state, i, move.after);
          changed = true;
        }
      }
    }
  }

  bool complete(const State& state) const {
    std::int32_t size = 0;
    for (std::int32_t w = 0; w < words_; ++w) size += std::popcount(state.ran[w]);
    return size == p_.count;
  }

  /// Makes the state the root of an empty tree.
  void plant(const State& state) {
    node_.clear();
    bits_.clear();
    open_.clear();
    near_.clear();
    far_.clear();
    horizon_ = std::numeric_limits<std::int64_t>::min();
    table_.assign(64, Slot());
    links_.clear();
    insert(state, -1, kClosure);
    open_.emplace_back(0, 0);
    if (complete(state)) goal_ = 0;
  }

  std::int32_t insert(const State& state, std::int32_t parent, std::int32_t step) {
    const std::int32_t node = node_count();
    node_.push_back({state.memory, state.hash, parent, step, -1, parent, -1, 0});
    bits_.insert(bits_.end(), state.ran, state.ran + 2 * words_);
    if (2 * node_.size() > table_.size()) grow();
    table_[slot_of(state)] = {tag(state.hash), node};
    ++states_;
    return node;
  }

  /// Where the state is in the table, or the free place where it would be.
  std::size_t slot_of(const State& state) const {
    std::size_t slot = state.hash & (table_.size() - 1);
    while (table_[slot].node >= 0 && !(table_[slot].tag == tag(state.hash) && same(table_[slot].node, state))) {
      slot = (slot + 1) & (table_.size() - 1);
    }
    return slot;
  }
  static std::uint32_t tag(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
  bool same(std::int32_t node, const State& state) const {
    const Word* bits = bits_of(node);
    for (std::int32_t w = 0; w < words_; ++w) {
      if (bits[w] != state.ran[w]) return false;
    }
    return true;
  }

  void grow() {
    std::vector<Slot> old(table_.size() * 2);
    old.swap(table_);
    for (const Slot& entry : old) {
      if (entry.node < 0) continue;
      std::size_t slot = node_[entry.node].hash & (table_.size() - 1);
      while (table_[slot].node >= 0) slot = (slot + 1) & (table_.size() - 1);
      table_[slot] = entry;
    }
  }

  /// Walks up to where this was last found out since the last commit. Depth: the number of steps at most.
  bool live(std::int32_t node) {
    if (node_[node].checked == kDead) return false;
    if (node_[node].checked == commits_ || node_[node].parent < 0) return true;
    bool found = node_[node].step != kPart && leads_to(node_[node].parent, node);
    for (std::int32_t k = node_[node].links; !found && k >= 0; k = links_[k].next)
      found = leads_to(links_[k].from, node);
    node_[node].checked = found ? commits_ : kDead;
    return found;
  }
  bool leads_to(std::int32_t from, std::int32_t node) {
    const std::int32_t by = node_[from].superseded_by;
    if ((by >= 0 && by != node) || !live(from)) return false;
    node_[node].above = from;
    return true;
  }
  void link(std::int32_t from, std::int32_t node) {
    links_.push_back({from, node_[node].links});
    node_[node].links = static_cast<std::int32_t>(links_.size()) - 1;
  }

  template <class Entry>
  static void push(std::vector<Entry>& heap, Entry entry) {
    heap.push_back(entry);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  template <class Entry>
  static Entry pop(std::vector<Entry>& heap) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const Entry entry = heap.back();
    heap.pop_back();
    return entry;
  }

  void block(const Blocked& move) {
    if (move.peak > most_) return;
    if (move.peak < horizon_) {
      push(near_, move);
    } else {
      far_.push_back(move);
    }
  }

  /// Takes the lowest of the moves beyond the horizon. Most moves are superseded before their turn: a heap of all of
  /// them would be large, and each access to it a cache miss.
  bool refill() {
    std::erase_if(far_, [&](const Blocked& move) { return !live(move.node); });
    if (far_.empty()) return false;
    const auto size = static_cast<std::ptrdiff_t>(far_.size());
    const auto last = far_.begin() + std::min(size - 1, std::max<std::ptrdiff_t>(1024, size / 16));
    std::nth_element(far_.begin(), last, far_.end());
    horizon_ = last->peak + 1;
    const auto beyond =
        std::partition(far_.begin(), far_.end(), [&](const Blocked& move) { return move.peak >= horizon_; });
    near_.assign(beyond, far_.end());
    far_.erase(beyond, far_.end());
    std::make_heap(near_.begin(), near_.end(), std::greater<>());
    return true;
  }

  void expand(std::int32_t node) {
    State state = load(node, 0);
    moves_.clear();
    for (std::int32_t w = 0; w < words_; ++w) {
      for (Word rest = state.ready[w]; rest != 0; rest &= rest - 1) {
        const std::int32_t i = 64 * w + std::countr_zero(rest);
        const Move move = evaluate(state, i);
        if (move.peak <= threshold_ && move.after <= state.memory) {
          // The threshold has risen since the state was closed.
          close(state);
          return arrive(state, node, kClosure);
        }
        moves_.push_back({move, i});
      }
    }
    const std::size_t epoch = epoch_;
    for (const auto& [move, i] : moves_) {
      if (move.peak > threshold_) {
        block({move.peak, node, i});
        continue;
      }
      State next = scratch(1);
      std::copy(state.ran, state.ran + 2 * words_, next.ran);
      next.memory = state.memory;
      next.hash = state.hash;
      run(next, i, move.after);
      if (opens_descent(next, i)) close(next);
      arrive(next, node, i);
      if (goal_ >= 0 || epoch != epoch_ || node_[node].superseded_by >= 0) return;
    }
  }

  /// From a closed state a move upwards makes room for nothing but what it has to do with.
  bool opens_descent(State& state, std::int32_t i) const {
    const Word* related = p_.related[i];
    for (std::int32_t w = 0; w < words_; ++w) {
      for (Word rest = state.ready[w] & related[w]; rest != 0; rest &= rest - 1) {
        const Move move = evaluate(state, 64 * w + std::countr_zero(rest));
        if (move.peak <= threshold_ && move.after <= state.memory) return true;
      }
    }
    return false;
  }

  /// Runs step i at the node, within the threshold.
  void follow(std::int32_t node, std::int32_t i) {
    State state = load(node, 1);
    run(state, i, evaluate(state, i).after);
    close(state);
    arrive(state, node, i);
  }

  void arrive(const State& state, std::int32_t parent, std::int32_t step) {
    if (const std::int32_t known = table_[slot_of(state)].node; known >= 0 && live(known)) return link(parent, known);
    const std::int32_t node = insert(state, parent, step);
    if (complete(state)) {
      goal_ = node;
      return;
    }
    commit(node);
  }

  /// Lets the node supersede the highest ancestor it can, and opens it; or else the lowest cut between, which can be
  /// reached as well (Lemma 3.13).
  void commit(std::int32_t node) {
    std::int32_t ancestor = -1;
    for (std::int32_t a = node_[node].above; a >= 0 && node_[a].memory >= node_[node].memory; a = node_[a].above) {
      ancestor = a;
    }
    if (ancestor < 0 || node_[ancestor].superseded_by == node) {
      push(open_, Open(-size_of(node), node));
      return;
    }
    ++commits_;
    State lowest = scratch(1);
    if (!least_between(ancestor, node, lowest)) {
      push(open_, Open(-size_of(node), node));  // it may be live for other reasons
      node = insert(lowest, node, kPart);
    }
    if (node_[ancestor].parent < 0) {
      prefix_ = path_to(node);
      State root = load(node, 1);
      ++epoch_;
      plant(root);
      return;
    }
    node_[ancestor].superseded_by = node;
    node_[node].above = ancestor;
    link(ancestor, node);
    commit(node);
  }

  /// Does `node` have the least memory of all cuts between the ancestor and itself? If not, the one that has.
  bool least_between(std::int32_t ancestor, std::int32_t node, State& lowest) {
    const Word* low = bits_of(ancestor);
    const Word* high = bits_of(node);
    weights_.clear();
    needs_.clear();
    between_.clear();
    place_.resize(static_cast<std::size_t>(p_.count), -1);
    for (std::int32_t i = 0; i < p_.count; ++i) {
      place_[i] = -1;
      if (!test(high, i) || test(low, i)) continue;
      place_[i] = static_cast<std::int32_t>(between_.size());
      between_.push_back(i);
      weights_.push_back(p_.rise[i] - p_.drop[i]);
    }
    if (between_.size() == 1) return true;
    for (const std::int32_t i : between_) {
      for (const std::int32_t j : p_.predecessors[i]) {
        if (place_[j] >= 0) needs_.emplace_back(place_[i], place_[j]);
      }
    }
    for (std::int32_t g = 0; g < static_cast<std::int32_t>(p_.first.bytes.size()); ++g) {
      if (!disjoint(p_.first.members[g], low) || disjoint(p_.first.members[g], high)) continue;
      weights_.push_back(p_.first.bytes[g]);
      for_each_bit(p_.first.members[g], words_, [&](std::int32_t i) {
        if (place_[i] >= 0) needs_.emplace_back(place_[i], static_cast<std::int32_t>(weights_.size()) - 1);
      });
    }
    for (std::int32_t g = 0; g < static_cast<std::int32_t>(p_.last.bytes.size()); ++g) {
      if (within(p_.last.members[g], low) || !within(p_.last.members[g], high)) continue;
      weights_.push_back(-p_.last.bytes[g]);
      for_each_bit(p_.last.members[g], words_, [&](std::int32_t i) {
        if (place_[i] >= 0) needs_.emplace_back(static_cast<std::int32_t>(weights_.size()) - 1, place_[i]);
      });
    }
    const auto closure = least_closure(weights_, needs_);
    if (std::all_of(closure.begin(), closure.begin() + static_cast<std::ptrdiff_t>(between_.size()),
                    [](std::uint8_t chosen) { return chosen != 0; })) {
      return true;
    }
    std::copy(low, low + words_, lowest.ran);
    lowest.memory = node_[ancestor].memory;
    lowest.hash = node_[ancestor].hash;
    for (std::size_t k = 0; k < closure.size(); ++k) {
      if (closure[k] == 0) continue;
      lowest.memory += weights_[k];
      if (k >= between_.size()) continue;
      set(lowest.ran, between_[k]);
      lowest.hash ^= key_[between_[k]];
    }
    std::fill(lowest.ready, lowest.ready + words_, 0);
    for (std::int32_t i = 0; i < p_.count; ++i) {
      if (!test(lowest.ran, i) && within(p_.needs[i], lowest.ran)) set(lowest.ready, i);
    }
    return false;
  }

  /// The steps that lead to a node, in order.
  std::vector<std::int32_t> path_to(std::int32_t node) const {
    std::vector<std::int32_t> chain;
    for (std::int32_t a = node; a >= 0; a = node_[a].parent) chain.push_back(a);
    std::vector<std::int32_t> order = prefix_;
    for (std::size_t k = chain.size() - 1; k-- > 0;) {
      if (node_[chain[k]].step == kPart) {
        std::erase_if(order, [&](std::int32_t i) { return !test(bits_of(chain[k]), i); });
      } else {
        append_move(chain[k + 1], chain[k], order);
      }
    }
    return order;
  }

  /// The step and the closure that lead from a node to its child.
  void append_move(std::int32_t parent, std::int32_t child, std::vector<std::int32_t>& order) const {
    std::vector<Word> words(bits_of(parent), bits_of(parent) + 2 * words_);
    State state{words.data(), words.data() + words_, node_[parent].memory, 0};
    const auto append = [&](std::int32_t i, std::int64_t after) {
      run(state, i, after);
      order.push_back(i);
    };
    if (const std::int32_t i = node_[child].step; i >= 0) append(i, evaluate(state, i).after);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::int32_t i = 0; i < p_.count; ++i) {
        if (!test(state.ready, i) || !test(bits_of(child), i)) continue;
        const Move move = evaluate(state, i);
        if (move.peak > threshold_ || move.after > state.memory) continue;
        append(i, move.after);
        changed = true;
      }
    }
  }

  const Problem& p_;
  const std::int32_t words_;
  std::int64_t most_ = kNever;  ///< moves above it are dropped
  std::int64_t threshold_ = std::numeric_limits<std::int64_t>::min(), greedy_peak_ = 0;
  std::int64_t states_ = 0;
  std::int64_t work_ = 0;
  std::uint32_t commits_ = 1;
  std::size_t epoch_ = 0;  ///< counts new roots
  std::int32_t goal_ = -1;
  std::vector<std::uint64_t> key_;
  std::vector<Node> node_;
  std::vector<Word> bits_;           ///< ran and ready of each node
  std::vector<Slot> table_;          ///< open addressing, a power of two
  std::vector<Open> open_;           ///< heap: most steps first
  std::vector<Blocked> near_, far_;  ///< moves that wait: a heap, lowest peak first; and those from the horizon on
  std::int64_t horizon_ = 0;
  std::vector<std::int32_t> prefix_;  ///< the steps before the root
  std::vector<Link> links_;
  std::vector<Word> buffer_;
  std::vector<std::int64_t> weights_;  // of least_between
  std::vector<Need> needs_;
  std::vector<std::int32_t> between_, place_;
  std::vector<std::pair<Move, std::int32_t>> moves_;  // of expand
};

/// What came of one part.
struct Found {
  std::vector<StepId> order;
  std::int64_t lower_bound = 0;
  bool ended = false;  ///< `order` has no peak above lower_bound, or none has one within the upper bound
  std::int64_t states = 0;
};

/// Searches from both ends in turns, with one threshold: what one end has proved impossible the other need not try.
template <std::int32_t kWords>
Found search(const ExchangeRules& reduction, std::int64_t floor, const ExactOptions& options, core::Stopwatch& watch) {
  constexpr std::int64_t kBatch = 64;
  const Problem forward = reduction.forward(), backward = reduction.backward();
  Search<kWords> from_start(forward), from_end(backward);
  const std::int64_t most =
      std::min(options.upper_bound, std::max(floor, std::min(from_start.greedy_peak(), from_end.greedy_peak())));
  from_start.limit(most);
  from_end.limit(most);
  Found found;
  found.lower_bound = floor;
  const auto finish = [&](std::vector<std::int32_t> order, bool reversed) {
    if (reversed) std::reverse(order.begin(), order.end());
    found.order = reduction.restore(order);
  };
  while (found.lower_bound <= options.upper_bound) {
    const bool reversed = from_end.work() < from_start.work();
    auto& side = reversed ? from_end : from_start;
    const auto status = side.advance(found.lower_bound, kBatch, watch);
    found.states = from_start.states() + from_end.states();
    if (status == Search<kWords>::Status::reached) {
      finish(side.path(), reversed);
      found.ended = true;
      return found;
    }
    // Arrays double when they grow, so half of the memory is kept free.
    if (watch.expired_now() || from_start.bytes() + from_end.bytes() > options.memory_bytes / 2) {
      finish(side.completed_path(), reversed);
      return found;
    }
    if (status == Search<kWords>::Status::exhausted) {
      const std::int64_t next = side.next_threshold();
      if (next == kNever) break;
      found.lower_bound = std::max(found.lower_bound, next);
    }
  }
  // Nothing is left within the upper bound. (Within the peak of an order that exists the search cannot come to its
  // end.)
  if (found.lower_bound <= options.upper_bound) {
    if (most < options.upper_bound) throw std::logic_error("exact_order: the search lost the way");
    found.lower_bound = options.upper_bound + 1;
  }
  found.ended = true;
  return found;
}

Found solve_part(const StepGraph& graph, const Cut& from, const Cut& to, std::int64_t floor,
                 const ExactOptions& options, core::Stopwatch& watch) {
  if (const std::int64_t count = to.count() - from.count();
      count > kMostExactSteps || count * (count + 63) > options.memory_bytes) {
    // No time, or no room, for the steps' relations.
    Found found;
    for (const StepId s : graph.any_order()) {
      if (to.contains(s) && !from.contains(s)) found.order.push_back(s);
    }
    found.lower_bound = floor;
    return found;
  }
  const ExchangeRules reduction(graph, from, to);
  const std::int32_t words = reduction.words();
  if (words == 1) return search<1>(reduction, floor, options, watch);
  if (words == 2) return search<2>(reduction, floor, options, watch);
  return search<0>(reduction, floor, options, watch);
}

}  // namespace

ExactResult exact_order(const StepGraph& graph, const Cut& from, const Cut& to, const ExactOptions& options,
                        core::Stopwatch& watch) {
  ExactResult result;
  // Worth an eighth of the limit at most.
  result.lower_bound = core::within(
      watch, 0.125, [&](core::Stopwatch& bound_watch) { return cut_lower_bound(graph, from, to, bound_watch); });
  result.proved = true;
  std::vector<Cut> stations{from};
  if (Cut valley = min_memory_cut(graph, from, to); !(valley == from) && !(valley == to)) {
    stations.push_back(std::move(valley));
  }
  stations.push_back(to);
  for (std::size_t k = 0; k + 1 < stations.size() && result.lower_bound <= options.upper_bound; ++k) {
    Found found = solve_part(graph, stations[k], stations[k + 1], result.lower_bound, options, watch);
    result.lower_bound = found.lower_bound;
    result.proved = result.proved && found.ended;
    result.states += found.states;
    result.order.insert(result.order.end(), found.order.begin(), found.order.end());
  }
  result.peak = result.lower_bound > options.upper_bound ? kNever : peak(graph, result.order, from);
  if (result.peak > options.upper_bound) {
    result.order.clear();
    result.peak = 0;
  } else {
    result.proved = result.proved || result.peak == result.lower_bound;
  }
  return result;
}

ExactResult exact_order(const StepGraph& graph, const ExactOptions& options, core::Stopwatch& watch) {
  return exact_order(graph, Cut(graph.step_count()), Cut(graph.step_count(), true), options, watch);
}

PeakOracle exact_oracle(const ExactOptions& options, core::Stopwatch& watch) {
  return
      [options, &watch](const StepGraph& graph, const Cut& from, const Cut& to) -> std::optional<std::vector<StepId>> {
        ExactResult result = exact_order(graph, from, to, options, watch);
        if (!result.proved || result.lower_bound > options.upper_bound) return std::nullopt;
        return std::move(result.order);
      };
}

void exact_search(const StepGraph& steps, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch,
                  const std::function<void(const std::vector<StepId>&)>& found) {
  ExactOptions options;
  options.memory_bytes = memory_bytes;
  options.upper_bound = incumbent.least_peak() - 1;
  const ExactResult result = exact_order(steps, options, watch);
  if (!result.order.empty()) found(result.order);
  // Nothing below the incumbent means that it is optimal.
  const bool none_better = result.proved && result.order.empty();
  incumbent.raise_lower_bound(none_better ? incumbent.least_peak() : result.lower_bound);
}

void exact_search(const core::Graph& graph, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch) {
  const StepGraph steps(graph);
  exact_search(steps, incumbent, memory_bytes, watch,
               [&](const std::vector<StepId>& order) { incumbent.offer({steps.nodes_of(order)}); });
}

}  // namespace cairn::solvers
