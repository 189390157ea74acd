#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/host_device.h"
#include "cairn/sim/device/transfers/transfer.h"
#include "cairn/solvers/order/device/caduceus.h"
#include "cairn/solvers/order/device/key_orders.h"

/// Does the work that search_key_orders() gives to a Machine (core/machine/support/machine.h). A prefix is the
/// beginning of an order of keys, and its children are the prefixes that have one more key. The work is to find the
/// children of many prefixes with their least peaks, and the dominant profiles of many prefixes.
namespace cairn::solvers {

/// Stores a KeyTree in plain arrays. The tree's segments are stored as chains, in this order:
/// - the path behind each key (`rest`);
/// - the free paths;
/// - each key with its rest;
/// - each key with its rest once more, where the key also frees the source.
struct KeyTreeView {
  struct Key {
    core::Segment key;
    std::int32_t parent;
    std::int32_t children;
    /// Root of an equal subtree of the same parent that must start before this key's subtree; -1: none.
    std::int32_t twin;
    /// - place: position of the key in a preorder walk of the tree.
    /// - end: position after the key's subtree in this walk.
    std::int32_t place, end;
    std::int32_t reads_source;
  };
  /// Names a segment: the number of a chain, and the index of the segment in this chain.
  struct Ranked {
    std::int32_t chain, index;
  };
  const Key* keys;
  const std::int32_t* free_parents;
  const core::Segment* segments;
  /// Index of the first segment of each chain; the last entry is the end of the last chain.
  const std::int32_t* chain_begin;
  const Ranked* ranked;  ///< all segments of all chains, sorted by core::sorts_before()
  std::int32_t key_count, free_count, ranked_count, readers;
  std::int64_t released;

  CAIRN_HD bool in_subtree(std::int32_t root, std::int32_t key) const {
    return keys[key].place >= keys[root].place && keys[key].place < keys[root].end;
  }
  CAIRN_HD bool started(std::int32_t root, const std::int32_t* prefix, std::int32_t length) const {
    for (std::int32_t i = 0; i < length; ++i) {
      if (in_subtree(root, prefix[i])) return true;
    }
    return false;
  }
  CAIRN_HD bool may_follow(const std::int32_t* prefix, std::int32_t length, std::int32_t key) const {
    std::int32_t waiting = keys[key].children;
    for (std::int32_t i = 0; i < length; ++i) {
      if (prefix[i] == key) return false;
      waiting -= keys[prefix[i]].parent == key ? 1 : 0;
    }
    if (waiting > 0) return false;
    for (std::int32_t root = key; root >= 0; root = keys[root].parent) {
      if (started(root, prefix, length)) continue;
      if (keys[root].twin >= 0 && !started(keys[root].twin, prefix, length)) return false;
    }
    return true;
  }
};

/// Builds the caduceus graph of a prefix. In this graph, the keys outside the prefix are relaxed: they run in parallel
/// chains that do not join (search_key_orders()). kLanes threads share memory (LaneAllocator).
template <int kLanes>
class Relaxation {
 public:
  using Graph = CaduceusOf<core::Segment, kLanes>;

  CAIRN_HD Relaxation(LaneAllocator<kLanes>& allocator, const KeyTreeView& tree, const CaduceusSize& size)
      : graph_(allocator, size),
        position_(allocator.template take<std::int32_t>(tree.key_count)),
        first_id_(allocator.template take<std::int32_t>(tree.free_count + 3 * tree.key_count)),
        chain_of_bend_(allocator.template take<std::int32_t>(size.bends)) {}

  /// Builds the graph of the prefix followed by the key `next` or, if `next` is -1, of the prefix alone. Takes time
  /// linear in the number of all segments.
  CAIRN_HD void build(const KeyTreeView& tree, const std::int32_t* prefix, std::int32_t length, std::int32_t next) {
    const std::int32_t keys = tree.key_count, frees = tree.free_count;
    const std::int32_t staff = next < 0 ? length : length + 1;
    const auto placed = [&](std::int32_t i) { return i < length ? prefix[i] : next; };
    for (std::int32_t k = 0; k < keys; ++k) position_[k] = -1;
    std::int32_t unread = tree.readers, reader = -1;  // reader: the last placed key that reads the source
    for (std::int32_t i = 0; i < staff; ++i) {
      position_[placed(i)] = i;
      if (tree.keys[placed(i)].reads_source == 0) continue;
      --unread;
      reader = i;
    }
    graph_.clear();
    for (std::int32_t i = 0; i < staff; ++i) {
      core::Segment segment = tree.keys[placed(i)].key;
      if (unread == 0 && i == reader) segment.drop += tree.released;
      graph_.add_staff(segment);
    }
    for (std::int32_t c = 0; c < frees + 3 * keys; ++c) first_id_[c] = -1;
    bool released = unread == 0;
    for (std::int32_t k = 0; k < keys; ++k) {
      if (position_[k] >= 0) {
        add_chain(tree, k, position_[k] + 1, gap_before(tree.keys[k].parent));
      } else {
        const bool releases = !released && tree.keys[k].reads_source != 0;
        released = released || releases;
        add_chain(tree, frees + (releases ? 2 : 1) * keys + k, staff, staff);
      }
    }
    for (std::int32_t f = 0; f < frees; ++f) add_chain(tree, keys + f, 0, gap_before(tree.free_parents[f]));
    std::int32_t count = 0;
    for (std::int32_t r = 0; r < tree.ranked_count; ++r) {
      const std::int32_t id = first_id_[tree.ranked[r].chain];
      if (id >= 0) graph_.ranked[count++] = id + tree.ranked[r].index;
    }
  }
  CAIRN_HD const Graph& graph() const { return graph_; }

  /// Returns what an id stands for: a segment of a chain, or a position on the staff with -1 as its chain.
  CAIRN_HD KeyTreeView::Ranked origin(std::int32_t id) const {
    const std::int32_t bend = graph_.bend_of[id];
    if (bend < 0) return {-1, id};
    return {chain_of_bend_[bend], id - graph_.bends[bend].begin};
  }

 private:
  CAIRN_HD std::int32_t gap_before(std::int32_t key) const {
    return key < 0 || position_[key] < 0 ? graph_.staff : position_[key];
  }
  CAIRN_HD void add_chain(const KeyTreeView& tree, std::int32_t chain, std::int32_t first, std::int32_t last) {
    const std::int32_t begin = tree.chain_begin[chain], length = tree.chain_begin[chain + 1] - begin;
    if (length == 0) return;
    first_id_[chain] = graph_.count;
    chain_of_bend_[graph_.bend_count] = chain;
    const LaneArray<core::Segment, kLanes> to = graph_.begin_bend();
    for (std::int32_t i = 0; i < length; ++i) to[i] = tree.segments[begin + i];
    graph_.end_bend(first, last, length);
  }

  using Numbers = LaneArray<std::int32_t, kLanes>;

  Graph graph_;
  Numbers position_;  ///< for each key, its position on the staff or -1
  Numbers first_id_;  ///< for each chain, its first id; -1: the chain is absent
  Numbers chain_of_bend_;
};

/// Holds the working memory of thread `lane` of kLanes threads that share `memory`. It is reused for one prefix after
/// another.
template <int kLanes>
struct RelaxationSolverOf {
  LaneAllocator<kLanes> allocator;
  Relaxation<kLanes> relaxation;
  CaduceusSolverOf<kLanes> solver;

  CAIRN_HD RelaxationSolverOf(std::byte* memory, const KeyTreeView& tree, const CaduceusSize& size,
                              std::int32_t lane = 0)
      : allocator(memory, lane), relaxation(allocator, tree, size), solver(allocator, size) {}
};
using RelaxationSolver = RelaxationSolverOf<1>;

struct PackedKeyTree {
  /// Converts a key tree. Throws InputError if the number of a parent is not lower than the number of its child, or if
  /// there are too many segments.
  explicit PackedKeyTree(const KeyTree& tree);

  std::vector<KeyTreeView::Key> keys;
  std::vector<std::int32_t> free_parents;
  std::vector<core::Segment> segments;
  std::vector<std::int32_t> chain_begin;
  std::vector<KeyTreeView::Ranked> ranked;
  CaduceusSize size;  ///< upper bounds on the sizes of the graphs of all prefixes
  std::int32_t readers = 0;
  std::int64_t released = 0;

  KeyTreeView view() const {
    return {keys.data(),
            free_parents.data(),
            segments.data(),
            chain_begin.data(),
            ranked.data(),
            static_cast<std::int32_t>(keys.size()),
            static_cast<std::int32_t>(free_parents.size()),
            static_cast<std::int32_t>(ranked.size()),
            readers,
            released};
  }
  /// Returns the bytes of working memory of kLanes threads that share it.
  template <int kLanes = 1>
  std::int64_t workspace_bytes() const {
    return RelaxationSolverOf<kLanes>(nullptr, view(), size).allocator.bytes();
  }
};

/// Points to `count` prefixes of `length` keys each, one prefix after another.
struct Prefixes {
  const std::int32_t* keys;
  std::int64_t count;
  std::int32_t length;
};

struct KeyOrderChildren {
  std::vector<std::uint64_t> peaks;  ///< least peaks of the children, ascending
  /// For each child, `prefix * key_count + key`; ascending among children with equal peaks.
  std::vector<std::int64_t> places;
};

struct KeyOrderProfiles {
  std::vector<core::Segment> segments;  ///< for each prefix, room for the largest profile
  std::vector<std::int32_t> counts;
};

/// Evaluates batches of prefixes on a machine that stores the tree: finds their children, or their dominant profiles.
class KeyOrderBatches {
 public:
  virtual ~KeyOrderBatches() = default;
  virtual void children(const Prefixes& prefixes, KeyOrderChildren& children) = 0;
  virtual void profiles(const Prefixes& prefixes, KeyOrderProfiles& profiles) = 0;
};

/// Returns whether a key may follow a prefix. The argument is `prefix * key_count + key`.
struct IsChild {
  KeyTreeView tree;
  const std::int32_t* prefixes;
  std::int32_t length;

  CAIRN_HD bool operator()(std::int64_t index) const {
    const std::int64_t prefix = index / tree.key_count;
    const auto key = static_cast<std::int32_t>(index - prefix * tree.key_count);
    return tree.may_follow(prefixes + prefix * length, length, key);
  }
};

/// Divides a batch of relaxations among threads, each of which is a team. Groups of kLanes threads share working memory
/// of `stride` bytes.
template <int kLanes>
struct RelaxationBatch {
  static constexpr int kThreads = 1;
  KeyTreeView tree;
  CaduceusSize size;
  const std::int32_t* prefixes;
  std::int32_t length;
  std::byte* workspace;
  std::int64_t stride, teams, count;

  template <class Solve>
  CAIRN_HD void for_each(std::int64_t team, const Solve& solve) const {
    const auto lane = static_cast<std::int32_t>(team % kLanes);
    RelaxationSolverOf<kLanes> work(workspace + team / kLanes * stride, tree, size, lane);
    for (std::int64_t i = team; i < count; i += teams) solve(work, i);
  }
};

/// Computes the least peak of the relaxation of each child. Entry i of `places` names child i, as in KeyOrderChildren.
template <int kLanes>
struct FindPeaks : RelaxationBatch<kLanes> {
  const std::int64_t* places;
  std::uint64_t* peaks;
  std::int32_t* indices;

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t team) const {
    this->for_each(team, [this](RelaxationSolverOf<kLanes>& work, std::int64_t i) {
      const std::int64_t prefix = places[i] / this->tree.key_count;
      work.relaxation.build(this->tree, this->prefixes + prefix * this->length, this->length,
                            static_cast<std::int32_t>(places[i] - prefix * this->tree.key_count));
      peaks[i] = static_cast<std::uint64_t>(work.solver.least_peak(work.relaxation.graph()));
      indices[i] = static_cast<std::int32_t>(i);
    });
  }
};

/// Computes the memory profile of the dominant order of each prefix's relaxation.
template <int kLanes>
struct FindProfiles : RelaxationBatch<kLanes> {
  core::Segment* segments;
  std::int32_t* counts;

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t team) const {
    this->for_each(team, [this](RelaxationSolverOf<kLanes>& work, std::int64_t i) {
      work.relaxation.build(this->tree, this->prefixes + i * this->length, this->length, -1);
      const auto& graph = work.relaxation.graph();
      work.solver.dominant(graph);
      std::int32_t places = 0;
      for (std::int32_t k = 0; k < graph.count; ++k) {
        append(segments + i * this->size.segments, places, graph.segments[work.solver.dominant_order()[k]]);
      }
      counts[i] = places;
    });
  }
};

/// Returns the number of teams of threads among which to divide `count` pieces of work. Each team needs `bytes_of_team`
/// bytes of its own. If only few teams can run at once, returns up to 8 times as many, so that the remaining work need
/// not wait for a slow team.
template <class F, class Machine>
std::int64_t teams_for(const Machine& machine, std::int64_t count, std::int64_t bytes_of_team) {
  constexpr std::int64_t kFew = 512, kSpareBytes = 16 << 20;
  const std::int64_t fitting = machine.free_bytes() / 2 / std::max<std::int64_t>(1, bytes_of_team);
  const std::int64_t resident = std::min(machine.template resident_teams<F>(0), std::max<std::int64_t>(1, fitting));
  const std::int64_t spare = std::min(kFew, kSpareBytes / std::max<std::int64_t>(1, bytes_of_team));
  return std::min(count, std::max(resident, std::min(8 * resident, spare)));
}

/// Evaluates batches on a Machine, whose memory holds the tree and the working memory of the teams.
template <class Machine>
class KeyOrdersOn final : public KeyOrderBatches {
  /// Number of threads whose working memory is interleaved: on a GPU, those of a warp.
  static constexpr int kLanes = std::is_same_v<Machine, core::HostMachine> ? 1 : 32;

 public:
  KeyOrdersOn(const PackedKeyTree& tree, Machine& machine)
      : machine_(machine),
        size_(tree.size),
        stride_(tree.workspace_bytes<kLanes>()),
        keys_(sim::device::uploaded(machine, std::span(tree.keys))),
        free_parents_(sim::device::uploaded(machine, std::span(tree.free_parents))),
        segments_(sim::device::uploaded(machine, std::span(tree.segments))),
        chain_begin_(sim::device::uploaded(machine, std::span(tree.chain_begin))),
        ranked_(sim::device::uploaded(machine, std::span(tree.ranked))),
        tree_(tree.view()) {
    tree_.keys = keys_.data();
    tree_.free_parents = free_parents_.data();
    tree_.segments = segments_.data();
    tree_.chain_begin = chain_begin_.data();
    tree_.ranked = ranked_.data();
  }

  void children(const Prefixes& prefixes, KeyOrderChildren& children) override {
    const std::int64_t slots = prefixes.count * tree_.key_count;
    const std::int32_t* orders = put(prefixes);
    reserve(flags_, slots);
    reserve(places_, slots);
    machine_.launch(sim::device::Mark<IsChild>{{tree_, orders, prefixes.length}, flags_.data()}, slots);
    const std::int64_t count = machine_.select(flags_.data(), slots, places_.data());
    reserve(peaks_, 2 * count);
    reserve(indices_, 2 * count);
    const RelaxationBatch<kLanes> batch = make_batch<FindPeaks<kLanes>>(orders, prefixes.length, count);
    machine_.launch(FindPeaks<kLanes>{batch, places_.data(), peaks_.data(), indices_.data()}, batch.teams);
    machine_.sort_pairs(peaks_.data(), peaks_.data() + count, indices_.data(), indices_.data() + count, count);

    const auto found = static_cast<std::size_t>(count);
    unsorted_.resize(found);
    index_of_.resize(found);
    children.peaks.resize(found);
    children.places.resize(found);
    machine_.download(peaks_.data() + count, count, children.peaks.data());
    machine_.download(indices_.data() + count, count, index_of_.data());
    machine_.download(places_.data(), count, unsorted_.data());
    for (std::size_t i = 0; i < found; ++i) children.places[i] = unsorted_[static_cast<std::size_t>(index_of_[i])];
  }

  void profiles(const Prefixes& prefixes, KeyOrderProfiles& profiles) override {
    const std::int32_t* orders = put(prefixes);
    const std::int64_t entries = prefixes.count * size_.segments;
    reserve(profiles_, entries);
    reserve(counts_, prefixes.count);
    // The download includes unused room behind the profiles, so this room is filled with zeros first.
    machine_.fill(profiles_.data(), 0, entries * static_cast<std::int64_t>(sizeof(*profiles_.data())));
    const RelaxationBatch<kLanes> batch = make_batch<FindProfiles<kLanes>>(orders, prefixes.length, prefixes.count);
    machine_.launch(FindProfiles<kLanes>{batch, profiles_.data(), counts_.data()}, batch.teams);
    profiles.segments.resize(static_cast<std::size_t>(entries));
    profiles.counts.resize(static_cast<std::size_t>(prefixes.count));
    machine_.download(profiles_.data(), entries, profiles.segments.data());
    machine_.download(counts_.data(), prefixes.count, profiles.counts.data());
  }

 private:
  template <class T>
  using ArrayOf = typename Machine::template ArrayOf<T>;

  template <class T>
  void reserve(ArrayOf<T>& array, std::int64_t count) {
    if (array.size() < count) sim::device::room(machine_, array, std::max(count, 2 * array.size()));
  }
  const std::int32_t* put(const Prefixes& prefixes) {
    reserve(orders_, prefixes.count * prefixes.length);
    machine_.upload(prefixes.keys, prefixes.count * prefixes.length, orders_.data());
    return orders_.data();
  }
  template <class F>
  RelaxationBatch<kLanes> make_batch(const std::int32_t* orders, std::int32_t length, std::int64_t count) {
    const std::int64_t teams = teams_for<F>(machine_, count, stride_ / kLanes);
    reserve(workspace_, (teams + kLanes - 1) / kLanes * stride_);
    return {tree_, size_, orders, length, workspace_.data(), stride_, teams, count};
  }

  Machine& machine_;
  CaduceusSize size_;
  std::int64_t stride_;
  ArrayOf<KeyTreeView::Key> keys_;
  ArrayOf<std::int32_t> free_parents_;
  ArrayOf<core::Segment> segments_;
  ArrayOf<std::int32_t> chain_begin_;
  ArrayOf<KeyTreeView::Ranked> ranked_;
  KeyTreeView tree_;

  ArrayOf<std::int32_t> orders_, indices_, counts_;
  ArrayOf<std::uint8_t> flags_;
  ArrayOf<std::int64_t> places_;
  ArrayOf<std::uint64_t> peaks_;
  ArrayOf<core::Segment> profiles_;
  ArrayOf<std::byte> workspace_;
  std::vector<std::int64_t> unsorted_;
  std::vector<std::int32_t> index_of_;
};

/// Searches for a dominant order. Runs batches of fewer than KeyOrderOptions::least_batch candidates on `narrow`, and
/// larger batches on the object that `make_wide` creates on first use.
KeyOrdersFound search_key_orders(const PackedKeyTree& tree, const KeyOrderOptions& options, KeyOrderBatches& narrow,
                                 const std::function<std::unique_ptr<KeyOrderBatches>()>& make_wide);

/// Runs search_key_orders() on any Machine, which `machine()` creates on first use.
template <class GetMachine>
KeyOrdersFound search_key_orders(const KeyTree& tree, const KeyOrderOptions& options, const GetMachine& machine) {
  using Machine = std::remove_reference_t<decltype(machine())>;
  const PackedKeyTree packed(tree);
  core::HostMachine one(1);
  KeyOrdersOn<core::HostMachine> narrow(packed, one);
  return search_key_orders(packed, options, narrow,
                           [&] { return std::make_unique<KeyOrdersOn<Machine>>(packed, machine()); });
}

}  // namespace cairn::solvers
