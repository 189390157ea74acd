// Searches over orders of keys (key_orders.h). A key is a node at which paths of a tree join, or which reads the source
// of the tree. Orders are built key by key. A prefix is the beginning of an order. The bound of a prefix is a lower
// bound on the peak of all orders that begin with it. An order dominates another one if the two memory profiles can be
// walked at such speeds that the first is never above the second (core/dominance.h).

#include "cairn/solvers/order/device/key_orders.h"

#include <fmt/format.h>

#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/solvers/order/device/key_orders_kernel.h"

namespace cairn::solvers {
namespace {

using Signature = std::vector<std::int64_t>;

void write_chain(Signature& signature, const std::vector<core::Segment>& chain) {
  signature.push_back(static_cast<std::int64_t>(chain.size()));
  for (const core::Segment& segment : chain) {
    signature.push_back(segment.rise);
    signature.push_back(segment.drop);
  }
}

/// Numbers the subtrees of all keys so that subtrees with equal keys and paths have equal numbers.
std::vector<std::int64_t> subtree_classes(const KeyTree& tree) {
  const std::size_t keys = tree.keys.size();
  std::vector<std::vector<Signature>> free(keys);
  for (const KeyTree::Free& path : tree.free) {
    if (path.parent >= 0) write_chain(free[static_cast<std::size_t>(path.parent)].emplace_back(), path.segments);
  }
  std::vector<Signature> children(keys);
  std::vector<std::int64_t> classes(keys);
  std::map<Signature, std::int64_t> known;
  for (std::size_t k = keys; k-- > 0;) {
    const KeyTree::Key& key = tree.keys[k];
    Signature signature{key.key.rise, key.key.drop, key.reads_source ? 1 : 0};
    write_chain(signature, key.rest);
    std::sort(children[k].begin(), children[k].end());
    signature.push_back(static_cast<std::int64_t>(children[k].size()));
    signature.insert(signature.end(), children[k].begin(), children[k].end());
    std::sort(free[k].begin(), free[k].end());
    for (const Signature& path : free[k]) signature.insert(signature.end(), path.begin(), path.end());
    classes[k] = known.emplace(std::move(signature), static_cast<std::int64_t>(known.size())).first->second;
    if (key.parent >= 0) children[static_cast<std::size_t>(key.parent)].push_back(classes[k]);
  }
  return classes;
}

void check(const KeyTree& tree) {
  const auto keys = static_cast<std::int32_t>(tree.keys.size());
  for (std::int32_t k = 0; k < keys; ++k) {
    if (tree.keys[k].parent < -1 || tree.keys[k].parent >= k)
      throw core::InputError(fmt::format(
          "key {} has the parent {}; number parents before their children, and the sink -1", k, tree.keys[k].parent));
  }
  for (std::size_t f = 0; f < tree.free.size(); ++f) {
    if (tree.free[f].parent < -1 || tree.free[f].parent >= keys)
      throw core::InputError(fmt::format("free path {} has the parent {} among {} keys; give a key, or -1 for the sink",
                                         f, tree.free[f].parent, keys));
  }
}

}  // namespace

PackedKeyTree::PackedKeyTree(const KeyTree& tree) : released(tree.released) {
  check(tree);
  const auto count = static_cast<std::int32_t>(tree.keys.size());
  const std::vector<std::int64_t> classes = subtree_classes(tree);
  // Maps a parent and the number of a subtree (subtree_classes()) to the last child of the parent so far that has such
  // a subtree.
  std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> last_of_class;
  for (std::int32_t k = 0; k < count; ++k) {
    const KeyTree::Key& key = tree.keys[k];
    const auto [earlier, first] = last_of_class.try_emplace({key.parent, classes[k]}, k);
    keys.push_back({key.key, key.parent, 0, first ? -1 : earlier->second, 0, 1, key.reads_source ? 1 : 0});
    earlier->second = k;
    readers += key.reads_source ? 1 : 0;
  }
  // For now, `end` is the size of the key's subtree; the next loop turns this size into a position.
  for (std::int32_t k = count; k-- > 0;) {
    if (keys[k].parent < 0) continue;
    keys[keys[k].parent].end += keys[k].end;
    ++keys[keys[k].parent].children;
  }
  std::vector<std::int32_t> next(keys.size());
  std::int32_t next_root = 0;
  for (std::int32_t k = 0; k < count; ++k) {
    std::int32_t& place = keys[k].parent < 0 ? next_root : next[keys[k].parent];
    keys[k].place = place;
    next[k] = place + 1;
    place = keys[k].end += keys[k].place;
  }

  const auto add_chain = [&](const std::vector<core::Segment>& chain) {
    const auto number = static_cast<std::int32_t>(chain_begin.size());
    chain_begin.push_back(static_cast<std::int32_t>(segments.size()));
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(chain.size()); ++i) ranked.push_back({number, i});
    segments.insert(segments.end(), chain.begin(), chain.end());
  };
  for (const KeyTree::Key& key : tree.keys) add_chain(key.rest);
  for (const KeyTree::Free& path : tree.free) {
    add_chain(path.segments);
    free_parents.push_back(path.parent);
  }
  const auto most = static_cast<std::int64_t>(segments.size()) + count;
  if (most > std::numeric_limits<std::int32_t>::max() / 8)
    throw core::InputError(fmt::format("the key tree has {} segments; 2^28 are the most", most));
  size = {count, count + static_cast<std::int32_t>(tree.free.size()), static_cast<std::int32_t>(most)};
  for (const bool releases : {false, true}) {
    for (const KeyTree::Key& key : tree.keys) {
      std::vector<core::Segment> relaxed{key.key};
      if (releases) relaxed.front().drop += released;
      for (const core::Segment& segment : key.rest) core::append_segment(relaxed, segment);
      add_chain(relaxed);
    }
  }
  chain_begin.push_back(static_cast<std::int32_t>(segments.size()));
  const auto segment_of = [&](const KeyTreeView::Ranked& place) -> const core::Segment& {
    return segments[chain_begin[place.chain] + place.index];
  };
  std::stable_sort(ranked.begin(), ranked.end(), [&](const KeyTreeView::Ranked& a, const KeyTreeView::Ranked& b) {
    return core::sorts_before(segment_of(a), segment_of(b));
  });
}

namespace {

/// Holds the prefixes of one length that wait to be extended, in ascending order of their bounds.
struct PrefixLayer {
  std::int32_t length = 0;
  std::vector<std::int32_t> keys;
  std::vector<std::uint64_t> peaks;
  std::size_t next = 0;

  std::size_t waiting(std::uint64_t bound) const {
    const auto first = peaks.begin() + static_cast<std::ptrdiff_t>(next);
    return static_cast<std::size_t>(std::upper_bound(first, peaks.end(), bound) - first);
  }
};

/// Searches the orders of the keys by extending prefixes. Keeps the waiting prefixes in layers_, one layer for each
/// length.
class KeyOrderSearch {
 public:
  KeyOrderSearch(const PackedKeyTree& tree, const KeyOrderOptions& options, KeyOrderBatches& narrow,
                 const std::function<std::unique_ptr<KeyOrderBatches>()>& make_wide)
      : tree_(tree), options_(options), narrow_(narrow), make_wide_(make_wide), keys_(tree.size.staff) {
    const std::int64_t of_prefix = keys_ * keys_ * (4 * keys_ + 12) + 16 * std::int64_t{tree.size.segments} + 1;
    most_width_ = std::max<std::int64_t>(1, std::min(options.most_width, options.memory_bytes / of_prefix));
    layers_.push_back({0, {}, {0}});
  }

  KeyOrdersFound run() {
    found_.complete = true;
    std::int64_t counted = 0;
    while (!layers_.empty()) {
      PrefixLayer& layer = layers_.back();
      const std::size_t waiting = layer.waiting(best_peak_);
      if (waiting == 0) {
        layers_.pop_back();
        continue;
      }
      const std::int64_t work = found_.relaxations + 16 * found_.dominant;
      if (options_.stop && options_.stop(work - std::exchange(counted, work))) {
        found_.complete = false;
        break;
      }
      take(layer, std::min(waiting, static_cast<std::size_t>(width())));
    }
    if (!has_best_) take_any();
    write_steps();
    return std::move(found_);
  }

 private:
  std::int64_t width() const {
    constexpr std::int64_t kTriedForEach = 256;
    const std::int64_t width = std::max(options_.least_width, tried_ / kTriedForEach);
    return std::max<std::int64_t>(1, std::min(width, most_width_));
  }
  KeyOrderBatches& machine_for(std::int64_t candidates) {
    if (candidates < options_.least_batch) return narrow_;
    if (!wide_) wide_ = make_wide_();
    return *wide_;
  }

  /// Takes the next `count` prefixes out of the layer, and drops the prefixes that the best known order dominates.
  /// Extends each remaining prefix by every key that may follow, and stores the longer prefixes in a new layer.
  void take(PrefixLayer& layer, std::size_t count) {
    const auto length = static_cast<std::size_t>(layer.length);
    const auto begin = layer.keys.begin() + static_cast<std::ptrdiff_t>(layer.next * length);
    std::vector<std::int32_t> taken(begin, begin + static_cast<std::ptrdiff_t>(count * length));
    layer.next += count;
    tried_ += static_cast<std::int64_t>(count);
    if (has_best_ || layer.length == keys_) count = without_dominated(taken, count, layer.length);
    if (layer.length < keys_ && count > 0) descend(taken, count, layer.length);
  }

  /// Removes prefixes that the best known order dominates. If the prefixes are whole orders, updates the best known
  /// order. Returns the number of prefixes that remain.
  std::size_t without_dominated(std::vector<std::int32_t>& prefixes, std::size_t count, std::int32_t length) {
    machine_for(std::int64_t{16} * static_cast<std::int64_t>(count))
        .profiles({prefixes.data(), static_cast<std::int64_t>(count), length}, profiles_);
    found_.dominant += static_cast<std::int64_t>(count);
    std::size_t left = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const core::CanonicalView profile(0, std::span(profiles_.segments)
                                               .subspan(i * static_cast<std::size_t>(tree_.size.segments),
                                                        static_cast<std::size_t>(profiles_.counts[i])));
      if (has_best_ && core::dominates(best_, profile)) continue;
      const auto begin = prefixes.begin() + static_cast<std::ptrdiff_t>(i) * length;
      std::copy(begin, begin + length, prefixes.begin() + static_cast<std::ptrdiff_t>(left) * length);
      ++left;
      if (length == keys_) offer(profile, begin);
    }
    return left;
  }

  /// Makes a whole order the best known order if its peak is lower, or if its peak is equal and it dominates the best
  /// known order so far.
  void offer(const core::CanonicalView& profile, std::vector<std::int32_t>::const_iterator order) {
    core::CanonicalProfile candidate{0, {profile.segments.begin(), profile.segments.end()}};
    const auto peak = static_cast<std::uint64_t>(candidate.peak());
    if (has_best_ && (peak > best_peak_ || (peak == best_peak_ && !core::dominates(profile, best_)))) return;
    has_best_ = true;
    best_peak_ = peak;
    best_ = std::move(candidate);
    found_.keys.assign(order, order + keys_);
  }

  void descend(const std::vector<std::int32_t>& prefixes, std::size_t count, std::int32_t length) {
    machine_for(static_cast<std::int64_t>(count) * keys_)
        .children({prefixes.data(), static_cast<std::int64_t>(count), length}, children_);
    found_.relaxations += static_cast<std::int64_t>(children_.peaks.size());
    PrefixLayer layer{length + 1, {}, children_.peaks};
    layer.peaks.resize(layer.waiting(best_peak_));
    for (std::size_t i = 0; i < layer.peaks.size(); ++i) {
      const auto begin = prefixes.begin() + static_cast<std::ptrdiff_t>(children_.places[i] / keys_) * length;
      layer.keys.insert(layer.keys.end(), begin, begin + length);
      layer.keys.push_back(static_cast<std::int32_t>(children_.places[i] % keys_));
    }
    layers_.push_back(std::move(layer));
  }

  /// Extends the next waiting prefix to a whole order, each time by the first key that may follow. This is needed if
  /// the limit ended the search before any whole order was found.
  void take_any() {
    const PrefixLayer& layer = layers_.back();
    found_.keys.assign(layer.keys.begin() + static_cast<std::ptrdiff_t>(layer.next) * layer.length,
                       layer.keys.begin() + static_cast<std::ptrdiff_t>(layer.next + 1) * layer.length);
    const KeyTreeView view = tree_.view();
    while (static_cast<std::int64_t>(found_.keys.size()) < keys_) {
      std::int32_t key = 0;
      while (!view.may_follow(found_.keys.data(), static_cast<std::int32_t>(found_.keys.size()), key)) ++key;
      found_.keys.push_back(key);
    }
  }

  void write_steps() {
    const KeyTreeView view = tree_.view();
    std::vector<std::int64_t> memory(static_cast<std::size_t>(tree_.workspace_bytes()) / sizeof(std::int64_t) + 1);
    RelaxationSolver work(reinterpret_cast<std::byte*>(memory.data()), view, tree_.size);
    work.relaxation.build(view, found_.keys.data(), static_cast<std::int32_t>(keys_), -1);
    const SegmentCaduceus& graph = work.relaxation.graph();
    work.solver.dominant(graph);
    std::int64_t bytes = 0;
    for (std::int32_t i = 0; i < graph.count; ++i) {
      const std::int32_t id = work.solver.dominant_order()[i];
      const KeyTreeView::Ranked origin = work.relaxation.origin(id);
      found_.steps.push_back(origin.chain < 0 ? KeyOrdersFound::Place{found_.keys[origin.index], -1}
                                              : KeyOrdersFound::Place{origin.chain, origin.index});
      found_.peak = std::max(found_.peak, bytes + graph.segments[id].rise);
      bytes += graph.segments[id].change();
    }
  }

  const PackedKeyTree& tree_;
  const KeyOrderOptions& options_;
  KeyOrderBatches& narrow_;
  const std::function<std::unique_ptr<KeyOrderBatches>()>& make_wide_;
  std::unique_ptr<KeyOrderBatches> wide_;
  std::int64_t keys_;
  std::int64_t most_width_ = 1;
  std::int64_t tried_ = 0;
  std::vector<PrefixLayer> layers_;
  KeyOrderChildren children_;
  KeyOrderProfiles profiles_;
  bool has_best_ = false;
  std::uint64_t best_peak_ = std::numeric_limits<std::uint64_t>::max();
  core::CanonicalProfile best_;
  KeyOrdersFound found_;
};

}  // namespace

KeyOrdersFound search_key_orders(const PackedKeyTree& tree, const KeyOrderOptions& options, KeyOrderBatches& narrow,
                                 const std::function<std::unique_ptr<KeyOrderBatches>()>& make_wide) {
  return KeyOrderSearch(tree, options, narrow, make_wide).run();
}

KeyOrdersFound search_key_orders(const KeyTree& tree, const KeyOrderOptions& options, core::HostMachine& machine) {
  return solvers::search_key_orders(tree, options, [&]() -> core::HostMachine& { return machine; });
}

}  // namespace cairn::solvers
