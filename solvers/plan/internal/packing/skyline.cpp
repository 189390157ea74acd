// Places blocks by the skyline heuristic (skyline.h). A block is a group of buffers that share one offset. The skyline
// is, for each step, the end of the highest block placed at this step. Each block has a key; of the blocks that fit at
// a place, the block with the largest key is placed there.

#include "cairn/solvers/plan/internal/packing/skyline.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace cairn::solvers::plan {
namespace {

constexpr std::int64_t kVisit = 8;  // work of visiting a node of Unplaced, in comparisons of buffers
constexpr std::int64_t kInfinite = std::numeric_limits<std::int64_t>::max();

/// Holds the blocks that are not placed yet, as leaves of a segment tree, sorted by first step.
class Unplaced {
 public:
  Unplaced(const Instance& instance, const std::vector<double>& key) : instance_(instance) {
    for (std::size_t b = 0; b < instance.blocks.size(); ++b) {
      if (!instance.blocks[b].fixed) by_first_.push_back(static_cast<std::int32_t>(b));
    }
    const auto first = [&](std::int32_t b) { return instance.of(instance.blocks[b]).front().first; };
    std::stable_sort(by_first_.begin(), by_first_.end(),
                     [&](std::int32_t a, std::int32_t b) { return first(a) < first(b); });
    starts_.resize(instance.steps + 2);
    for (const std::int32_t b : by_first_) ++starts_[first(b) + 1];
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    while (width_ < by_first_.size()) width_ *= 2;
    nodes_.resize(2 * width_);
    for (std::size_t leaf = 0; leaf < by_first_.size(); ++leaf) {
      const Rectangle bounds = instance.bounds(instance.blocks[by_first_[leaf]]);
      nodes_[width_ + leaf] = {bounds.last, bounds.size, key[by_first_[leaf]], true};
    }
    for (std::size_t n = width_ - 1; n > 0; --n) nodes_[n] = merged(nodes_[2 * n], nodes_[2 * n + 1]);
  }

  bool empty() const { return !nodes_[1].any; }

  /// Removes and returns the block with the largest key that lives within the steps [first, last] and, placed at the
  /// address `level`, ends at `roof` or below. Returns -1 if no such block is found within kMostVisits visits of nodes.
  std::int32_t take(std::int64_t first, std::int64_t last, std::int64_t level, std::int64_t roof) {
    window_ = {last, level, roof};
    best_ = 0;
    visits_ = 0;
    search(1, 0, width_, starts_[first], starts_[last + 1]);
    if (best_ == 0) return -1;
    nodes_[best_] = {};
    for (std::size_t n = best_ / 2; n > 0; n /= 2) nodes_[n] = merged(nodes_[2 * n], nodes_[2 * n + 1]);
    return by_first_[best_ - width_];
  }

  std::int64_t visits() const { return visits_; }

 private:
  static constexpr int kMostVisits = 400;

  struct Node {
    std::int64_t last = kInfinite;  ///< last step of the block; in inner nodes, the least of all blocks below
    std::int64_t size = 0;          ///< bytes of the block; in inner nodes, the least of all blocks below
    double key = 0;                 ///< key of the block; in inner nodes, the largest of all blocks below
    bool any = false;
  };
  struct Window {
    std::int64_t last, level, roof;
  };

  static Node merged(const Node& a, const Node& b) {
    if (!a.any) return b;
    if (!b.any) return a;
    return {std::min(a.last, b.last), std::min(a.size, b.size), std::max(a.key, b.key), true};
  }

  void search(std::size_t node, std::size_t begin, std::size_t end, std::int64_t from, std::int64_t to) {
    const Node& n = nodes_[node];
    if (!n.any || static_cast<std::int64_t>(begin) >= to || static_cast<std::int64_t>(end) <= from) return;
    if (n.last > window_.last || n.size > window_.roof - window_.level) return;
    if (best_ != 0 && n.key <= nodes_[best_].key) return;
    if (++visits_ > kMostVisits) return;
    if (node >= width_) {
      const Block& block = instance_.blocks[by_first_[node - width_]];
      if (n.size <= window_.roof - core::align_up(window_.level, block.alignment)) best_ = node;
      return;
    }
    const std::size_t middle = (begin + end) / 2;
    if (nodes_[2 * node].key >= nodes_[2 * node + 1].key) {
      search(2 * node, begin, middle, from, to);
      search(2 * node + 1, middle, end, from, to);
    } else {
      search(2 * node + 1, middle, end, from, to);
      search(2 * node, begin, middle, from, to);
    }
  }

  const Instance& instance_;
  std::vector<std::int32_t> by_first_;
  std::vector<std::int64_t> starts_;  ///< for each step, the number of blocks that start before it
  std::size_t width_ = 1;
  std::vector<Node> nodes_;
  Window window_{};
  std::size_t best_ = 0;
  int visits_ = 0;
};

/// Stores the skyline as a list of parts. A part is a range of steps with the same level (height in bytes).
class Skyline {
 public:
  explicit Skyline(std::int64_t steps) : level_(steps + 1), last_(steps + 1, -1), first_(steps + 1) {
    add(0, steps, 0);
  }

  struct Part {
    std::int64_t first, last, level;
  };

  Part take_lowest() {
    while (true) {
      const auto [level, first] = heap_.top();
      heap_.pop();
      if (level_[first] != level || last_[first] < 0) continue;
      const Part part{first, last_[first], level};
      last_[first] = -1;
      return part;
    }
  }

  /// Returns the level of the part before `part`, or kInfinite if there is none.
  std::int64_t level_before(const Part& part) const {
    return part.first == 0 ? kInfinite : level_[first_[part.first - 1]];
  }
  /// Returns the level of the part after `part`, or kInfinite if there is none.
  std::int64_t level_after(const Part& part) const {
    return part.last + 1 == static_cast<std::int64_t>(level_.size()) ? kInfinite : level_[part.last + 1];
  }

  /// Adds a part at steps that are in no part, and merges it with neighbouring parts of the same level.
  void add(std::int64_t first, std::int64_t last, std::int64_t level) {
    if (first > last) return;
    if (first > 0 && last_[first_[first - 1]] == first - 1 && level_[first_[first - 1]] == level)
      first = first_[first - 1];
    if (last + 1 < static_cast<std::int64_t>(level_.size()) && last_[last + 1] >= 0 && level_[last + 1] == level) {
      const std::int64_t after = last + 1;
      last = last_[after];
      last_[after] = -1;
    }
    level_[first] = level;
    last_[first] = last;
    first_[last] = first;
    heap_.emplace(level, first);
  }

 private:
  // level_ and last_ are the level and the last step of a part, indexed by the part's first step. last_ is -1 at steps
  // at which no part begins. first_ is the first step of a part, indexed by the part's last step.
  std::vector<std::int64_t> level_, last_, first_;
  using Entry = std::pair<std::int64_t, std::int64_t>;
  /// Level and first step of each part, the lowest level first. The heap can also have entries of parts that no longer
  /// exist.
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
};

}  // namespace

std::vector<std::int64_t> skyline_offsets(const Instance& instance, const std::vector<double>& key,
                                          core::Stopwatch& watch) {
  std::vector<std::int64_t> offsets(instance.blocks.size(), 0);
  Unplaced unplaced(instance, key);
  Skyline skyline(instance.steps);
  std::size_t range = 0;  // index of the first forbidden range that ends above the current level
  while (!unplaced.empty()) {
    const Skyline::Part part = skyline.take_lowest();
    while (range < instance.forbidden.size() && instance.forbidden[range].upper <= part.level) ++range;
    const bool bounded = range < instance.forbidden.size();
    const std::int64_t roof = bounded ? instance.forbidden[range].lower : kInfinite;
    const std::int32_t b = unplaced.take(part.first, part.last, part.level, roof);
    watch.charge(kVisit * unplaced.visits());
    if (b < 0) {
      std::int64_t level = std::min(skyline.level_before(part), skyline.level_after(part));
      if (bounded) level = std::min(level, instance.forbidden[range].upper);
      skyline.add(part.first, part.last, level);
      continue;
    }
    offsets[b] = core::align_up(part.level, instance.blocks[b].alignment);
    std::int64_t done = part.first;
    const std::span<const Rectangle> rectangles = instance.of(instance.blocks[b]);
    for (auto p = rectangles.begin(); p != rectangles.end(); ++p) {
      // If the next rectangle takes over the storage at the last step of this one, the larger of the two counts at that
      // step.
      const bool taken = p + 1 != rectangles.end() && (p + 1)->first == p->last && (p + 1)->size > p->size;
      const std::int64_t first = std::max(p->first, done), last = taken ? p->last - 1 : p->last;
      skyline.add(done, first - 1, part.level);
      if (first <= last) skyline.add(first, last, offsets[b] + p->size);
      done = std::max(done, last + 1);
    }
    skyline.add(done, part.last, part.level);
  }
  return offsets;
}

}  // namespace cairn::solvers::plan
