#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "cairn/core/random.h"
#include "cairn/solvers/plan/internal/instance.h"
#include "cairn/solvers/plan/internal/placer.h"
#include "cairn/solvers/plan/internal/rules.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::solvers {
namespace {

using plan::Block;
using plan::Fit;
using plan::Instance;
using plan::Placer;
using plan::Rectangle;

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

/// The greedy orders of what is not fixed, each by a key of which the largest goes first; ties by size, then length,
/// then start.
std::vector<std::vector<std::int32_t>> greedy_orders(const Instance& instance,
                                                     const std::vector<BlockMeasures>& measures) {
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
  std::vector<std::int32_t> loose;
  for (std::size_t b = 0; b < instance.blocks.size(); ++b) {
    if (!instance.blocks[b].fixed) loose.push_back(static_cast<std::int32_t>(b));
  }
  std::vector<std::vector<std::int32_t>> orders;
  for (const Key& key : keys) {
    std::vector<double> value;
    for (const BlockMeasures& m : measures) value.push_back(key(m));
    std::vector<std::int32_t> order = loose;
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
  std::vector<std::vector<std::int32_t>> orders = greedy_orders(instance, measures);
  if (std::any_of(instance.blocks.begin(), instance.blocks.end(), plan::usable_hint)) {
    std::vector<std::int32_t> hinted = orders.front();
    std::stable_partition(hinted.begin(), hinted.end(),
                          [&](std::int32_t b) { return plan::usable_hint(instance.blocks[b]); });
    const std::int64_t height = placer.place(hinted, offsets, Fit::best, true);
    best = {height, offsets, std::move(hinted), Fit::best};
    if (best.height <= target || watch.expired()) return best;
  }
  for (auto& order : orders) {
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
  const std::int64_t max_live = *std::max_element(loads.begin(), loads.end());
  plan::check_fixed(problem, instance);
  const std::int64_t bound = plan::height_bound(instance, max_live);
  const bool too_small = options.capacity && *options.capacity < bound;
  // Where nothing can fit, any plan will do: the first.
  const std::int64_t target =
      too_small ? std::numeric_limits<std::int64_t>::max() : std::max(options.capacity.value_or(0), bound);
  const Packing packing = pack(instance, target, loads, watch);

  PlanSolution solution;
  core::Plan& plan = solution.plan;
  plan = {packing.height, max_live, options.alignment, problem.buffers};
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
