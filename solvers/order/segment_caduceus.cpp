#include "cairn/solvers/order/internal/segment_caduceus.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include "cairn/core/error.h"

namespace cairn::solvers {
namespace {

constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::min() / 4;

}  // namespace

void SegmentCaduceus::clear() {
  staff_.clear();
  bend_segments_.clear();
  bends_.clear();
}

void SegmentCaduceus::index() {
  const auto staff = static_cast<Id>(staff_.size());
  segments_ = staff_;
  segments_.insert(segments_.end(), bend_segments_.begin(), bend_segments_.end());
  bend_of_.assign(segments_.size(), -1);
  Id id = staff;
  for (std::size_t b = 0; b < bends_.size(); ++b) {
    for (; id < staff + bends_[b].end; ++id) bend_of_[id] = static_cast<std::int32_t>(b);
  }
  ranked_.resize(bend_segments_.size());
  std::iota(ranked_.begin(), ranked_.end(), staff);
  std::stable_sort(ranked_.begin(), ranked_.end(),
                   [&](Id a, Id b) { return core::sorts_before(segments_[a], segments_[b]); });
  gap_.resize(segments_.size());
  low_.resize(segments_.size());
  high_.resize(segments_.size());
  first_leaf_.resize(segments_.size());
}

SegmentCaduceus::Part SegmentCaduceus::whole() const {
  const auto staff = static_cast<Id>(staff_.size());
  Part part{0, staff, {}, {}};
  Id begin = staff;
  for (const Bend& bend : bends_) {
    part.begin.push_back(begin);
    part.end.push_back(begin = staff + bend.end);
  }
  return part;
}

std::int64_t SegmentCaduceus::peak(std::span<const Id> order) const {
  std::int64_t bytes = 0, highest = 0;
  for (const Id id : order) {
    highest = std::max(highest, bytes + segments_[id].rise);
    bytes += segments_[id].change();
  }
  return highest;
}

std::vector<SegmentCaduceus::Id> SegmentCaduceus::optimal_order() {
  index();
  return optimal_order(whole());
}

void SegmentCaduceus::lay_out(const Part& part) {
  const auto in_part = [&](Id id) { return id >= part.begin[bend_of_[id]] && id < part.end[bend_of_[id]]; };
  // Places a gap: one for each segment that may come there, and one for the staff segment behind it.
  std::vector<std::int32_t> next(static_cast<std::size_t>(part.staff_end - part.staff_begin) + 2, 0);
  const auto slot = [&](std::int32_t gap) -> std::int32_t& { return next[gap - part.staff_begin]; };
  std::int32_t places = 0;
  const auto staff_count = static_cast<std::int32_t>(staff_.size());
  for (const Id id : ranked_) {
    if (!in_part(id)) continue;
    low_[id] = std::max(bends_[bend_of_[id]].first, part.staff_begin);
    high_[id] = std::min(bends_[bend_of_[id]].last, part.staff_end);
    first_leaf_[id] = places;
    if (places > std::numeric_limits<std::int32_t>::max() / 4 - staff_count)
      throw core::InputError("the bends' segments have more than 2^29 places between the nodes of the staff");
    places += high_[id] - low_[id] + 1;
    ++slot(low_[id]);
    if (high_[id] < part.staff_end) --slot(high_[id] + 1);
  }
  for (std::size_t g = 1; g < next.size(); ++g) next[g] += next[g - 1];
  next.back() = 0;
  std::int32_t begin = 0;
  for (std::int32_t& count : next) begin += std::exchange(count, begin) + 1;

  const std::int32_t leaf_count = begin;
  width_ = 1;
  while (width_ < leaf_count) width_ *= 2;
  tree_.assign(2 * static_cast<std::size_t>(width_), {0, kNothing});
  id_at_.assign(static_cast<std::size_t>(width_), -1);
  leaves_.resize(static_cast<std::size_t>(places));
  for (const Id id : ranked_) {
    if (!in_part(id)) continue;
    for (std::int32_t gap = low_[id]; gap <= high_[id]; ++gap) {
      const std::int32_t leaf = slot(gap)++;
      leaves_[first_leaf_[id] + gap - low_[id]] = leaf;
      id_at_[leaf] = id;
    }
    // As early as may be where it frees memory, as late where it takes some.
    gap_[id] = segments_[id].negative() ? low_[id] : high_[id];
    const std::int32_t leaf = leaves_[first_leaf_[id] + gap_[id] - low_[id]];
    tree_[width_ + leaf] = {segments_[id].change(), segments_[id].rise};
  }
  for (Id id = part.staff_begin; id < part.staff_end; ++id) {
    const std::int32_t leaf = slot(id)++;
    id_at_[leaf] = id;
    tree_[width_ + leaf] = {segments_[id].change(), segments_[id].rise};
  }
  for (std::int32_t i = width_ - 1; i > 0; --i) sum_up(i);
}

void SegmentCaduceus::sum_up(std::int32_t i) {
  const Sums &left = tree_[2 * i], &right = tree_[2 * i + 1];
  tree_[i] = {left.change + right.change, std::max(left.peak, left.change + right.peak)};
}

void SegmentCaduceus::place(Id id, std::int32_t gap, bool there) {
  std::int32_t i = width_ + leaves_[first_leaf_[id] + gap - low_[id]];
  tree_[i] = there ? Sums{segments_[id].change(), segments_[id].rise} : Sums{0, kNothing};
  for (i /= 2; i > 0; i /= 2) sum_up(i);
}

/// The segment at the first of the highest places.
SegmentCaduceus::Id SegmentCaduceus::highest() const {
  std::int32_t i = 1;
  std::int64_t wanted = tree_[1].peak;
  while (i < width_) {
    const Sums& left = tree_[2 * i];
    if (left.peak == wanted) {
      i = 2 * i;
    } else {
      wanted -= left.change;
      i = 2 * i + 1;
    }
  }
  return id_at_[i - width_];
}

/// Moves a segment that is too high, and those of its bend that must go along, to the next gap: later where it frees
/// memory, earlier where it takes some. False where that cannot be.
bool SegmentCaduceus::give_way(const Part& part, Id id) {
  const std::int32_t bend = bend_of_[id];
  if (bend < 0) return false;
  const bool negative = segments_[id].negative();
  const std::int32_t gap = gap_[id];
  const std::int32_t next = negative ? gap + 1 : gap - 1;
  if (next < low_[id] || next > high_[id]) return false;
  const std::int32_t step = negative ? 1 : -1;
  for (Id other = id; other >= part.begin[bend] && other < part.end[bend] && gap_[other] == gap; other += step) {
    // The others of its sign go along; one of the other sign stands in the way.
    if (segments_[other].negative() != negative) return false;
  }
  for (Id other = id; other >= part.begin[bend] && other < part.end[bend] && gap_[other] == gap; other += step) {
    moves_.emplace_back(other, gap);
    place(other, gap, false);
    place(other, next, true);
    gap_[other] = next;
  }
  return true;
}

std::vector<SegmentCaduceus::Id> SegmentCaduceus::optimal_order(const Part& part) {
  lay_out(part);
  for (bool improved = true; improved;) {
    moves_.clear();  // the checkpoint
    const std::int64_t threshold = tree_[1].peak;
    while (improved && tree_[1].peak >= threshold && threshold > kNothing / 2) improved = give_way(part, highest());
    if (threshold <= kNothing / 2) break;
  }
  for (auto move = moves_.rbegin(); move != moves_.rend(); ++move) gap_[move->first] = move->second;

  std::vector<std::vector<Id>> gaps(static_cast<std::size_t>(part.staff_end - part.staff_begin) + 1);
  for (const Id id : ranked_) {
    if (id >= part.begin[bend_of_[id]] && id < part.end[bend_of_[id]]) gaps[gap_[id] - part.staff_begin].push_back(id);
  }
  std::vector<Id> order;
  for (Id gap = part.staff_begin; gap <= part.staff_end; ++gap) {
    const auto& ids = gaps[gap - part.staff_begin];
    order.insert(order.end(), ids.begin(), ids.end());
    if (gap < part.staff_end) order.push_back(gap);
  }
  return order;
}

/// A cut of least memory among those of the part that hold `least`. At each staff position a bend stands at its lowest
/// valley, or where `least` has it already, or at its end if it must be done.
SegmentCaduceus::Position SegmentCaduceus::least_cut(const Part& part, const Position& least) const {
  const std::size_t positions = static_cast<std::size_t>(part.staff_end - least.staff) + 1;
  std::vector<std::int64_t> change(positions + 1, 0);  // of memory against the position before
  const auto from = [&](std::int32_t staff) -> std::int64_t& { return change[std::max(staff - least.staff, 0)]; };
  std::vector<Id> lowest(bends_.size());
  for (std::size_t b = 0; b < bends_.size(); ++b) {
    std::int64_t bytes = 0;
    Id id = least.at[b];
    for (; id < part.end[b] && segments_[id].negative(); ++id) bytes += segments_[id].change();
    lowest[b] = id;
    if (bends_[b].first <= part.staff_end) from(bends_[b].first) += bytes;
    std::int64_t rest = 0;
    for (; id < part.end[b]; ++id) rest += segments_[id].change();
    if (bends_[b].last + 1 <= part.staff_end) from(bends_[b].last + 1) += rest;
  }
  Position best = least;
  std::int64_t bytes = 0, best_bytes = std::numeric_limits<std::int64_t>::max();
  for (Id staff = least.staff; staff <= part.staff_end; ++staff) {
    if (staff > least.staff) bytes += segments_[staff - 1].change();
    bytes += change[staff - least.staff];
    if (bytes > best_bytes) continue;
    best_bytes = bytes;
    best.staff = staff;
  }
  for (std::size_t b = 0; b < bends_.size(); ++b) {
    if (best.staff > bends_[b].last) {
      best.at[b] = part.end[b];
    } else if (best.staff >= bends_[b].first) {
      best.at[b] = lowest[b];
    }
  }
  return best;
}

/// Algorithm 1, for a part that no cut of which has negative memory.
std::vector<SegmentCaduceus::Id> SegmentCaduceus::find_schedule(Part part) {
  std::vector<Id> result;
  for (;;) {
    const std::vector<Id> order = optimal_order(part);
    const std::int64_t highest = peak(order);
    if (highest == 0) {  // nothing but zeros
      result.insert(result.end(), order.begin(), order.end());
      return result;
    }
    Position reached = beginning(part);
    std::int64_t bytes = 0;
    for (const Id id : order) {
      (bend_of_[id] < 0 ? reached.staff : reached.at[bend_of_[id]]) = id + 1;
      if (bytes + segments_[id].rise == highest) break;
      bytes += segments_[id].change();
    }
    const Position cut = least_cut(part, reached);
    const auto in_cut = [&](Id id) { return id < (bend_of_[id] < 0 ? cut.staff : cut.at[bend_of_[id]]); };
    std::copy_if(order.begin(), order.end(), std::back_inserter(result), in_cut);
    part.staff_begin = cut.staff;
    part.begin = cut.at;
  }
}

/// Makes this a part of the original that begins where it begins, read backwards with all weights negated: what rose,
/// drops.
void SegmentCaduceus::mirror(const SegmentCaduceus& original, const Part& part) {
  struct Stretch : core::Segment {
    Id begin, end;  ///< of the original
  };
  clear();
  mirrored_.clear();
  const auto reversed = [&](Id id) {
    const core::Segment& segment = original.segments_[id];
    return Stretch{{segment.drop, segment.rise}, id, id + 1};
  };
  const auto add = [&](const Stretch& stretch) { mirrored_.emplace_back(stretch.begin, stretch.end); };
  for (Id id = part.staff_end; id-- > 0;) {
    add_staff(reversed(id));
    add(reversed(id));
  }
  std::vector<Stretch> backwards;
  for (std::size_t b = 0; b < original.bends_.size(); ++b) {
    // Backwards a segment of no change stands on the other side of the lowest valley, and may belong to the next one.
    backwards.clear();
    for (Id id = part.end[b]; id-- > part.begin[b];) {
      core::append_segment(backwards, reversed(id), [](Stretch& first, const Stretch& second) {
        static_cast<core::Segment&>(first) = core::joined(first, second);
        first.begin = second.begin;
      });
    }
    if (backwards.empty()) continue;
    const Bend& bend = original.bends_[b];
    add_bend(part.staff_end - std::min(bend.last, part.staff_end), part.staff_end - bend.first, backwards);
    for (const Stretch& stretch : backwards) add(stretch);
  }
  index();
}

std::vector<SegmentCaduceus::Id> SegmentCaduceus::dominant_order() {
  index();
  const Part all = whole();
  const Position cut = least_cut(all, beginning(all));
  const Part left{0, cut.staff, all.begin, cut.at};
  const Part right{cut.staff, all.staff_end, cut.at, all.end};
  std::vector<Id> order;
  if (left.staff_end > 0 || left.begin != left.end) {
    if (!mirror_) mirror_ = std::make_unique<SegmentCaduceus>();
    mirror_->mirror(*this, left);
    for (const Id id : mirror_->find_schedule(mirror_->whole())) {
      const auto [begin, end] = mirror_->mirrored_[id];
      for (Id original = end; original-- > begin;) order.push_back(original);
    }
    std::reverse(order.begin(), order.end());
  }
  const std::vector<Id> rest = find_schedule(right);
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

}  // namespace cairn::solvers
