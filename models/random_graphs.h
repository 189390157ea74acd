#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"

/// These functions generate random graphs of the kinds that Jin et al. ("New Tools for Peak Memory Scheduling") and
/// Gagrani et al. (see LayeredOptions) define. A seed gives the same graph on every machine. All functions throw
/// InputError if no graph of the requested kind has the given numbers of nodes or edges.
namespace cairn::models {

/// Says how the sizes of nodes are drawn, and how many nodes have scratch, write their output into the storage of an
/// input, or are kept.
struct GeneratedSizes {
  std::int64_t least = 1, most = std::int64_t{1} << 20;  ///< the bytes of an output are uniform in [least, most]
  /// Fraction of nodes that have scratch. The bytes of scratch are uniform in [0, most].
  double scratch = 0;
  /// Fraction of nodes that take over an input's storage, among the nodes that can do so. Their scratch is negative.
  double in_place = 0;
  double keep = 0;  ///< fraction of nodes that are kept
};

/// Generates a pumpkin (Jin et al., Definition 8.1): a source, `branches` chains of `length` nodes each, and a sink.
core::Graph generate_pumpkin(core::NodeId branches, core::NodeId length, const GeneratedSizes& sizes,
                             std::uint64_t seed);
/// Generates a random tree in which every node has at most `degree` inputs (an in-tree).
core::Graph generate_in_tree(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes, std::uint64_t seed);
/// Generates a random tree in which every node has at most `degree` readers (an out-tree).
core::Graph generate_out_tree(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes, std::uint64_t seed);
/// Generates a series-parallel graph (Jin et al., Definition 7.1) in which no node has more than `degree` readers.
core::Graph generate_series_parallel(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes,
                                     std::uint64_t seed);
/// Generates a starborescence (Jin et al., Definition 7.3): a source with `degree` readers, and an in-tree whose leaves
/// are these readers.
core::Graph generate_starborescence(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes,
                                    std::uint64_t seed);
/// Generates a graph of `nodes` nodes with `edges` edges between random pairs of nodes. An edge goes from the node with
/// the lower id to the node with the higher id.
core::Graph generate_random(core::NodeId nodes, std::int64_t edges, const GeneratedSizes& sizes, std::uint64_t seed);

/// The layered graphs of Gagrani et al. (Neural Topological Ordering for Computation Graphs, 2022), on which the
/// authors of MOCCASIN measured their solver. The defaults are those of the published graph of 1,000 nodes. The
/// published graphs of other sizes have width 0.27 (100 nodes), 0.43 (250 nodes) and 0.36 (500 nodes). Parameters that
/// the published files do not state were measured in those files; see docs/remat/random_graphs.md.
struct LayeredOptions {
  core::NodeId nodes = 1000;  ///< source and sink included, at least 3
  double width = 0.31;        ///< a layer has 2 * width * sqrt(nodes) nodes on average
  /// Variation of the sizes of layers, in [0, 1]. The sizes are uniform between (1 - layers_variance) and (1 +
  /// layers_variance) times the average.
  double layers_variance = 0.75;
  /// Density of edges between neighbouring layers, in [0, 1]. First, every node gets one edge. Of all remaining pairs
  /// of nodes in neighbouring layers, this fraction gets an edge, too.
  double edge_density = 0.2;
  double skip_density = 0.14;  ///< fraction of edges that skip one or more layers; in [0, 0.9]
  std::uint64_t seed = 0;
};
/// Generates a layered graph. Sizes in bytes are multiples of 10 from a mixture of four normal distributions with a
/// mean of about 2,000. Costs are uniform in 0 to 1000, and 0 for source and sink. The input order is random: among the
/// nodes whose inputs have run, the node with the highest random priority runs next. Throws InputError for options out
/// of range and for more than 20 million edges. O((nodes + edges) * log(nodes)).
core::Graph generate_layered(const LayeredOptions& options);

/// A pumpkin (generate_pumpkin()) that encodes an instance of the problem 3-Partition, as in section 9 of Jin et al.
/// The instance consists of 3m numbers that sum to m * B. Let W be the size of the pumpkin's source in bytes. If the
/// numbers can be split into m groups with sum B, the least peak of all schedules is W + m * (m + 1) * B / 2. Otherwise
/// the least peak is higher.
struct ThreePartition {
  core::Graph graph;
  std::int64_t feasible_peak = 0;  ///< least peak if the numbers can be split: W + m * (m + 1) * B / 2
};
/// Builds the pumpkin of a 3-Partition instance. Throws InputError unless there are 3m positive numbers with m >= 1, m
/// divides their sum, and no number exceeds B = sum / m.
ThreePartition three_partition_pumpkin(std::span<const std::int64_t> numbers);
/// Returns 3m numbers for m = `groups` that can be split into m groups of three numbers with the given sum.
std::vector<std::int64_t> feasible_three_partition(int groups, std::int64_t sum, std::uint64_t seed);
/// Shapes of memory along the branches of a pumpkin (generate_pumpkin()). In both of them, every valley (local minimum
/// of memory) ends a segment of its own (core/dominance.h), for any number of branches and valleys.
enum class Valleys : std::uint8_t {
  falling,  ///< the shape in section 9 of Jin et al.: towards the end of a branch, valleys fall and peaks rise
  /// Towards the end of a branch, valleys rise and peaks fall, and all peaks differ. So no segments can be joined when
  /// the branches' profiles are merged, and the table in the algorithm of Theorem 8.2 of Jin et al. gets as many
  /// segments as possible.
  rising
};
core::Graph generate_valley_pumpkin(core::NodeId branches, core::NodeId length, std::uint64_t seed,
                                    Valleys valleys = Valleys::falling);

}  // namespace cairn::models
