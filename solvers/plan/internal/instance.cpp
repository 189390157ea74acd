#include "cairn/solvers/plan/internal/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cairn/core/error.h"
#include "cairn/core/support/sum_limit.h"

namespace cairn::solvers::plan {
namespace {

void check_options(const PlanOptions& options) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (options.alignment < 1 || options.alignment > kMost) {
    throw core::InputError(fmt::format("alignment {} is not between 1 and 2^30 bytes", options.alignment));
  }
  if (options.guard_bytes < 0 || options.guard_bytes > kMost) {
    throw core::InputError(fmt::format("guard of {} bytes is not between 0 and 2^30", options.guard_bytes));
  }
  if (options.overlap_steps < 0 || options.overlap_steps > kMost) {
    throw core::InputError(fmt::format("{} overlapping steps are not between 0 and 2^30", options.overlap_steps));
  }
  if (options.capacity && *options.capacity < 0) {
    throw core::InputError(fmt::format("the capacity of {} bytes is negative", *options.capacity));
  }
}

[[noreturn]] void fail(std::int32_t buffer, const std::string& why) {
  throw core::InputError(fmt::format("buffer {}: {}", buffer, why));
}

bool has_copies(const PlanProblem& problem) {
  return std::ranges::any_of(problem.buffers, [](const core::Buffer& b) { return b.evict >= 0 || b.fetch >= 0; });
}

/// Checks a problem with transfers. Throws InputError if a buffer has gaps or if overlap_steps is not 0, because
/// transfers cannot be combined with these.
void check_copies(const PlanProblem& problem, const PlanOptions& options) {
  const auto has_gaps = [](const PlacementRules& rules) { return !rules.gaps.empty(); };
  if (std::ranges::any_of(problem.rules, has_gaps)) throw core::InputError("buffers of transfers cannot have gaps");
  if (options.overlap_steps > 0)
    throw core::InputError("a schedule with transfers cannot be planned for steps that overlap in time");
}

void check_rules(std::int32_t b, const core::Buffer& buffer, const PlacementRules& rules, std::int64_t alignment) {
  if (rules.alignment < 1 || rules.alignment > std::int64_t{1} << 30)
    fail(b, fmt::format("its alignment {} is not between 1 and 2^30 bytes", rules.alignment));
  if (rules.offset && (*rules.offset < 0 || *rules.offset > core::kSumLimit))
    fail(b, fmt::format("its fixed offset {} is not between 0 and 2^62", *rules.offset));
  if (rules.offset && *rules.offset % std::lcm(rules.alignment, alignment) != 0)
    fail(b, fmt::format("its fixed offset {} is not a multiple of its alignment {}", *rules.offset,
                        std::lcm(rules.alignment, alignment)));
  std::int64_t free_from = buffer.first + 1;
  for (const core::StepRange& gap : rules.gaps) {
    if (gap.first < free_from || gap.last < gap.first || gap.last >= buffer.last)
      fail(b, fmt::format("its gap of steps {} to {} does not lie inside its lifetime, behind the gap before it",
                          gap.first, gap.last));
    free_from = gap.last + 2;
  }
}

/// Gives access to takes_over and rules of each buffer, even if PlanProblem leaves these lists empty. Times are those
/// of timed_buffers().
class Given {
 public:
  explicit Given(const PlanProblem& problem) : problem_(problem), buffers_(timed_buffers(problem)) {
    if (!problem.takes_over.empty() && problem.takes_over.size() != problem.buffers.size())
      throw core::InputError("takes_over must be empty or have one entry a buffer");
    if (!problem.rules.empty() && problem.rules.size() != problem.buffers.size())
      throw core::InputError("rules must be empty or have one entry a buffer");
  }
  std::int32_t count() const { return static_cast<std::int32_t>(problem_.buffers.size()); }
  const core::Buffer& buffer(std::int32_t b) const { return buffers_[b]; }
  std::int32_t takes_over(std::int32_t b) const { return problem_.takes_over.empty() ? -1 : problem_.takes_over[b]; }
  const PlacementRules& rules(std::int32_t b) const { return problem_.rules.empty() ? none_ : problem_.rules[b]; }

 private:
  const PlanProblem& problem_;
  const std::vector<core::Buffer> buffers_;
  const PlacementRules none_;
};

/// Checks all buffers. Returns for each buffer the number of the buffer that takes over its storage, or -1.
std::vector<std::int32_t> successors(const Given& given, std::int64_t alignment) {
  std::vector<std::int32_t> next(static_cast<std::size_t>(given.count()), -1);
  for (std::int32_t b = 0; b < given.count(); ++b) {
    const core::Buffer& buffer = given.buffer(b);
    if (buffer.first < 0 || buffer.last < buffer.first || buffer.last > core::kSumLimit)
      fail(b, fmt::format("its lifetime {} to {} is not valid", buffer.first, buffer.last));
    if (buffer.size < 0) fail(b, fmt::format("its size {} is negative", buffer.size));
    if (buffer.size > core::kSumLimit) fail(b, "it has more than 2^62 bytes");
    check_rules(b, buffer, given.rules(b), alignment);
    const std::int32_t before = given.takes_over(b);
    if (before == -1) continue;
    if (before < 0 || before >= given.count() || before == b || next[before] != -1 ||
        given.buffer(before).last != buffer.first || given.buffer(before).first >= buffer.first)
      fail(b, fmt::format("it cannot take over the storage of buffer {}", before));
    next[before] = b;
  }
  return next;
}

void add_rules(Block& block, std::int32_t buffer, const PlacementRules& rules) {
  block.alignment = std::lcm(block.alignment, rules.alignment);
  if (block.alignment > std::int64_t{1} << 40)
    fail(buffer, "the alignments of the buffers that share its offset have no common multiple up to 2^40");
  if (rules.offset && block.fixed && *block.fixed != *rules.offset)
    fail(buffer, fmt::format("it takes over a storage at offset {}, but is fixed at {}", *block.fixed, *rules.offset));
  if (rules.offset) block.fixed = rules.offset;
  if (rules.hint && !block.hint) block.hint = rules.hint;
}

/// Returns the last step for which a buffer is reserved with PlanOptions::overlap_steps. `latest` is the latest step at
/// which a buffer starts, or continues behind a gap; later steps matter to no other buffer.
std::int64_t reserved_until(const core::Buffer& buffer, std::int64_t overlap_steps, std::int64_t latest) {
  return std::max(buffer.last, std::min(buffer.last + overlap_steps, latest));
}

void unite(std::vector<core::AddressRange>& ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::size_t kept = 0;
  for (const core::AddressRange& range : ranges) {
    if (kept > 0 && range.lower <= ranges[kept - 1].upper) {
      ranges[kept - 1].upper = std::max(ranges[kept - 1].upper, range.upper);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

}  // namespace

std::vector<core::Buffer> timed_buffers(const PlanProblem& problem) {
  std::vector<core::Buffer> buffers = problem.buffers;
  if (!has_copies(problem)) return buffers;
  for (core::Buffer& buffer : buffers) {
    buffer.first = buffer.first_moment();
    buffer.last = buffer.last_moment();
  }
  return buffers;
}

Instance::Instance(const PlanProblem& problem, const PlanOptions& options)
    : forbidden(problem.forbidden), overlap_steps(options.overlap_steps) {
  check_options(options);
  if (has_copies(problem)) check_copies(problem, options);
  const std::int64_t guard = core::align_up(options.guard_bytes, options.alignment);
  const Given given(problem);
  const std::vector<std::int32_t> next = successors(given, options.alignment);
  std::int64_t total = 0, latest = 0;
  for (std::int32_t b = 0; b < given.count(); ++b) {
    const std::vector<core::StepRange>& gaps = given.rules(b).gaps;
    latest = std::max({latest, given.buffer(b).first, gaps.empty() ? 0 : gaps.back().last + 1});
  }
  const auto add = [&](std::int64_t bytes) {
    if (bytes > core::kSumLimit - total) throw core::InputError("the buffers' sizes add up to more than 2^62 bytes");
    total += bytes;
  };
  block_of.assign(problem.buffers.size(), -1);
  for (std::int32_t b = 0; b < given.count(); ++b) {
    if (given.takes_over(b) >= 0) continue;
    Block block{static_cast<std::int32_t>(rectangles.size()), 0, options.alignment, {}, {}};
    std::int64_t most = 0;  // bytes of the largest buffer of the block so far
    for (std::int32_t c = b; c >= 0; c = next[c]) {
      const core::Buffer& buffer = given.buffer(c);
      const std::int64_t own = core::align_up(buffer.size, options.alignment) + guard;
      add(own);
      most = std::max(most, own);
      const std::int64_t size = options.overlap_steps > 0 ? most : own;
      std::int64_t first = buffer.first;
      for (const core::StepRange& gap : given.rules(c).gaps) {
        if (gap.last - gap.first < options.overlap_steps) continue;
        rectangles.push_back({first, gap.first - 1 + options.overlap_steps, size});
        first = gap.last + 1;
      }
      const std::int64_t last = next[c] >= 0 ? buffer.last : reserved_until(buffer, options.overlap_steps, latest);
      rectangles.push_back({first, last, size});
      add_rules(block, c, given.rules(c));
      steps = std::max(steps, last);
      block_of[c] = static_cast<std::int32_t>(blocks.size());
    }
    block.count = static_cast<std::int32_t>(rectangles.size()) - block.first_rectangle;
    if (block.fixed && *block.fixed % block.alignment != 0)
      fail(b, fmt::format("its fixed offset {} is not a multiple of its alignment {}", *block.fixed, block.alignment));
    if (block.fixed) add(*block.fixed);
    add(block.alignment - 1);  // rounding an offset up can add this much
    blocks.push_back(block);
  }
  for (const core::AddressRange& range : forbidden) {
    if (range.lower < 0 || range.upper < range.lower)
      throw core::InputError(
          fmt::format("the forbidden range of bytes {} to {} is not valid", range.lower, range.upper));
    add(range.upper - range.lower);
  }
  unite(forbidden);
}

Rectangle Instance::bounds(const Block& b) const {
  const std::span<const Rectangle> all = of(b);
  return {all.front().first, all.back().last, std::ranges::max(all, {}, &Rectangle::size).size};
}

std::vector<std::int64_t> Instance::load() const {
  std::vector<std::int64_t> delta(steps + 2, 0);
  for (const Block& block : blocks)
    for_each_change(of(block), [&](std::int64_t step, std::int64_t bytes) { delta[step] += bytes; });
  std::partial_sum(delta.begin(), delta.end(), delta.begin());
  delta.pop_back();
  return delta;
}

}  // namespace cairn::solvers::plan
