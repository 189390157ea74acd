// Searches exhaustively for a plan (explained in exact.h). A block is a group of buffers that share one offset. A
// section is a range of steps during which the same blocks are live. In a section, blocks are stacked upwards from the
// bottom to the address `low`, and downwards from the top to the address `high`. A block that is not placed yet is
// open; its possible offsets range from least_ to most_. A part is a set of open blocks that can be searched alone,
// because no other open block is live in its sections. An obstacle is a range of addresses that is forbidden or taken
// by a block with a fixed offset.

#include "cairn/solvers/plan/internal/exact/exact.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>

#include "cairn/solvers/plan/internal/packing/address_set.h"

namespace cairn::solvers::plan {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
// Weights in the choice of sections and blocks, tuned on problems in which plans leave no byte of the capacity unused.
constexpr double kContact = 7, kSlackWeight = 30, kOrderNoise = 0.65;
// Largest number of remembered parts that have no solution; each takes 16 bytes.
constexpr std::size_t kRemembered = std::size_t{1} << 18;

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::int64_t align_down(std::int64_t offset, std::int64_t alignment) {
  return offset >= 0 ? offset - offset % alignment : -1;
}

}  // namespace

Search::Search(const Sections& sections, std::int64_t capacity, int strategy)
    : sections_(sections), capacity_(capacity), strategy_(strategy), random_(static_cast<std::uint64_t>(strategy) + 1) {
  const std::size_t blocks = sections.movable.size();
  std::map<std::vector<std::int64_t>, std::int32_t> alike;
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto parts = sections.parts(static_cast<std::int32_t>(b));
    first_.push_back(parts.front().section);
    last_.push_back(parts.back().section);
    std::int64_t size = 0, smallest = kNone;
    std::vector<std::int64_t> shape = {sections.alignments[b]};
    for (const auto& part : parts) {
      size = std::max(size, part.size);
      smallest = std::min(smallest, part.size);
      shape.insert(shape.end(), {part.section, part.size});
    }
    size_.push_back(size);
    smallest_.push_back(smallest);
    twin_.push_back(alike.emplace(std::move(shape), static_cast<std::int32_t>(b)).first->second);
  }
  least_.assign(blocks, 0);
  most_.assign(blocks, capacity);
  hash_a_.assign(blocks, 0);
  hash_b_.assign(blocks, 0);
  offset_.assign(blocks, 0);
  placed_.assign(blocks, 0);
  low_.assign(sections.count, 0);
  high_.assign(sections.count, capacity);
  for (std::int32_t t = 0; t < sections.count; ++t) {
    slack_.push_back(capacity - sections.loads[t] - obstructed(t, 0, capacity));
    open_count_.push_back(static_cast<std::int64_t>(sections.covers(t).size()));
  }
  for (auto& dirty : is_dirty_) dirty.assign(sections.count, 0);
  // The table of a small problem is small, because a run can solve thousands of small problems.
  failed_.assign(std::min(kRemembered, std::bit_ceil(64 * blocks * blocks + 1)), {});
}

std::int64_t Search::obstructed(std::int32_t section, std::int64_t from, std::int64_t to) const {
  std::int64_t bytes = 0;
  const auto obstacles = sections_.obstacles(section);
  for (auto at = first_above(obstacles, from); at != obstacles.end() && at->lower < to; ++at)
    bytes += std::min(at->upper, to) - std::max(at->lower, from);
  return bytes;
}

void Search::undo(std::size_t mark) {
  while (changes_.size() > mark) {
    *changes_.back().where = changes_.back().was;
    changes_.pop_back();
  }
}

void Search::mark(std::int32_t section, Side side) {
  const auto s = static_cast<std::size_t>(side);
  if (is_dirty_[s][section]) return;
  is_dirty_[s][section] = 1;
  dirty_[s].push_back(section);
}

/// Returns whether block b can be stacked in the section part.section without unused bytes. At the bottom, its least
/// offset must be the section's `low`. At the top, it must end at the section's `high` at its largest offset.
bool Search::held(std::int32_t b, const Sections::Part& part, Side side) const {
  return side == Side::bottom ? low_[part.section] == least_[b] : high_[part.section] == most_[b] + part.size;
}

/// Marks the sections that block b touches on the given side, because their `low` (Side::bottom) or `high` (Side::top)
/// can change when the range of offsets of block b changes.
void Search::mark_held(std::int32_t b, Side side) {
  for (const auto& part : sections_.parts(b)) {
    if (held(b, part, side)) mark(part.section, side);
  }
}

/// Raises the least offset of the open block b to the first possible offset from `offset` up. Returns false if there is
/// none.
bool Search::raise(std::int32_t b, std::int64_t offset) {
  if (offset <= least_[b]) return true;
  const std::int64_t alignment = sections_.alignments[b];
  for (bool again = true; again && offset <= most_[b];) {
    again = false;
    if (alignment > 1 && offset % alignment != 0) offset += alignment - offset % alignment;
    if (!sections_.has_obstacles()) break;
    for (const auto& part : sections_.parts(b)) {
      const auto obstacles = sections_.obstacles(part.section);
      for (auto at = first_above(obstacles, offset); at != obstacles.end() && at->lower < offset + part.size; ++at) {
        offset = at->upper;
        again = true;
      }
    }
    work_ += static_cast<std::int64_t>(sections_.parts(b).size());
  }
  work_ += 2;
  if (offset > most_[b]) return false;
  mark_held(b, Side::bottom);
  set(least_[b], offset);
  rehash(b);
  return true;
}

/// Lowers the largest offset of the open block b to the first possible offset from `offset` down. Returns false if
/// there is none.
bool Search::lower(std::int32_t b, std::int64_t offset) {
  if (offset >= most_[b]) return true;
  const std::int64_t alignment = sections_.alignments[b];
  for (bool again = true; again && offset >= least_[b];) {
    again = false;
    offset = align_down(offset, alignment);
    if (!sections_.has_obstacles()) break;
    for (const auto& part : sections_.parts(b)) {
      const auto obstacles = sections_.obstacles(part.section);
      auto at =
          std::lower_bound(obstacles.begin(), obstacles.end(), offset + part.size,
                           [](const core::AddressRange& range, std::int64_t value) { return range.lower < value; });
      for (; at != obstacles.begin() && std::prev(at)->upper > offset; --at) {
        offset = std::prev(at)->lower - part.size;
        again = true;
      }
    }
    work_ += static_cast<std::int64_t>(sections_.parts(b).size());
  }
  work_ += 2;
  if (offset < least_[b]) return false;
  mark_held(b, Side::top);
  set(most_[b], offset);
  rehash(b);
  return true;
}

void Search::rehash(std::int32_t b) {
  const auto range =
      mix(static_cast<std::uint64_t>(least_[b]) * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(b)) ^
      static_cast<std::uint64_t>(most_[b]);
  set(hash_a_[b], static_cast<std::int64_t>(mix(range)));
  set(hash_b_[b], static_cast<std::int64_t>(mix(range + 0x632be59bd9b4e019ULL)));
}

Search::Key Search::key(std::size_t begin, std::size_t end) const {
  Key key;
  for (std::size_t i = begin; i < end; ++i) {
    key.a += static_cast<std::uint64_t>(hash_a_[open_[i]]);
    key.b += static_cast<std::uint64_t>(hash_b_[open_[i]]);
  }
  return key;
}

/// Returns whether block b would leave no byte unused in any of its sections. With Side::bottom, it must then touch the
/// `low` of each of its sections at its least offset. With Side::top, it must touch the `high` of each at its largest
/// offset.
bool Search::level(std::int32_t b, Side side) const {
  return std::ranges::all_of(sections_.parts(b), [&](const auto& part) { return held(b, part, side); });
}

/// Places block b at its least offset (Side::bottom) or its largest (Side::top). level(b, side) must be true.
void Search::place(std::int32_t b, Side side) {
  mark_held(b, side == Side::bottom ? Side::top : Side::bottom);
  set(placed_[b], 1);
  offset_[b] = side == Side::bottom ? least_[b] : most_[b];
  for (const auto& part : sections_.parts(b)) {
    if (side == Side::bottom) {
      set(low_[part.section], offset_[b] + part.size);
    } else {
      set(high_[part.section], offset_[b]);
    }
    set(open_count_[part.section], open_count_[part.section] - 1);
    mark(part.section, side);
  }
}

/// Adjusts the ranges of offsets of open blocks, and `low`, `high` and the slack of sections, until they agree. Starts
/// from the marked sections. Returns false if this proves that there is no solution.
bool Search::settle() {
  bool possible = true;
  for (std::size_t i = 0; possible && i < dirty_[0].size(); ++i) possible = settle(dirty_[0][i], Side::bottom);
  for (std::size_t i = 0; possible && i < dirty_[1].size(); ++i) possible = settle(dirty_[1][i], Side::top);
  forget_marks();
  return possible;
}

void Search::forget_marks() {
  for (std::size_t s = 0; s < 2; ++s) {
    for (const std::int32_t t : dirty_[s]) is_dirty_[s][t] = 0;
    dirty_[s].clear();
  }
}

bool Search::settle(std::int32_t t, Side side) {
  is_dirty_[static_cast<std::size_t>(side)][t] = 0;
  if (open_count_[t] == 0) return true;
  const auto covers = sections_.covers(t);
  work_ += static_cast<std::int64_t>(covers.size());
  if (side == Side::bottom) {
    std::int64_t lowest = kNone;
    for (const auto& [b, size] : covers) {
      if (placed_[b]) continue;
      if (least_[b] < low_[t] && !raise(b, low_[t])) return false;
      lowest = std::min(lowest, least_[b]);
    }
    if (lowest > low_[t]) {
      std::int64_t waste = lowest - low_[t];
      if (sections_.has_obstacles()) waste -= obstructed(t, low_[t], lowest);
      set(slack_[t], slack_[t] - waste);
      set(low_[t], lowest);
    }
  } else {
    std::int64_t highest = -1;
    for (const auto& [b, size] : covers) {
      if (placed_[b]) continue;
      if (most_[b] + size > high_[t] && !lower(b, high_[t] - size)) return false;
      highest = std::max(highest, most_[b] + size);
    }
    if (highest < high_[t]) {
      std::int64_t waste = high_[t] - highest;
      if (sections_.has_obstacles()) waste -= obstructed(t, highest, high_[t]);
      set(slack_[t], slack_[t] - waste);
      set(high_[t], highest);
    }
  }
  return slack_[t] >= 0;
}

/// Excludes an offset of block b that has failed: its least offset (Side::bottom) or its largest (Side::top). Also
/// excludes this offset for those of the open blocks open_[begin, end) that have the same alignment, sections and
/// sizes, if their ranges of offsets imply that they would fail, too. Returns false if a block has no possible offset
/// left.
bool Search::exclude(std::int32_t b, Side side, std::size_t begin, std::size_t end) {
  const std::int64_t least = least_[b], most = most_[b];
  for (std::size_t i = begin; i < end; ++i) {
    const std::int32_t twin = open_[i];
    if (twin_[twin] != twin_[b]) continue;
    if (side == Side::top) {
      if (most_[twin] == most && least_[twin] <= least && !lower(twin, most - 1)) return false;
      continue;
    }
    if (least_[twin] != least || most_[twin] < most) continue;
    // `support` is the lowest address at which another open block or an obstacle can end. The block `twin` must lie on
    // a block or an obstacle, so its offset cannot be lower than `support`.
    std::int64_t support = kNone;
    for (std::size_t j = begin; j < end; ++j) {
      const std::int32_t other = open_[j];
      if (other != twin && first_[other] <= last_[twin] && first_[twin] <= last_[other])
        support = std::min(support, least_[other] + smallest_[other]);
    }
    if (sections_.has_obstacles()) {
      for (const auto& part : sections_.parts(twin)) {
        for (const core::AddressRange& obstacle : sections_.obstacles(part.section))
          if (obstacle.upper > least) support = std::min(support, obstacle.upper);
      }
    }
    work_ += static_cast<std::int64_t>(end - begin) / 4;
    if (support == kNone || !raise(twin, std::max(support, least + 1))) return false;
  }
  return true;
}

bool Search::cut() {
  if (work_ >= work_limit_) is_cut_ = stopped_ = true;
  if (nodes_ >= node_limit_) is_cut_ = true;
  if (work_ >= next_check_) {
    next_check_ = work_ + 100'000;
    if (work_ > most_work_->load(std::memory_order_relaxed) || watch_->passed()) is_cut_ = stopped_ = true;
  }
  return is_cut_;
}

/// Divides the open blocks open_[begin, end), sorted by first section, into parts that share no section. Searches each
/// part on its own.
Search::Result Search::search_parts(std::size_t begin, std::size_t end) {
  struct Part {
    std::size_t begin, end;
  };
  std::vector<Part> parts;
  std::int32_t reach = -1;
  for (std::size_t i = begin; i < end; ++i) {
    if (first_[open_[i]] > reach) parts.push_back({i, i});
    parts.back().end = i + 1;
    reach = std::max(reach, last_[open_[i]]);
  }
  // The smallest part comes first, because a proof that it has no solution takes the least time.
  if (parts.size() > 1) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.end - a.begin < b.end - b.begin; });
  }
  for (const Part& part : parts) {
    if (const Result result = search_part(part.begin, part.end); result != Result::solved) return result;
  }
  return Result::solved;
}

Search::Result Search::search_part(std::size_t begin, std::size_t end) {
  const std::size_t mark = changes_.size();
  std::optional<Key> entry;
  const auto fail = [&] {
    undo(mark);
    if (entry) failed_[entry->a % failed_.size()] = *entry;
    return Result::failed;
  };
  for (;;) {
    ++nodes_;
    work_ += static_cast<std::int64_t>(end - begin) + 8;
    if (cut()) {
      undo(mark);
      return Result::cut;
    }
    const Key now = key(begin, end);
    if (failed_[now.a % failed_.size()] == now) return fail();
    if (!entry) entry = now;
    const Cell cell = pick_cell(begin, end);
    const std::int32_t b = pick_block(cell, begin, end);
    const std::size_t before = changes_.size(), stack = open_.size();
    place(b, cell.side);
    Result result = Result::failed;
    if (settle()) {
      for (std::size_t i = begin; i < end; ++i)
        if (open_[i] != b) open_.push_back(open_[i]);
      result = search_parts(stack, open_.size());
      open_.resize(stack);
    }
    if (result == Result::solved) return result;
    undo(result == Result::cut ? mark : before);
    if (result == Result::cut) return result;
    if (!exclude(b, cell.side, begin, end)) {
      forget_marks();
      return fail();
    }
    if (!settle()) return fail();
  }
}

/// Picks the byte about which the search decides next: the byte that the fewest of the open blocks open_[begin, end)
/// can use. Side::bottom stands for the byte at the section's `low`, Side::top for the byte just below its `high`.
Search::Cell Search::pick_cell(std::size_t begin, std::size_t end) {
  std::int32_t l = first_[open_[begin]], r = l;
  for (std::size_t i = begin; i < end; ++i) r = std::max(r, last_[open_[i]]);
  const auto width = static_cast<std::size_t>(r - l) + 1;
  work_ += static_cast<std::int64_t>(width);
  Cell best;
  double best_score = std::numeric_limits<double>::infinity();
  plateau_.resize(width);
  for (const Side side : {Side::bottom, Side::top}) {
    const auto level_at = [&](std::int32_t t) {
      if (open_count_[t] == 0) return kNone;
      return side == Side::bottom ? low_[t] : capacity_ - high_[t];
    };
    begin_.clear();
    valley_.clear();
    std::int64_t before = kNone;
    bool falls = true;  // whether this plateau (range of sections with equal `low`) is lower than the plateau before it
    for (std::int32_t t = l; t <= r; ++t) {
      const std::int64_t here = level_at(t);
      if (t == l || here != before) {
        if (t > l) valley_.push_back(falls && here > before);
        falls = t == l || here < before;
        begin_.push_back(t);
        before = here;
      }
      plateau_[static_cast<std::size_t>(t - l)] = static_cast<std::int32_t>(begin_.size()) - 1;
    }
    valley_.push_back(falls);
    count_.assign(width + 1, 0);
    uneven_.assign(width, 0);
    for (std::size_t i = begin; i < end; ++i) {
      const std::int32_t b = open_[i], from = first_[b] - l, to = last_[b] - l;
      if (sections_.plain(b)) {
        if (plateau_[from] != plateau_[to]) continue;
        if (side == Side::bottom ? least_[b] != low_[first_[b]] : most_[b] + size_[b] != high_[first_[b]]) continue;
        ++count_[from];
        --count_[to + 1];
      } else if (level(b, side)) {
        for (const auto& part : sections_.parts(b)) {
          ++count_[static_cast<std::size_t>(part.section - l)];
          --count_[static_cast<std::size_t>(part.section - l) + 1];
        }
      } else {
        for (const auto& part : sections_.parts(b)) {
          if (held(b, part, side)) uneven_[static_cast<std::size_t>(part.section - l)] = 1;
        }
      }
    }
    std::int32_t answers = 0;
    for (std::int32_t t = l; t <= r; ++t) {
      const auto i = static_cast<std::size_t>(t - l);
      answers += count_[i];
      if (answers == 0 || uneven_[i] || !valley_[plateau_[i]] || (side == Side::top && slack_[t] > 0)) continue;
      double score = answers;
      if (slack_[t] > 0) score += 1.5 + kSlackWeight * static_cast<double>(slack_[t]) / static_cast<double>(capacity_);
      if (noise_ > 0) score *= 1 + noise(noise_);
      if (score < best_score) {
        best_score = score;
        best = {t, side};
      }
    }
  }
  return best;
}

bool Search::touches(std::int32_t b, Cell cell) const {
  const auto parts = sections_.parts(b);
  const auto part = sections_.plain(b) && first_[b] <= cell.section && cell.section <= last_[b]
                        ? parts.begin() + (cell.section - first_[b])
                        : std::lower_bound(parts.begin(), parts.end(), cell.section,
                                           [](const Sections::Part& p, std::int32_t t) { return p.section < t; });
  return part != parts.end() && part->section == cell.section && held(b, *part, cell.side);
}

/// Returns the block that is to be placed next in a cell, which is the lowest or highest free byte of a section.
/// Returns -1 if none of the open blocks open_[begin, end) can cover that byte.
std::int32_t Search::pick_block(Cell cell, std::size_t begin, std::size_t end) {
  const auto level_at = [&](std::int32_t t) { return cell.side == Side::bottom ? low_[t] : capacity_ - high_[t]; };
  const std::int64_t floor = level_at(cell.section);
  std::int32_t from = cell.section, to = cell.section;
  while (from > 0 && open_count_[from - 1] > 0 && level_at(from - 1) == floor) --from;
  while (to + 1 < sections_.count && open_count_[to + 1] > 0 && level_at(to + 1) == floor) ++to;
  const std::int64_t left = from > 0 ? level_at(from - 1) - floor : -1;
  const std::int64_t right = to + 1 < sections_.count ? level_at(to + 1) - floor : -1;
  std::int32_t best = -1;
  double best_score = -1;
  for (std::size_t i = begin; i < end; ++i) {
    const std::int32_t b = open_[i];
    if (!touches(b, cell) || !level(b, cell.side)) continue;
    const double length = static_cast<double>(last_[b] - first_[b] + 1) / sections_.count;
    const double size = static_cast<double>(size_[b]) / static_cast<double>(capacity_);
    double score = order_ == 0 ? length : order_ == 1 ? length * size : order_ == 2 ? size : length + size;
    if (first_[b] == from) score *= kContact;
    if (last_[b] == to) score *= kContact;
    if (first_[b] == from && size_[b] == left) score *= kContact * kContact;
    if (last_[b] == to && size_[b] == right) score *= kContact * kContact;
    if (restarts_ > 0) score *= 1 + noise(kOrderNoise);
    if (score > best_score) {
      best_score = score;
      best = b;
    }
  }
  return best;
}

Verdict Search::run(std::int64_t work, const std::atomic<std::int64_t>& most, const core::Stopwatch& watch) {
  most_work_ = &most;
  watch_ = &watch;
  work_limit_ = work_ + work;
  stopped_ = false;
  if (restarts_ == 0 && !open_all()) return Verdict::impossible;
  const std::size_t start = changes_.size();
  while (!stopped_) {
    is_cut_ = false;
    order_ = static_cast<int>((restarts_ + strategy_) % 4);
    noise_ = restarts_ == 0 ? 0 : 1;
    // Most solutions are found within a few hundred nodes of the search tree, some within a few thousand. The limit on
    // nodes grows with every restart, so that the search is complete in the end.
    node_limit_ = nodes_ + static_cast<std::int64_t>(open_.size()) + (strategy_ % 2 == 0 ? 500 : 3000) + restarts_ / 8;
    const Result result = search_parts(0, open_.size());
    ++restarts_;
    if (result == Result::solved) return Verdict::fits;
    undo(start);
    if (result == Result::failed) return Verdict::impossible;
  }
  return Verdict::unknown;
}

/// Makes every block open, i.e. not placed. Returns false if this already proves that there is no plan.
bool Search::open_all() {
  for (std::int32_t t = 0; t < sections_.count; ++t) {
    if (slack_[t] < 0) return false;
  }
  for (std::size_t b = 0; b < least_.size(); ++b) {
    open_.push_back(static_cast<std::int32_t>(b));
    least_[b] = -1;
  }
  bool possible = true;
  for (const std::int32_t b : open_) {
    most_[b] = capacity_ + 1;
    possible = possible && raise(b, 0) && lower(b, capacity_ - size_[b]);
  }
  for (std::int32_t t = 0; t < sections_.count; ++t) {
    mark(t, Side::bottom);
    mark(t, Side::top);
  }
  return possible && settle();
}

}  // namespace cairn::solvers::plan
