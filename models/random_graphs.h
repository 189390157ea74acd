#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"

/// Random graphs of the classes of Jin et al. and of Gagrani et al. A seed gives the same graph on every machine. All
/// functions throw InputError for numbers that no graph of the class has.
namespace cairn::models {

/// Sizes of the nodes, in bytes.
struct GeneratedSizes {
  std::int64_t least = 1, most = std::int64_t{1} << 20;  ///< bytes of an output, uniform in [least, most]
  double scratch = 0;                                    ///< share of nodes with scratch, uniform in [0, most]
  double in_place = 0;  ///< share of nodes, among those that can, that take over an input's storage (negative scratch)
  double keep = 0;      ///< share of nodes that are kept
};

/// Generates a pumpkin (Definition 8.1): source, `branches` chains of `length` nodes each, sink.
core::Graph generate_pumpkin(core::NodeId branches, core::NodeId length, const GeneratedSizes& sizes,
                             std::uint64_t seed);
/// Generates a random tree in which every node has at most `degree` inputs (in-tree) or readers (out-tree).
core::Graph generate_in_tree(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes, std::uint64_t seed);
core::Graph generate_out_tree(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes, std::uint64_t seed);
/// Generates a series-parallel graph (Definition 7.1) with no out-degree above `degree`.
core::Graph generate_series_parallel(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes,
                                     std::uint64_t seed);
/// Generates a starborescence (Definition 7.3): a source with `degree` readers; the rest is an in-tree.
core::Graph generate_starborescence(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes,
                                    std::uint64_t seed);
/// Generates `nodes` nodes and `edges` edges between random pairs, from the lower to the higher number.
core::Graph generate_random(core::NodeId nodes, std::int64_t edges, const GeneratedSizes& sizes, std::uint64_t seed);

/// The layered graphs of Gagrani et al. (Neural Topological Ordering for Computation Graphs, 2022), on which MOCCASIN
/// was measured. The defaults are those of its graph of 1,000 nodes; the others have width 0.27 (100 nodes), 0.43 (250)
/// and 0.36 (500). What the published files do not say was measured in them: docs/remat/random_graphs.md.
struct LayeredOptions {
  core::NodeId nodes = 1000;      ///< source and sink included, at least 3
  double width = 0.31;            ///< a layer has 2 * width * sqrt(nodes) nodes on average
  double layers_variance = 0.75;  ///< sizes of layers are uniform in the average times 1 -+ this, in [0, 1]
  double edge_density = 0.2;      ///< share of the pairs of neighbouring layers, beyond one edge per node, in [0, 1]
  double skip_density = 0.14;     ///< share of edges that pass over a layer or more, in [0, 0.9]
  std::uint64_t seed = 0;
};
/// Generates a layered graph. Sizes in bytes are multiples of 10 from a mixture of four normal distributions (mean
/// about 2,000). Costs are uniform in 0 to 1000, and 0 at source and sink. The input order is random: of the nodes that
/// can run, the one with the highest random priority. Throws InputError for options out of range, and above 20 million
/// edges. O((n + m) log n).
core::Graph generate_layered(const LayeredOptions& options);

/// The pumpkin of section 9 for an instance of 3-Partition with 3m numbers that sum to m B. Its least peak is W + m (m
/// + 1) B / 2 exactly if the numbers can be split into m groups of sum B; else it is higher.
struct ThreePartition {
  core::Graph graph;
  std::int64_t feasible_peak = 0;  ///< W + m (m + 1) B / 2
};
/// Builds that pumpkin. Throws InputError unless there are 3m positive numbers, m >= 1, none above B, whose sum m
/// divides.
ThreePartition three_partition_pumpkin(std::span<const std::int64_t> numbers);
/// Returns 3m numbers that can be split into m groups of three with sum B each.
std::vector<std::int64_t> feasible_three_partition(int groups, std::int64_t sum, std::uint64_t seed);
/// Shapes of pumpkins in which every valley of every branch is a segment of its own, whatever the number of branches
/// and valleys.
enum class Valleys : std::uint8_t {
  falling,  ///< the shape of section 9: valleys fall and peaks rise towards the end
  rising    ///< valleys rise and peaks fall, all peaks differ: no state of Theorem 8.2's table can merge any of them
};
core::Graph generate_valley_pumpkin(core::NodeId branches, core::NodeId length, std::uint64_t seed,
                                    Valleys valleys = Valleys::falling);

}  // namespace cairn::models
