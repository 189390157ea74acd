// Divides a training graph into a chain of blocks (block_chain.h). Each block has a forward part and a backward part. A
// resident is a value that is never recomputed, but stays in memory until its last reader has run.

#include "cairn/solvers/remat/rotor/block_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cairn/core/error.h"

namespace cairn::solvers {
namespace {

using core::NodeId;
using core::ValueId;

void check_marks(const core::Graph& graph) {
  bool any = false;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.backward(v)) {
      any = true;
      const NodeId forward = graph.forward(v);
      if (forward != core::kNoNode && graph.backward(forward))
        throw core::InputError(
            fmt::format("backward node '{}' names '{}' as its forward node, but that is backward too", graph.name(v),
                        graph.name(forward)));
      continue;
    }
    for (const NodeId u : graph.predecessors(v)) {
      if (graph.backward(u))
        throw core::InputError(fmt::format("forward node '{}' reads backward node '{}'; mark both the same",
                                           graph.name(v), graph.name(u)));
    }
  }
  if (!any) throw core::InputError("no node of the graph is marked backward: a chain of blocks needs a training graph");
}

/// Says where a value of the forward part is used, as indices in the forward order. `from` is the value's producer.
/// `to` is its last forward reader, or the producer if there is none. Both are -1 if a backward node makes the value.
struct Reach {
  std::int32_t from = -1, to = -1;
};

std::vector<Reach> forward_reach(const core::Graph& graph, const std::vector<NodeId>& forward) {
  std::vector<Reach> reach(static_cast<std::size_t>(graph.value_count()));
  for (std::size_t i = 0; i < forward.size(); ++i) {
    const auto place = static_cast<std::int32_t>(i);
    for (const ValueId x : graph.outputs(forward[i])) reach[x] = {place, place};
    for (const ValueId x : graph.inputs(forward[i])) reach[x].to = place;
  }
  return reach;
}

/// Finds the nodes after which the forward part is divided, as indices in the forward order.
std::vector<std::int32_t> find_cuts(const core::Graph& graph, const std::vector<Reach>& reach,
                                    const std::vector<std::uint8_t>& resident, std::int32_t places,
                                    std::int32_t most_blocks) {
  std::vector<std::int32_t> count(static_cast<std::size_t>(places) + 1, 0);
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(places) + 1, 0);
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    if (reach[x].from < 0 || resident[x] != 0 || graph.value_size(x) == 0) continue;
    ++count[reach[x].from], --count[reach[x].to];
    bytes[reach[x].from] += graph.value_size(x), bytes[reach[x].to] -= graph.value_size(x);
  }
  std::vector<std::int32_t> cuts;
  for (std::int32_t place = 0; place + 1 < places; ++place) {
    if (place > 0) count[place] += count[place - 1], bytes[place] += bytes[place - 1];
    if (count[place] <= 1) cuts.push_back(place);
  }
  if (static_cast<std::int32_t>(cuts.size()) < most_blocks) return cuts;
  // There are too many possible boundaries. Divide them into groups of neighbours, and choose from each group the
  // boundary that the fewest bytes cross.
  std::vector<std::int32_t> chosen;
  const std::size_t wanted = most_blocks - 1;
  for (std::size_t i = 0; i < wanted; ++i) {
    const auto first = cuts.begin() + static_cast<std::ptrdiff_t>(i * cuts.size() / wanted);
    const auto last = cuts.begin() + static_cast<std::ptrdiff_t>((i + 1) * cuts.size() / wanted);
    chosen.push_back(*std::min_element(first, last, [&](auto a, auto b) { return bytes[a] < bytes[b]; }));
  }
  return chosen;
}

/// Finds the block in whose backward part node b runs. The blocks of b's predecessors must be known.
std::int32_t backward_block(const core::Graph& graph, NodeId b, const BlockChain& chain,
                            const std::vector<std::int32_t>& last_forward_block) {
  // Start with the block of highest number, and lower the number until all inputs of b are available. The block of
  // highest number is best because it runs backward first.
  std::int32_t earliest = static_cast<std::int32_t>(chain.blocks.size()) - 1;
  std::int64_t released = 0;
  bool reads_forward = false;
  for (const ValueId x : graph.inputs(b)) {
    const NodeId u = graph.producer(x);
    if (graph.backward(u)) {
      earliest = std::min(earliest, chain.block_of[u]);
      released += graph.readers(x).size() == 1 && !graph.value_kept(x) ? graph.value_size(x) : 0;
    } else {
      reads_forward = true;
      if (chain.resident[x] == 0) earliest = std::min(earliest, last_forward_block[x]);
    }
  }
  const NodeId forward = graph.forward(b);
  if (forward == core::kNoNode) return earliest;
  // A node that reads only gradients and frees at least as many bytes as it makes runs as early as possible, because
  // running it does not increase the memory in use. An example is a sum of gradients.
  const bool early = !reads_forward && graph.size(b) <= released;
  return early ? std::max(earliest, chain.block_of[forward]) : chain.block_of[forward];
}

}  // namespace

BlockChain find_block_chain(const core::Graph& graph, std::int32_t longest, std::int32_t most_blocks) {
  check_marks(graph);
  std::vector<NodeId> forward;
  for (const NodeId v : graph.input_order()) {
    if (!graph.backward(v)) forward.push_back(v);
  }
  const auto values = static_cast<std::size_t>(graph.value_count());
  const std::vector<Reach> reach = forward_reach(graph, forward);
  BlockChain chain;
  chain.resident.assign(values, 0);
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    if (reach[x].from < 0) continue;
    const bool once = graph.value_kept(x) || graph.pinned(graph.producer(x));
    if (once || reach[x].to - reach[x].from > longest) chain.resident[x] = 1;
  }
  const std::vector<std::int32_t> cuts =
      find_cuts(graph, reach, chain.resident, static_cast<std::int32_t>(forward.size()), most_blocks);

  chain.blocks.resize(cuts.size() + 1);
  chain.block_of.assign(static_cast<std::size_t>(graph.node_count()), 0);
  std::vector<std::int32_t> block_at(forward.size());
  for (std::size_t i = 0; i < forward.size(); ++i) {
    block_at[i] = static_cast<std::int32_t>(std::lower_bound(cuts.begin(), cuts.end(), static_cast<std::int32_t>(i)) -
                                            cuts.begin());
    chain.block_of[forward[i]] = block_at[i];
  }
  std::vector<std::int32_t> last_forward_block(values, -1);
  for (std::size_t x = 0; x < values; ++x) {
    if (reach[x].from >= 0) last_forward_block[x] = block_at[reach[x].to];
  }

  // Backward parts run in reverse order. So a backward node can only read gradients made in its own block or in a block
  // of higher number. If it reads a gradient made in a block of lower number, all blocks from that block to its own are
  // merged. joined[k] says whether block k is merged with block k + 1.
  std::vector<std::uint8_t> joined(chain.blocks.size(), 0);
  for (const NodeId v : graph.input_order()) {
    if (!graph.backward(v)) continue;
    const std::int32_t block = chain.block_of[v] = backward_block(graph, v, chain, last_forward_block);
    for (const NodeId u : graph.predecessors(v)) {
      if (graph.backward(u) && chain.block_of[u] < block)
        std::fill(joined.begin() + chain.block_of[u], joined.begin() + block, 1);
    }
  }
  std::vector<std::int32_t> number(chain.blocks.size(), 0);
  for (std::size_t k = 1; k < number.size(); ++k) number[k] = number[k - 1] + (joined[k - 1] != 0 ? 0 : 1);
  chain.blocks.resize(static_cast<std::size_t>(number.back()) + 1);
  for (std::int32_t& block : last_forward_block) block = block < 0 ? -1 : number[block];
  for (const NodeId v : graph.input_order()) {
    std::int32_t& block = chain.block_of[v];
    block = number[block];
    (graph.backward(v) ? chain.blocks[block].backward : chain.blocks[block].forward).push_back(v);
  }

  chain.last_block.assign(values, -1);
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    const std::int32_t made = chain.block_of[graph.producer(x)];
    std::int32_t last = graph.readers(x).empty() ? made : std::numeric_limits<std::int32_t>::max();
    for (const NodeId reader : graph.readers(x)) {
      const std::int32_t block = chain.block_of[reader];
      last = std::min(last, block);
      // Says whether this reader runs in a block that neither makes the value nor has it in its checkpoint.
      const bool absent = block < made || block > std::max(made, last_forward_block[x]);
      if (reach[x].from >= 0 && absent) chain.resident[x] = 1;
    }
    chain.last_block[x] = graph.value_kept(x) ? -1 : last;
  }
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    if (reach[x].from < 0 || chain.resident[x] != 0) continue;
    for (std::int32_t k = chain.block_of[graph.producer(x)]; k < last_forward_block[x]; ++k)
      chain.blocks[k].leaving.push_back(x);
  }
  return chain;
}

std::vector<BlockChain> find_block_chains(const core::Graph& graph, std::int32_t most_blocks) {
  std::vector<BlockChain> chains;
  for (const std::int32_t longest : {graph.node_count(), std::max(16, graph.node_count() / 24)}) {
    BlockChain chain = find_block_chain(graph, longest, most_blocks);
    if (chains.empty() || chain.blocks.size() >= chains[0].blocks.size() * 9 / 8) chains.push_back(std::move(chain));
  }
  if (chains.back().blocks.size() < 2)
    throw core::InputError(
        "the graph is not a chain of blocks: more than one value crosses every boundary of its forward part");
  return chains;
}

}  // namespace cairn::solvers
