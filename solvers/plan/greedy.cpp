#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "cairn/core/random.h"
#include "cairn/solvers/plan/internal/instance.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::solvers {
namespace {

using plan::Block;
using plan::Instance;
using plan::Rectangle;

/// Which gap a block takes: the tightest that holds it, or the lowest.
enum class Fit : std::uint8_t { best, lowest };

/// Placed rectangles by the steps at which they live: all that live during [first, last] are those that live at
/// `first`, and those that start later in it.
class TimeIndex {
 public:
  explicit TimeIndex(std::int64_t steps) : starting_(steps + 1) {
    while (width_ <= steps) width_ *= 2;
    covering_.resize(2 * width_);
  }

  void clear() {
    for (auto& list : covering_) list.clear();
    for (auto& list : starting_) list.clear();
  }

  void insert(const Rectangle& rectangle, std::int32_t id) {
    starting_[rectangle.first].push_back(id);
    for (std::int64_t l = rectangle.first + width_, r = rectangle.last + 1 + width_; l < r; l /= 2, r /= 2) {
      if (l & 1) covering_[l++].push_back(id);
      if (r & 1) covering_[--r].push_back(id);
    }
  }

  template <class Visit>
  void visit(const Rectangle& rectangle, const Visit& visit) const {
    for (std::int64_t node = rectangle.first + width_; node > 0; node /= 2) {
      for (const std::int32_t id : covering_[node]) visit(id);
    }
    for (std::int64_t step = rectangle.first + 1;
         step <= rectangle.last && step < static_cast<std::int64_t>(starting_.size()); ++step) {
      for (const std::int32_t id : starting_[step]) visit(id);
    }
  }

 private:
  std::int64_t width_ = 1;
  std::vector<std::vector<std::int32_t>>
      covering_;  ///< segment tree: rectangles that live during all of a node's range
  std::vector<std::vector<std::int32_t>> starting_;  ///< by first step
};

/// Places blocks one by one, each in a gap between those placed so far that live at the same time.
class Placer {
 public:
  /// `conflicts`: how many pairs of rectangles live at the same time. Where they are few, rectangles are looked up by
  /// time; otherwise all that are placed are kept by offset and looked through.
  Placer(const Instance& instance, double conflicts, core::Stopwatch& watch) : instance_(instance), watch_(watch) {
    const auto rectangles = static_cast<double>(instance.rectangles.size());
    if (16 * conflicts < rectangles * rectangles) index_.emplace(instance.steps);
  }

  /// Height of the arena; offsets[b] is block b's.
  std::int64_t place(const std::vector<std::int32_t>& order, std::vector<std::int64_t>& offsets, Fit fit = Fit::best) {
    fit_ = fit;
    placed_.clear();
    if (index_) {
      index_->clear();
      placed_.resize(instance_.rectangles.size());
    }
    offsets.resize(instance_.blocks.size());
    std::int64_t height = 0;
    for (const std::int32_t b : order) {
      const Block& block = instance_.blocks[b];
      offsets[b] = block.count == 1 ? gap_for(*instance_.begin(block)) : lowest_for(block);
      for (const Rectangle* p = instance_.begin(block); p != instance_.end(block); ++p) {
        insert(*p, offsets[b]);
        height = std::max(height, offsets[b] + p->size);
      }
    }
    return height;
  }

 private:
  struct Placed {
    std::int64_t offset, end, first, last;
  };
  static constexpr std::int64_t kLookup = 10;  ///< finding and sorting a rectangle costs about this many comparisons

  void insert(const Rectangle& rectangle, std::int64_t offset) {
    const Placed placed{offset, offset + rectangle.size, rectangle.first, rectangle.last};
    if (index_) {
      const auto id = static_cast<std::int32_t>(&rectangle - instance_.rectangles.data());
      placed_[id] = placed;
      index_->insert(rectangle, id);
      return;
    }
    const auto at = std::upper_bound(placed_.begin(), placed_.end(), offset,
                                     [](std::int64_t value, const Placed& p) { return value < p.offset; });
    placed_.insert(at, placed);
  }

  /// Placed rectangles that live during some of [rectangle.first, rectangle.last], with ascending offsets if `sorted`.
  template <class Visit>
  void conflicts(const Rectangle& rectangle, const Visit& visit, bool sorted) {
    if (!index_) {
      watch_.charge(static_cast<std::int64_t>(placed_.size()));
      for (const Placed& p : placed_) {
        if (p.first <= rectangle.last && p.last >= rectangle.first) visit(p);
      }
      return;
    }
    watch_.charge(rectangle.last - rectangle.first + 1);
    found_.clear();
    index_->visit(rectangle, [&](std::int32_t id) { found_.push_back(placed_[id]); });
    watch_.charge(kLookup * static_cast<std::int64_t>(found_.size()));
    if (sorted) {
      std::sort(found_.begin(), found_.end(), [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
    }
    for (const Placed& p : found_) visit(p);
  }

  /// The tightest gap that holds the rectangle, the lowest of equals (or, with Fit::lowest, of all); above everything
  /// if there is none.
  std::int64_t gap_for(const Rectangle& rectangle) {
    std::int64_t top = 0, best = -1, best_gap = std::numeric_limits<std::int64_t>::max();
    conflicts(
        rectangle,
        [&](const Placed& p) {
          const std::int64_t gap = p.offset - top;
          if (gap >= rectangle.size && (fit_ == Fit::best ? gap < best_gap : best < 0)) {
            best = top;
            best_gap = gap;
          }
          top = std::max(top, p.end);
        },
        true);
    return best >= 0 ? best : top;
  }

  /// The lowest offset at which no rectangle of a chain meets a placed one.
  std::int64_t lowest_for(const Block& block) {
    forbidden_.clear();
    for (const Rectangle* rectangle = instance_.begin(block); rectangle != instance_.end(block); ++rectangle) {
      conflicts(
          *rectangle, [&](const Placed& p) { forbidden_.emplace_back(p.offset - rectangle->size, p.end); }, false);
    }
    std::sort(forbidden_.begin(), forbidden_.end());
    std::int64_t offset = 0;
    for (const auto& [above, below] : forbidden_) {
      if (above >= offset) break;
      offset = std::max(offset, below);
    }
    return offset;
  }

  const Instance& instance_;
  core::Stopwatch& watch_;
  std::optional<TimeIndex> index_;
  Fit fit_ = Fit::best;
  std::vector<Placed> placed_;  ///< by ascending offset; with an index, by rectangle
  std::vector<Placed> found_;
  std::vector<std::pair<std::int64_t, std::int64_t>> forbidden_;  ///< open intervals of offsets
};

struct BlockMeasures {
  std::int64_t size, length, conflicts, crowd, first;
};

/// What the greedy orders sort by. `crowd` is the largest load during the block's life.
std::vector<BlockMeasures> measure(const Instance& instance, const std::vector<std::int64_t>& loads) {
  std::vector<std::int64_t> starts, ends;
  for (const Rectangle& p : instance.rectangles) {
    starts.push_back(p.first);
    ends.push_back(p.last);
  }
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());

  // Range maximum by a sparse table: log2 rows.
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
    const Rectangle* begin = instance.begin(block);
    const Rectangle* end = instance.end(block);
    const std::int64_t first = begin->first, last = (end - 1)->last;
    std::int64_t size = 0;
    for (const Rectangle* p = begin; p != end; ++p) size = std::max(size, p->size);
    const auto started = std::upper_bound(starts.begin(), starts.end(), last) - starts.begin();
    const auto ended = std::lower_bound(ends.begin(), ends.end(), first) - ends.begin();
    measures.push_back({size, last - first + 1, started - ended, range_max(first, last), first});
  }
  return measures;
}

/// The greedy orders, each by a key of which the largest goes first; ties by size, then length, then start.
std::vector<std::vector<std::int32_t>> greedy_orders(const std::vector<BlockMeasures>& measures) {
  using Key = std::function<double(const BlockMeasures&)>;
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
  std::vector<std::vector<std::int32_t>> orders;
  for (const Key& key : keys) {
    std::vector<double> value;
    for (const BlockMeasures& m : measures) value.push_back(key(m));
    std::vector<std::int32_t> order(measures.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      const BlockMeasures &x = measures[a], &y = measures[b];
      if (value[a] != value[b]) return value[a] > value[b];
      if (x.size != y.size) return x.size > y.size;
      if (x.length != y.length) return x.length > y.length;
      return a < b;
    });
    orders.push_back(std::move(order));
  }
  return orders;
}

struct Packing {
  std::int64_t height = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> offsets;  ///< a block
  std::vector<std::int32_t> order;    ///< that led to it
  Fit fit = Fit::best;                ///< likewise
};

/// Another order near the packing's: one block that reaches the top of the arena, and now and then any other, moves to
/// an earlier place.
std::vector<std::int32_t> perturb(const Instance& instance, const Packing& packing, core::Random& random) {
  std::vector<std::int32_t> order = packing.order;
  std::vector<std::size_t> on_top;
  for (std::size_t at = 1; at < order.size(); ++at) {
    const Block& block = instance.blocks[order[at]];
    const bool reaches = std::any_of(instance.begin(block), instance.end(block), [&](const Rectangle& p) {
      return packing.offsets[order[at]] + p.size == packing.height;
    });
    if (reaches) on_top.push_back(at);
  }
  const auto move_earlier = [&](std::size_t at) {
    const auto to = static_cast<std::ptrdiff_t>(random.next() % at), from = static_cast<std::ptrdiff_t>(at);
    std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
  };
  if (!on_top.empty()) move_earlier(on_top[random.next() % on_top.size()]);
  if (order.size() > 1 && random.next() % 2 == 0) move_earlier(1 + random.next() % (order.size() - 1));
  return order;
}

/// Ends at the first packing of at most `target` bytes.
Packing pack(const Instance& instance, std::int64_t target, const std::vector<std::int64_t>& loads,
             core::Stopwatch& watch) {
  Packing best;
  if (instance.blocks.empty()) return {0, {}, {}, Fit::best};
  const std::vector<BlockMeasures> measures = measure(instance, loads);
  double conflicts = 0;
  for (const BlockMeasures& m : measures) conflicts += static_cast<double>(m.conflicts);
  Placer placer(instance, conflicts, watch);
  std::vector<std::int64_t> offsets;
  for (auto& order : greedy_orders(measures)) {
    for (const Fit fit : {Fit::best, Fit::lowest}) {
      const std::int64_t height = placer.place(order, offsets, fit);
      if (height < best.height) best = {height, offsets, order, fit};
      if (best.height <= target || watch.expired()) return best;
    }
  }
  constexpr int kMostRounds = 4000, kPatience = 100;
  core::Random random(1);
  Packing current = best;
  int since_best = 0;
  for (int round = 0; round < kMostRounds && best.height > target && !watch.expired(); ++round) {
    std::vector<std::int32_t> order = perturb(instance, current, random);
    const Fit fit = random.next() % 8 == 0 ? (current.fit == Fit::best ? Fit::lowest : Fit::best) : current.fit;
    const std::int64_t height = placer.place(order, offsets, fit);
    // Slightly worse packings are walked through for a while, so that a plateau is left again.
    const std::int64_t slack = random.next() % 4 == 0 ? current.height / 128 : 0;
    if (height <= current.height + slack) current = {height, offsets, std::move(order), fit};
    if (current.height < best.height) {
      best = current;
      since_best = 0;
    } else if (++since_best % kPatience == 0) {
      current = best;
    }
  }
  return best;
}

}  // namespace

PlanSolution greedy_plan(const PlanProblem& problem, const PlanOptions& options) {
  core::Stopwatch watch(options.limit);
  const plan::Instance instance(problem, options);
  const std::vector<std::int64_t> loads = instance.load();
  const std::int64_t bound = *std::max_element(loads.begin(), loads.end());
  const bool too_small = options.capacity && *options.capacity < bound;
  // Where nothing can fit, any plan will do: the first.
  const std::int64_t target =
      too_small ? std::numeric_limits<std::int64_t>::max() : std::max(options.capacity.value_or(0), bound);
  const Packing packing = pack(instance, target, loads, watch);

  PlanSolution solution;
  core::Plan& plan = solution.plan;
  plan = {packing.height, bound, options.alignment, problem.buffers};
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    plan.buffers[b].size = core::align_up(plan.buffers[b].size, options.alignment);
    plan.buffers[b].offset = packing.offsets[instance.block_of[b]];
  }
  solution.lower_bound = bound;
  solution.work = watch.work();
  solution.timed_out = plan.bytes > target && watch.expired();
  if (too_small) {
    solution.status = Status::infeasible;
  } else if (plan.bytes == bound) {
    solution.status = Status::optimal;
  } else {
    const bool fits = !options.capacity || plan.bytes <= *options.capacity;
    solution.status = fits ? Status::feasible : Status::not_found;
  }
  return solution;
}

}  // namespace cairn::solvers
