#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"

/// Random graphs of the classes of Jin et al. and of Gagrani et al. A seed gives the same graph on every machine. All
/// functions throw InputError for numbers with which no graph of the class exists.
namespace cairn::models {

/// Sizes of the nodes, in bytes.
struct GeneratedSizes {
  std::int64_t least = 1, most = std::int64_t{1} << 20;  ///< bytes of an output, uniform in [least, most]
  double scratch = 0;                                    ///< fraction of nodes with scratch, which is uniform in [0,
                                                         ///< most]
  double in_place = 0;  ///< fraction of nodes that take over an input's storage (negative scratch), among those that
                        ///< can
  double keep = 0;      ///< fraction of nodes that are kept
};

/// Generates a pumpkin (Definition 8.1): a source, `branches` chains of `length` nodes each, and a sink.
core::Graph generate_pumpkin(core::NodeId branches, core::NodeId length, const GeneratedSizes& sizes,
                             std::uint64_t seed);
/// Generate a random tree in which every node has at most `degree` inputs (in-tree) or readers (out-tree).
core::Graph generate_in_tree(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes, std::uint64_t seed);
core::Graph generate_out_tree(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes, std::uint64_t seed);
/// Generates a series-parallel graph (Definition 7.1) in which no node has more than `degree` readers.
core::Graph generate_series_parallel(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes,
                                     std::uint64_t seed);
/// Generates a starborescence (Definition 7.3): a source with `degree` readers, after which the graph is an in-tree.
core::Graph generate_starborescence(core::NodeId nodes, core::NodeId degree, const GeneratedSizes& sizes,
                                    std::uint64_t seed);
/// Generates `nodes` nodes and `edges` edges between random pairs. An edge goes from the lower to the higher number.
core::Graph generate_random(core::NodeId nodes, std::int64_t edges, const GeneratedSizes& sizes, std::uint64_t seed);

/// The layered graphs of Gagrani et al. (Neural Topological Ordering for Computation Graphs, 2022), on which the
/// authors of MOCCASIN measured their solver. The defaults are those of the published graph of 1,000 nodes. The other
/// published graphs have width 0.27 (100 nodes), 0.43 (250) and 0.36 (500). Parameters that the published files do not
/// state were measured in those files; see docs/remat/random_graphs.md.
struct LayeredOptions {
  core::NodeId nodes = 1000;      ///< source and sink included, at least 3
  double width = 0.31;            ///< a layer has 2 * width * sqrt(nodes) nodes on average
  double layers_variance = 0.75;  ///< layer sizes are uniform between the average times 1 - this and the average times
                                  ///< 1 + this; in [0, 1]
  double edge_density = 0.2;      ///< fraction of node pairs in neighbouring layers that become edges, beyond one edge
                                  ///< per node; in [0, 1]
  double skip_density = 0.14;     ///< fraction of edges that skip one or more layers; in [0, 0.9]
  std::uint64_t seed = 0;
};
/// Generates a layered graph. Sizes in bytes are multiples of 10 from a mixture of four normal distributions with a
/// mean of about 2,000. Costs are uniform in 0 to 1000, and 0 for source and sink. The input order is random: among the
/// nodes whose inputs have run, the next one is that with the highest random priority. Throws InputError for options
/// out of range and for more than 20 million edges. O((n + m) log n).
core::Graph generate_layered(const LayeredOptions& options);

/// The pumpkin by which section 9 of Jin et al. encodes an instance of 3-Partition: 3m numbers that sum to m B. If the
/// numbers can be split into m groups of sum B, the least peak is W + m (m + 1) B / 2, where W is the size of the
/// source. Otherwise it is higher.
struct ThreePartition {
  core::Graph graph;
  std::int64_t feasible_peak = 0;  ///< W + m (m + 1) B / 2
};
/// Builds that pumpkin. There must be 3m positive numbers with m >= 1, m must divide their sum, and no number may
/// exceed B = sum / m. Otherwise throws InputError.
ThreePartition three_partition_pumpkin(std::span<const std::int64_t> numbers);
/// Returns 3m numbers for m = `groups` that can be split into m groups of three numbers with the given sum.
std::vector<std::int64_t> feasible_three_partition(int groups, std::int64_t sum, std::uint64_t seed);
/// Shapes of pumpkins in which every valley (local minimum of memory) of every branch ends a segment of its own, for
/// any number of branches and valleys (core/dominance.h).
enum class Valleys : std::uint8_t {
  falling,  ///< the shape of section 9: towards the end of a branch, valleys fall and peaks rise
  rising    ///< valleys rise, peaks fall, and all peaks differ, so that no state of Theorem 8.2's table can merge
            ///< segments
};
core::Graph generate_valley_pumpkin(core::NodeId branches, core::NodeId length, std::uint64_t seed,
                                    Valleys valleys = Valleys::falling);

}  // namespace cairn::models
