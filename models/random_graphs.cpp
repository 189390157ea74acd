#include "cairn/models/random_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/support/random.h"

namespace cairn::models {
namespace {

using core::NodeId;
using core::Random;

std::int64_t below(Random& random, std::int64_t count) {
  return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(count));
}

/// The edges of a graph. Sizes are drawn later, once all edges are known. In a finished Wiring, the order of the ids is
/// a topological order.
struct Wiring {
  std::vector<std::vector<NodeId>> inputs;

  NodeId add(std::vector<NodeId> from = {}) {
    inputs.push_back(std::move(from));
    return static_cast<NodeId>(inputs.size() - 1);
  }
  NodeId size() const { return static_cast<NodeId>(inputs.size()); }
};

core::Graph with_sizes(const Wiring& shape, const GeneratedSizes& sizes, const std::string& name, Random& random) {
  if (sizes.least < 0 || sizes.most < sizes.least)
    throw core::InputError(fmt::format("sizes from {} to {}: not a range of bytes", sizes.least, sizes.most));
  std::vector<core::Node> nodes(shape.inputs.size());
  std::vector<std::int32_t> readers(nodes.size(), 0);
  for (const auto& inputs : shape.inputs) {
    for (const NodeId u : inputs) ++readers[u];
  }
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    nodes[v].size = sizes.least + below(random, sizes.most - sizes.least + 1);
    nodes[v].cost = 1;
    nodes[v].inputs.assign(shape.inputs[v].begin(), shape.inputs[v].end());
    nodes[v].keep = random.uniform() < sizes.keep;
  }
  for (core::Node& node : nodes) {
    if (random.uniform() < sizes.scratch) node.scratch = below(random, sizes.most + 1);
    if (random.uniform() >= sizes.in_place) continue;
    for (const auto& [u, output] : node.inputs) {
      if (readers[u] != 1 || nodes[u].keep) continue;
      node.inplace = u;
      node.scratch = -std::min(node.size, nodes[u].size);
      break;
    }
  }
  core::GraphBuilder builder(name);
  for (core::Node& node : nodes) builder.add(std::move(node));
  return builder.build();
}

NodeId add_node(core::GraphBuilder& builder, std::int64_t size, const std::vector<NodeId>& inputs) {
  return builder.add({.size = size, .cost = 1, .inputs = {inputs.begin(), inputs.end()}});
}

void require(bool fine, const char* what) {
  if (!fine) throw core::InputError(what);
}

/// Returns a parent for each node except the first. Every node has at most `degree` children.
std::vector<NodeId> random_tree(NodeId nodes, NodeId degree, Random& random) {
  require(nodes >= 1 && degree >= 1, "a tree needs at least one node and a degree of at least one");
  std::vector<NodeId> parent{core::kNoNode}, open{0}, children{0};
  for (NodeId v = 1; v < nodes; ++v) {
    const auto i = static_cast<std::size_t>(below(random, static_cast<std::int64_t>(open.size())));
    parent.push_back(open[i]);
    if (++children[open[i]] == degree) {
      open[i] = open.back();
      open.pop_back();
    }
    open.push_back(v);
    children.push_back(0);
  }
  return parent;
}

/// Creates a random series-parallel graph between a source and a sink.
class SeriesParallelShape {
 public:
  SeriesParallelShape(NodeId degree, Random& random) : degree_(degree), random_(random) {}

  Wiring make(NodeId nodes) {
    Part part{shape_.add(), shape_.add(), nodes - 2, degree_};
    // The parts that are still to be created are kept in a list. A recursion could overflow the stack, because the
    // depth to which parts are nested can be the number of nodes.
    std::vector<Part> waiting{part};
    while (!waiting.empty()) {
      part = waiting.back();
      waiting.pop_back();
      expand(part, waiting);
    }
    return sorted();
  }

 private:
  /// A part of the graph that is still to be created: `inner` nodes between `from` and `to`, with at most `readers` new
  /// readers of `from`.
  struct Part {
    NodeId from, to, inner, readers;
  };

  void expand(const Part& part, std::vector<Part>& waiting) {
    if (part.inner == 0) {
      shape_.inputs[part.to].push_back(part.from);
      return;
    }
    const bool parallel = part.readers >= 2 && part.inner >= 2 && below(random_, 2) == 0;
    if (parallel) {
      const auto branches = static_cast<NodeId>(2 + below(random_, std::min(part.readers, part.inner) - 1));
      NodeId inner = part.inner, readers = part.readers;
      for (NodeId b = 0; b < branches; ++b) {
        const NodeId left = branches - b - 1;
        const auto share = static_cast<NodeId>(left == 0 ? inner : 1 + below(random_, inner - left + 1));
        const auto degree = static_cast<NodeId>(left == 0 ? readers : 1 + below(random_, readers - left));
        waiting.push_back({part.from, part.to, share, degree});
        inner -= share;
        readers -= degree;
      }
      return;
    }
    const NodeId middle = shape_.add();
    const auto before = static_cast<NodeId>(below(random_, part.inner));
    waiting.push_back({part.from, middle, before, part.readers});
    waiting.push_back({middle, part.to, part.inner - 1 - before, degree_});
  }

  /// Returns the same graph with new ids, whose order is topological.
  Wiring sorted() const {
    std::vector<std::vector<NodeId>> readers(shape_.inputs.size());
    std::vector<std::size_t> missing(shape_.inputs.size());
    for (NodeId v = 0; v < shape_.size(); ++v) {
      missing[v] = shape_.inputs[v].size();
      for (const NodeId u : shape_.inputs[v]) readers[u].push_back(v);
    }
    std::vector<NodeId> order{0}, number(shape_.inputs.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      number[order[i]] = static_cast<NodeId>(i);
      for (const NodeId w : readers[order[i]]) {
        if (--missing[w] == 0) order.push_back(w);
      }
    }
    Wiring result;
    for (const NodeId v : order) {
      std::vector<NodeId> inputs;
      for (const NodeId u : shape_.inputs[v]) inputs.push_back(number[u]);
      result.add(std::move(inputs));
    }
    return result;
  }

  Wiring shape_;
  NodeId degree_;
  Random& random_;
};

/// Computes the edges between two neighbouring layers, of which the first has `from` nodes and the second `to` nodes.
/// Each node gets at least one edge. The remaining edges join the pairs of nodes whose positions are nearest to each
/// other. To define positions, a layer's width is divided into equal parts, one per node. A node's position is the
/// centre of its part, scaled by 2 * from * to so that it is an integer.
class DiagonalBand {
 public:
  DiagonalBand(std::int64_t from, std::int64_t to, std::int64_t edges) : from_(from), to_(to), edges_(edges) {
    std::int64_t enough = 2 * from * to, below = -1;
    while (enough - below > 1) {
      const std::int64_t distance = std::midpoint(below, enough);
      (count(distance) >= edges ? enough : below) = distance;
    }
    distance_ = enough;
  }

  template <class Connect>
  void for_each(const Connect& connect) const {
    std::int64_t at_border = edges_ - count(distance_ - 1);
    for (std::int64_t i = 0; i < from_; ++i) {
      const auto [first, last] = row(i, distance_);
      for (std::int64_t j = first; j <= last; ++j) {
        const bool border = std::abs((2 * i + 1) * to_ - (2 * j + 1) * from_) == distance_;
        if (!covers(i, j) && (!border || at_border-- > 0)) connect(i, j);
      }
    }
    for (std::int64_t x = 0; x < std::max(from_, to_); ++x) connect(partner(x).first, partner(x).second);
  }

 private:
  /// For node x of the larger layer, returns the two nodes of an edge that is always present. Over all x, these edges
  /// also reach every node of the smaller layer.
  std::pair<std::int64_t, std::int64_t> partner(std::int64_t x) const {
    if (from_ >= to_) return {x, (2 * x + 1) * to_ / (2 * from_)};
    return {(2 * x + 1) * from_ / (2 * to_), x};
  }
  bool covers(std::int64_t i, std::int64_t j) const { return partner(from_ >= to_ ? i : j) == std::pair{i, j}; }
  /// Returns the first and the last of the nodes of the second layer whose positions differ by at most `distance` from
  /// the position of node i of the first layer. If there are no such nodes, the first is above the last.
  std::pair<std::int64_t, std::int64_t> row(std::int64_t i, std::int64_t distance) const {
    const std::int64_t centre = (2 * i + 1) * to_ - from_, step = 2 * from_;
    // The offsets keep the dividends non-negative, because division would round a negative quotient up, towards zero.
    const std::int64_t first = (centre - distance + step * (2 * to_ + 1) + step - 1) / step - (2 * to_ + 1);
    const std::int64_t last = (centre + distance + step) / step - 1;
    return {std::max<std::int64_t>(0, first), std::min(to_ - 1, last)};
  }
  /// Returns the number of edges if an edge joins each pair of nodes whose positions differ by at most `distance`, and
  /// each pair that partner() returns.
  std::int64_t count(std::int64_t distance) const {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < from_ && distance >= 0; ++i) {
      const auto [first, last] = row(i, distance);
      sum += std::max<std::int64_t>(0, last - first + 1);
    }
    for (std::int64_t x = 0; x < std::max(from_, to_); ++x) {
      const auto [i, j] = partner(x);
      sum += std::abs((2 * i + 1) * to_ - (2 * j + 1) * from_) > distance;
    }
    return sum;
  }

  std::int64_t from_, to_, edges_, distance_ = 0;
};

/// Returns the sizes of source, layers and sink. Layers get random sizes until they hold all nodes except source and
/// sink. The last layer gets the nodes that are left.
std::vector<NodeId> layer_sizes(const LayeredOptions& options, Random& random) {
  const double mean = 2 * options.width * std::sqrt(static_cast<double>(options.nodes));
  const double least = mean * (1 - options.layers_variance), most = mean * (1 + options.layers_variance);
  std::vector<NodeId> sizes{1};
  for (NodeId left = options.nodes - 2; left > 0; left -= sizes.back()) {
    const double size = std::min(static_cast<double>(left), least + random.uniform() * (most - least));
    sizes.push_back(std::max<NodeId>(1, static_cast<NodeId>(std::lround(size))));
  }
  sizes.push_back(1);
  return sizes;
}

/// Draws a size, in tens of bytes, from a mixture of normal distributions. Their means are 500, 1000, 3000 and 5000
/// bytes, and their standard deviations 500, 1000, 1000 and 1000 bytes. A size that is not positive is drawn again. A
/// normally distributed number is approximated by a sum of twelve uniform integers, which is the same on every machine.
/// After scaling, its variance is one.
std::int64_t mixture_size(Random& random) {
  struct Component {
    std::int64_t percent, mean, deviation;
  };
  constexpr Component kComponents[] = {{30, 50, 50}, {30, 100, 100}, {30, 300, 100}, {10, 500, 100}};
  while (true) {
    const Component* component = kComponents;
    for (std::int64_t draw = below(random, 100); draw >= component->percent; ++component) draw -= component->percent;
    std::int64_t sum = -6 * (std::int64_t{1} << 32);
    for (int i = 0; i < 12; ++i) sum += static_cast<std::int64_t>(random.next() >> 32);
    const std::int64_t size = component->mean + component->deviation * sum / (std::int64_t{1} << 32);
    if (size > 0) return size;
  }
}

/// Returns an order in which the next node is always the one with the highest random priority among the nodes whose
/// inputs have run.
std::vector<NodeId> random_order(const Wiring& shape, Random& random) {
  std::vector<std::vector<NodeId>> readers(shape.inputs.size());
  std::vector<std::size_t> missing(shape.inputs.size());
  std::priority_queue<std::pair<std::uint64_t, NodeId>> ready;
  std::vector<std::uint64_t> priority(shape.inputs.size());
  for (NodeId v = 0; v < shape.size(); ++v) {
    priority[v] = random.next();
    missing[v] = shape.inputs[v].size();
    for (const NodeId u : shape.inputs[v]) readers[u].push_back(v);
    if (missing[v] == 0) ready.emplace(priority[v], v);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId v = ready.top().second;
    ready.pop();
    order.push_back(v);
    for (const NodeId w : readers[v]) {
      if (--missing[w] == 0) ready.emplace(priority[w], w);
    }
  }
  return order;
}

}  // namespace

core::Graph generate_pumpkin(NodeId branches, NodeId length, const GeneratedSizes& sizes, std::uint64_t seed) {
  require(branches >= 1 && length >= 1, "a pumpkin needs at least one branch of at least one node");
  Random random(seed);
  Wiring shape;
  const NodeId source = shape.add();
  std::vector<NodeId> ends;
  for (NodeId b = 0; b < branches; ++b) {
    NodeId last = source;
    for (NodeId i = 0; i < length; ++i) last = shape.add({last});
    ends.push_back(last);
  }
  shape.add(std::move(ends));
  return with_sizes(shape, sizes, "pumpkin", random);
}

core::Graph generate_in_tree(NodeId nodes, NodeId degree, const GeneratedSizes& sizes, std::uint64_t seed) {
  Random random(seed);
  const std::vector<NodeId> parent = random_tree(nodes, degree, random);
  Wiring shape;
  for (NodeId v = 0; v < nodes; ++v) shape.add();
  // In an in-tree, nothing reads the root, so the root runs last. The ids are reversed, so that the root also has the
  // last id.
  for (NodeId v = 1; v < nodes; ++v) shape.inputs[nodes - 1 - parent[v]].push_back(nodes - 1 - v);
  return with_sizes(shape, sizes, "in_tree", random);
}

core::Graph generate_out_tree(NodeId nodes, NodeId degree, const GeneratedSizes& sizes, std::uint64_t seed) {
  Random random(seed);
  const std::vector<NodeId> parent = random_tree(nodes, degree, random);
  Wiring shape;
  shape.add();
  for (NodeId v = 1; v < nodes; ++v) shape.add({parent[v]});
  return with_sizes(shape, sizes, "out_tree", random);
}

core::Graph generate_series_parallel(NodeId nodes, NodeId degree, const GeneratedSizes& sizes, std::uint64_t seed) {
  require(nodes >= 2 && degree >= 1, "a series-parallel graph needs at least two nodes and a degree of at least one");
  Random random(seed);
  return with_sizes(SeriesParallelShape(degree, random).make(nodes), sizes, "series_parallel", random);
}

core::Graph generate_starborescence(NodeId nodes, NodeId degree, const GeneratedSizes& sizes, std::uint64_t seed) {
  require(degree >= 1 && nodes >= degree + 2,
          "a starborescence of that degree needs a source, as many nodes as that, and a sink; raise the number of "
          "nodes or lower the degree");
  Random random(seed);
  Wiring shape;
  const NodeId source = shape.add();
  // Each new node continues one of the chains, or sometimes joins two of them. In the end, the sink joins all chains
  // that remain.
  std::vector<NodeId> ends;
  for (NodeId i = 0; i < degree; ++i) ends.push_back(shape.add({source}));
  const NodeId extra = nodes - degree - 2;
  for (NodeId i = 0; i < extra; ++i) {
    std::vector<NodeId> joined;
    const bool join = ends.size() > 1 && below(random, std::max<std::int64_t>(1, extra / degree)) == 0;
    for (int count = join ? 2 : 1; count > 0; --count) {
      const auto at = static_cast<std::size_t>(below(random, static_cast<std::int64_t>(ends.size())));
      joined.push_back(ends[at]);
      ends.erase(ends.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ends.push_back(shape.add(std::move(joined)));
  }
  shape.add(std::move(ends));
  return with_sizes(shape, sizes, "starborescence", random);
}

core::Graph generate_random(NodeId nodes, std::int64_t edges, const GeneratedSizes& sizes, std::uint64_t seed) {
  const std::int64_t pairs = static_cast<std::int64_t>(nodes) * (nodes - 1) / 2;
  require(nodes >= 1 && edges >= 0 && edges <= pairs,
          "there are not that many pairs of nodes; lower the number of edges");
  Random random(seed);
  std::set<std::pair<NodeId, NodeId>> known;
  while (static_cast<std::int64_t>(known.size()) < edges) {
    const auto a = static_cast<NodeId>(below(random, nodes)), b = static_cast<NodeId>(below(random, nodes));
    if (a != b) known.emplace(std::min(a, b), std::max(a, b));
  }
  Wiring shape;
  for (NodeId v = 0; v < nodes; ++v) shape.add();
  for (const auto& [from, to] : known) shape.inputs[to].push_back(from);
  return with_sizes(shape, sizes, "random", random);
}

core::Graph generate_layered(const LayeredOptions& options) {
  constexpr std::int64_t kMostEdges = 20'000'000;
  require(options.nodes >= 3, "a layered graph needs a source, a layer and a sink: at least 3 nodes");
  require(options.width > 0 && options.width <= 1e6, "the width of a layered graph is above 0 and at most 1000000");
  require(options.layers_variance >= 0 && options.layers_variance <= 1, "the variance of layers is from 0 to 1");
  require(options.edge_density >= 0 && options.edge_density <= 1, "the edge density is from 0 to 1");
  require(options.skip_density >= 0 && options.skip_density <= 0.9, "the density of skip connections is from 0 to 0.9");
  Random random(options.seed);
  const std::vector<NodeId> sizes = layer_sizes(options, random);
  const auto inner = static_cast<std::int64_t>(sizes.size()) - 2;
  std::vector<std::int64_t> between;
  double edges = 0;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const double least = std::max(sizes[i], sizes[i + 1]), pairs = static_cast<double>(sizes[i]) * sizes[i + 1];
    const double count = least + options.edge_density * (pairs - least);
    edges += count;
    between.push_back(count > kMostEdges ? 0 : std::lround(count));
  }
  const double skips = inner < 3 ? 0 : edges * options.skip_density / (1 - options.skip_density);
  if (edges + skips > kMostEdges)
    throw core::InputError(fmt::format("the layered graph would have {:.0f} edges; more than {} are not generated",
                                       edges + skips, kMostEdges));

  Wiring shape;
  std::vector<NodeId> first;  // first node of each layer
  for (const NodeId size : sizes) {
    first.push_back(shape.size());
    for (NodeId i = 0; i < size; ++i) shape.add();
  }
  for (std::size_t i = 0; i < between.size(); ++i) {
    DiagonalBand(sizes[i], sizes[i + 1], between[i]).for_each([&](std::int64_t a, std::int64_t b) {
      shape.inputs[first[i + 1] + b].push_back(static_cast<NodeId>(first[i] + a));
    });
  }
  const auto node_of_layer = [&](std::int64_t i) { return static_cast<NodeId>(first[i] + below(random, sizes[i])); };
  for (std::int64_t count = std::llround(skips); count > 0; --count) {
    const std::int64_t from = 1 + below(random, inner - 2);
    const std::int64_t to = from + 2 + below(random, inner - from - 1);
    const NodeId u = node_of_layer(from);
    shape.inputs[node_of_layer(to)].push_back(u);
  }
  core::GraphBuilder builder(fmt::format("random_layered_n{}_w{:g}_nlv{:g}_ed{:g}_scd{:g}_s{}", options.nodes,
                                         options.width, options.layers_variance, options.edge_density,
                                         options.skip_density, options.seed));
  for (NodeId v = 0; v < shape.size(); ++v) {
    auto& inputs = shape.inputs[v];
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    const NodeId node = add_node(builder, 10 * mixture_size(random), inputs);
    builder.node(node).cost = v == 0 || v + 1 == shape.size() ? 0 : below(random, 1001);
  }
  builder.set_order(random_order(shape, random));
  return builder.build();
}

ThreePartition three_partition_pumpkin(std::span<const std::int64_t> numbers) {
  constexpr std::int64_t kMostSum = std::int64_t{1} << 40;
  const auto count = static_cast<std::int64_t>(numbers.size());
  if (count == 0 || count % 3 != 0)
    throw core::InputError(fmt::format("3-Partition needs 3m numbers with m >= 1, but {} were given", count));
  const std::int64_t groups = count / 3;
  std::int64_t total = 0;
  for (const std::int64_t number : numbers) {
    if (number < 1 || number > kMostSum - total)
      throw core::InputError(fmt::format("the number {} is not positive, or the sum exceeds 2^40", number));
    total += number;
  }
  if (total % groups != 0)
    throw core::InputError(fmt::format("the numbers sum to {}, which {} groups cannot share evenly", total, groups));
  const std::int64_t sum = total / groups;
  for (const std::int64_t number : numbers) {
    if (number > sum)
      throw core::InputError(fmt::format("the number {} exceeds the sum {} of a group; no split exists", number, sum));
  }

  core::GraphBuilder builder(fmt::format("three_partition_{}", count));
  const std::int64_t goal = groups * (groups + 1) / 2 * sum;
  const std::int64_t source_size = goal * count + groups * sum;
  const NodeId source = add_node(builder, source_size, {});
  std::vector<NodeId> ends;
  for (const std::int64_t number : numbers) {
    NodeId last = source;
    for (std::int64_t k = 2 * groups - 1; k >= 1; --k) {
      const std::int64_t half = k / 2;
      const std::int64_t size =
          k % 2 == 1 ? (k + 1) / 2 * number : (groups - half) * (groups + half + 1) / 2 * sum - number;
      last = add_node(builder, size, {last});
    }
    ends.push_back(last);
  }
  add_node(builder, 0, ends);
  return {builder.build(), source_size + goal};
}

std::vector<std::int64_t> feasible_three_partition(int groups, std::int64_t sum, std::uint64_t seed) {
  require(groups >= 1 && sum >= 3, "3-Partition needs at least one group, and a sum of at least 3");
  Random random(seed);
  std::vector<std::int64_t> numbers;
  for (int g = 0; g < groups; ++g) {
    const std::int64_t first = 1 + below(random, sum - 2);
    const std::int64_t second = 1 + below(random, sum - first - 1);
    numbers.insert(numbers.end(), {first, second, sum - first - second});
  }
  for (std::size_t i = numbers.size(); i > 1; --i) {
    std::swap(numbers[i - 1], numbers[static_cast<std::size_t>(below(random, static_cast<std::int64_t>(i)))]);
  }
  return numbers;
}

core::Graph generate_valley_pumpkin(NodeId branches, NodeId length, std::uint64_t seed, Valleys valleys) {
  require(branches >= 1 && length >= 1, "a pumpkin needs at least one branch of at least one node");
  Random random(seed);
  core::GraphBuilder builder("valley_pumpkin");
  // Along a branch, memory alternates between valleys (local minima) and peaks. A random number is drawn for each
  // branch, and the heights of the branch's valleys are multiples of this number. Within a branch, the heights of any
  // two peaks differ by more than the random number of any branch. So every valley ends a segment of its own (Valleys).
  const std::int64_t count = (length + 1) / 2;
  const std::int64_t step = std::int64_t{4} << 20;
  const NodeId source = add_node(builder, step * count * branches, {});
  std::vector<NodeId> ends;
  for (NodeId b = 0; b < branches; ++b) {
    const std::int64_t number = 1 + below(random, std::int64_t{1} << 20);
    NodeId last = source;
    for (NodeId i = 0; i < length; ++i) {
      const std::int64_t valley = i / 2;
      std::int64_t size = 0;
      if (valleys == Valleys::falling) {
        size = i % 2 == 0 ? (count - valley) * number : (valley + 1) * step + count * number;
      } else {
        size = i % 2 == 0 ? (valley + 1) * number : ((count - valley) * branches - b) * step;
      }
      last = add_node(builder, size, {last});
    }
    ends.push_back(last);
  }
  add_node(builder, 0, ends);
  return builder.build();
}

}  // namespace cairn::models
