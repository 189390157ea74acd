#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/order/internal/reduction/cut_problem.h"
#include "cairn/solvers/order/internal/reduction/min_cut.h"

namespace cairn::solvers {

/// Holds a topological cut (see CutSearch). `ran` and `ready` are rows of bits: the steps that have run, and those that
/// can run next.
struct CutState {
  Word* ran;
  Word* ready;
  std::int64_t memory;
  std::uint64_t hash;
};

/// Searches exactly for an order of least peak. A state is a topological cut: a set of steps that contains all
/// predecessors of its steps. A move runs one more step; the peak of a move is the memory while this step runs. The
/// search has a threshold, in bytes. It explores all states that can be reached by moves whose peak is at most the
/// threshold, those with the most steps first. Moves with a higher peak wait. When only waiting moves are left, the
/// threshold rises to the lowest of their peaks. So the threshold is always a lower bound on the peak of every order.
///
/// A state Z supersedes a state A if Z can be reached from A within the threshold, and no cut between A and Z (no cut
/// that contains A and is contained in Z) has less memory than Z. Any order through A can be changed so that the steps
/// that lead from A to Z come directly after A (see the exchange argument in exchange_rules.h). So all other moves from
/// A can be left out. In the simplest case, Z is reached by a single step that leaves memory no higher. For the general
/// case, a tree stores from which state each state was reached. If a new state Z has no more memory than its ancestor A
/// in this tree, the cut of least memory between A and Z supersedes A; that cut can be reached as well (Lemma 3.13 of
/// Jin et al.). The other descendants of A are dropped, i.e. all descendants except this cut. So along each path of the
/// remaining tree, memory rises strictly.
///
/// A state is expanded when each of its moves was made or waits. A state is live if it can be reached from the root by
/// the moves of expanded states, where a superseded state has only the move to the state that supersedes it. States
/// that are not live are dropped; they are visited again if a live state leads to them later. This loses no order:
/// suppose that the goal (the cut of all steps) can be reached from the root within some threshold, and walk from the
/// root along states from which the goal can be reached. This walk ends at a live state that is not expanded yet or
/// whose next move waits. So the search will continue from this state.
template <std::int32_t kWords>
class CutSearch {
 public:
  enum class Status : std::uint8_t { open, reached, exhausted };

  explicit CutSearch(const CutProblem& problem) : p_(problem), words_(kWords > 0 ? kWords : problem.words) {
    core::Random random(0x5eed);
    for (std::int32_t i = 0; i < p_.count; ++i) key_.push_back(random.next());
    buffer_.resize(static_cast<std::size_t>(4 * words_));
    CutState root = scratch(0);
    std::fill(buffer_.begin(), buffer_.end(), 0);
    root.memory = p_.start;
    for (std::int32_t i = 0; i < p_.count; ++i) {
      if (p_.predecessors[i].empty()) set_bit(root.ready, i);
    }
    plant(root);
  }

  /// Sets the threshold, which must not be lower than in earlier calls. Then processes at most `count` items: states
  /// that are to be expanded, and waiting moves whose peak is now within the threshold. Returns Status::reached if an
  /// order was found (path()), Status::exhausted if it is proved that no order has a peak within the threshold, and
  /// Status::open if the search must be continued.
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

  /// Returns the lowest peak of a waiting move, or kNever if no move waits.
  std::int64_t next_threshold() {
    for (;;) {
      while (!near_.empty() && !live(near_.front().node)) pop(near_);
      if (!near_.empty()) return near_.front().peak;
      if (!refill()) return kNever;
    }
  }

  /// Returns the order that the search has found. Requires that advance() has returned Status::reached.
  std::vector<std::int32_t> path() const { return path_to(goal_); }

  /// Makes the search ignore all moves whose peak is above `most`.
  void limit(std::int64_t most) { most_ = std::min(most_, most); }

  /// Returns the peak of completed_path(), an upper bound on the least peak.
  std::int64_t greedy_peak() {
    completed_path();
    return greedy_peak_;
  }

  /// Builds an order of all steps greedily. Begins with the steps that lead to the state with the most steps, and
  /// continues each time with the step that raises the peak least.
  std::vector<std::int32_t> completed_path() {
    std::int32_t best = 0;
    for (std::int32_t node = 0; node < node_count(); ++node) {
      if (size_of(node) > size_of(best)) best = node;
    }
    std::vector<std::int32_t> order = path_to(best);
    CutState state = load(best, 0);
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
    // Node numbers have 31 bits. Beyond 2^30 nodes, this returns more bytes than any usual limit, so that the caller
    // ends the search before the numbers run out.
    if (node_count() > std::numeric_limits<std::int32_t>::max() / 2) return kNever / 4;
    return static_cast<std::int64_t>(node_.capacity() * sizeof(Node) + links_.capacity() * sizeof(Link) +
                                     bits_.capacity() * sizeof(Word) + table_.capacity() * sizeof(Slot) +
                                     open_.capacity() * sizeof(Open) +
                                     (near_.capacity() + far_.capacity()) * sizeof(Blocked));
  }

 private:
  /// The peak during a move and the memory after it, in bytes.
  struct Move {
    std::int64_t peak, after;
  };
  /// Describes a node of the tree, which stands for a state. A node and its state are named by the same number.
  struct Node {
    std::int64_t memory = 0;
    std::uint64_t hash = 0;
    std::int32_t parent = -1;
    /// Step that ran at the parent, or kClosure or kPart. After this step, the closure of the resulting state was run:
    /// all steps that can run within the threshold without leaving memory higher (close()).
    std::int32_t step = kClosure;
    /// First element, in links_, of the list of nodes from which a move leads here; `parent` is not in this list.
    std::int32_t links = -1;
    std::int32_t above = -1;          ///< a live node from which a move leads here
    std::int32_t superseded_by = -1;  ///< node that supersedes this node; -1: there is none
    std::uint32_t checked = 0;        ///< value of commits_ when the node was last found live, or kDead
  };
  struct Link {
    std::int32_t from, next;
  };
  static constexpr std::int32_t kClosure = -1;  ///< no single step ran at the parent, only the closure
  /// The node's cut has only some of the steps of the parent's cut. If all other steps are left out of an order that
  /// leads to the parent's cut, the rest of this order leads to the node's cut.
  static constexpr std::int32_t kPart = -2;
  static constexpr std::uint32_t kDead = std::numeric_limits<std::uint32_t>::max();
  using Open = std::pair<std::int32_t, std::int32_t>;  ///< negated number of steps of a node, and the node
  struct Slot {
    std::uint32_t tag = 0;
    std::int32_t node = -1;
  };
  /// A waiting move: the state `node`, the step that the move runs, and the peak of the move.
  struct Blocked {
    std::int64_t peak = 0;
    std::int32_t node = 0, step = 0;
    auto operator<=>(const Blocked&) const = default;
  };

  std::int32_t node_count() const { return static_cast<std::int32_t>(node_.size()); }
  Word* bits_of(std::int32_t node) { return bits_.data() + static_cast<std::size_t>(node) * 2 * words_; }
  const Word* bits_of(std::int32_t node) const { return bits_.data() + static_cast<std::size_t>(node) * 2 * words_; }
  std::int32_t size_of(std::int32_t node) const { return count_bits(bits_of(node)); }
  std::int32_t count_bits(const Word* bits) const {
    std::int32_t count = 0;
    for (std::int32_t w = 0; w < words_; ++w) count += std::popcount(bits[w]);
    return count;
  }

  CutState scratch(std::int32_t which) {
    Word* words = buffer_.data() + static_cast<std::size_t>(2 * which) * words_;
    return {words, words + words_, 0, 0};
  }
  CutState load(std::int32_t node, std::int32_t which) {
    CutState state = scratch(which);
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

  /// Computes the memory during and after step i, if it runs next in the state.
  Move evaluate(CutState& state, std::int32_t i) const {
    Move move;
    move.peak = state.memory + p_.rise[i];
    const Groups &first = p_.first, &last = p_.last;
    for (std::int32_t k = first.of.begin[i]; k < first.of.begin[i + 1]; ++k) {
      if (disjoint(row(first.item_members, k), state.ran)) move.peak += first.item_bytes[k];
    }
    move.after = move.peak - p_.drop[i];
    set_bit(state.ran, i);
    for (std::int32_t k = last.of.begin[i]; k < last.of.begin[i + 1]; ++k) {
      if (within(row(last.item_members, k), state.ran)) move.after -= last.item_bytes[k];
    }
    clear_bit(state.ran, i);
    return move;
  }
  const Word* row(const BitRows& rows, std::int32_t i) const {
    return rows.bits.data() + static_cast<std::size_t>(i) * words_;
  }

  void run(CutState& state, std::int32_t i, std::int64_t after) const {
    set_bit(state.ran, i);
    clear_bit(state.ready, i);
    state.memory = after;
    state.hash ^= key_[i];
    for (const std::int32_t j : p_.successors[i]) {
      if (within(p_.needs[j], state.ran)) set_bit(state.ready, j);
    }
  }

  /// Runs the closure of the state: repeatedly runs a step that stays within the threshold and leaves memory no higher
  /// than before, until no such step is left. The result does not depend on the order of these steps.
  void close(CutState& state) const {
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

  bool complete(const CutState& state) const { return count_bits(state.ran) == p_.count; }

  /// Starts a new tree with the state as its root.
  void plant(const CutState& state) {
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

  std::int32_t insert(const CutState& state, std::int32_t parent, std::int32_t step) {
    const std::int32_t node = node_count();
    node_.push_back({state.memory, state.hash, parent, step, -1, parent, -1, 0});
    bits_.insert(bits_.end(), state.ran, state.ran + 2 * words_);
    if (2 * node_.size() > table_.size()) grow();
    table_[slot_of(state)] = {tag(state.hash), node};
    ++states_;
    return node;
  }

  /// Returns the slot of the state in the table, or the free slot for it.
  std::size_t slot_of(const CutState& state) const {
    std::size_t slot = state.hash & (table_.size() - 1);
    while (table_[slot].node >= 0 && !(table_[slot].tag == tag(state.hash) && same(table_[slot].node, state))) {
      slot = (slot + 1) & (table_.size() - 1);
    }
    return slot;
  }
  static std::uint32_t tag(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
  bool same(std::int32_t node, const CutState& state) const {
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

  /// Returns whether the node is live (see CutSearch). Walks towards the root until it reaches a node that was found
  /// live since a state was last superseded. The recursion is at most as deep as the number of steps.
  bool live(std::int32_t node) {
    if (node_[node].checked == kDead) return false;
    if (node_[node].checked == commits_ || node_[node].parent < 0) return true;
    bool found = node_[node].step != kPart && leads_to(node_[node].parent, node);
    for (std::int32_t k = node_[node].links; !found && k >= 0; k = links_[k].next)
      found = leads_to(links_[k].from, node);
    node_[node].checked = found ? commits_ : kDead;
    return found;
  }
  /// Returns whether the move from `from` to `node` makes `node` live: `from` must be live and not superseded by
  /// another node.
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

  /// Refills the small heap near_ with the waiting moves of the lowest peaks, which it takes out of the unsorted list
  /// far_. Raises horizon_, the peak that separates near_ from far_, above the peaks of these moves. Returns false if
  /// no move waits. One heap of all waiting moves would be slower: it would be so large that each access misses the
  /// cache. Most waiting moves need never be sorted, because their states are dropped before the moves can be made.
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
    CutState state = load(node, 0);
    moves_.clear();
    for (std::int32_t w = 0; w < words_; ++w) {
      for (Word rest = state.ready[w]; rest != 0; rest &= rest - 1) {
        const std::int32_t i = 64 * w + std::countr_zero(rest);
        const Move move = evaluate(state, i);
        if (move.peak <= threshold_ && move.after <= state.memory) {
          // The threshold has risen since this state was found, so more steps can run without leaving memory higher.
          // The state after all of them supersedes this state, so no other moves are needed.
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
      CutState next = load(node, 1);
      run(next, i, move.after);
      if (opens_descent(next, i)) close(next);
      arrive(next, node, i);
      if (goal_ >= 0 || epoch != epoch_ || node_[node].superseded_by >= 0) return;
    }
  }

  /// Returns whether, after step i has run, some step can run within the threshold and leave memory no higher. Before
  /// step i ran, there was no such step, so only steps related to i (CutProblem::related) are examined.
  bool opens_descent(CutState& state, std::int32_t i) const {
    const Word* related = p_.related[i];
    for (std::int32_t w = 0; w < words_; ++w) {
      for (Word rest = state.ready[w] & related[w]; rest != 0; rest &= rest - 1) {
        const Move move = evaluate(state, 64 * w + std::countr_zero(rest));
        if (move.peak <= threshold_ && move.after <= state.memory) return true;
      }
    }
    return false;
  }

  /// Makes a waiting move. Its peak must be within the threshold.
  void follow(std::int32_t node, std::int32_t i) {
    CutState state = load(node, 1);
    run(state, i, evaluate(state, i).after);
    close(state);
    arrive(state, node, i);
  }

  /// Adds a state that was reached from `parent` by `step`. If the state is known and live, only records the move.
  void arrive(const CutState& state, std::int32_t parent, std::int32_t step) {
    if (const std::int32_t known = table_[slot_of(state)].node; known >= 0 && live(known)) return link(parent, known);
    const std::int32_t node = insert(state, parent, step);
    if (complete(state)) {
      goal_ = node;
      return;
    }
    commit(node);
  }

  /// Walks from the node towards the root as long as the ancestors have at least as much memory as the node. Let A be
  /// the last such ancestor. The cut of least memory between A and the node, which can be the node itself, supersedes
  /// A. Repeats this for that cut, and adds it to open_ when no such ancestor is left. If A is the root, the search
  /// starts again with this cut as its root.
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
    CutState lowest = scratch(1);
    if (!least_between(ancestor, node, lowest)) {
      push(open_, Open(-size_of(node), node));  // still to be expanded, because other moves can keep the node live
      node = insert(lowest, node, kPart);
    }
    if (node_[ancestor].parent < 0) {
      prefix_ = path_to(node);
      CutState root = load(node, 1);
      ++epoch_;
      plant(root);
      return;
    }
    node_[ancestor].superseded_by = node;
    node_[node].above = ancestor;
    link(ancestor, node);
    commit(node);
  }

  /// Returns true if no cut between `ancestor` and `node` has less memory than `node`. Otherwise returns false and sets
  /// `lowest` to the cut of least memory between them.
  bool least_between(std::int32_t ancestor, std::int32_t node, CutState& lowest) {
    const Word* low = bits_of(ancestor);
    const Word* high = bits_of(node);
    weights_.clear();
    needs_.clear();
    between_.clear();
    place_.resize(static_cast<std::size_t>(p_.count), -1);
    for (std::int32_t i = 0; i < p_.count; ++i) {
      place_[i] = -1;
      if (!test_bit(high, i) || test_bit(low, i)) continue;
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
      set_bit(lowest.ran, between_[k]);
      lowest.hash ^= key_[between_[k]];
    }
    std::fill(lowest.ready, lowest.ready + words_, 0);
    for (std::int32_t i = 0; i < p_.count; ++i) {
      if (!test_bit(lowest.ran, i) && within(p_.needs[i], lowest.ran)) set_bit(lowest.ready, i);
    }
    return false;
  }

  std::vector<std::int32_t> path_to(std::int32_t node) const {
    std::vector<std::int32_t> chain;
    for (std::int32_t a = node; a >= 0; a = node_[a].parent) chain.push_back(a);
    std::vector<std::int32_t> order = prefix_;
    for (std::size_t k = chain.size() - 1; k-- > 0;) {
      if (node_[chain[k]].step == kPart) {
        std::erase_if(order, [&](std::int32_t i) { return !test_bit(bits_of(chain[k]), i); });
      } else {
        append_move(chain[k + 1], chain[k], order);
      }
    }
    return order;
  }

  void append_move(std::int32_t parent, std::int32_t child, std::vector<std::int32_t>& order) const {
    std::vector<Word> words(bits_of(parent), bits_of(parent) + 2 * words_);
    CutState state{words.data(), words.data() + words_, node_[parent].memory, 0};
    const auto append = [&](std::int32_t i, std::int64_t after) {
      run(state, i, after);
      order.push_back(i);
    };
    if (const std::int32_t i = node_[child].step; i >= 0) append(i, evaluate(state, i).after);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::int32_t i = 0; i < p_.count; ++i) {
        if (!test_bit(state.ready, i) || !test_bit(bits_of(child), i)) continue;
        const Move move = evaluate(state, i);
        if (move.peak > threshold_ || move.after > state.memory) continue;
        append(i, move.after);
        changed = true;
      }
    }
  }

  const CutProblem& p_;
  const std::int32_t words_;
  std::int64_t most_ = kNever;
  std::int64_t threshold_ = std::numeric_limits<std::int64_t>::min(), greedy_peak_ = 0;
  std::int64_t states_ = 0;
  std::int64_t work_ = 0;
  std::uint32_t commits_ = 1;  ///< number of times that a state was superseded, plus one
  std::size_t epoch_ = 0;
  std::int32_t goal_ = -1;  ///< node of all steps; -1: not reached yet
  std::vector<std::uint64_t> key_;
  std::vector<Node> node_;
  std::vector<Word> bits_;   ///< for each node, the steps that ran and the ready steps
  std::vector<Slot> table_;  ///< hash table of the nodes with open addressing; its size is a power of two
  std::vector<Open> open_;   ///< heap of states to expand; the state with the most steps comes first
  /// - near_: heap of the waiting moves whose peak is below the horizon; the lowest peak comes first.
  /// - far_: all other waiting moves.
  std::vector<Blocked> near_, far_;
  std::int64_t horizon_ = 0;          ///< peak in bytes that separates near_ from far_
  std::vector<std::int32_t> prefix_;  ///< steps that run before the root
  std::vector<Link> links_;
  std::vector<Word> buffer_;
  std::vector<std::int64_t> weights_;
  std::vector<Need> needs_;
  std::vector<std::int32_t> between_, place_;
  std::vector<std::pair<Move, std::int32_t>> moves_;
};

}  // namespace cairn::solvers
