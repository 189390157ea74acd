// Keeps track of how many bytes are in memory at each place, i.e. position, of an EditableSchedule. Places are grouped
// into blocks of 2^block_bits_ places. The bytes at a place are the place's entry of memory_ plus the entry of lifted_
// of its block, so that an edit can change all places of a block at once. The maximum of a block is recomputed only if
// it is asked for and the block has changed.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/saturating.h"

namespace cairn::core {

void EditableSchedule::add_memory(Place first, Place last, std::int64_t bytes) {
  if (first > last || bytes == 0) return;
  const std::size_t from = block(first), to = block(last);
  const auto add = [&](Place begin, Place end) {
    for (Place i = begin; i < end; ++i) memory_[i] += bytes;
    stale_[block(begin)] = kStale;
    touch(block(begin));
  };
  if (from == to) return add(first, last + 1);
  add(first, static_cast<Place>((from + 1) << block_bits_));
  std::int64_t* const lifted = lifted_.data();
  for (std::size_t b = from + 1; b < to; ++b) lifted[b] += bytes;
  touch(from, to);
  add(static_cast<Place>(to << block_bits_), last + 1);
}

std::int64_t EditableSchedule::top(std::size_t block) const {
  if ((stale_[block] & kTopStale) != 0) {
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(block << block_bits_);
    top_[block] = *std::max_element(begin, begin + (std::ptrdiff_t{1} << block_bits_));
    stale_[block] &= static_cast<std::uint8_t>(~kTopStale);
  }
  return top_[block] + lifted_[block];
}

std::int64_t EditableSchedule::max(Place first, Place last) const {
  const Place size = 1 << block_bits_;
  std::int64_t most = std::numeric_limits<std::int64_t>::min() / 2;
  while (first <= last) {
    const bool whole = first % size == 0 && last - first >= size - 1;
    most = std::max(most, whole ? top(block(first)) : during(first));
    first += whole ? size : 1;
  }
  return most;
}

EditableSchedule::Occurrence EditableSchedule::peak_step() const {
  const Occurrence last = previous(end_);
  if (last == kNone) return end_;
  const std::int64_t highest = max(0, place(last));
  std::size_t b = 0;
  while (b < block(place(last)) && top(b) < highest) ++b;
  auto p = static_cast<Place>(b << block_bits_);
  while (during(p) < highest) ++p;
  return at_[occupied_from(p)];
}

/// Marks the blocks from `first` to `last`, inclusive, as touched: their entries of block_excess_ may be outdated. The
/// entry of a block is the sum of the excess of its steps. If the memory of a step is above ceiling_, its excess is the
/// number of bytes above ceiling_ plus charge_; otherwise it is 0.
void EditableSchedule::touch(std::size_t first, std::size_t last) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  for (std::size_t w = first / 64; w <= last / 64; ++w) {
    touched_[w] |=
        (w == first / 64 ? kAll << (first & 63) : kAll) & (w == last / 64 ? kAll >> (63 - (last & 63)) : kAll);
  }
}

void EditableSchedule::set_ceiling(std::int64_t bytes, std::int64_t charge) {
  // Limit on the bits of one step's excess, so that sums over all steps of a schedule do not overflow.
  constexpr int kMostBits = 40;
  ceiling_ = bytes;
  charge_ = charge;
  std::int64_t total = 0;
  for (const Node& node : nodes_) total = saturating_add(total, node.output + std::max<std::int64_t>(node.drop, 0));
  excess_shift_ = std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(total))) - kMostBits);
  touch(0, block_excess_.size() - 1);
}

/// Calls visit() with the entry of memory_ of every step in the block. Leaves out the place of end_, which is not a
/// step.
template <class Visit>
void EditableSchedule::for_each_step(std::size_t block, const Visit& visit) const {
  const auto begin = static_cast<Place>(block << block_bits_), end = static_cast<Place>((block + 1) << block_bits_);
  for (Place i = begin; i < end; i += 64) {
    std::uint64_t word = occupied_[static_cast<std::size_t>(i) / 64];
    if (place(end_) / 64 == i / 64) word &= ~(std::uint64_t{1} << (place(end_) & 63));
    for (; word != 0; word &= word - 1) visit(memory_[i + std::countr_zero(word)]);
  }
}

std::int64_t EditableSchedule::find_excess(std::size_t block) const {
  if (ceiling_ == std::numeric_limits<std::int64_t>::max()) return 0;
  const std::int64_t ceiling = ceiling_ - lifted_[block];
  StepSum& steps = sums_[block];
  std::int64_t sum = 0;
  const auto add = [&](std::int64_t memory) { sum += memory > ceiling ? memory - ceiling + charge_ : 0; };
  const auto add_shifted = [&](std::int64_t memory) {
    if (memory > ceiling) sum += ((memory - ceiling) >> excess_shift_) + 1 + (charge_ >> excess_shift_);
  };
  if ((stale_[block] & kSumStale) != 0) {
    stale_[block] &= static_cast<std::uint8_t>(~kSumStale);
    steps = {};
    for_each_step(block, [&](std::int64_t memory) {
      steps.least = std::min(steps.least, memory);
      steps.most = std::max(steps.most, memory);
      if (excess_shift_ > 0) return;
      ++steps.count;
      steps.bytes += memory;
      add(memory);
    });
    if (excess_shift_ == 0) return sum;
  }
  if (steps.most <= ceiling) return 0;
  if (excess_shift_ > 0) {
    for_each_step(block, add_shifted);
  } else if (steps.least > ceiling) {
    sum = steps.bytes + steps.count * (charge_ - ceiling);
  } else {
    for_each_step(block, add);
  }
  return sum;
}

std::int64_t EditableSchedule::excess() const {
  for (std::size_t w = 0; w < touched_.size(); ++w) {
    for (std::uint64_t word = std::exchange(touched_[w], 0); word != 0; word &= word - 1) {
      const std::size_t b = w * 64 + static_cast<std::size_t>(std::countr_zero(word));
      const std::int64_t sum = find_excess(b);
      excess_ += sum - block_excess_[b];
      block_excess_[b] = sum;
    }
  }
  return excess_;
}

EditableSchedule::Occurrence EditableSchedule::step_above_ceiling(Place from) const {
  if (excess() == 0) return kNone;
  const auto scan = [&](Place begin, Place end) -> Occurrence {
    while (begin < end) {
      if (block_excess_[block(begin)] == 0) {
        begin = static_cast<Place>((block(begin) + 1) << block_bits_);
      } else if (at_[begin] != kNone && during(begin) > ceiling_) {
        return at_[begin];
      } else {
        ++begin;
      }
    }
    return kNone;
  };
  const Occurrence found = scan(from, place(end_));
  return found != kNone ? found : scan(0, from);
}

/// Updates memory after an edit has changed where the lifetime of an output of o ends. Before the edit, the lifetime
/// ended at `old_last_use`.
void EditableSchedule::change_life(Occurrence o, std::int32_t output, Place old_last_use) {
  const Place now = last_use(o, output);
  const std::int64_t bytes = values_[nodes_[node(o)].value_begin + output].bytes;
  if (now > old_last_use) add_memory(old_last_use + 1, now, bytes);
  if (now < old_last_use) add_memory(now + 1, old_last_use, -bytes);
}

/// Stores where the lifetimes of the outputs of o end. After an edit, change_lives() compares the new ends with the
/// stored ones.
void EditableSchedule::note_last_uses(Occurrence o) {
  last_uses_.clear();
  if (o == kNone) return;
  for (std::int32_t k = 0; k < output_count(node(o)); ++k) last_uses_.push_back(last_use(o, k));
}

void EditableSchedule::change_lives(Occurrence o) {
  for (std::size_t k = 0; k < last_uses_.size(); ++k) change_life(o, static_cast<std::int32_t>(k), last_uses_[k]);
}

}  // namespace cairn::core
