#include "cairn/solvers/plan/internal/incremental.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "cairn/core/error.h"
#include "cairn/solvers/plan/internal/packer.h"
#include "cairn/solvers/plan/internal/rules.h"

namespace cairn::solvers::plan {
namespace {

constexpr std::int64_t kTimeLimit = std::int64_t{1} << 60, kByteLimit = std::int64_t{1} << 62;
constexpr std::size_t kMostAtTop = 64;
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::int64_t IncrementalPlan::Slot::size() const {
  std::int64_t size = 0;
  for (const Rectangle& rectangle : rectangles) size = std::max(size, rectangle.size);
  return size;
}

IncrementalPlan::IncrementalPlan(const PlanProblem& problem, const PlanOptions& options, std::int64_t spacing)
    : alignment_(options.alignment), occupancy_({}), live_({}) {
  const PlanSolution solution = greedy_plan(problem, options);
  guard_ = core::align_up(options.guard_bytes, alignment_);
  Instance instance(problem, options);
  if (spacing < 1 || instance.steps > kTimeLimit / spacing)
    throw core::InputError(
        fmt::format("a spacing of {} takes the labels of {} steps over 2^60", spacing, instance.steps));
  forbidden_ = std::move(instance.forbidden);
  block_of_ = std::move(instance.block_of);
  for (const Block& block : instance.blocks) {
    Slot slot{{instance.begin(block), instance.end(block)}, block.alignment, block.fixed, 0};
    for (Rectangle& rectangle : slot.rectangles) {
      rectangle.first *= spacing;
      rectangle.last *= spacing;
      bytes_ += rectangle.size;
    }
    slots_.push_back(std::move(slot));
  }
  touched_.resize(slots_.size());
  for (std::size_t b = 0; b < block_of_.size(); ++b) slots_[block_of_[b]].offset = solution.plan.buffers[b].offset;
  count_before_ = slots_.size();
  rebuild();
}

std::int64_t IncrementalPlan::lower_bound() const {
  std::int64_t height = max_live();
  for (const core::AddressRange& range : forbidden_) {
    if (range.lower < height) height += range.upper - range.lower;
  }
  return height;
}

std::vector<IncrementalPlan::BlockId> IncrementalPlan::apply(const Edit& edit) {
  // All is checked before anything changes.
  std::vector<BlockId> named = edit.removed;
  for (const auto& [block, spec] : edit.changed) named.push_back(block);
  for (const BlockId block : named) check(block);
  std::sort(named.begin(), named.end());
  const auto twice = std::adjacent_find(named.begin(), named.end());
  if (twice != named.end()) throw core::InputError(fmt::format("block {} is changed twice at once", *twice));
  std::vector<std::pair<BlockId, Slot>> defined;
  auto next = static_cast<BlockId>(slots_.size());
  for (const auto& [block, spec] : edit.changed) defined.emplace_back(block, slot_of(spec));
  for (const Spec& spec : edit.inserted) defined.emplace_back(next++, slot_of(spec));
  std::int64_t bytes = bytes_;
  for (const auto& [block, slot] : defined) {
    for (const Rectangle& rectangle : slot.rectangles) {
      if (rectangle.size > kByteLimit - bytes)
        throw core::InputError("the blocks' sizes add up to more than 2^62 bytes");
      bytes += rectangle.size;
    }
  }

  if (++changes_ > static_cast<std::int64_t>(slots_.size() / 8) && occupancy_.crowd() > 8 * Occupancy::kSectionTimes)
    rebuild();
  forget();
  count_before_ = slots_.size();
  slots_.resize(next);
  touched_.resize(next);
  for (const BlockId block : edit.removed) define(block, {});
  std::vector<BlockId> loose, fixed;
  for (auto& [block, slot] : defined) {
    (slot.fixed ? fixed : loose).push_back(block);
    define(block, std::move(slot));
  }
  try {
    for (const BlockId block : fixed) place_fixed(block, loose);
  } catch (const core::InputError&) {
    undo();
    throw;
  }
  sort_by_length(loose);
  for (const BlockId block : loose) place_below(block, kNoLimit);
  // Where the top could not be lowered before it is tried again only if something next to it has changed.
  std::int64_t first = kTimeLimit, last = -kTimeLimit;
  const auto extend = [&](const Slot& slot) {
    if (slot.rectangles.empty()) return;
    first = std::min(first, slot.rectangles.front().first);
    last = std::max(last, slot.rectangles.back().last);
  };
  for (const auto& [block, slot] : before_) {
    extend(slot);
    extend(slots_[block]);
  }
  constexpr int kMostRounds = 4;
  stuck_before_ = stuck_;
  stuck_ = stuck_ && first <= last && !at_top(first, last);
  for (int round = 0; round < kMostRounds && !stuck_ && occupancy_.height() > lower_bound(); ++round)
    stuck_ = !lower_top();
  height_ = occupancy_.height();
  std::vector<BlockId> inserted(edit.inserted.size());
  std::iota(inserted.begin(), inserted.end(), static_cast<BlockId>(count_before_));
  return inserted;
}

void IncrementalPlan::undo() {
  for (const auto& [block, slot] : before_) {
    if (slots_[block].offset >= 0) unplace(block);
  }
  for (auto& [block, slot] : before_) {
    const std::int64_t offset = std::exchange(slot.offset, -1);
    define(block, std::move(slot));
    if (offset >= 0) place(block, offset);
  }
  forget();
  slots_.resize(count_before_);
  touched_.resize(count_before_);
  height_ = occupancy_.height();
  stuck_ = stuck_before_;
}

/// Ends a change: what follows is another.
void IncrementalPlan::forget() {
  for (const auto& [block, slot] : before_) touched_[block] = false;
  before_.clear();
}

void IncrementalPlan::replan(const core::Limit& limit) {
  forget();
  count_before_ = slots_.size();
  std::vector<std::int64_t> times;
  for (const Slot& slot : slots_) {
    for (const Rectangle& rectangle : slot.rectangles) {
      times.push_back(rectangle.first);
      times.push_back(rectangle.last);
    }
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto rank = [&](std::int64_t time) {
    return std::lower_bound(times.begin(), times.end(), time) - times.begin();
  };
  Instance instance({}, {});
  instance.forbidden = forbidden_;
  instance.steps = static_cast<std::int64_t>(times.size());
  for (const Slot& slot : slots_) {
    if (slot.rectangles.empty()) continue;
    instance.blocks.push_back({static_cast<std::int32_t>(instance.rectangles.size()),
                               static_cast<std::int32_t>(slot.rectangles.size()),
                               slot.alignment,
                               slot.fixed,
                               {}});
    for (const Rectangle& r : slot.rectangles) instance.rectangles.push_back({rank(r.first), rank(r.last), r.size});
  }
  core::Stopwatch watch(limit);
  const std::int64_t bound = height_bound(instance, max_live());
  const Packing packing = pack(instance, bound, bound, instance.load(), watch);
  std::size_t at = 0;
  for (Slot& slot : slots_) {
    if (!slot.rectangles.empty()) slot.offset = packing.offsets[at++];
  }
  rebuild();
}

/// Cuts the time axis anew, into sections of equally many times.
void IncrementalPlan::rebuild() {
  std::vector<std::int64_t> times;
  std::vector<BlockId> by_offset;
  for (std::size_t b = 0; b < slots_.size(); ++b) {
    if (slots_[b].rectangles.empty()) continue;
    by_offset.push_back(static_cast<BlockId>(b));
    for (const Rectangle& rectangle : slots_[b].rectangles) {
      times.push_back(rectangle.first);
      times.push_back(rectangle.last);
    }
  }
  std::sort(times.begin(), times.end());
  std::sort(by_offset.begin(), by_offset.end(),
            [&](BlockId a, BlockId b) { return slots_[a].offset < slots_[b].offset; });
  occupancy_ = Occupancy(times);
  live_ = LiveBytes(times);
  for (const BlockId b : by_offset) {
    live_.add(slots_[b].rectangles);
    for (const Rectangle& rectangle : slots_[b].rectangles) occupancy_.insert(rectangle, slots_[b].offset, b);
  }
  height_ = occupancy_.height();
  stuck_ = false;
  changes_ = 0;
}

IncrementalPlan::Slot IncrementalPlan::slot_of(const Spec& spec) const {
  if (spec.rectangles.empty()) throw core::InputError("a block without rectangles");
  if (spec.alignment < 1 || spec.alignment > std::int64_t{1} << 30)
    throw core::InputError(fmt::format("alignment {} is not between 1 and 2^30 bytes", spec.alignment));
  Slot slot{spec.rectangles, std::lcm(spec.alignment, alignment_), spec.offset, -1};
  if (slot.fixed && (*slot.fixed < 0 || *slot.fixed > kByteLimit / 2 || *slot.fixed % slot.alignment != 0))
    throw core::InputError(
        fmt::format("fixed offset {} is not between 0 and 2^61, or no multiple of {}", *slot.fixed, slot.alignment));
  const Rectangle* before = nullptr;
  for (Rectangle& rectangle : slot.rectangles) {
    if (rectangle.first < -kTimeLimit || rectangle.last > kTimeLimit || rectangle.last < rectangle.first)
      throw core::InputError(fmt::format("times {} to {} are no lifetime", rectangle.first, rectangle.last));
    if (before != nullptr && (rectangle.first < before->last || rectangle.last <= before->last))
      throw core::InputError(
          fmt::format("times {} to {} do not follow those before them", rectangle.first, rectangle.last));
    if (rectangle.size < 0 || rectangle.size > kByteLimit / 2)
      throw core::InputError(fmt::format("size {} is not between 0 and 2^61", rectangle.size));
    rectangle.size = core::align_up(rectangle.size, alignment_) + guard_;
    before = &rectangle;
  }
  return slot;
}

void IncrementalPlan::check(BlockId block) const {
  if (block < 0 || block >= static_cast<BlockId>(slots_.size()) || slots_[block].rectangles.empty())
    throw core::InputError(fmt::format("there is no block {}", block));
}

/// Remembers what a block was before the change.
void IncrementalPlan::touch(BlockId block) {
  if (touched_[block]) return;
  touched_[block] = true;
  before_.emplace_back(block, slots_[block]);
}

/// Gives a block its rectangles, or takes it out. It is not placed afterwards.
void IncrementalPlan::define(BlockId block, Slot slot) {
  touch(block);
  if (slots_[block].offset >= 0) unplace(block);
  live_.remove(slots_[block].rectangles);
  for (const Rectangle& rectangle : slots_[block].rectangles) bytes_ -= rectangle.size;
  slots_[block] = std::move(slot);
  live_.add(slots_[block].rectangles);
  for (const Rectangle& rectangle : slots_[block].rectangles) bytes_ += rectangle.size;
}

void IncrementalPlan::place(BlockId block, std::int64_t offset) {
  slots_[block].offset = offset;
  for (const Rectangle& rectangle : slots_[block].rectangles) occupancy_.insert(rectangle, offset, block);
}

void IncrementalPlan::unplace(BlockId block) {
  for (const Rectangle& rectangle : slots_[block].rectangles) occupancy_.erase(rectangle, slots_[block].offset, block);
  slots_[block].offset = -1;
}

/// The longest first, of equals the largest.
void IncrementalPlan::sort_by_length(std::vector<BlockId>& blocks) const {
  std::sort(blocks.begin(), blocks.end(), [&](BlockId a, BlockId b) {
    return std::tuple(slots_[a].length(), slots_[a].size(), b) > std::tuple(slots_[b].length(), slots_[b].size(), a);
  });
}

bool IncrementalPlan::place_below(BlockId block, std::int64_t limit) {
  const Slot& slot = slots_[block];
  const std::int64_t offset = occupancy_.lowest_free(slot.rectangles, slot.alignment, forbidden_, limit);
  if (offset >= 0) place(block, offset);
  return offset >= 0;
}

/// What lies where it is fixed has to go elsewhere.
void IncrementalPlan::place_fixed(BlockId block, std::vector<BlockId>& evicted) {
  const std::int64_t offset = *slots_[block].fixed;
  for (const Rectangle& rectangle : slots_[block].rectangles) {
    const std::int64_t end = offset + rectangle.size;
    for (const core::AddressRange& range : forbidden_) {
      if (rectangle.size > 0 && offset < range.upper && end > range.lower)
        throw core::InputError(fmt::format("block {} is fixed at bytes {} to {}, but {} to {} are forbidden", block,
                                           offset, end, range.lower, range.upper));
    }
    const auto met = occupancy_.owners(rectangle, offset, end, std::numeric_limits<std::size_t>::max());
    for (const BlockId other : *met) {
      if (slots_[other].fixed)
        throw core::InputError(fmt::format("blocks {} and {} are fixed at offsets that overlap", std::min(block, other),
                                           std::max(block, other)));
      touch(other);
      unplace(other);
      evicted.push_back(other);
    }
  }
  place(block, offset);
}

/// Whether a block that ends at the top lives within the closed range of times.
bool IncrementalPlan::at_top(std::int64_t first, std::int64_t last) const {
  const std::int64_t height = occupancy_.height();
  const auto met = occupancy_.owners({first, last, 0}, height - 1, height, kMostAtTop);
  return !met || !met->empty();
}

/// Moves all blocks that end at the top further down.
bool IncrementalPlan::lower_top() {
  const std::int64_t height = occupancy_.height();
  const auto highest = occupancy_.owners({-kTimeLimit, kTimeLimit, 0}, height - 1, height, kMostAtTop);
  return highest && std::all_of(highest->begin(), highest->end(), [&](BlockId block) {
           return slots_[block].offset + slots_[block].size() < height || lower(block, height - 1);
         });
}

/// Places a block that ends above the limit so that it does not, if need be with its neighbours below.
bool IncrementalPlan::lower(BlockId block, std::int64_t limit) {
  constexpr std::size_t kMostMet = 600, kMostMoved = 48;
  if (slots_[block].fixed) return false;
  touch(block);
  const std::int64_t offset = slots_[block].offset;
  unplace(block);
  if (place_below(block, limit)) return true;
  place(block, offset);
  std::size_t before = 0;
  for (const std::int64_t part : {1, 3, 8, 20}) {
    const std::int64_t size = slots_[block].size();
    const std::int64_t from = size > offset / part ? 0 : offset - part * size;
    std::vector<BlockId> moved;
    for (const Rectangle& rectangle : slots_[block].rectangles) {
      const auto met = occupancy_.owners(rectangle, from, kNoLimit, kMostMet);
      if (!met) return false;
      for (const BlockId b : *met) {
        if (!slots_[b].fixed) moved.push_back(b);
      }
    }
    std::sort(moved.begin(), moved.end());
    moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
    if (moved.size() > kMostMoved) return false;
    if (moved.size() == before) continue;
    before = moved.size();
    if (place_again(std::move(moved), limit)) return true;
  }
  return false;
}

/// Places blocks anew so that none ends above the limit, or leaves them where they were: longest first, and when one
/// finds no room it is first the next time.
bool IncrementalPlan::place_again(std::vector<BlockId> blocks, std::int64_t limit) {
  constexpr int kTries = 4;
  std::vector<std::pair<BlockId, std::int64_t>> offsets;
  for (const BlockId block : blocks) {
    touch(block);
    offsets.emplace_back(block, slots_[block].offset);
    unplace(block);
  }
  // Down into holes that have come to be, in the order in which they lie.
  std::sort(offsets.begin(), offsets.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = offsets[i].first;
  for (int i = 0; i < kTries; ++i) {
    const auto failed =
        std::find_if(blocks.begin(), blocks.end(), [&](BlockId block) { return !place_below(block, limit); });
    if (failed == blocks.end()) return true;
    for (auto placed = blocks.begin(); placed != failed; ++placed) unplace(*placed);
    if (i == 0) {
      sort_by_length(blocks);
    } else {
      std::rotate(blocks.begin(), failed, failed + 1);
    }
  }
  for (const auto& [block, offset] : offsets) place(block, offset);
  return false;
}

}  // namespace cairn::solvers::plan
