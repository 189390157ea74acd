// Partitions a graph into groups (partition.h). An item is a layer of nodes or, in later rounds, a group of layers.
// Items make and read values. M^l is the largest number of items in a group (PartitionOptions::most_lower).

#include "cairn/solvers/remat/hiremate/partition.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <span>
#include <tuple>
#include <utility>

#include "cairn/core/error.h"

namespace cairn::solvers {
namespace {

using Item = std::int32_t;
using Items = std::vector<Item>;

/// Stores lists of different lengths, one after the other in `data`.
struct Rows {
  std::vector<std::int64_t> begin;
  Items data;

  std::span<const Item> operator[](Item row) const {
    return {data.data() + begin[row], static_cast<std::size_t>(begin[row + 1] - begin[row])};
  }
  std::int64_t size(Item row) const { return begin[row + 1] - begin[row]; }
};

/// Finds for each item the values that it makes or reads.
Rows values_of_items(const PartitionGraph& graph) {
  Rows rows;
  rows.begin.assign(graph.items + 2, 0);
  for (const auto& value : graph.values) {
    ++rows.begin[value.maker + 2];
    for (const Item reader : value.readers) ++rows.begin[reader + 2];
  }
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  rows.data.resize(rows.begin.back());
  for (Item v = 0; v < static_cast<Item>(graph.values.size()); ++v) {
    rows.data[rows.begin[graph.values[v].maker + 1]++] = v;
    for (const Item reader : graph.values[v].readers) rows.data[rows.begin[reader + 1]++] = v;
  }
  rows.begin.pop_back();
  return rows;
}

/// Finds for each item the makers of the values that the item reads, ascending and distinct.
Rows predecessors_of_items(const PartitionGraph& graph, const Rows& values) {
  Rows rows;
  rows.begin.assign(1, 0);
  Items makers;
  for (Item x = 0; x < graph.items; ++x) {
    makers.clear();
    for (const Item v : values[x]) {
      if (graph.values[v].maker != x) makers.push_back(graph.values[v].maker);
    }
    std::sort(makers.begin(), makers.end());
    makers.erase(std::unique(makers.begin(), makers.end()), makers.end());
    rows.data.insert(rows.data.end(), makers.begin(), makers.end());
    rows.begin.push_back(static_cast<std::int64_t>(rows.data.size()));
  }
  return rows;
}

/// Finds the immediate dominators. In a DAG, the immediate dominator of an item is the lowest common ancestor of its
/// predecessors in the dominator tree. So the tree is built by adding one leaf for each item. Each tree node stores its
/// parent and a jump to one higher ancestor (Myers 1983). For n items, this takes O(n) memory, and O(log n) time per
/// common ancestor. Tree node 0 is the virtual source; item x is tree node x + 1.
Items dominators(Item items, const Rows& predecessors) {
  Items parent(items + 1, 0), jump(items + 1, 0), depth(items + 1, 0);
  const auto common_ancestor = [&](Item a, Item b) {
    if (depth[a] < depth[b]) std::swap(a, b);
    while (depth[a] > depth[b]) a = depth[jump[a]] >= depth[b] ? jump[a] : parent[a];
    while (a != b) {
      const bool leap = jump[a] != jump[b];
      a = leap ? jump[a] : parent[a];
      b = leap ? jump[b] : parent[b];
    }
    return a;
  };
  Items dominator(items);
  for (Item x = 0; x < items; ++x) {
    Item above = 0;
    for (std::size_t i = 0; const Item p : predecessors[x]) above = i++ == 0 ? p + 1 : common_ancestor(above, p + 1);
    const Item over = jump[above];
    const bool same_length = depth[above] - depth[over] == depth[over] - depth[jump[over]];
    parent[x + 1] = above;
    jump[x + 1] = same_length ? jump[over] : above;
    depth[x + 1] = depth[above] + 1;
    dominator[x] = above - 1;
  }
  return dominator;
}

/// Describes the graph of one round. Each of its items is an item of the given graph, or a group that stands for
/// several items of the given graph.
struct PartitionLevel {
  PartitionGraph graph;            ///< graph of the items, without values that no item reads
  Items id;                        ///< ids in the Partition, indexed by item
  std::vector<std::int64_t> size;  ///< number of given items for which each item stands
};

/// Runs the inner loop of Algorithm 1 of Gusak et al. To wrap items means to join them to a group. A block is a single
/// item, or a set of items that were wrapped in this round. A block is named by its least item. A candidate for a group
/// is a set of blocks. So when a candidate is wrapped, only the candidates that share a block with it change. A
/// candidate changes at most 2 M^l times, because each change gives it more items or fewer blocks.
class CandidateRound {
 public:
  CandidateRound(const PartitionLevel& level, const PartitionOptions& options, core::Stopwatch& watch)
      : level_(level),
        options_(options),
        watch_(watch),
        values_(values_of_items(level.graph)),
        blocks_(level.graph.items),
        of_block_(level.graph.items),
        alone_(level.graph.items, 0),
        item_mark_(level.graph.items, 0),
        value_mark_(level.graph.values.size(), 0),
        left_(level.graph.items) {
    for (Item x = 0; x < level.graph.items; ++x) {
      blocks_[x] = {x};
      for (const Item v : values_[x]) alone_[x] += level.graph.values[v].bytes;
    }
    make_candidates();
  }

  /// Joins the blocks of the candidate of least score to one block, again and again, until at most most_top blocks are
  /// left, no candidates are left, or the watch expires. Returns the blocks, each at the index of its least item. The
  /// other entries are empty.
  std::vector<Items> wrap() {
    while (left_ > options_.most_top && !queue_.empty() && !watch_.expired()) {
      const Entry best = queue_.top();
      queue_.pop();
      const Candidate& candidate = candidates_[best.candidate];
      if (!candidate.blocks.empty() && candidate.version == best.version) wrap(best.candidate);
    }
    return std::move(blocks_);
  }

 private:
  struct Candidate {
    Items blocks;  ///< empty if the candidate was wrapped or dropped
    Item size = 0;
    std::int32_t version = 0;
  };
  /// An entry of the queue for a candidate. The entry is outdated if the candidate's version has changed. Candidates
  /// are ordered by ascending score, then by descending number of items, and then by the order in which they were made.
  struct Entry {
    double score;
    Item size;
    Item candidate;
    std::int32_t version;
    bool operator<(const Entry& other) const {
      return std::tuple(score, -size, candidate) > std::tuple(other.score, -other.size, other.candidate);
    }
  };

  /// Makes four candidates for each item x and its immediate dominator a. Each contains the items between a and x on
  /// all paths from a to x. The four differ in whether they contain a and x themselves.
  void make_candidates() {
    const Rows predecessors = predecessors_of_items(level_.graph, values_);
    const Items dominator = dominators(level_.graph.items, predecessors);
    for (Item x = 0; x < level_.graph.items && !watch_.expired(); ++x) {
      if (!walk_back(x, dominator[x], predecessors)) continue;
      for (const bool with_x : {true, false}) {
        for (const bool with_dominator : {true, false}) {
          if (with_dominator && dominator[x] < 0) continue;
          Items members = between_;
          if (with_x) members.push_back(x);
          if (with_dominator) members.push_back(dominator[x]);
          add_candidate(std::move(members));
        }
      }
    }
  }

  /// Collects the items strictly between `dominator` and x. Returns false if there are more than M^l of them.
  bool walk_back(Item x, Item dominator, const Rows& predecessors) {
    ++mark_;
    between_.clear();
    const auto most = static_cast<std::size_t>(options_.most_lower);
    for (std::size_t next = 0; next <= between_.size(); ++next) {
      for (const Item p : predecessors[next == 0 ? x : between_[next - 1]]) {
        if (p == dominator || std::exchange(item_mark_[p], mark_) == mark_) continue;
        if (between_.size() == most) return false;
        between_.push_back(p);
      }
    }
    watch_.charge(static_cast<std::int64_t>(between_.size()) + 1);
    return true;
  }

  void add_candidate(Items members) {
    if (members.size() < 2 || members.size() > static_cast<std::size_t>(options_.most_lower)) return;
    const auto candidate = static_cast<Item>(candidates_.size());
    for (const Item x : members) of_block_[x].push_back(candidate);
    const auto size = static_cast<Item>(members.size());
    candidates_.push_back({std::move(members), size, 0});
    push(candidate);
  }

  void push(Item candidate) {
    const Candidate& c = candidates_[candidate];
    queue_.push({score(c), c.size, candidate, c.version});
  }

  /// Computes the score of a candidate by equation 1 of Gusak et al. Its main factor is the number of bytes of all
  /// values that cross the candidate's boundary: an item inside and an item outside make or read the value. Begins with
  /// the bytes of all values of the item that has the most values (alone_), and corrects this sum by the values of the
  /// other items. So an item with very many values does not make this function slow.
  double score(const Candidate& candidate) {
    ++mark_;
    members_.clear();
    for (const Item b : candidate.blocks) members_.insert(members_.end(), blocks_[b].begin(), blocks_[b].end());
    Item most = members_.front();
    std::int64_t given = 0;
    for (const Item x : members_) {
      item_mark_[x] = mark_;
      given += level_.size[x];
      if (values_.size(x) > values_.size(most)) most = x;
    }
    std::int64_t bytes = alone_[most], work = 1;
    for (const Item x : members_) {
      if (x == most) continue;
      for (const Item v : values_[x]) {
        if (std::exchange(value_mark_[v], mark_) == mark_) continue;
        const auto& value = level_.graph.values[v];
        if (touched_outside(value)) bytes += value.bytes;
        if (value.maker == most || std::binary_search(value.readers.begin(), value.readers.end(), most))
          bytes -= value.bytes;
      }
      work += values_.size(x);
    }
    watch_.charge(work);
    const double share = static_cast<double>(given) / static_cast<double>(members_.size());
    return static_cast<double>(bytes) * std::pow(share, options_.alpha);
  }

  bool touched_outside(const PartitionGraph::Value& value) const {
    const auto outside = [&](Item x) { return item_mark_[x] != mark_; };
    return value.readers.size() >= members_.size() || outside(value.maker) ||
           std::any_of(value.readers.begin(), value.readers.end(), outside);
  }

  void wrap(Item wrapped) {
    const Items parts = std::exchange(candidates_[wrapped].blocks, {});
    const Item block = *std::min_element(parts.begin(), parts.end());
    const Item size = candidates_[wrapped].size;
    left_ -= static_cast<Item>(parts.size()) - 1;

    Items members, touching;
    for (const Item b : parts) {
      members.insert(members.end(), blocks_[b].begin(), blocks_[b].end());
      touching.insert(touching.end(), of_block_[b].begin(), of_block_[b].end());
      blocks_[b].clear();
      Items().swap(of_block_[b]);
    }
    std::sort(members.begin(), members.end());
    std::sort(touching.begin(), touching.end());
    touching.erase(std::unique(touching.begin(), touching.end()), touching.end());
    blocks_[block] = std::move(members);

    for (const Item candidate : touching) {
      Candidate& c = candidates_[candidate];
      if (c.blocks.empty()) continue;
      watch_.charge(static_cast<std::int64_t>(c.blocks.size()));
      const auto kept = std::remove_if(c.blocks.begin(), c.blocks.end(),
                                       [&](Item b) { return std::find(parts.begin(), parts.end(), b) != parts.end(); });
      const auto shared = static_cast<std::size_t>(c.blocks.end() - kept);
      c.blocks.erase(kept, c.blocks.end());
      Item grown = size;
      for (const Item b : c.blocks) grown += static_cast<Item>(blocks_[b].size());
      if (c.blocks.empty() || grown > options_.most_lower) {
        Items().swap(c.blocks);
        continue;
      }
      c.blocks.push_back(block);
      c.size = grown;
      of_block_[block].push_back(candidate);
      // The candidate contained all of the wrapped blocks, so its items and its score stay the same.
      if (shared == parts.size()) continue;
      ++c.version;
      push(candidate);
    }
  }

  const PartitionLevel& level_;
  const PartitionOptions& options_;
  core::Stopwatch& watch_;
  Rows values_;
  std::vector<Items> blocks_;        ///< items of each block, ascending; indexed by the block's least item
  std::vector<Items> of_block_;      ///< candidates that contain a block; indexed by block
  std::vector<std::int64_t> alone_;  ///< bytes of all values that an item makes or reads; indexed by item
  std::vector<Candidate> candidates_;
  std::priority_queue<Entry> queue_;
  std::vector<std::int64_t> item_mark_, value_mark_;
  std::int64_t mark_ = 0;
  Items between_, members_;
  Item left_;  ///< number of blocks
};

/// Divides the order into runs of at most `longest` consecutive items. Minimises the sum of the bytes that are in
/// memory at the boundaries between runs. Of several such divisions, takes the one with the fewest runs. Any two
/// neighbouring runs together have more than `longest` items, because otherwise joining them would be allowed and
/// better. So there are at most twice as many runs as necessary. Takes O(m + n * longest) time for n items and m
/// readers of values.
std::vector<Items> consecutive_runs(const PartitionGraph& graph, Item longest) {
  const Item items = graph.items;
  // Indexed by item: bytes of the values made before this item and read by this item or a later one.
  std::vector<std::int64_t> alive(items + 1, 0);
  for (const auto& value : graph.values) {
    alive[value.maker + 1] += value.bytes;
    alive[value.readers.back() + 1] -= value.bytes;
  }
  std::partial_sum(alive.begin(), alive.end(), alive.begin());

  // Indexed by x, for the best division of the items below x: bytes at its boundaries, and number of its runs.
  std::vector<std::pair<double, Item>> best(items + 1, {std::numeric_limits<double>::infinity(), 0});
  Items first(items + 1, 0);  // first item of the last run in the best division of the items below x; indexed by x
  best[0] = {0, 0};
  for (Item end = 1; end <= items; ++end) {
    for (Item x = std::max(0, end - longest); x < end; ++x) {
      const std::pair<double, Item> cost{best[x].first + static_cast<double>(alive[x]), best[x].second + 1};
      if (cost < best[end]) {
        best[end] = cost;
        first[end] = x;
      }
    }
  }
  std::vector<Items> blocks(items);
  for (Item end = items; end > 0; end = first[end]) {
    Items& block = blocks[first[end]];
    block.resize(end - first[end]);
    std::iota(block.begin(), block.end(), first[end]);
  }
  return blocks;
}

/// Makes the items of the next round from the blocks, in a topological order. Of several blocks that can come next,
/// takes the one with the least item. Each block of more than one item becomes a group of the partition.
PartitionLevel contracted(PartitionLevel level, const std::vector<Items>& blocks, Partition& partition) {
  const Item items = level.graph.items;
  Items block(items), waits_for(items, 0), number(items);
  for (Item b = 0; b < items; ++b) {
    for (const Item x : blocks[b]) block[x] = b;
  }
  auto& values = level.graph.values;
  const auto renumber = [](PartitionGraph::Value& value, const Items& names) {
    value.maker = names[value.maker];
    for (Item& reader : value.readers) reader = names[reader];
    std::sort(value.readers.begin(), value.readers.end());
  };
  for (auto& value : values) {
    renumber(value, block);
    value.readers.erase(std::unique(value.readers.begin(), value.readers.end()), value.readers.end());
    std::erase(value.readers, value.maker);
    for (const Item reader : value.readers) ++waits_for[reader];
  }
  std::erase_if(values, [](const auto& value) { return value.readers.empty(); });

  const Rows touched = values_of_items(level.graph);
  std::priority_queue<Item, Items, std::greater<>> ready;
  for (Item b = 0; b < items; ++b) {
    if (!blocks[b].empty() && waits_for[b] == 0) ready.push(b);
  }
  PartitionLevel next;
  while (!ready.empty()) {
    const Item b = ready.top();
    ready.pop();
    number[b] = next.graph.items++;
    if (blocks[b].size() == 1) {
      next.id.push_back(level.id[b]);
    } else {
      next.id.push_back(static_cast<Item>(partition.top.size() + partition.groups.size()));
      Items& group = partition.groups.emplace_back();
      for (const Item x : blocks[b]) group.push_back(level.id[x]);
    }
    next.size.push_back(0);
    for (const Item x : blocks[b]) next.size.back() += level.size[x];
    for (const Item v : touched[b]) {
      if (values[v].maker != b) continue;
      for (const Item reader : values[v].readers) {
        if (--waits_for[reader] == 0) ready.push(reader);
      }
    }
  }
  for (auto& value : values) renumber(value, number);
  next.graph.values = std::move(values);
  return next;
}

/// Partitions the graph in rounds, until at most `most_top` items are left. In each round, wrap(level) divides the
/// items into blocks, which become the items of the next round.
template <class Wrap>
Partition wrap_rounds(const PartitionGraph& graph, Item most_top, const Wrap& wrap) {
  if (most_top < 1) throw core::InputError("H-Partition: the top level needs room for 1 item or more");
  PartitionLevel level{graph, Items(graph.items), std::vector<std::int64_t>(graph.items, 1)};
  std::iota(level.id.begin(), level.id.end(), 0);
  std::erase_if(level.graph.values, [](const auto& value) { return value.readers.empty(); });
  Partition partition;
  // During the rounds, `top` has one entry for each given item, because contracted() reads its size. The real members
  // of the top level follow after the rounds.
  partition.top = level.id;
  while (level.graph.items > most_top) {
    const auto blocks = wrap(level);
    level = contracted(std::move(level), blocks, partition);
  }

  std::vector<std::int32_t> depth(graph.items + partition.groups.size(), 0);
  for (std::size_t i = 0; i < partition.groups.size(); ++i) {
    for (const Item x : partition.groups[i]) depth[graph.items + i] = std::max(depth[graph.items + i], depth[x] + 1);
  }
  partition.levels = 1 + (depth.empty() ? 0 : *std::max_element(depth.begin(), depth.end()));
  partition.top = std::move(level.id);
  return partition;
}

/// Returns how many consecutive items a block needs so that one round leads to at most `most_top` items. Returns
/// `longest` if this number is larger.
Item run_length(const PartitionLevel& level, Item most_top, Item longest) {
  return std::min(longest, (level.graph.items - 1) / most_top + 1);
}

}  // namespace

std::vector<std::int32_t> immediate_dominators(const PartitionGraph& graph) {
  return dominators(graph.items, predecessors_of_items(graph, values_of_items(graph)));
}

Partition h_partition(const PartitionGraph& graph, const PartitionOptions& options, core::Stopwatch& watch) {
  if (options.most_lower < 2) throw core::InputError("H-Partition: a group needs room for 2 items or more");
  if (!std::isfinite(options.alpha)) throw core::InputError("H-Partition: alpha must be a finite number");
  if (!(options.slow_rounds >= 0)) throw core::InputError("H-Partition: slow_rounds must be 0 or more");
  // A round is slow if it reduces the number of items only a little. This happens if few candidates are small enough
  // for a group, for example if a value has very many readers. slow_items is the number of items that slow rounds may
  // still visit.
  double slow_items = options.slow_rounds * static_cast<double>(graph.items);
  std::int64_t before = graph.items;  // number of items at the beginning of the previous round
  bool slow = false, runs = false, first = true;
  return wrap_rounds(graph, options.most_top, [&](const PartitionLevel& level) {
    const std::int64_t items = level.graph.items;
    if (!first) {
      slow = items > before - before / 8;
      if (slow) slow_items -= static_cast<double>(before);
      runs = !runs && (items == before || (slow && slow_items < 0));
    }
    first = false;
    before = items;
    runs = runs || watch.expired();
    return runs ? consecutive_runs(level.graph, run_length(level, options.most_top, options.most_lower))
                : CandidateRound(level, options, watch).wrap();
  });
}

Partition partition_into_runs(const PartitionGraph& graph, std::int32_t most_top, std::int32_t longest) {
  if (longest < 2) throw core::InputError("H-Partition: a group needs room for 2 items or more");
  bool first = true;
  return wrap_rounds(graph, most_top, [&](const PartitionLevel& level) {
    const Item length = std::exchange(first, false) ? longest : run_length(level, most_top, longest);
    return consecutive_runs(level.graph, length);
  });
}

}  // namespace cairn::solvers
