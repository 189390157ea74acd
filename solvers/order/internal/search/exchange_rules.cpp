// Removes steps from an ordering problem by the rules of exchange_rules.h. Memory rises by a step's `rise` when the
// step begins, and falls by its `drop` when it ends. The bytes of a `first` group of steps are allocated when the first
// of them runs; the bytes of a `last` group are freed after the last of them. A row is a set of steps, one bit each.

#include "cairn/solvers/order/internal/search/exchange_rules.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace cairn::solvers {

ExchangeRules::ExchangeRules(const StepGraph& graph, const Cut& from, const Cut& to)
    : graph_(graph), from_(from), to_(to) {
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

std::vector<StepId> ExchangeRules::restore(std::span<const std::int32_t> order) const {
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

void ExchangeRules::number() {
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

/// Computes for each step all steps that must run before it and all that must run after it. If there are too many steps
/// for the rules (kMostReduced), computes only direct predecessors and successors.
void ExchangeRules::relate() {
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

/// Adds step j to row i and, if there are not too many steps for the rules, the steps of row j.
void ExchangeRules::include(BitRows& rows, std::int32_t i, std::int32_t j) {
  for (std::int32_t w = 0; w < words_ && count() <= kMostReduced; ++w) rows[i][w] |= rows[j][w];
  set_bit(rows[i], j);
}

/// Makes a `last` group of the readers of each output, because the last reader to run frees the output. Outputs with a
/// reader outside to_ get no group, because no step of the problem frees them.
void ExchangeRules::collect_groups() {
  for (StepId s = 0; s < graph_.step_count(); ++s) {
    if (graph_[s].output == 0 || !to_.contains(s)) continue;
    Group group{graph_[s].output, std::vector<Word>(static_cast<std::size_t>(words_), 0)};
    bool inside = true, waiting = false;
    for (const StepId t : graph_.successors(s)) {
      inside = inside && to_.contains(t);
      if (local_[t] < 0) continue;
      waiting = true;
      set_bit(group.members.data(), local_[t]);
    }
    if (inside && waiting) last_.push_back(std::move(group));
  }
}

bool ExchangeRules::pass() {
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

/// Applies the rules for groups. `beyond` has, for each step, all steps that must run before it (`first` groups) or
/// after it (`last` groups). A step leaves each group that also contains a step of its own row in `beyond`, because it
/// can never be the first (or the last) step of that group to run. If only one step remains in a group, adds the
/// group's bytes to the step's entry of `own`, its rise or drop. Returns whether a group was removed.
bool ExchangeRules::tidy(std::vector<Group>& groups, const BitRows& beyond, std::vector<std::int64_t>& own) {
  bool changed = false;
  for (std::size_t g = 0; g < groups.size();) {
    Word* members = groups[g].members.data();
    std::int32_t members_left = 0, only = -1;
    for_each_bit(members, words_, [&](std::int32_t i) {
      for (std::int32_t w = 0; w < words_; ++w) {
        if ((beyond[i][w] & members[w]) != 0) return clear_bit(members, i);
      }
      ++members_left;
      only = i;
    });
    if (members_left == 1) own[only] += groups[g].bytes;
    // The bytes of a `last` group without steps are freed at the beginning. The bytes of a `first` group without steps
    // would be allocated at the end, where they cannot change the peak.
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

bool ExchangeRules::in_any(const std::vector<Group>& groups, std::int32_t i) {
  return std::any_of(groups.begin(), groups.end(), [&](const Group& g) { return test_bit(g.members.data(), i); });
}

bool ExchangeRules::run_before_successors(std::int32_t i) {
  if (rise_[i] < drop_[i] || in_any(last_, i)) return false;
  auto behind = covers(i, after_);
  if (!covered(drop_[i], behind, rise_)) return false;
  become_group(i, rise_[i] - drop_[i], behind, first_);
  removed_.push_back({i, true, std::move(behind)});
  return true;
}

bool ExchangeRules::run_after_predecessors(std::int32_t i) {
  if (rise_[i] > drop_[i] || in_any(first_, i)) return false;
  auto before = covers(i, before_);
  if (!covered(rise_[i], before, drop_)) return false;
  become_group(i, drop_[i] - rise_[i], before, last_);
  removed_.push_back({i, false, std::move(before)});
  return true;
}

/// Checks a condition of the rules for a step. `neighbours` are the step's direct successors (or predecessors), and
/// `heights` has the rise (or drop) of each step. Returns whether the height of each neighbour is at least `bytes`. A
/// step without neighbours would run at the very end (or beginning), where no other step's height can hide its bytes.
/// So without neighbours, returns whether `bytes` is 0.
bool ExchangeRules::covered(std::int64_t bytes, const std::vector<std::int32_t>& neighbours,
                            const std::vector<std::int64_t>& heights) {
  if (neighbours.empty()) return bytes == 0;
  return std::all_of(neighbours.begin(), neighbours.end(), [&](std::int32_t j) { return heights[j] >= bytes; });
}

/// Replaces step i by a group that consists of the step's neighbours and has `bytes` bytes. If step i is in other
/// groups of `groups`, its neighbours take its place there.
void ExchangeRules::become_group(std::int32_t i, std::int64_t bytes, const std::vector<std::int32_t>& neighbours,
                                 std::vector<Group>& groups) {
  Group own{bytes, std::vector<Word>(static_cast<std::size_t>(words_), 0)};
  for (const std::int32_t j : neighbours) set_bit(own.members.data(), j);
  for (Group& group : groups) {
    if (!test_bit(group.members.data(), i)) continue;
    clear_bit(group.members.data(), i);
    for (std::int32_t w = 0; w < words_; ++w) group.members[w] |= own.members[w];
  }
  groups.push_back(std::move(own));
  for (const std::int32_t j : alive_) {
    clear_bit(before_[j], i);
    clear_bit(after_[j], i);
  }
}

/// Returns the direct predecessors of step i if `rows` is before_, and its direct successors if `rows` is after_.
std::vector<std::int32_t> ExchangeRules::covers(std::int32_t i, const BitRows& rows) const {
  std::vector<Word> bits(rows[i], rows[i] + words_);
  for_each_bit(rows[i], words_, [&](std::int32_t j) {
    for (std::int32_t w = 0; w < words_; ++w) bits[w] &= ~rows[j][w];
  });
  std::vector<std::int32_t> result;
  for_each_bit(bits.data(), words_, [&](std::int32_t j) { result.push_back(j); });
  return result;
}

void ExchangeRules::merge_equal(std::vector<Group>& groups) {
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

void ExchangeRules::renumber() {
  new_number_.assign(static_cast<std::size_t>(count()), -1);
  for (std::size_t k = 0; k < alive_.size(); ++k) new_number_[alive_[k]] = static_cast<std::int32_t>(k);
}

std::int64_t ExchangeRules::end() const {
  std::int64_t bytes = start_;
  for (const std::int32_t i : alive_) bytes += rise_[i] - drop_[i];
  for (const Group& group : first_) bytes += group.bytes;
  for (const Group& group : last_) bytes -= group.bytes;
  return bytes;
}

CutProblem ExchangeRules::problem(std::int64_t start, const std::vector<std::int64_t>& rise,
                                  const std::vector<std::int64_t>& drop, const BitRows& before, const BitRows& after,
                                  const std::vector<Group>& first, const std::vector<Group>& last) const {
  CutProblem p;
  p.count = static_cast<std::int32_t>(alive_.size());
  p.words = std::max(1, (p.count + 63) / 64);
  p.start = start;
  p.needs = {p.words, std::vector<Word>(static_cast<std::size_t>(p.count) * p.words, 0)};
  for (std::int32_t k = 0; k < p.count; ++k) {
    p.rise.push_back(rise[alive_[k]]);
    p.drop.push_back(drop[alive_[k]]);
    for (const std::int32_t j : covers(alive_[k], before)) {
      p.predecessors.items.push_back(new_number_[j]);
      set_bit(p.needs[k], new_number_[j]);
    }
    p.predecessors.close();
    for (const std::int32_t j : covers(alive_[k], after)) p.successors.items.push_back(new_number_[j]);
    p.successors.close();
  }
  p.first = groups(p, first);
  p.last = groups(p, last);
  p.related = {p.words, std::vector<Word>(p.needs.bits.size(), 0)};
  for (std::int32_t k = 0; k < p.count; ++k) {
    for (const std::int32_t j : p.successors[k]) set_bit(p.related[k], j);
    for (const Groups* all : {&p.first, &p.last}) {
      for (const std::int32_t g : all->of[k]) {
        for (std::int32_t w = 0; w < p.words; ++w) p.related[k][w] |= all->members[g][w];
      }
    }
  }
  return p;
}

Groups ExchangeRules::groups(const CutProblem& p, const std::vector<Group>& from) const {
  Groups groups;
  groups.members = {p.words, std::vector<Word>(from.size() * p.words, 0)};
  groups.item_members.words = p.words;
  for (std::size_t g = 0; g < from.size(); ++g) {
    groups.bytes.push_back(from[g].bytes);
    for_each_bit(from[g].members.data(), words_,
                 [&](std::int32_t i) { set_bit(groups.members[static_cast<std::int32_t>(g)], new_number_[i]); });
  }
  for (std::int32_t k = 0; k < p.count; ++k) {
    for (std::int32_t g = 0; g < static_cast<std::int32_t>(from.size()); ++g) {
      if (!test_bit(groups.members[g], k)) continue;
      groups.of.items.push_back(g);
      groups.item_bytes.push_back(groups.bytes[g]);
      groups.item_members.bits.insert(groups.item_members.bits.end(), groups.members[g], groups.members[g] + p.words);
    }
    groups.of.close();
  }
  return groups;
}

}  // namespace cairn::solvers
