#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/solvers/remat/hiremate/partition.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::partition_property_test {
namespace {

using Item = std::int32_t;
using Set = std::set<Item>;
using tests::Random;

/// Builds a PartitionGraph, whose nodes are called items. Each item makes up to `most_outputs` values. An edge from
/// item `from` to item `to` means that `to` reads a random one of the values of `from`.
class GraphBuilder {
 public:
  GraphBuilder(Item items, Random& random, int most_outputs = 1) : random_(random) {
    graph_.items = items;
    for (Item x = 0; x < items; ++x) {
      first_.push_back(graph_.values.size());
      for (auto i = random.between(most_outputs > 1 ? 0 : 1, most_outputs); i > 0; --i)
        graph_.values.push_back({random.between(0, 4), x, {}});
    }
    first_.push_back(graph_.values.size());
  }
  void edge(Item from, Item to) {
    const auto outputs = static_cast<std::int64_t>(first_[from + 1] - first_[from]);
    if (outputs > 0) graph_.values[first_[from] + random_.below(outputs)].readers.push_back(to);
  }
  PartitionGraph done() {
    for (auto& value : graph_.values) {
      std::sort(value.readers.begin(), value.readers.end());
      value.readers.erase(std::unique(value.readers.begin(), value.readers.end()), value.readers.end());
    }
    return graph_;
  }

 private:
  Random& random_;
  PartitionGraph graph_;
  std::vector<std::size_t> first_;
};

/// Returns a random series-parallel graph. It repeatedly adds a path with one new item between the two ends of a random
/// edge, and removes the edge in 60% of the cases.
PartitionGraph series_parallel(Item items, Random& random) {
  std::vector<std::pair<Item, Item>> edges{{0, 1}};
  for (Item x = 2; x < items; ++x) {
    const auto i = random.below(static_cast<std::int64_t>(edges.size()));
    const auto [from, to] = edges[i];
    if (random.chance(60)) edges.erase(edges.begin() + i);
    edges.emplace_back(from, x);
    edges.emplace_back(x, to);
  }
  std::vector<Set> inputs(items);
  for (const auto& [from, to] : edges) inputs[to].insert(from);
  std::vector<Item> number(items, -1);
  Item next = 0;
  while (next < items) {
    for (Item x = 0; x < items; ++x) {
      const bool ready = std::all_of(inputs[x].begin(), inputs[x].end(), [&](Item p) { return number[p] >= 0; });
      if (number[x] < 0 && ready) number[x] = next++;
    }
  }
  GraphBuilder builder(items, random);
  for (const auto& [from, to] : edges) builder.edge(number[from], number[to]);
  return builder.done();
}

PartitionGraph some_graph(Random& random, Item most) {
  const auto items = static_cast<Item>(random.between(2, most));
  const auto kind = random.below(6);
  if (kind == 5) return series_parallel(items, random);
  GraphBuilder builder(items, random, random.chance(50) ? 1 : 3);
  switch (kind) {
    case 0:  // a chain, with some edges that skip items
      for (Item x = 1; x < items; ++x) builder.edge(x - 1, x);
      for (auto i = random.below(4); i > 0 && items > 2; --i) {
        const auto from = static_cast<Item>(random.below(items - 1));
        builder.edge(from, static_cast<Item>(random.between(from + 1, items - 1)));
      }
      break;
    case 1: {  // layers of items
      const auto width = static_cast<Item>(random.between(2, 4));
      for (Item x = width; x < items; ++x) {
        for (auto i = random.between(1, 2); i > 0; --i)
          builder.edge(static_cast<Item>((x / width - 1) * width + random.below(width)), x);
      }
      break;
    }
    case 2:  // only the source dominates the items
      for (Item x = 2; x < items; ++x) {
        builder.edge(x - 1, x);
        builder.edge(x - 2, x);
      }
      break;
    case 3:  // a star, and items that read its leaves
      for (Item x = 1; x < items; ++x) builder.edge(random.chance(80) ? 0 : x - 1, x);
      break;
    default:  // any graph, possibly with isolated items
      for (auto edges = random.between(0, 2 * items); edges > 0; --edges) {
        const auto to = static_cast<Item>(random.between(1, items - 1));
        builder.edge(static_cast<Item>(random.below(to)), to);
      }
  }
  return builder.done();
}

PartitionOptions some_options(Random& random) {
  PartitionOptions options{.most_top = static_cast<std::int32_t>(random.between(1, 8)),
                           .most_lower = static_cast<std::int32_t>(random.between(2, 7)),
                           .alpha = random.pick(std::vector<double>{0, 0.5, 1, 3})};
  options.slow_rounds = random.pick(std::vector<double>{0, 1, std::numeric_limits<double>::infinity()});
  return options;
}

core::Stopwatch no_limit() { return core::Stopwatch(core::Limit{}); }

Partition partition_of(const PartitionGraph& graph, const PartitionOptions& options) {
  core::Stopwatch watch = no_limit();
  return h_partition(graph, options, watch);
}

/// The inputs of each item, and a matrix that says which items are connected by a path.
struct Paths {
  std::vector<Set> inputs;
  std::vector<std::vector<char>> reach;  ///< [from][to]; true also if `from` and `to` are the same item

  explicit Paths(const PartitionGraph& graph)
      : inputs(graph.items), reach(graph.items, std::vector<char>(graph.items, 0)) {
    for (const auto& value : graph.values) {
      for (const Item reader : value.readers) inputs[reader].insert(value.maker);
    }
    for (Item to = 0; to < graph.items; ++to) {
      reach[to][to] = 1;
      for (const Item p : inputs[to]) {
        for (Item from = 0; from < to; ++from) reach[from][to] |= reach[from][p];
      }
    }
  }
  Item items() const { return static_cast<Item>(inputs.size()); }

  /// Returns the last item besides x without which no path leads from the source to x (x's dominator), or -1 for the
  /// source.
  Item dominator(Item x) const {
    for (Item d = x - 1; d >= 0; --d) {
      std::vector<char> reached(items(), 0);  // items that the source reaches without passing d
      for (Item u = 0; u <= x; ++u) {
        const bool some = std::any_of(inputs[u].begin(), inputs[u].end(), [&](Item p) { return reached[p] != 0; });
        reached[u] = u != d && (inputs[u].empty() || some);
      }
      if (!reached[x]) return d;
    }
    return -1;
  }
  /// Returns whether no path leads out of the set and back into it (Definition A.1 of Gusak et al. 2025).
  bool convex(const Set& members) const {
    for (const Item a : members) {
      for (const Item b : members) {
        for (Item u = 0; u < items(); ++u) {
          if (reach[a][u] && inputs[b].count(u) && !members.count(u)) return false;
        }
      }
    }
    return true;
  }
  /// Returns whether Property 1 holds for some head: all members can be reached from the head, and they read only
  /// members and the head. If the head is a member, it may read anything. Head -1 stands for the source.
  bool property_1(const Set& members) const {
    for (Item head = -1; head < items(); ++head) {
      const bool holds = std::all_of(members.begin(), members.end(), [&](Item u) {
        if (head >= 0 && !reach[head][u]) return false;
        if (u == head) return true;
        return std::all_of(inputs[u].begin(), inputs[u].end(), [&](Item v) { return members.count(v) || v == head; });
      });
      if (holds) return true;
    }
    return false;
  }
};

/// The graph in which each block (a set of items) is contracted to one item. Every item must be in a block. Blocks are
/// put into an order in which they can run. If there is no such order, `acyclic` is false.
struct Contraction {
  PartitionGraph graph;
  std::vector<Set> blocks;
  bool acyclic = true;

  Contraction(const PartitionGraph& from, std::vector<Set> unordered) {
    std::sort(unordered.begin(), unordered.end(), [](const Set& a, const Set& b) { return *a.begin() < *b.begin(); });
    std::vector<std::size_t> block(from.items);
    for (std::size_t b = 0; b < unordered.size(); ++b) {
      for (const Item x : unordered[b]) block[x] = b;
    }
    std::vector<std::set<std::size_t>> inputs(unordered.size());
    for (const auto& value : from.values) {
      for (const Item reader : value.readers) {
        if (block[reader] != block[value.maker]) inputs[block[reader]].insert(block[value.maker]);
      }
    }
    std::vector<Item> number(unordered.size(), -1);
    while (blocks.size() < unordered.size()) {
      std::size_t b = 0;
      while (b < unordered.size() &&
             (number[b] >= 0 || std::any_of(inputs[b].begin(), inputs[b].end(), [&](auto p) { return number[p] < 0; })))
        ++b;
      if (b == unordered.size()) {
        acyclic = false;
        return;
      }
      number[b] = static_cast<Item>(blocks.size());
      blocks.push_back(unordered[b]);
    }
    graph.items = static_cast<Item>(blocks.size());
    for (const auto& value : from.values) {
      Set readers;
      for (const Item reader : value.readers) readers.insert(number[block[reader]]);
      const Item maker = number[block[value.maker]];
      readers.erase(maker);
      if (!readers.empty()) graph.values.push_back({value.bytes, maker, {readers.begin(), readers.end()}});
    }
  }
};

/// Returns, for each item and each group of a partition, the original items that it contains.
std::vector<Set> contents(const PartitionGraph& graph, const Partition& partition) {
  std::vector<Set> inside(graph.items + partition.groups.size());
  for (Item x = 0; x < graph.items; ++x) inside[x] = {x};
  for (std::size_t i = 0; i < partition.groups.size(); ++i) {
    for (const Item x : partition.groups[i]) inside[graph.items + i].insert(inside[x].begin(), inside[x].end());
  }
  return inside;
}

/// Returns what is wrong with a partition, or an empty text if nothing is wrong.
std::string fault(const PartitionGraph& graph, const PartitionOptions& options, const Partition& partition) {
  const auto total = graph.items + static_cast<Item>(partition.groups.size());
  if (static_cast<Item>(partition.top.size()) > options.most_top) return "the top level is too large";
  std::vector<int> uses(total, 0), level(total, 1);
  const auto use = [&](const std::vector<Item>& members, Item below) {
    for (const Item x : members) {
      if (x < 0 || x >= below) return false;
      ++uses[x];
    }
    return true;
  };
  for (Item g = graph.items; g < total; ++g) {
    const auto& members = partition.groups[g - graph.items];
    if (members.size() < 2) return "a group of fewer than two";
    if (static_cast<Item>(members.size()) > options.most_lower) return "a group is too large";
    if (!use(members, g)) return "a group has members that come later";
    for (const Item x : members) level[g] = std::max(level[g], level[x] + 1);
  }
  if (!use(partition.top, total)) return "no such item at the top";
  if (std::count(uses.begin(), uses.end(), 1) != total) return "an item is not in exactly one place";
  if (partition.levels != (total == 0 ? 1 : *std::max_element(level.begin(), level.end()))) return "wrong levels";

  const Paths paths(graph);
  const std::vector<Set> inside = contents(graph, partition);
  for (Item g = graph.items; g < total; ++g) {
    if (!paths.convex(inside[g])) return "a group is not convex";
  }
  // Checks a single level of the partition. Contracts each member of the level, and leaves all remaining items as they
  // are.
  const auto level_fault = [&](const std::vector<Item>& members) -> std::string {
    std::vector<Set> blocks;
    Set rest;
    for (Item x = 0; x < graph.items; ++x) rest.insert(x);
    for (const Item x : members) {
      blocks.push_back(inside[x]);
      for (const Item y : inside[x]) rest.erase(y);
    }
    for (const Item x : rest) blocks.push_back({x});
    if (!Contraction(graph, blocks).acyclic) return "a level is not acyclic";
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        for (const Item from : inside[members[i]]) {
          for (const Item to : inside[members[j]]) {
            if (paths.reach[from][to]) return "members are not in an order in which they can run";
          }
        }
      }
    }
    return "";
  };
  for (const auto& members : partition.groups) {
    if (auto what = level_fault(members); !what.empty()) return what;
  }
  return level_fault(partition.top);
}

/// Runs one round of Algorithm 1 literally, i.e. computes all scores anew by the definition. `given` is the number of
/// original items in each item. Returns the groups that it has made, and every remaining item as a set of its own.
/// Checks that all candidates keep Property 1.
std::vector<Set> literal_round(const PartitionGraph& graph, const std::vector<std::int64_t>& given,
                               const PartitionOptions& options) {
  const Paths paths(graph);
  std::vector<Set> candidates, groups;
  for (Item x = 0; x < graph.items; ++x) groups.push_back({x});
  for (Item x = 0; x < graph.items; ++x) {
    const Item a = paths.dominator(x);
    Set between;
    for (Item u = 0; u < x; ++u) {
      if (u != a && (a < 0 || paths.reach[a][u]) && paths.reach[u][x]) between.insert(u);
    }
    for (const bool with_x : {true, false}) {
      for (const bool with_a : {true, false}) {
        Set members = between;
        if (with_x) members.insert(x);
        if (with_a && a >= 0) members.insert(a);
        const bool known = std::find(candidates.begin(), candidates.end(), members) != candidates.end();
        if (!known && members.size() >= 2 && static_cast<Item>(members.size()) <= options.most_lower)
          candidates.push_back(members);
      }
    }
  }
  const auto score = [&](const Set& members) {
    std::int64_t bytes = 0, compute = 0;
    for (const auto& value : graph.values) {
      std::size_t inside = members.count(value.maker);
      for (const Item reader : value.readers) inside += members.count(reader);
      if (inside > 0 && inside < value.readers.size() + 1) bytes += value.bytes;
    }
    for (const Item x : members) compute += given[x];
    return static_cast<double>(bytes) *
           std::pow(static_cast<double>(compute) / static_cast<double>(members.size()), options.alpha);
  };
  while (!candidates.empty() && static_cast<Item>(groups.size()) > options.most_top) {
    for (const Set& members : candidates) REQUIRE(paths.property_1(members));
    std::size_t best = 0;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
      const double mine = score(candidates[i]), least = score(candidates[best]);
      if (mine < least || (mine == least && candidates[i].size() > candidates[best].size())) best = i;
    }
    const Set chosen = candidates[best];
    const auto touches = [&](const Set& other) {
      return std::any_of(other.begin(), other.end(), [&](Item x) { return chosen.count(x) != 0; });
    };
    std::erase_if(groups, touches);
    groups.push_back(chosen);
    for (Set& members : candidates) {
      if (touches(members)) members.insert(chosen.begin(), chosen.end());
    }
    std::erase_if(candidates, [&](const Set& members) {
      return members == chosen || static_cast<Item>(members.size()) > options.most_lower;
    });
  }
  return groups;
}

/// Divides items into runs of consecutive items, by trying all divisions. It takes a division with the fewest bytes
/// across the boundaries. In a tie, it takes one with the fewest runs, and then one with the longest last run.
struct BestRuns {
  const PartitionGraph& graph;
  Item longest;
  // `known` maps the number of items that are divided to their best division.
  std::map<Item, std::pair<std::pair<std::int64_t, std::size_t>, std::vector<Set>>> known;

  std::int64_t bytes_across(Item cut) const {
    std::int64_t bytes = 0;
    for (const auto& value : graph.values) {
      if (value.maker < cut && value.readers.back() >= cut) bytes += value.bytes;
    }
    return bytes;
  }
  const std::pair<std::pair<std::int64_t, std::size_t>, std::vector<Set>>& of_first(Item items) {
    if (const auto found = known.find(items); found != known.end()) return found->second;
    auto& best = known[items];
    for (Item length = std::min(items, longest); length > 0; --length) {
      auto [cost, runs] = of_first(items - length);
      cost = {cost.first + bytes_across(items - length), cost.second + 1};
      runs.emplace_back();
      for (Item x = items - length; x < items; ++x) runs.back().insert(x);
      if (best.second.empty() || cost < best.first) best = {cost, runs};
    }
    return best;
  }
};

/// Runs all of Algorithm 1 literally. If a round finds no group, or rounds make too little progress, the next round
/// only makes runs of consecutive items. `stuck` counts such rounds. Returns all groups as sets of original items.
std::set<Set> literal_partition(PartitionGraph graph, const PartitionOptions& options, int& stuck) {
  std::erase_if(graph.values, [](const auto& value) { return value.readers.empty(); });
  std::set<Set> groups;
  std::vector<Set> inside;
  for (Item x = 0; x < graph.items; ++x) inside.push_back({x});
  double slow_items = options.slow_rounds * graph.items;
  bool runs = false;
  while (graph.items > options.most_top) {
    std::vector<std::int64_t> given;
    for (const Set& set : inside) given.push_back(static_cast<std::int64_t>(set.size()));
    std::vector<Set> blocks;
    if (runs) {
      const Item longest = (graph.items + options.most_top - 1) / options.most_top;
      blocks = BestRuns{graph, std::min(longest, options.most_lower), {}}.of_first(graph.items).second;
      runs = false;
      ++stuck;
    } else {
      blocks = literal_round(graph, given, options);
      const auto wrapped = graph.items - static_cast<Item>(blocks.size());
      if (wrapped < graph.items / 8) slow_items -= graph.items;
      runs = wrapped == 0 || (wrapped < graph.items / 8 && slow_items < 0);
    }
    const Contraction next(graph, blocks);
    REQUIRE(next.acyclic);
    std::vector<Set> next_inside;
    for (const Set& block : next.blocks) {
      next_inside.emplace_back();
      for (const Item x : block) next_inside.back().insert(inside[x].begin(), inside[x].end());
      if (block.size() > 1) groups.insert(next_inside.back());
    }
    inside = next_inside;
    graph = next.graph;
  }
  return groups;
}

TEST_CASE("immediate dominators are those of the definition") {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const PartitionGraph graph = some_graph(random, 24);
    const Paths paths(graph);
    const std::vector<Item> dominators = immediate_dominators(graph);
    for (Item x = 0; x < graph.items; ++x) REQUIRE(dominators[x] == paths.dominator(x));
  }
}

TEST_CASE("H-Partition of small graphs of all kinds is valid on every level and the same again") {
  Random random(2);
  int deep = 0;
  for (int i = 0; i < 4000; ++i) {
    const PartitionGraph graph = some_graph(random, 30);
    const PartitionOptions options = some_options(random);
    const Partition partition = partition_of(graph, options);
    REQUIRE(fault(graph, options, partition) == "");
    deep += partition.levels > 2;
    const Partition again = partition_of(graph, options);
    REQUIRE((again.groups == partition.groups && again.top == partition.top));
  }
  CHECK(deep > 1000);
}

TEST_CASE("H-Partition makes the groups of Algorithm 1 done to the letter") {
  Random random(3);
  int stuck = 0;
  for (int i = 0; i < 2000; ++i) {
    const PartitionGraph graph = some_graph(random, i < 1900 ? 22 : 60);
    const PartitionOptions options = some_options(random);
    const Partition partition = partition_of(graph, options);
    const std::vector<Set> inside = contents(graph, partition);
    REQUIRE(std::set<Set>(inside.begin() + graph.items, inside.end()) == literal_partition(graph, options, stuck));
  }
  CHECK(stuck > 100);
  CHECK(stuck < 1500);
}

TEST_CASE("H-Partition is valid whenever the watch expires") {
  Random random(4);
  for (int i = 0; i < 500; ++i) {
    const PartitionGraph graph = some_graph(random, 30);
    const PartitionOptions options = some_options(random);
    core::Limit limit{.work = random.below(400)};
    core::Stopwatch watch(limit);
    REQUIRE(fault(graph, options, h_partition(graph, options, watch)) == "");
  }
}

PartitionGraph without_edges(Item items) {
  PartitionGraph graph{.items = items};
  for (Item x = 0; x < items; ++x) graph.values.push_back({1, x, {}});
  return graph;
}

PartitionGraph star(Item items) {
  PartitionGraph graph = without_edges(items);
  for (Item x = 1; x < items; ++x) graph.values[0].readers.push_back(x);
  return graph;
}

PartitionGraph chain(Item items, std::int64_t bytes = 1) {
  PartitionGraph graph{.items = items};
  for (Item x = 0; x + 1 < items; ++x) graph.values.push_back({bytes, x, {x + 1}});
  return graph;
}

TEST_CASE("H-Partition of nothing, of one item, and of items without edges") {
  CHECK(partition_of({}, {}).top.empty());
  CHECK(partition_of({}, {}).levels == 1);
  CHECK(partition_of(without_edges(1), {.most_top = 1}).top == std::vector<Item>{0});
  for (const Item items : {2, 3, 19, 20, 21, 201, 1000}) {
    const PartitionGraph graph = without_edges(items);
    for (const PartitionOptions& options :
         {PartitionOptions{}, {.most_top = 1, .most_lower = 2}, {.most_top = 3, .most_lower = 5, .alpha = 0}}) {
      const Partition partition = partition_of(graph, options);
      CHECK(static_cast<Item>(partition.top.size()) <= options.most_top);
      if (items < 300) CHECK(fault(graph, options, partition) == "");
    }
  }
}

TEST_CASE("H-Partition leaves a graph no larger than the top level as it is") {
  const Partition partition = partition_of(chain(20), {});
  CHECK(partition.groups.empty());
  CHECK(partition.levels == 1);
  CHECK(partition.top.size() == 20);
}

TEST_CASE("H-Partition cuts where values are small") {
  PartitionGraph graph = chain(30, 10);
  for (Item x = 4; x < 29; x += 5) graph.values[x].bytes = 1;
  const Partition partition = partition_of(graph, {.most_top = 6, .most_lower = 5});
  REQUIRE(partition.groups.size() == 6);
  for (Item g = 0; g < 6; ++g) {
    std::vector<Item> members(5);
    std::iota(members.begin(), members.end(), 5 * g);
    CHECK(partition.groups[g] == members);
  }
  CHECK(partition.levels == 2);
}

TEST_CASE("H-Partition of a value with 10,000 readers") {
  const PartitionGraph graph = star(10'001);
  core::Stopwatch watch = no_limit();
  const Partition partition = h_partition(graph, {}, watch);
  CHECK(partition.top.size() <= 20);
  CHECK(partition.levels < 40);
  CHECK(watch.work() < 10'000'000);
  std::size_t members = partition.top.size();
  for (const auto& group : partition.groups) {
    CHECK(group.size() <= 10);
    members += group.size();
  }
  CHECK(members == 10'001 + partition.groups.size());
}

TEST_CASE("H-Partition refuses limits that no partition meets") {
  core::Stopwatch watch = no_limit();
  CHECK_THROWS_AS(h_partition(chain(3), {.most_top = 0}, watch), core::InputError);
  CHECK_THROWS_AS(h_partition(chain(3), {.most_lower = 1}, watch), core::InputError);
  CHECK_THROWS_AS(h_partition(chain(3), {.alpha = std::nan("")}, watch), core::InputError);
  CHECK_THROWS_AS(h_partition(chain(3), {.slow_rounds = -1}, watch), core::InputError);
}

}  // namespace
}  // namespace cairn::solvers::partition_property_test
