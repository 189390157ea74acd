// Implements the exact search over the values in memory (live_set_search.h). A state says which values are in memory
// and which nodes have run. An arrival is a state with one way to reach it. A completion leads from a state to a
// solution. The set `rest` contains the nodes that every completion runs. The set `extra` contains the other nodes that
// a completion within most_cost can run.

#include "cairn/solvers/remat/exact/live_set_search.h"

#include <algorithm>

#include "cairn/core/support/saturating.h"

namespace cairn::solvers {

template <class Set>
void LiveSetSearch<Set>::Index::clear() {
  if (slots_.empty()) slots_.resize(1024);
  if (++stamp_ == 0) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    stamp_ = 1;
  }
  entered_ = 0;
}

template <class Set>
template <class IsIt, class HashOf>
std::pair<std::int32_t*, bool> LiveSetSearch<Set>::Index::find_or_enter(std::uint64_t hash, std::int32_t number,
                                                                        const IsIt& is_it,
                                                                        const HashOf& hash_of_number) {
  if (2 * (entered_ + 1) > slots_.size()) {
    old_.assign(2 * slots_.size(), {});
    old_.swap(slots_);
    for (const Slot& slot : old_) {
      if (slot.stamp != stamp_) continue;
      std::size_t at = hash_of_number(slot.number) & (slots_.size() - 1);
      while (slots_[at].stamp == stamp_) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }
  std::size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].stamp == stamp_; at = (at + 1) & (slots_.size() - 1)) {
    if (is_it(slots_[at].number)) return {&slots_[at].number, false};
  }
  slots_[at] = {stamp_, number};
  ++entered_;
  return {&slots_[at].number, true};
}

template <class Set>
std::uint64_t LiveSetSearch<Set>::hash_of(Set set) {
  std::uint64_t h = static_cast<std::uint64_t>(set) * 0x9e3779b97f4a7c15ULL;
  if constexpr (sizeof(Set) > 8) h ^= (static_cast<std::uint64_t>(set >> 64) + h) * 0xbf58476d1ce4e5b9ULL;
  h ^= h >> 32;
  h *= 0x94d049bb133111ebULL;
  return h ^ h >> 29;
}

template <class Set>
std::int64_t LiveSetSearch<Set>::bytes(Set values) const {
  std::int64_t sum = 0;
  for_each_in(values, [&](std::int32_t x) { sum += problem_->sizes[x]; });
  return sum;
}

template <class Set>
Set LiveSetSearch<Set>::inputs_of(Set nodes) const {
  Set values = 0;
  for_each_in(nodes, [&](std::int32_t v) { values |= problem_->nodes[v].inputs; });
  return values;
}

/// Returns the largest cost that a completion can have in addition to `rest_cost` without exceeding most_cost in total.
template <class Set>
std::int64_t LiveSetSearch<Set>::slack_of(const Arrival& arrival) const {
  return limits_.most_cost == kAnyCost ? kAnyCost : limits_.most_cost - arrival.cost - arrival.rest_cost;
}

template <class Set>
bool LiveSetSearch<Set>::too_many_states() const {
  return static_cast<std::int64_t>(arrivals_.size()) > most_arrivals_;
}

template <class Set>
void LiveSetSearch<Set>::prepare(const LiveSetProblem<Set>& problem, const LiveSetLimits& limits) {
  problem_ = &problem;
  limits_ = limits;
  stopped_ = false;
  constexpr std::int64_t kBytesAState = sizeof(Arrival) + sizeof(Entry) + sizeof(Seen) + 32;
  constexpr std::int64_t kMostArrivals = std::int64_t{1} << 30;
  most_arrivals_ = std::min({kMostArrivals, limits.memory_bytes / kBytesAState, limits.most_states});
  remembered_ = problem.goals | problem.once;
  weightless_ = 0;
  for (std::size_t x = 0; x < problem.sizes.size(); ++x) {
    if (problem.sizes[x] == 0) weightless_ |= single<Set>(static_cast<std::int32_t>(x));
  }
  readers_.assign(problem.sizes.size(), 0);
  successors_.assign(problem.nodes.size(), 0);
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    for_each_in(problem.nodes[v].inputs, [&](std::int32_t x) {
      readers_[x] |= single<Set>(static_cast<std::int32_t>(v));
      if (problem.producers[x] >= 0) successors_[problem.producers[x]] |= single<Set>(static_cast<std::int32_t>(v));
    });
  }
  // by_cost_[i] becomes the set of the i + 1 cheapest nodes, together with the highest of their costs.
  by_cost_.clear();
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    by_cost_.push_back({cost_of(static_cast<std::int32_t>(v)), single<Set>(static_cast<std::int32_t>(v))});
  }
  std::sort(by_cost_.begin(), by_cost_.end());
  for (std::size_t i = 1; i < by_cost_.size(); ++i) by_cost_[i].second |= by_cost_[i - 1].second;
  arrivals_.clear();
  known_.clear();
  groups_.clear();
  group_ran_.clear();
  queues_.resize(limits.anytime ? problem.nodes.size() + 1 : 1);
  for (std::vector<Entry>& queue : queues_) queue.clear();
  open_ = turn_ = 0;
}

template <class Set>
typename LiveSetSearch<Set>::Result LiveSetSearch<Set>::run(const LiveSetProblem<Set>& problem,
                                                            const LiveSetLimits& limits, core::Stopwatch& watch) {
  prepare(problem, limits);
  watch_ = &watch;
  Result result;
  Arrival root;
  root.extra = affordable(kAnyCost);
  root.state.memory = problem.start;
  root.rest = problem.goals;
  for_each_in(problem.goals, [&](std::int32_t v) { root.rest_cost += cost_of(v); });
  const Set wanted = problem.target | inputs_of(problem.goals);
  if (add_to_rest(root, wanted & ~problem.start)) arrive(root, problem.target | inputs_of(root.rest));
  for (Entry entry; next_entry(entry);) {
    if (!limits_.anytime) result.cost_bound = entry.bound;
    const Arrival& arrival = arrivals_[entry.arrival];
    if (arrival.rest == 0) {
      result.found = true;
      result.cost = arrival.cost;
      result.steps.clear();
      for (std::int32_t i = entry.arrival; arrivals_[i].from >= 0; i = arrivals_[i].from) {
        result.steps.push_back(arrivals_[i].node);
      }
      std::reverse(result.steps.begin(), result.steps.end());
      if (!limits_.anytime) {
        result.proved = true;
        break;
      }
      limits_.most_cost = arrival.cost - 1;
      continue;
    }
    stopped_ = watch.charge(static_cast<std::int64_t>(problem.nodes.size())).expired() || too_many_states();
    if (!stopped_) {
      const std::int32_t index = without_useless_values(entry.arrival);
      if (index >= 0 && !dominated(arrivals_[index])) expand(index);
    }
    if (stopped_) break;
  }
  if (!stopped_ && !result.proved) {
    result.proved = true;
    result.cost_bound = limits_.most_cost == kAnyCost ? kAnyCost : limits_.most_cost + 1;
  }
  result.states = static_cast<std::int64_t>(arrivals_.size());
  return result;
}

/// Takes the next state to expand: the one of lowest bound in a queue. An anytime search takes turns between its
/// queues. Drops states whose bound exceeds most_cost. Returns false if no state is left.
template <class Set>
bool LiveSetSearch<Set>::next_entry(Entry& entry) {
  while (open_ > 0) {
    turn_ = (turn_ == 0 ? queues_.size() : turn_) - 1;
    std::vector<Entry>& queue = queues_[turn_];
    if (queue.empty()) continue;
    std::pop_heap(queue.begin(), queue.end());
    entry = queue.back();
    queue.pop_back();
    --open_;
    if (entry.bound <= limits_.most_cost) return true;
    open_ -= queue.size();
    queue.clear();
  }
  return false;
}

/// Adds nodes to `rest`, the set of nodes that every completion runs. These are the nodes that make the given values,
/// the nodes that make the missing inputs of these nodes, and so on. Returns false if one of these nodes may not run.
template <class Set>
bool LiveSetSearch<Set>::add_to_rest(Arrival& arrival, Set missing_values) const {
  const Set barred = problem_->once & arrival.state.ran;
  while (missing_values != 0) {
    const std::int32_t v = problem_->producers[lowest(missing_values)];
    if (v < 0 || has(barred, v)) return false;
    missing_values &= ~problem_->nodes[v].outputs;
    if (has(arrival.rest, v)) continue;
    arrival.rest |= single<Set>(v);
    arrival.rest_cost += cost_of(v);
    missing_values |= problem_->nodes[v].inputs & ~arrival.state.memory;
  }
  return true;
}

/// Finds the nodes outside `rest` that can run on the way to a solution without exceeding most_cost. Such a node makes
/// a needed value, or an input of another such node w. In the second case, the cost of w counts as well, because the
/// node would run only for w.
template <class Set>
Set LiveSetSearch<Set>::extra_nodes(const Arrival& arrival, Set needed) const {
  const std::int64_t slack = slack_of(arrival);
  const Set skipped = arrival.rest | (problem_->once & arrival.state.ran);
  const Set droppable = ~(arrival.state.memory & weightless_);
  Set extra = 0;
  // Indexed by node: the least cost of the node and of all nodes outside `rest` for whose sake it would run.
  std::int64_t beyond[kMostInSet<Set>];
  for (auto v = static_cast<std::int32_t>(problem_->nodes.size()) - 1; v >= 0; --v) {
    const std::int64_t cost = cost_of(v);
    if (cost > slack || has(skipped, v)) continue;
    std::int64_t least = kAnyCost;
    if ((problem_->nodes[v].outputs & droppable & needed) != 0) {
      least = 0;
    } else {
      for_each_in(successors_[v] & extra, [&](std::int32_t w) { least = std::min(least, beyond[w]); });
      if (least > slack - cost) continue;
    }
    beyond[v] = least + cost;
    extra |= single<Set>(v);
  }
  return extra;
}

template <class Set>
Set LiveSetSearch<Set>::affordable(std::int64_t cost) const {
  const auto end = std::ranges::upper_bound(by_cost_, cost, {}, &std::pair<std::int64_t, Set>::first);
  return end == by_cost_.begin() ? 0 : (end - 1)->second;
}

/// Stores an arrival, which is a state with one way to reach it. If the state was already reached at no higher cost,
/// stores nothing and returns false.
template <class Set>
bool LiveSetSearch<Set>::enter(const Arrival& arrival, std::uint64_t hash) {
  const auto index = static_cast<std::int32_t>(arrivals_.size());
  const auto same = [&](std::int32_t i) { return arrivals_[i].state == arrival.state; };
  const auto rehash = [&](std::int32_t i) { return hash_of(arrivals_[i].state); };
  const auto [known, is_new] = known_.find_or_enter(hash, index, same, rehash);
  if (!is_new) {
    if (arrivals_[*known].cost <= arrival.cost) return false;
    *known = index;
  }
  arrivals_.push_back(arrival);
  return true;
}

/// Stores an arrival and puts its state into a queue, unless the state's lower bound exceeds most_cost. The arrival's
/// `rest` must be complete. Its `extra` may contain too many nodes, and is narrowed here. `needed` is the set of the
/// target and of the values that the nodes of `rest` read.
template <class Set>
void LiveSetSearch<Set>::arrive(Arrival& arrival, Set needed) {
  const std::int64_t bound = core::saturating_add(arrival.cost, arrival.rest_cost);
  if (bound > limits_.most_cost) return;
  arrival.extra &= affordable(slack_of(arrival)) & ~arrival.rest;
  arrival.state.memory &= needed | inputs_of(arrival.extra);
  const std::uint64_t hash = hash_of(arrival.state);
  if (!enter(arrival, hash)) return;
  const auto index = static_cast<std::int32_t>(arrivals_.size()) - 1;
  std::uint64_t tie = static_cast<std::uint64_t>(index);
  if (limits_.seed != 0) tie = (hash ^ limits_.seed) * 0x9e3779b97f4a7c15ULL >> 32;
  const std::int32_t left = size_of(arrival.rest);
  std::vector<Entry>& queue = queues_[limits_.anytime ? static_cast<std::size_t>(left) : 0];
  queue.push_back({bound, left, static_cast<std::uint32_t>(tie), index});
  std::push_heap(queue.begin(), queue.end());
  ++open_;
}

/// Removes from the state the values that no completion reads, and stores the arrival at the smaller state. Returns the
/// index of the stored arrival. Returns -1 if the smaller state was already reached at no higher cost.
template <class Set>
std::int32_t LiveSetSearch<Set>::without_useless_values(std::int32_t index) {
  Arrival arrival = arrivals_[index];
  const Set needed = problem_->target | inputs_of(arrival.rest);
  arrival.extra = extra_nodes(arrival, needed);
  arrival.state.memory &= needed | inputs_of(arrival.extra);
  if (arrival.state == arrivals_[index].state) {
    arrivals_[index].extra = arrival.extra;
    const auto same = [&](std::int32_t i) { return arrivals_[i].state == arrival.state; };
    const auto rehash = [&](std::int32_t i) { return hash_of(arrivals_[i].state); };
    return *known_.find_or_enter(hash_of(arrival.state), index, same, rehash).first == index ? index : -1;
  }
  return enter(arrival, hash_of(arrival.state)) ? static_cast<std::int32_t>(arrivals_.size()) - 1 : -1;
}

/// Returns whether an expanded state in which the same nodes have run holds at least all values of this state at no
/// higher cost. Compares only with the states expanded latest, up to a limit. If there is no such state, adds this
/// state to the expanded ones and returns false.
template <class Set>
bool LiveSetSearch<Set>::dominated(const Arrival& arrival) {
  // More comparisons skip few further states, so they pay off only in a search that must prove its result.
  const std::size_t most_compared = limits_.anytime ? 128 : 2048;
  const auto next = static_cast<std::int32_t>(group_ran_.size());
  const auto same = [&](std::int32_t i) { return group_ran_[i] == arrival.state.ran; };
  const auto hash = [&](std::int32_t i) { return hash_of(group_ran_[i]); };
  const auto [group, is_new] = groups_.find_or_enter(hash_of(arrival.state.ran), next, same, hash);
  if (is_new) {
    group_ran_.push_back(arrival.state.ran);
    if (closed_.size() < group_ran_.size()) closed_.emplace_back();
    closed_[*group].clear();
  }
  std::vector<Seen>& seen = closed_[*group];
  const std::size_t first = seen.size() - std::min(seen.size(), most_compared);
  for (std::size_t i = seen.size(); i > first; --i) {
    const Seen& other = seen[i - 1];
    if ((arrival.state.memory & ~other.memory) == 0 && other.cost <= arrival.cost) return true;
  }
  seen.push_back({arrival.state.memory, arrival.cost});
  return false;
}

template <class Set>
void LiveSetSearch<Set>::expand(std::int32_t index) {
  const Arrival& arrival = arrivals_[index];
  const State& state = arrival.state;
  const Set useful = arrival.rest | arrival.extra;
  const Set wanted = problem_->target | inputs_of(useful);
  const Set new_goals = problem_->goals & ~state.ran;
  Set runnable = useful;
  const Set chain = problem_->in_order & ~state.ran;
  runnable &= ~chain | (chain & (~chain + 1));
  for (Set left = runnable; left != 0; left &= left - 1) {
    const std::int32_t v = lowest(left);
    const Node& node = problem_->nodes[v];
    if ((node.inputs & ~state.memory) != 0 || (!has(new_goals, v) && (node.outputs & wanted & ~state.memory) == 0)) {
      runnable &= ~single<Set>(v);
    } else if (has(arrival.rest, v) && frees_what_it_takes(arrival, v, wanted)) {
      runnable = single<Set>(v);
      break;
    }
  }
  for_each_in(runnable, [&](std::int32_t v) { run_node(index, v); });
}

/// Returns whether v, which can run now, should run before any other node is tried. This is so if every completion runs
/// v, v fits into memory, and the useful outputs of v are no larger than the inputs that v frees. An input is freed if
/// no other node that can still run reads it and no node can make it again. Such an input stays in memory until v runs,
/// so running v now never costs memory.
template <class Set>
bool LiveSetSearch<Set>::frees_what_it_takes(const Arrival& arrival, std::int32_t v, Set wanted) const {
  const Node& node = problem_->nodes[v];
  const Set memory = arrival.state.memory & ~node.outputs;
  if (bytes(memory) + node.during > limits_.budget) return false;
  std::int64_t taken = bytes(node.outputs & wanted);
  if (taken == 0) return true;
  // The argument fails in two cases. If an output of v is in memory, it can be dropped now and made later, when v runs.
  // If v can run more than once, its inputs are needed again, so v does not free them.
  if ((node.outputs & arrival.state.memory) != 0 || cost_of(v) <= slack_of(arrival)) return false;
  const Set useful = arrival.rest | arrival.extra;
  for_each_in(node.inputs & memory & ~problem_->target, [&](std::int32_t x) {
    const std::int32_t producer = problem_->producers[x];
    if ((readers_[x] & useful) == single<Set>(v) && (producer < 0 || !has(useful, producer)))
      taken -= problem_->sizes[x];
  });
  return taken <= 0;
}

/// Tries each set of values that can be dropped so that v fits into memory. After dropping a set, runs v.
template <class Set>
void LiveSetSearch<Set>::run_node(std::int32_t index, std::int32_t v) {
  const Node& node = problem_->nodes[v];
  next_ = arrivals_[index];
  next_.from = index;
  next_.node = v;
  next_.state.memory &= ~node.outputs;
  next_.state.ran |= single<Set>(v) & remembered_;
  next_.cost = core::saturating_add(next_.cost, cost_of(v));
  next_.extra = (next_.extra | single<Set>(v)) & ~(problem_->once & next_.state.ran);
  if (has(next_.rest, v)) {
    next_.rest &= ~single<Set>(v);
    next_.rest_cost -= cost_of(v);
  }
  next_needed_ = problem_->target | inputs_of(next_.rest);
  next_outputs_ = node.outputs;
  const std::int64_t held = bytes(next_.state.memory);
  const std::int64_t excess = held + node.during - limits_.budget;
  if (excess <= 0) return drop_and_arrive(0);
  const std::int64_t slack = slack_of(next_);
  Set candidates = next_.state.memory & ~node.inputs & ~weightless_;
  for_each_in(candidates & next_needed_, [&](std::int32_t x) {
    const std::int32_t producer = problem_->producers[x];
    const bool possible =
        producer >= 0 &&
        (has(next_.rest, producer) || (cost_of(producer) <= slack && !has(problem_->once & next_.state.ran, producer)));
    if (!possible) candidates &= ~single<Set>(x);
  });
  drop_from(candidates, bytes(candidates), excess, 0, 0, slack);
}

/// Enumerates the sets of candidates that have at least `excess` bytes in total and no superfluous member. A member is
/// superfluous if the rest of the set still has `excess` bytes. The candidates are taken by descending size, so the
/// last member is the smallest. If the last member is not superfluous, no member is. Values that are still needed must
/// be made again after they are dropped. The nodes that make them again may cost at most `slack` in total.
template <class Set>
void LiveSetSearch<Set>::drop_from(Set candidates, std::int64_t candidate_bytes, std::int64_t excess, Set dropped,
                                   Set made_again, std::int64_t slack) {
  while (candidate_bytes >= excess && !stopped_) {
    const std::int32_t x = lowest(candidates);
    const std::int64_t size = problem_->sizes[x];
    candidates &= candidates - 1;
    candidate_bytes -= size;
    Set made = made_again;
    std::int64_t left = slack;
    if (has(next_needed_, x)) {
      const std::int32_t producer = problem_->producers[x];
      if (!has(next_.rest | made, producer)) left -= cost_of(producer);
      made |= single<Set>(producer);
    }
    if (left < 0) continue;
    if (size >= excess) {
      drop_and_arrive(dropped | single<Set>(x));
    } else {
      drop_from(candidates, candidate_bytes, excess - size, dropped | single<Set>(x), made, left);
    }
  }
}

template <class Set>
void LiveSetSearch<Set>::drop_and_arrive(Set dropped) {
  Arrival arrival = next_;
  Set needed = next_needed_;
  arrival.state.memory = (arrival.state.memory & ~dropped) | next_outputs_;
  if (dropped != 0) {
    // There can be exponentially many sets to drop, so the limits are checked for each of them.
    stopped_ = stopped_ || watch_->charge().expired() || too_many_states();
    if (stopped_ || !add_to_rest(arrival, needed & dropped)) return;
    needed |= inputs_of(arrival.rest & ~next_.rest);
  }
  arrive(arrival, needed);
}

template class LiveSetSearch<Set64>;
template class LiveSetSearch<Set128>;

}  // namespace cairn::solvers
