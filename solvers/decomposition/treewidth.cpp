// Computes bounds on the treewidth (treewidth.h). A tree decomposition is a tree of bags, which are sets of nodes. Its
// width is the size of the largest bag, minus one.

#include "cairn/solvers/decomposition/treewidth.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace cairn::solvers {
namespace {

using core::NodeId;

/// Runs the local search of improve_decomposition(). A region is a connected set of bags that a step replaces.
class WidthSearch {
 public:
  WidthSearch(const UndirectedGraph& graph, TreeDecomposition decomposition, core::Random& random,
              core::Stopwatch& watch)
      : graph_(graph),
        random_(random),
        watch_(watch),
        bags_(std::move(decomposition.bags)),
        tree_(std::move(decomposition.tree)),
        in_region_(bags_.size(), 0),
        number_(graph.node_count(), -1) {
    find_largest();
  }

  TreeDecomposition run(std::int32_t lower) {
    std::int32_t rounds = 0;  // number of times that regions grew to their largest size without success
    double growth = kFirstGrowth;
    while (width_ > lower && rounds < kMostRounds && !watch_.expired_now()) {
      grow_region(largest_.back(), static_cast<std::size_t>((width_ + 1) * growth));
      const Outcome outcome = decompose_region();
      if (outcome == Outcome::too_large) break;
      growth *= 1.5;
      if (outcome == Outcome::narrower) rounds = 0;
      if (outcome == Outcome::narrower || growth > kLastGrowth || region_.size() == alive_) {
        rounds += outcome != Outcome::narrower;
        growth = kFirstGrowth;
      }
      while (!largest_.empty() && !is_largest(largest_.back())) largest_.pop_back();
      if (largest_.empty()) find_largest();
    }
    return merge_nested_bags(compact());
  }

 private:
  enum class Outcome : std::uint8_t { narrower, as_wide, failed, too_large };
  // Regions grow until a step succeeds, from kFirstGrowth to kLastGrowth times the size of the largest bag, in nodes.
  static constexpr double kFirstGrowth = 2, kLastGrowth = 100;
  static constexpr int kTries = 6, kMostRounds = 100;
  // Largest number of pairs of nodes connected in a region, and largest degree of an eliminated node. Larger regions
  // would take gigabytes of memory and minutes.
  static constexpr std::size_t kMostPairs = std::size_t{1} << 23;
  static constexpr std::int32_t kMostDegree = 2048;

  bool is_largest(std::int32_t b) const { return static_cast<std::int32_t>(bags_[b].size()) == width_ + 1; }

  void find_largest() {
    width_ = -1;
    alive_ = 0;
    for (const auto& bag : bags_) {
      width_ = std::max(width_, static_cast<std::int32_t>(bag.size()) - 1);
      alive_ += !bag.empty();
    }
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(bags_.size()); ++b) {
      if (is_largest(b)) largest_.push_back(b);
    }
  }

  /// Makes a connected region of bags around `center`, in random order. Leaves out a bag with which the region would
  /// have more than `most_nodes` nodes.
  void grow_region(std::int32_t center, std::size_t most_nodes) {
    region_.clear();
    nodes_.clear();
    std::vector<std::int32_t> frontier{center};
    while (!frontier.empty()) {
      std::swap(frontier[random_.next() % frontier.size()], frontier.back());
      const std::int32_t b = frontier.back();
      frontier.pop_back();
      const auto added = std::count_if(bags_[b].begin(), bags_[b].end(), [&](NodeId v) { return number_[v] < 0; });
      watch_.charge(static_cast<std::int64_t>(bags_[b].size()));
      if (!region_.empty() && nodes_.size() + static_cast<std::size_t>(added) > most_nodes) continue;
      region_.push_back(b);
      in_region_[b] = 1;
      for (const NodeId v : bags_[b]) {
        if (number_[v] >= 0) continue;
        number_[v] = static_cast<NodeId>(nodes_.size());
        nodes_.push_back(v);
      }
      for (const std::int32_t c : tree_[b]) {
        if (!in_region_[c]) frontier.push_back(c);
      }
    }
  }

  /// Describes a bag outside the region that is attached to a bag of the region.
  struct Neighbour {
    std::int32_t bag = -1, inside = -1;  ///< the bag, and the bag of the region to which it is attached
    std::vector<NodeId> shared;
  };

  std::vector<Neighbour> neighbours() const {
    std::vector<Neighbour> result;
    for (const std::int32_t b : region_) {
      for (const std::int32_t c : tree_[b]) {
        if (in_region_[c]) continue;
        Neighbour& neighbour = result.emplace_back(Neighbour{.bag = c, .inside = b, .shared = {}});
        std::set_intersection(bags_[b].begin(), bags_[b].end(), bags_[c].begin(), bags_[c].end(),
                              std::back_inserter(neighbour.shared));
      }
    }
    return result;
  }

  /// Builds the graph to decompose. The graph has the region's nodes, the edges between these nodes, and edges between
  /// all nodes that the region shares with one neighbouring bag.
  UndirectedGraph torso(const std::vector<Neighbour>& around) const {
    std::vector<std::pair<NodeId, NodeId>> edges;
    for (NodeId i = 0; i < static_cast<NodeId>(nodes_.size()); ++i) {
      const auto row = graph_.neighbours(nodes_[i]);
      if (row.size() > 8 * nodes_.size()) {
        for (NodeId j = 0; j < static_cast<NodeId>(nodes_.size()); ++j) {
          if (std::binary_search(row.begin(), row.end(), nodes_[j])) edges.emplace_back(i, j);
        }
      } else {
        for (const NodeId u : row) {
          if (number_[u] >= 0) edges.emplace_back(i, number_[u]);
        }
      }
    }
    for (const Neighbour& neighbour : around) {
      for (const NodeId u : neighbour.shared) {
        for (const NodeId v : neighbour.shared) {
          if (u < v) edges.emplace_back(number_[u], number_[v]);
        }
      }
    }
    return {static_cast<NodeId>(nodes_.size()), edges};
  }

  Outcome decompose_region() {
    const std::vector<Neighbour> around = neighbours();
    std::size_t pairs = 0;
    for (const Neighbour& neighbour : around) pairs += 1 + neighbour.shared.size() * neighbour.shared.size();
    watch_.charge(static_cast<std::int64_t>(pairs + nodes_.size()));
    Outcome outcome = Outcome::failed;
    if (pairs > kMostPairs) {
      outcome = Outcome::too_large;
    } else {
      const UndirectedGraph graph = torso(around);
      for (int i = 0; i < kTries && outcome != Outcome::narrower && !watch_.expired(); ++i) {
        EliminationOptions options{.core_degree = std::min(width_, kMostDegree), .random = &random_};
        options.rule = random_.next() % 4 == 0 ? EliminationRule::min_degree : EliminationRule::min_fill;
        options.noise = static_cast<std::int32_t>(random_.next() % 4);
        const EliminationOrder order = elimination_order(graph, options, &watch_);
        if (order.width < width_ || (order.width == width_ && i + 1 == kTries)) outcome = put(around, graph, order);
      }
    }
    for (const std::int32_t b : region_) in_region_[b] = 0;
    for (const NodeId v : nodes_) number_[v] = -1;
    return outcome;
  }

  /// Replaces the region by the decomposition of an elimination order, unless that decomposition has more bags of the
  /// largest size than the region.
  Outcome put(const std::vector<Neighbour>& around, const UndirectedGraph& graph, const EliminationOrder& order) {
    TreeDecomposition part = decomposition_of(graph, order);
    if (order.width == width_) {
      const auto before = std::count_if(region_.begin(), region_.end(), [&](std::int32_t b) { return is_largest(b); });
      const auto after = std::count_if(part.bags.begin(), part.bags.end(), [&](const auto& bag) {
        return static_cast<std::int32_t>(bag.size()) == width_ + 1;
      });
      if (after > before) return Outcome::failed;
    }
    std::vector<std::vector<std::int32_t>> bags_of(nodes_.size());
    std::vector<std::int32_t> place = region_;
    for (std::int32_t b : region_) {
      bags_[b].clear();
      tree_[b].clear();
      in_region_[b] = 0;
    }
    alive_ += part.bags.size();
    alive_ -= region_.size();
    while (place.size() < part.bags.size()) {
      place.push_back(static_cast<std::int32_t>(bags_.size()));
      bags_.emplace_back();
      tree_.emplace_back();
      in_region_.push_back(0);
    }
    for (std::size_t b = 0; b < part.bags.size(); ++b) {
      for (const NodeId i : part.bags[b]) {
        bags_of[i].push_back(place[b]);
        bags_[place[b]].push_back(nodes_[i]);
      }
      std::sort(bags_[place[b]].begin(), bags_[place[b]].end());
      for (const std::int32_t c : part.tree[b]) tree_[place[b]].push_back(place[c]);
      if (is_largest(place[b])) largest_.push_back(place[b]);
    }
    for (const Neighbour& neighbour : around) {
      std::int32_t host = place.front();
      if (!neighbour.shared.empty()) {
        const auto& hosts = bags_of[number_[neighbour.shared.front()]];
        host = *std::find_if(hosts.begin(), hosts.end(), [&](std::int32_t b) {
          return std::includes(bags_[b].begin(), bags_[b].end(), neighbour.shared.begin(), neighbour.shared.end());
        });
      }
      tree_[host].push_back(neighbour.bag);
      *std::find(tree_[neighbour.bag].begin(), tree_[neighbour.bag].end(), neighbour.inside) = host;
    }
    return order.width < width_ ? Outcome::narrower : Outcome::as_wide;
  }

  TreeDecomposition compact() {
    TreeDecomposition result;
    result.width = width_;
    std::vector<std::int32_t> renumbered(bags_.size(), -1);
    for (std::size_t b = 0; b < bags_.size(); ++b) {
      if (bags_[b].empty()) continue;
      renumbered[b] = static_cast<std::int32_t>(result.bags.size());
      result.bags.push_back(std::move(bags_[b]));
      result.tree.push_back(std::move(tree_[b]));
    }
    for (auto& row : result.tree) {
      for (std::int32_t& c : row) c = renumbered[c];
    }
    return result;
  }

  const UndirectedGraph& graph_;
  core::Random& random_;
  core::Stopwatch& watch_;
  std::vector<std::vector<NodeId>> bags_;  ///< an entry is empty if its number is not in use
  std::vector<std::vector<std::int32_t>> tree_;
  std::int32_t width_ = -1;
  std::size_t alive_ = 0;
  std::vector<std::int32_t> largest_;  ///< all bags of width_ + 1 nodes, and some bags that were as large before
  std::vector<std::int32_t> region_;
  std::vector<NodeId> nodes_;
  std::vector<std::uint8_t> in_region_;
  std::vector<NodeId> number_;  ///< for each node, its index in nodes_, or -1
};

}  // namespace

TreeDecomposition improve_decomposition(const UndirectedGraph& graph, TreeDecomposition decomposition,
                                        std::int32_t lower, core::Random& random, core::Stopwatch& watch) {
  decomposition = merge_nested_bags(std::move(decomposition));
  if (graph.node_count() == 0) return decomposition;
  return WidthSearch(graph, std::move(decomposition), random, watch).run(lower);
}

Treewidth find_treewidth(const UndirectedGraph& graph, const TreewidthOptions& options) {
  constexpr int kBounds = 10;
  constexpr double kBoundsShare = 0.2;
  core::Stopwatch watch(options.limit);
  core::Random random(options.seed);
  Treewidth result;
  EliminationOrder best = elimination_order(graph, {.rule = EliminationRule::min_fill}, &watch);
  result.by = "min-fill";
  result.lower = treewidth_lower_bound(graph, nullptr, &watch);
  const auto open = [&] { return best.width > result.lower && !watch.expired_now(); };
  if (open()) {
    EliminationOrder other = elimination_order(graph, {.rule = EliminationRule::min_degree}, &watch);
    if (other.width < best.width) {
      best = std::move(other);
      result.by = "min-degree";
    }
  }
  within(watch, kBoundsShare, [&](core::Stopwatch& part) {
    for (int i = 0; i < kBounds && best.width > result.lower && !part.expired_now(); ++i) {
      result.lower = std::max(result.lower, treewidth_lower_bound(graph, &random, &part));
    }
  });
  result.decomposition = decomposition_of(graph, best);
  if (open()) {
    result.decomposition = improve_decomposition(graph, std::move(result.decomposition), result.lower, random, watch);
    if (result.decomposition.width < best.width) result.by = "local search";
  }
  result.timed_out = result.decomposition.width > result.lower && watch.expired_now();
  return result;
}

}  // namespace cairn::solvers
