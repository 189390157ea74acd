// Implements Algorithm 3 (PWRemat) of Kumar et al. (path_schedule.h). A path decomposition is a sequence of bags, which
// are sets of nodes. An interleaved schedule says for each of its items (nodes of a set X) which nodes have to run
// before this item. A side is the range of bags on one side of the bag that contains X.

#include "cairn/solvers/remat/kumar/path_schedule.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cairn/core/support/random.h"
#include "cairn/core/support/saturating.h"

namespace cairn::solvers {
namespace {

using core::NodeId;
using core::ValueId;

constexpr std::int64_t kMostLength = std::int64_t{1} << 61;
/// An index after all nodes. The item with this index is not a node, but stands for the end of an interleaved schedule.
constexpr std::int32_t kAfterAll = std::numeric_limits<std::int32_t>::max();

}  // namespace

std::int32_t CompressedSchedule::add(const std::vector<std::int32_t>& entries) {
  std::int64_t length = 0;
  for (const std::int32_t entry : entries) length = std::min(kMostLength, length + (entry < 0 ? lengths_[~entry] : 1));
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  begin_.push_back(entries_.size());
  lengths_.push_back(length);
  return list_count() - 1;
}

PathScheduler::PathScheduler(const core::Graph& graph, const Spine& spine)
    : graph_(graph), order_(spine.order), bag_count_(static_cast<std::int32_t>(spine.decomposition.bags.size())) {
  const NodeId n = graph.node_count();
  std::vector<std::int32_t> place(n);
  for (NodeId i = 0; i < n; ++i) place[order_[i]] = i;
  const auto by_node = bag_intervals(spine.decomposition, n);
  input_begin_.push_back(0);
  for (const NodeId v : order_) {
    intervals_.push_back(by_node[v]);
    bytes_.push_back(graph.size(v));
    for (const NodeId u : graph.predecessors(v)) inputs_.push_back(place[u]);
    input_begin_.push_back(static_cast<std::int32_t>(inputs_.size()));
  }
}

std::optional<std::int32_t> PathScheduler::build(std::int64_t k, double slack, std::int64_t most_entries,
                                                 core::Stopwatch& watch) {
  k_ = k;
  slack_ = slack;
  most_entries_ = most_entries;
  watch_ = &watch;
  stopped_ = false;
  program_ = {};
  lists_.clear();
  known_.assign(order_.size(), 0);
  wanted_.assign(order_.size(), 0);
  stamp_.assign(order_.size(), 0);
  last_reader_.assign(order_.size(), 0);
  current_ = 0;
  std::vector<std::int32_t> outputs;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (graph_.required(order_[i])) outputs.push_back(static_cast<std::int32_t>(i));
  }
  const std::int32_t list = outputs.empty() ? program_.add({}) : compute(outputs);
  if (stopped_) return std::nullopt;
  return list;
}

bool PathScheduler::stop() {
  stopped_ = stopped_ || program_.entry_count() > most_entries_ || watch_->expired();
  return stopped_;
}

std::vector<std::int32_t> PathScheduler::with_ancestors(std::vector<std::int32_t> nodes, const Side& side) {
  ++current_;
  std::size_t kept = 0;
  for (const std::int32_t v : nodes) {
    if (std::exchange(stamp_[v], current_) != current_) nodes[kept++] = v;
  }
  nodes.resize(kept);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::int32_t v = nodes[i];
    for (std::int32_t e = input_begin_[v]; e < input_begin_[v + 1]; ++e) {
      const std::int32_t u = inputs_[e];
      if (known_[u] != 0 || stamp_[u] == current_ || !side.holds(intervals_[u])) continue;
      stamp_[u] = current_;
      nodes.push_back(u);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  watch_->charge(static_cast<std::int64_t>(nodes.size()));
  return nodes;
}

PathScheduler::Bags PathScheduler::bags_of(const std::vector<std::int32_t>& nodes) {
  begins_.clear();
  ends_.clear();
  for (const std::int32_t v : nodes) {
    begins_.emplace_back(intervals_[v].first, bytes_[v]);
    ends_.emplace_back(intervals_[v].last, bytes_[v]);
  }
  std::sort(begins_.begin(), begins_.end());
  std::sort(ends_.begin(), ends_.end());
  // Leave out each bag that is a subset of a neighbouring bag. A bag in which no node occurs for the first time is a
  // subset of the bag before it. A bag is a subset of a later bag if all of its nodes are also in the next bag in which
  // some node occurs for the first time.
  Bags bags;
  std::int64_t bytes = 0;
  std::size_t ended = 0;
  for (std::size_t i = 0; i < begins_.size(); ++i) {
    const std::int32_t bag = begins_[i].first;
    bytes += begins_[i].second;
    const bool is_last = i + 1 == begins_.size();
    if (!is_last && begins_[i + 1].first == bag) continue;
    for (; ends_[ended].first < bag; ++ended) bytes -= ends_[ended].second;
    if (!is_last && ends_[ended].first >= begins_[i + 1].first) continue;
    bags.most_bytes = std::max(bags.most_bytes, bytes);
    bags.places.push_back(bag);
    bags.bytes.push_back(bytes);
  }
  return bags;
}

/// Computes the largest number of bytes in memory when each of `nodes` runs once, in order. The value of a node stays
/// in memory until its last reader among `nodes` and `items` has run. Values that callers need (wanted_) are not
/// counted. Must be called directly after with_ancestors(), whose marks it uses.
std::int64_t PathScheduler::bytes_in_order(const std::vector<std::int32_t>& nodes, const std::vector<Item>& items) {
  const auto read = [&](std::int32_t reader) {
    for (std::int32_t e = input_begin_[reader]; e < input_begin_[reader + 1]; ++e) {
      if (stamp_[inputs_[e]] == current_) last_reader_[inputs_[e]] = std::max(last_reader_[inputs_[e]], reader);
    }
  };
  for (const std::int32_t v : nodes) last_reader_[v] = v;
  for (const std::int32_t v : nodes) read(v);
  for (const Item& item : items) {
    if (item.node != kAfterAll) read(item.node);
  }
  ends_.clear();
  for (const std::int32_t v : nodes) {
    if (wanted_[v] == 0) ends_.emplace_back(last_reader_[v], bytes_[v]);
  }
  std::sort(ends_.begin(), ends_.end());
  std::int64_t bytes = 0, most = 0;
  std::size_t ended = 0;
  for (const std::int32_t v : nodes) {
    for (; ended < ends_.size() && ends_[ended].first < v; ++ended) bytes -= ends_[ended].second;
    if (wanted_[v] == 0) bytes += bytes_[v];
    most = std::max(most, bytes);
  }
  return most;
}

std::vector<std::int32_t> PathScheduler::at(const std::vector<std::int32_t>& nodes, std::int32_t bag) const {
  std::vector<std::int32_t> held;
  std::ranges::copy_if(nodes, std::back_inserter(held), [&](std::int32_t v) { return intervals_[v].contains(bag); });
  return held;
}

void PathScheduler::forget(const std::vector<std::int32_t>& nodes) {
  for (const std::int32_t v : nodes) known_[v] = wanted_[v] > 0;
}

std::int32_t PathScheduler::compute(const std::vector<std::int32_t>& targets) {
  const std::vector<std::int32_t> nodes = with_ancestors(targets, {-1, bag_count_, true});
  for (const std::int32_t v : targets) ++wanted_[v];
  // Equal calls of compute() share one list of steps, because the steps of a call depend only on its targets and on the
  // nodes that it has to run.
  Key key{nodes.size(), targets.size()};
  const auto add = [&](std::uint64_t number, std::uint64_t salt) {
    key.a += core::Random(number * 2 + salt).next();
    key.b += core::Random(~(number * 2 + salt) * 0xd1342543de82ef95ULL).next();
  };
  for (const std::int32_t v : nodes) add(static_cast<std::uint64_t>(v), 0);
  for (const std::int32_t v : targets) add(static_cast<std::uint64_t>(v), 1);
  const auto [entry, is_new] = lists_.try_emplace(key, 0);
  std::int32_t list = entry->second;
  if (is_new) {
    list = program_.add(steps_for(targets, nodes));
    lists_[key] = list;
  }
  for (const std::int32_t v : targets) known_[v] = 1;
  return list;
}

/// Returns the steps that compute the targets (PWRemat). `nodes` contains the targets and all nodes that the targets
/// need and whose values are not in memory.
std::vector<std::int32_t> PathScheduler::steps_for(const std::vector<std::int32_t>& targets,
                                                   const std::vector<std::int32_t>& nodes) {
  const Bags bags = bags_of(nodes);
  const auto count = static_cast<std::int64_t>(bags.places.size());
  // Recursion needs at least as many bytes as the largest bag has. So recursion is useless if running each node once
  // needs no more than these bytes.
  if (stop() || count < k_ || bytes_in_order(nodes, {}) <= bags.most_bytes) return nodes;
  // Choose the bag at which the left and the right half meet (`center`). An interleaved schedule has no steps after its
  // last item, so this bag must contain the last node. Of the bags that contain it, take the one nearest to the middle.
  const BagInterval& last = intervals_[nodes.back()];
  const auto begin = std::lower_bound(bags.places.begin(), bags.places.end(), last.first) - bags.places.begin();
  const auto end = std::upper_bound(bags.places.begin(), bags.places.end(), last.last) - bags.places.begin();
  const std::int32_t center = bags.places[std::clamp<std::int64_t>(count / 2, begin, end - 1)];
  const std::vector<std::int32_t> in_center = at(nodes, center);
  std::vector<Item> left, right;
  for (const std::int32_t x : in_center) {
    known_[x] = 1;
    left.push_back({x, {}});
    right.push_back({x, {}});
  }
  for (const std::int32_t v : targets) {
    if (intervals_[v].contains(center)) continue;
    const auto slot = std::upper_bound(in_center.begin(), in_center.end(), v) - in_center.begin();
    (intervals_[v].last < center ? left : right)[slot].also.push_back(v);
  }
  InterleavedSchedule all = interleaved(left, {-1, center, false});
  unite(all, interleaved(right, {center, bag_count_, true}));
  forget(in_center);
  return flatten(std::move(all));
}

/// Divides the items for the recursion at the middle bag. `in_middle` are the nodes of the middle bag that have to run.
PathScheduler::Halves PathScheduler::divide(const std::vector<Item>& items, const std::vector<std::int32_t>& in_middle,
                                            std::int32_t middle, const Side& outer) const {
  // Fill `outer` with the paper's X_m, which is the middle bag: the nodes `in_middle`, and the items that the middle
  // bag contains.
  Halves halves;
  for (const std::int32_t v : in_middle) halves.outer.push_back({v, {}});
  for (const Item& item : items) {
    if (item.node != kAfterAll && intervals_[item.node].contains(middle)) halves.outer.push_back({item.node, {}});
  }
  std::ranges::sort(halves.outer, {}, &Item::node);
  const std::int32_t last = halves.outer.empty() ? -1 : halves.outer.back().node;
  // Fill `before` with the paper's u_1, u_2, ..., in ascending order: the nodes `in_middle`, and the items up to
  // `last`. The items after `last` go to `lower`.
  for (const std::int32_t v : in_middle) halves.before.push_back({v, {}});
  for (const Item& item : items) (item.node > last ? halves.lower : halves.before).push_back({item.node, {}});
  std::ranges::sort(halves.before, {}, &Item::node);
  halves.outer.push_back({kAfterAll, {}});
  // A node that must be in memory although no item reads it is computed as early as possible: before the first item
  // that comes after it.
  const auto after = [](std::vector<Item>& list, std::int32_t v) {
    return std::ranges::upper_bound(list, v, {}, &Item::node);
  };
  for (const Item& item : items) {
    for (const std::int32_t v : item.also) {
      if (intervals_[v].contains(middle)) continue;
      if (outer.holds(intervals_[v])) {
        after(halves.outer, v)->also.push_back(v);
      } else {
        (v < last ? after(halves.before, v) : after(halves.lower, v))->also.push_back(v);
      }
    }
  }
  return halves;
}

/// Computes an interleaved schedule: for each item, the nodes that have to run before it on the given side. The values
/// of all items count as being in memory from the start. This is safe, because a node that runs before an item cannot
/// read a later item.
InterleavedSchedule PathScheduler::interleaved(const std::vector<Item>& items, const Side& side) {
  InterleavedSchedule result;
  std::vector<std::int32_t> roots;
  const auto add_unknown_inputs = [&](std::int32_t v, const Side& where, std::vector<std::int32_t>& into) {
    for (std::int32_t e = input_begin_[v]; e < input_begin_[v + 1]; ++e) {
      const std::int32_t u = inputs_[e];
      if (known_[u] == 0 && where.holds(intervals_[u])) into.push_back(u);
    }
  };
  for (const Item& item : items) {
    if (item.node != kAfterAll) add_unknown_inputs(item.node, side, roots);
    roots.insert(roots.end(), item.also.begin(), item.also.end());
  }
  const std::vector<std::int32_t> nodes = with_ancestors(std::move(roots), side);
  for (const Item& item : items) result.push_back({{}, item.node});
  if (nodes.empty() || stop()) return result;
  const Bags bags = bags_of(nodes);
  const auto count = static_cast<std::int64_t>(bags.places.size());
  if (count < k_ || bytes_in_order(nodes, items) <= bags.most_bytes) {
    std::size_t next = 0;
    for (const std::int32_t v : nodes) {
      while (items[next].node < v) ++next;
      result[next].schedule.push_back(v);
      known_[v] = wanted_[v] > 0;
    }
    return result;
  }

  // If the number of bags is even, the inner part (next to the bag that contains X) gets one bag more than the outer
  // part.
  std::int64_t choice = side.right ? count / 2 : (count - 1) / 2;
  const auto spread = static_cast<std::int64_t>(slack_ * static_cast<double>(count));
  for (std::int64_t b = std::max<std::int64_t>(0, choice - spread); b <= std::min(count - 1, choice + spread); ++b) {
    if (bags.bytes[b] < bags.bytes[choice]) choice = b;
  }
  const std::int32_t middle = bags.places[choice];
  const Side inner = side.inner(middle), outer = side.outer(middle);
  const std::vector<std::int32_t> in_middle = at(nodes, middle);
  for (const std::int32_t v : in_middle) known_[v] = 1;
  Halves halves = divide(items, in_middle, middle, outer);

  result.clear();
  for (Item& item : halves.before) {
    InterleavedTuple tuple{{}, item.node};
    std::vector<std::int32_t>& targets = item.also;
    add_unknown_inputs(item.node, inner, targets);
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    if (!targets.empty()) {
      tuple.schedule.push_back(CompressedSchedule::call(compute(targets)));
      for (const std::int32_t v : targets) --wanted_[v];
      forget(targets);
    }
    result.push_back(std::move(tuple));
  }
  const bool ends = !halves.outer.back().also.empty();
  if (!ends) halves.outer.pop_back();
  InterleavedSchedule from_outer = interleaved(halves.outer, outer);
  if (ends) from_outer.back().node = halves.lower.front().node;
  unite(result, std::move(from_outer));
  if (!halves.lower.empty()) unite(result, interleaved(halves.lower, inner));
  forget(in_middle);
  std::vector<std::int32_t> item_nodes;
  for (const Item& item : items) item_nodes.push_back(item.node);
  return condense(item_nodes, std::move(result));
}

PathScheduleMeasures PathScheduler::measure(std::int32_t list, bool drop_unread, std::vector<NodeId>* steps) const {
  PathScheduleMeasures measures;
  std::vector<std::uint8_t> live(graph_.value_count(), 0), stands(graph_.node_count(), 0);
  std::int64_t memory = 0;
  for (ValueId x = 0; x < graph_.value_count(); ++x) {
    if (!graph_.value_kept(x)) continue;
    live[x] = 1;
    memory += graph_.value_size(x);
  }
  program_.for_each_backwards(list, [&](std::int32_t place) {
    const NodeId v = order_[place];
    bool needed = !drop_unread || (stands[v] == 0 && graph_.required(v));
    for (const ValueId x : graph_.outputs(v)) needed = needed || live[x] != 0;
    if (!needed) return;
    stands[v] = 1;
    for (const ValueId x : graph_.outputs(v)) {
      if (std::exchange(live[x], 0) != 0) memory -= graph_.value_size(x);
    }
    for (const ValueId x : graph_.inputs(v)) {
      if (std::exchange(live[x], 1) == 0) memory += graph_.value_size(x);
    }
    measures.peak = std::max(measures.peak, memory + graph_.size(v) + graph_.scratch(v));
    measures.cost = core::saturating_add(measures.cost, graph_.cost(v));
    ++measures.length;
    if (steps != nullptr) steps->push_back(v);
  });
  if (steps != nullptr) std::reverse(steps->begin(), steps->end());
  return measures;
}

}  // namespace cairn::solvers
