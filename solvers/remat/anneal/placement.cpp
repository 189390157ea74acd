// Stores the addresses of the values of a schedule while the schedule is edited (placement.h). An occurrence is one
// step of the schedule. Keys stand for times: they ascend along the schedule, with unused numbers between them. A
// rectangle is the lifetime and the addresses of one output or scratch. A shelf stores the rectangles that begin in a
// certain range of addresses.

#include "cairn/solvers/remat/anneal/placement.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

namespace cairn::solvers {

using core::EditableSchedule;
using core::NodeId;

Placement::Placement(const core::Graph& graph, std::int64_t capacity, std::uint64_t seed)
    : graph_(graph), capacity_(capacity), random_(seed) {
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (std::int32_t k = 0; k < rect_count(v); ++k) unit_ = std::gcd(unit_, size(v, k));
  }
  unit_ = std::max<std::int64_t>(unit_, 1);
}

std::int32_t Placement::rect_count(NodeId v) const { return graph_.output_count(v) + (graph_.scratch(v) > 0 ? 1 : 0); }

std::int64_t Placement::size(NodeId v, std::int32_t k) const {
  return k < graph_.output_count(v) ? graph_.value_size(graph_.value({v, k})) : graph_.scratch(v);
}

void Placement::add_rects(const EditableSchedule& schedule, Occurrence o) {
  const auto index = static_cast<std::size_t>(o);
  if (keys_.size() <= index) {
    keys_.resize(index + 1, kNoKey);
    first_rect_.resize(index + 1, kNoRect);
    touched_.resize(index + 1, 0);
  }
  if (first_rect_[index] != kNoRect || o == schedule.end()) return;
  first_rect_[index] = static_cast<Rect>(owner_.size());
  owner_.resize(owner_.size() + static_cast<std::size_t>(rect_count(schedule.node(o))), o);
  slots_.resize(owner_.size());
  pooled_.resize(owner_.size(), 0);
}

/// Returns the lifetime of the k-th output of occurrence o, or of its scratch if k is the number of outputs. Sets only
/// `first` and `last` of the result; `bottom` and `top` are 0. The result is empty if o was dropped.
Placement::Place Placement::life(const EditableSchedule& schedule, Occurrence o, std::int32_t k) const {
  if (schedule.place(o) < 0) return {};
  const bool output = k < graph_.output_count(schedule.node(o));
  return {keys_[o], keys_[output ? schedule.at(schedule.last_use(o, k)) : o] + 1, 0, 0};
}

// --- The next functions store rectangles and find addresses.

Placement::Place Placement::at(Rect r) const {
  const Slot slot = slots_[r];
  return slot.shelf < 0 ? Place{} : shelves_[slot.shelf].items[slot.index].place;
}

void Placement::put(Rect r, const Place& p) {
  if (p.empty()) return take(r);
  const auto index = static_cast<std::int32_t>(p.bottom / shelf_bytes_);
  if (slots_[r].shelf != index) {
    take(r);
    slots_[r] = {index, static_cast<std::int32_t>(shelves_[index].items.size())};
    shelves_[index].items.push_back({p, r});
  } else {
    shelves_[index].items[slots_[r].index].place = p;
  }
  shelves_[index].reach = std::max(shelves_[index].reach, p.top);
}

void Placement::take(Rect r) {
  const Slot slot = std::exchange(slots_[r], {});
  if (slot.shelf < 0) return;
  Shelf& shelf = shelves_[slot.shelf];
  const Item& last = shelf.items.back();
  if (last.rect != r) {
    slots_[last.rect].index = slot.index;
    shelf.items[slot.index] = last;
  }
  shelf.items.pop_back();
  if (shelf.items.empty()) shelf.reach = 0;
}

template <class Visit>
void Placement::for_each_conflict(const Place& p, Rect but, const Visit& visit) const {
  const auto end = static_cast<std::size_t>((p.top - 1) / shelf_bytes_) + 1;
  work_ += 2 + static_cast<std::int64_t>(end / 32);
  for (std::size_t i = 0; i < end; ++i) {
    if (shelves_[i].reach <= p.bottom) continue;
    for (const Item& item : shelves_[i].items) {
      if (item.place.meets(p) && item.rect != but) visit(item);
    }
  }
}

Placement::Sum Placement::sum(const Place& p, Rect but) const {
  Sum all;
  if (p.empty()) return all;
  for_each_conflict(p, but, [&](const Item& item) {
    const Place& other = item.place;
    const auto keys = static_cast<double>(std::min(p.last, other.last) - std::max(p.first, other.first));
    const auto bytes = static_cast<double>(std::min(p.top, other.top) - std::max(p.bottom, other.bottom));
    all.overlap += keys * bytes;
    ++all.conflicts;
  });
  return all;
}

void Placement::pool(Rect r) {
  if (std::exchange(pooled_[r], 1) == 0) pool_.push_back(r);
}

void Placement::change(Rect r, const Place& p) {
  const Place before = at(r);
  const Sum old = sum(before, r), now = sum(p, r);
  changes_.push_back({r, before});
  put(r, p);
  overlap_ += now.overlap - old.overlap;
  conflicts_ += now.conflicts - old.conflicts;
  if (now.conflicts > 0) pool(r);
}

/// Computes overlap_ and conflicts_ anew from all rectangles.
void Placement::count() {
  overlap_ = 0;
  conflicts_ = 0;
  for (Rect r = 0; r < static_cast<Rect>(owner_.size()); ++r) {
    const Sum with_others = sum(at(r), r);
    overlap_ += with_others.overlap / 2;
    conflicts_ += with_others.conflicts;
    if (with_others.conflicts > 0) pool(r);
  }
  conflicts_ /= 2;
}

/// Finds an address for a rectangle with the times of p and a height of p.top - p.bottom bytes. Looks at the gaps
/// between the values that are in memory at the same time. Usually chooses the smallest gap that is large enough,
/// sometimes a random one. If no gap is large enough, chooses one of the largest gaps: the one where the rectangle has
/// the least overlap with other rectangles.
std::int64_t Placement::room_for(Rect r, const Place& p) {
  const std::int64_t bytes = p.bytes();
  work_ += 16;
  constexpr std::int64_t kShelves = 64;
  around_.clear();
  const auto all = static_cast<std::int64_t>(shelves_.size());
  const std::int64_t first = all <= kShelves ? 0 : below(all - kShelves + 1),
                     last = std::min<std::int64_t>(all, first + kShelves);
  for (std::int64_t s = first; s < last; ++s) {
    const Shelf& shelf = shelves_[static_cast<std::size_t>(s)];
    const std::size_t begin = around_.size();
    for (const Item& item : shelf.items) {
      if (item.place.lives_with(p) && item.rect != r) around_.emplace_back(item.place.bottom, item.place.top);
    }
    for (std::size_t i = begin + 1; i < around_.size(); ++i) {
      for (std::size_t k = i; k > begin && around_[k] < around_[k - 1]; --k) std::swap(around_[k], around_[k - 1]);
    }
  }
  const std::int64_t end = std::min(capacity_, last * shelf_bytes_);
  around_.emplace_back(end, end);
  work_ += static_cast<std::int64_t>(around_.size()) / 4;

  constexpr int kMostWide = 6;
  // Sizes and addresses of the largest gaps, none of which is large enough.
  std::array<std::pair<std::int64_t, std::int64_t>, kMostWide> wide;
  int wide_count = 0;
  std::int64_t free = first * shelf_bytes_, found = 0, tightest = capacity_ + 1;
  std::int64_t fitting = 0;
  const bool any = random_.uniform() < 0.3;
  // One random bit for each gap says whether the rectangle lies at the bottom or at the top of the gap.
  const std::uint64_t sides = random_.next();
  int gaps = 0;
  for (const auto& range : around_) {
    const std::int64_t gap = range.first - free;
    if (gap > 0) {
      const std::int64_t offset = (sides >> (++gaps & 63) & 1) != 0 ? range.first - bytes : free;
      if (gap >= bytes) {
        ++fitting;
        if (any ? below(fitting) == 0 : gap < tightest) {
          tightest = gap;
          found = offset;
        }
      } else if (fitting == 0) {
        int k = wide_count;
        if (wide_count < kMostWide) {
          ++wide_count;
        } else {
          k = static_cast<int>(std::min_element(wide.begin(), wide.end()) - wide.begin());
          if (wide[k].first > gap) k = -1;
        }
        if (k >= 0) wide[k] = {gap, std::clamp<std::int64_t>(offset, 0, capacity_ - bytes)};
      }
    }
    free = std::max(free, range.second);
  }
  if (fitting > 0) return found;
  if (wide_count == 0) return p.bottom;
  double least = -1;
  for (int k = 0; k < wide_count; ++k) {
    const double overlap = sum({p.first, p.last, wide[k].second, wide[k].second + bytes}, r).overlap;
    if (least >= 0 && overlap >= least) continue;
    least = overlap;
    found = wide[k].second;
  }
  return found;
}

// --- The next functions assign keys.

void Placement::lay_out_keys(const EditableSchedule& schedule) {
  const Key spacing = kLastKey / (schedule.length() + 2);
  spacing_ = spacing;
  Key key = spacing;
  for (Occurrence o = schedule.first(); o != schedule.end(); o = schedule.next(o), key += spacing) keys_[o] = key;
  keys_[schedule.end()] = key;
  for (Rect r = 0; r < static_cast<Rect>(owner_.size()); ++r) {
    Place p = at(r);
    if (p.empty()) continue;
    const Place now = life(schedule, owner_[r], r - first_rect_[owner_[r]]);
    p.first = now.first;
    p.last = now.last;
    put(r, p);
  }
}

/// Gives keys to inserted occurrences, evenly spaced between the keys of their neighbours. Sets crowded_ if there are
/// not enough keys between two neighbours.
void Placement::give_keys(const EditableSchedule& schedule) {
  for (const auto& change : key_changes_) {
    Occurrence first = change.first;
    if (keys_[first] != kNoKey || schedule.place(first) < 0) continue;
    Key low = 0;
    std::int32_t count = 1;
    for (Occurrence o = schedule.previous(first); o != EditableSchedule::kNone; o = schedule.previous(o), ++count) {
      if (keys_[o] != kNoKey) {
        low = keys_[o];
        break;
      }
      first = o;
    }
    Occurrence end = schedule.next(change.first);
    for (; keys_[end] == kNoKey; end = schedule.next(end)) ++count;
    const Key step = (keys_[end] - low) / (count + 1);
    crowded_ = crowded_ || step == 0;
    for (Occurrence o = first; o != end; o = schedule.next(o)) keys_[o] = low += step;
  }
}

// --- The next functions record, try and undo moves.

void Placement::assign(const EditableSchedule& schedule, std::span<const std::int64_t> offsets) {
  constexpr std::size_t kItems = 8;  // average number of items of a shelf
  owner_.clear();
  slots_.clear();
  pooled_.clear();
  keys_.clear();
  first_rect_.clear();
  touched_.clear();
  pool_.clear();
  touched_list_.clear();
  for (Occurrence o = 0; o < schedule.occurrence_limit(); ++o) add_rects(schedule, o);
  const auto shelves = static_cast<std::int64_t>(owner_.size() / kItems + 1);
  shelf_bytes_ = (capacity_ / shelves / unit_ + 1) * unit_;
  shelves_.assign(static_cast<std::size_t>(shelves), {});
  lay_out_keys(schedule);
  std::size_t next = 0;
  for (Occurrence o = schedule.first(); o != schedule.end(); o = schedule.next(o)) {
    for (std::int32_t k = 0; k < rect_count(schedule.node(o)); ++k) {
      const std::int64_t bytes = size(schedule.node(o), k);
      if (bytes == 0) continue;
      Place p = life(schedule, o, k);
      p.bottom = std::min(offsets[next++], capacity_ - bytes);
      p.top = p.bottom + bytes;
      put(first_rect_[o] + k, p);
    }
  }
  count();
  commit();
}

std::vector<std::int64_t> Placement::offsets(const EditableSchedule& schedule) const {
  std::vector<std::int64_t> found;
  for (Occurrence o = schedule.first(); o != schedule.end(); o = schedule.next(o)) {
    for (std::int32_t k = 0; k < rect_count(schedule.node(o)); ++k) {
      if (size(schedule.node(o), k) > 0) found.push_back(at(first_rect_[o] + k).bottom);
    }
  }
  return found;
}

void Placement::touch(Occurrence o) {
  if (o != EditableSchedule::kNone && std::exchange(touched_[o], 1) == 0) touched_list_.push_back(o);
}

/// Marks as touched all occurrences whose lifetimes can change when o is inserted or dropped.
void Placement::touch_read(const EditableSchedule& schedule, Occurrence o) {
  touch(o);
  touch(schedule.previous_of_node(o));
  const auto inputs = static_cast<std::int32_t>(graph_.inputs(schedule.node(o)).size());
  for (std::int32_t k = 0; k < inputs; ++k) touch(schedule.source(o, k));
}

void Placement::inserted(const EditableSchedule& schedule, Occurrence o, Occurrence like) {
  add_rects(schedule, o);
  key_changes_.emplace_back(o, std::exchange(keys_[o], kNoKey));
  if (like != EditableSchedule::kNone) likes_.emplace_back(o, like);
  touch_read(schedule, o);
}

void Placement::dropping(const EditableSchedule& schedule, Occurrence o) { touch_read(schedule, o); }

void Placement::settle(const EditableSchedule& schedule) {
  give_keys(schedule);
  if (crowded_) return;
  for (const auto& [o, like] : likes_) {
    if (schedule.place(o) < 0 || schedule.place(like) >= 0) continue;
    for (std::int32_t k = 0; k < rect_count(schedule.node(o)); ++k) {
      const Rect from = first_rect_[like] + k, to = first_rect_[o] + k;
      const Place there = at(from);
      if (there.empty() || !at(to).empty()) continue;
      Place p = life(schedule, o, k);
      p.bottom = there.bottom;
      p.top = there.top;
      change(from, {});
      change(to, p);
    }
  }
  // Rectangles that exist already get their new times first, because the addresses for new rectangles are chosen by
  // these times.
  for (const bool fresh : {false, true}) {
    for (const Occurrence o : touched_list_) {
      for (std::int32_t k = 0; k < rect_count(schedule.node(o)); ++k) {
        const Rect r = first_rect_[o] + k;
        const Place before = at(r);
        Place p = life(schedule, o, k);
        if (before.empty() != fresh || (p.first == before.first && p.last == before.last)) continue;
        if (!p.empty()) {
          const std::int64_t bytes = size(schedule.node(o), k);
          if (bytes == 0) continue;
          p.bottom = before.bottom;
          p.top = p.bottom + bytes;
          if (fresh) p.move_to(room_for(r, p));
        }
        change(r, p);
      }
    }
  }
}

void Placement::repair(int tries) {
  for (; tries > 0 && conflicts_ > conflicts_before_; --tries) {
    Rect r = changes_[static_cast<std::size_t>(below(static_cast<std::int64_t>(changes_.size())))].rect;
    const Rect other = partner(r);
    if (other == kNoRect) continue;
    if (random_.uniform() < 0.5) r = other;
    Place p = at(r);
    p.move_to(room_for(r, p));
    change(r, p);
  }
}

void Placement::relocate(Rect r) {
  constexpr int kTries = 20;
  Place p = at(r);
  if (p.empty()) return;
  if (random_.uniform() < 0.3) {
    p.move_to(room_for(r, p));
  } else {
    Place other;
    for (int i = 0; i < kTries; ++i) {
      other = at(static_cast<Rect>(below(static_cast<std::int64_t>(owner_.size()))));
      if (other.lives_with(p)) break;
      other = {};
    }
    if (other.empty()) return;
    p.move_to(random_.uniform() < 0.5 ? other.top : other.bottom - p.bytes());
    if (p.bottom < 0 || p.top > capacity_) return;
  }
  change(r, p);
}

bool Placement::straighten(bool from_top) {
  work_ += straightening() / 2;
  line_.clear();
  for (const Shelf& shelf : shelves_) line_.insert(line_.end(), shelf.items.begin(), shelf.items.end());
  if (from_top) {
    for (Item& item : line_) item.place.move_to(capacity_ - item.place.top);
  }
  std::ranges::sort(line_, {},
                    [](const Item& item) { return std::tuple(item.place.bottom, item.place.top, item.rect); });
  for (std::size_t i = 0; i < line_.size(); ++i) {
    Place& p = line_[i].place;
    std::int64_t bottom = 0;
    for (std::size_t k = 0; k < i; ++k) {
      const Place& below = line_[k].place;
      if (below.lives_with(p)) bottom = std::max(bottom, below.top);
    }
    p.move_to(bottom);
    if (p.top > capacity_) return false;
  }
  for (Item& item : line_) {
    if (from_top) item.place.move_to(capacity_ - item.place.top);
    put(item.rect, item.place);
  }
  overlap_ = 0;
  conflicts_ = 0;
  commit();
  return true;
}

void Placement::commit() {
  for (const Occurrence o : touched_list_) touched_[o] = 0;
  touched_list_.clear();
  likes_.clear();
  changes_.clear();
  key_changes_.clear();
  if (conflicts_ == 0) overlap_ = 0;
  overlap_before_ = overlap_;
  conflicts_before_ = conflicts_;
}

void Placement::undo(const EditableSchedule& schedule) {
  for (; !changes_.empty(); changes_.pop_back()) put(changes_.back().rect, changes_.back().before);
  for (; !key_changes_.empty(); key_changes_.pop_back()) keys_[key_changes_.back().first] = key_changes_.back().second;
  overlap_ = overlap_before_;
  conflicts_ = conflicts_before_;
  if (std::exchange(crowded_, false)) {
    lay_out_keys(schedule);
    count();
  }
  commit();
}

Placement::Rect Placement::conflicting() {
  constexpr int kTries = 4;
  for (int i = 0; i < kTries && conflicts_ > 0; ++i) {
    if (pool_.empty()) count();
    if (pool_.empty()) return kNoRect;
    const auto index = static_cast<std::size_t>(below(static_cast<std::int64_t>(pool_.size())));
    const Rect r = pool_[index];
    if (partner(r) != kNoRect) return r;
    pooled_[r] = 0;
    pool_[index] = pool_.back();
    pool_.pop_back();
  }
  return kNoRect;
}

Placement::Rect Placement::partner(Rect r) {
  const Place p = at(r);
  if (p.empty()) return kNoRect;
  Rect found = kNoRect;
  std::int64_t met = 0;
  for_each_conflict(p, r, [&](const Item& item) {
    if (below(++met) == 0) found = item.rect;
  });
  return found;
}

}  // namespace cairn::solvers
