// Finds a low plan by greedy methods (packer.h). A block is a group of buffers that share one offset. It consists of
// rectangles, each a range of steps and a range of addresses. The offset of a fixed block is given.

#include "cairn/solvers/plan/internal/packing/packer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "cairn/core/support/random.h"
#include "cairn/solvers/plan/internal/occupancy.h"
#include "cairn/solvers/plan/internal/packing/placer.h"
#include "cairn/solvers/plan/internal/packing/skyline.h"

namespace cairn::solvers::plan {
namespace {

struct BlockMeasures {
  std::int64_t size, length, conflicts, crowd, first;
};

/// Computes for each block the measures by which greedy orders sort:
/// - size: its largest number of bytes;
/// - length: the number of steps from its first to its last step;
/// - conflicts: the number of rectangles that are live during these steps;
/// - crowd: the largest number of bytes that are live at one of these steps;
/// - first: its first step.
std::vector<BlockMeasures> measure(const Instance& instance, const std::vector<std::int64_t>& loads) {
  std::vector<std::int64_t> starts, ends;
  for (const Rectangle& p : instance.rectangles) {
    starts.push_back(p.first);
    ends.push_back(p.last);
  }
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());

  std::vector<std::vector<std::int64_t>> table{loads};
  for (std::size_t width = 1; 2 * width <= loads.size(); width *= 2) {
    const auto& below = table.back();
    std::vector<std::int64_t> row(loads.size() - 2 * width + 1);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::max(below[i], below[i + width]);
    table.push_back(std::move(row));
  }
  const auto range_max = [&](std::int64_t first, std::int64_t last) {
    int row = 0;
    while ((std::int64_t{2} << row) <= last - first + 1) ++row;
    return std::max(table[row][first], table[row][last + 1 - (std::int64_t{1} << row)]);
  };

  std::vector<BlockMeasures> measures;
  measures.reserve(instance.blocks.size());
  for (const Block& block : instance.blocks) {
    const auto [first, last, size] = instance.bounds(block);
    const auto started = std::upper_bound(starts.begin(), starts.end(), last) - starts.begin();
    const auto ended = std::lower_bound(ends.begin(), ends.end(), first) - ends.begin();
    measures.push_back({size, last - first + 1, started - ended, range_max(first, last), first});
  }
  return measures;
}

/// Searches for low packings (plans in terms of blocks). Ends at the first packing whose height is at most `target`
/// bytes.
class Packer {
 public:
  Packer(const Instance& instance, std::int64_t bound, std::int64_t target, std::vector<BlockMeasures> measures,
         core::Stopwatch& watch)
      : instance_(instance), bound_(bound), target_(target), watch_(watch), measures_(std::move(measures)) {
    for (const BlockMeasures& m : measures_) conflicts_ += static_cast<double>(m.conflicts);
    placer_.emplace(instance, conflicts_, watch);
    for (std::size_t b = 0; b < instance.blocks.size(); ++b) {
      if (!instance.blocks[b].fixed) loose_.push_back(static_cast<std::int32_t>(b));
    }
  }

  Packing pack() {
    if (instance_.blocks.empty()) return {0, {}, false};
    search();
    best_.timed_out = best_.height > target_ && is_late();
    return std::move(best_);
  }

 private:
  using Key = std::function<double(const BlockMeasures&)>;
  /// Number of conflicts (pairs of rectangles that are live at the same time) beyond which scanning all conflicts of a
  /// block takes longer than a search in an Occupancy, a segment tree over time (occupancy.h).
  static constexpr double kMostConflicts = 1e8;
  /// If there are more conflicts than this number, kFirstRounds rounds of improve() come before place_orders(), because
  /// a pass of place_orders() visits all conflicts and takes as long as many rounds.
  static constexpr double kManyConflicts = 1e7;
  static constexpr int kMostRounds = 4000, kFirstRounds = 100;  ///< numbers of rounds of improve()

  void search() {
    const auto length = [](const BlockMeasures& m) { return static_cast<double>(m.length); };
    const auto area = [&](const BlockMeasures& m) { return length(m) * static_cast<double>(m.size); };
    const auto crowd = [&](const BlockMeasures& m) { return length(m) * static_cast<double>(m.crowd); };
    if (std::any_of(instance_.blocks.begin(), instance_.blocks.end(), usable_hint)) place_hinted(values(length));
    for (const Key& key : {Key(length), Key(area), Key(crowd)}) {
      if (done()) return;
      build_up(values(key));
    }
    const std::vector<std::vector<double>> starts{values(length), values(area)};
    if (conflicts_ > kManyConflicts) improve(starts, kFirstRounds);
    place_orders();
    improve(starts, kMostRounds);
  }

  bool done() {
    const bool any = !best_.offsets.empty();
    return any && (best_.height <= target_ || is_late());
  }
  /// Returns whether the limit is reached, or would be reached before the end of another build_up().
  bool is_late() { return watch_.expired() || watch_.rest().seconds < slowest_; }

  void keep(std::int64_t height) {
    if (height < best_.height) best_ = {height, offsets_, false};
  }

  std::vector<double> values(const Key& key) const {
    std::vector<double> values;
    values.reserve(measures_.size());
    for (const BlockMeasures& m : measures_) values.push_back(key(m));
    return values;
  }

  std::vector<std::int32_t> order_of_skyline(const std::vector<double>& key) {
    offsets_ = skyline_offsets(instance_, key, watch_);
    std::vector<std::int32_t> order = loose_;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return offsets_[a] < offsets_[b]; });
    return order;
  }

  /// Places the blocks of `order` one by one, each at the lowest possible offset (first-fit). Uses an Occupancy instead
  /// of the Placer if blocks have so many conflicts that scanning them would take too long. Returns the height.
  std::int64_t place_lowest(const std::vector<std::int32_t>& order, bool hints) {
    if (conflicts_ < kMostConflicts) return placer_->place(order, offsets_, Fit::lowest, hints, !best_.offsets.empty());
    constexpr std::int64_t kSearch = 2000;  // work of placing one block with an Occupancy, in comparisons of buffers
    std::vector<std::int64_t> times;
    for (const Rectangle& rectangle : instance_.rectangles) {
      times.push_back(rectangle.first);
      times.push_back(rectangle.last);
    }
    std::sort(times.begin(), times.end());
    Occupancy occupancy(times);
    std::int64_t height = 0;
    const auto put = [&](std::int32_t b, std::int64_t offset) {
      offsets_[b] = offset;
      height = std::max(height, top(b));
      for (const Rectangle& rectangle : instance_.of(instance_.blocks[b])) occupancy.insert(rectangle, offset);
      watch_.charge(kSearch);
    };
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(instance_.blocks.size()); ++b) {
      if (instance_.blocks[b].fixed) put(b, *instance_.blocks[b].fixed);
    }
    for (const std::int32_t b : order) {
      const Block& block = instance_.blocks[b];
      const bool hinted =
          hints && usable_hint(block) && occupancy.is_free(instance_.of(block), *block.hint, instance_.forbidden);
      put(b, hinted ? *block.hint
                    : occupancy.lowest_free(instance_.of(block), block.alignment, instance_.forbidden,
                                            std::numeric_limits<std::int64_t>::max()));
    }
    return height;
  }

  void place_hinted(const std::vector<double>& key) {
    std::vector<std::int32_t> order = order_of_skyline(key);
    std::stable_partition(order.begin(), order.end(), [&](std::int32_t b) { return usable_hint(instance_.blocks[b]); });
    keep(place_lowest(order, true));
  }

  /// Builds a packing by the skyline heuristic (skyline.h), and keeps it if it is the lowest so far. Of the blocks that
  /// fit at a place, the heuristic prefers the block with the largest `key`. Returns its height. The heuristic ignores
  /// fixed offsets. So if there are any, builds a first-fit packing in the order of the heuristic's offsets instead.
  std::int64_t build_up(const std::vector<double>& key) {
    const double begin = watch_.seconds();
    std::int64_t height = 0;
    if (loose_.size() < instance_.blocks.size()) {
      height = place_lowest(order_of_skyline(key), false);
    } else {
      offsets_ = skyline_offsets(instance_, key, watch_);
      for (std::size_t b = 0; b < offsets_.size(); ++b) height = std::max(height, top(b));
    }
    keep(height);
    slowest_ = std::max(slowest_, watch_.seconds() - begin);
    return height;
  }

  std::int64_t top(std::size_t b) const { return offsets_[b] + measures_[b].size; }

  void place_orders() {
    const auto real = [](std::int64_t value) { return static_cast<double>(value); };
    const std::vector<Key> keys{
        [&](const BlockMeasures& m) { return real(m.size); },
        [&](const BlockMeasures& m) { return real(m.length); },
        [&](const BlockMeasures& m) { return real(m.size) * real(m.length); },
        [&](const BlockMeasures& m) { return real(m.conflicts); },
        [&](const BlockMeasures& m) { return real(m.conflicts) * real(m.size); },
        [&](const BlockMeasures& m) { return real(m.crowd); },
        [&](const BlockMeasures& m) { return -real(m.first); },
    };
    for (const Key& key : keys) {
      const std::vector<double> value = values(key);
      std::vector<std::int32_t> order = loose_;
      std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        const BlockMeasures &x = measures_[a], &y = measures_[b];
        return std::tuple(value[a], x.size, x.length, b) > std::tuple(value[b], y.size, y.length, a);
      });
      for (const Fit fit : {Fit::best, Fit::lowest}) {
        if (done() || conflicts_ > static_cast<double>(watch_.rest().work)) return;
        keep(placer_->place(order, offsets_, fit, false, true));
      }
    }
  }

  /// Improves packings by squeaky wheel optimisation (Joslin and Clements, 1999). A block that ends above the lower
  /// bound gets a larger key, so that the skyline heuristic (see build_up()) prefers it the next time. Each entry of
  /// `starts` has one key per block. After kPatience rounds without a lower packing, restarts with the keys of one
  /// entry, changed at random. Ends after `rounds` rounds.
  void improve(const std::vector<std::vector<double>>& starts, int rounds) {
    constexpr int kPatience = 100;
    core::Random random(1);
    std::vector<double> key;
    std::int64_t lowest = 0;
    int since_lowest = kPatience;
    std::size_t start = 0;
    for (int round = 0; round < rounds && !done(); ++round) {
      if (since_lowest == kPatience) {
        key = starts[start++ % starts.size()];
        if (start > starts.size()) {
          for (double& value : key) value *= std::exp(0.5 * (random.uniform() - 0.5));
        }
        lowest = std::numeric_limits<std::int64_t>::max();
        since_lowest = 0;
      }
      const std::int64_t height = build_up(key);
      ++since_lowest;
      if (height < lowest) {
        lowest = height;
        since_lowest = 0;
      }
      for (const std::int32_t b : loose_) {
        if (top(b) > bound_) key[b] *= 1 + random.uniform();
      }
    }
  }

  const Instance& instance_;
  const std::int64_t bound_, target_;
  core::Stopwatch& watch_;
  const std::vector<BlockMeasures> measures_;
  double conflicts_ = 0;
  std::optional<Placer> placer_;
  std::vector<std::int32_t> loose_;  ///< blocks without a fixed offset
  std::vector<std::int64_t> offsets_;
  /// Duration in seconds of the slowest build_up() so far; build_up() itself does not check the limit.
  double slowest_ = 0;
  Packing best_;
};

}  // namespace

Packing pack(const Instance& instance, std::int64_t bound, std::int64_t target, const std::vector<std::int64_t>& loads,
             core::Stopwatch& watch) {
  return Packer(instance, bound, target, measure(instance, loads), watch).pack();
}

}  // namespace cairn::solvers::plan
