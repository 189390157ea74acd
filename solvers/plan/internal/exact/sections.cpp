// Divides the time axis into sections (sections.h), ranges of steps during which the same blocks are live. A block is a
// group of buffers that share one offset. It consists of rectangles, each a range of steps and a range of addresses.

#include "cairn/solvers/plan/internal/exact/sections.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace cairn::solvers::plan {
namespace {

using Cover = Sections::Cover;

/// Returns whether `b` contains every block of `a` with at least its size in `a`. Both lists are sorted by block.
bool within(const std::vector<Cover>& a, const std::vector<Cover>& b) {
  std::size_t at = 0;
  for (const Cover& cover : a) {
    while (at < b.size() && b[at].block < cover.block) ++at;
    if (at == b.size() || b[at].block != cover.block || b[at].size < cover.size) return false;
  }
  return true;
}

struct Event {
  std::int64_t step;
  bool start;
  std::int32_t rectangle;
};

std::vector<Event> events_of(const Instance& instance) {
  std::vector<Event> events;
  for (const Block& block : instance.blocks) {
    for (const Rectangle& rectangle : instance.of(block)) {
      if (rectangle.size == 0) continue;
      const auto id = static_cast<std::int32_t>(&rectangle - instance.rectangles.data());
      events.push_back({rectangle.first, true, id});
      events.push_back({rectangle.last + 1, false, id});
    }
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.step != b.step ? a.step < b.step : a.rectangle < b.rectangle;
  });
  return events;
}

/// Returns the blocks of the live rectangles with their sizes. If two rectangles of a block are live, because one
/// buffer takes over the storage of the other, the larger size counts.
std::vector<Cover> covers_of(const Instance& instance, const std::vector<std::int32_t>& live) {
  std::vector<Cover> covers;
  for (const std::int32_t r : live) {
    const auto block = std::upper_bound(instance.blocks.begin(), instance.blocks.end(), r,
                                        [](std::int32_t id, const Block& b) { return id < b.first_rectangle; }) -
                       instance.blocks.begin() - 1;
    covers.push_back({static_cast<std::int32_t>(block), instance.rectangles[r].size});
  }
  std::sort(covers.begin(), covers.end(),
            [](const Cover& a, const Cover& b) { return a.block != b.block ? a.block < b.block : a.size > b.size; });
  covers.erase(
      std::unique(covers.begin(), covers.end(), [](const Cover& a, const Cover& b) { return a.block == b.block; }),
      covers.end());
  return covers;
}

/// Returns the live blocks of each section that is kept. A section is left out if all its blocks are live in the next
/// section or in the last section that was kept. Returns nothing if the lists and the forbidden ranges, which count
/// once per section, would have more than `most` entries.
std::optional<std::vector<std::vector<Cover>>> kept_sections(const Instance& instance, std::int64_t most) {
  const std::vector<Event> events = events_of(instance);
  std::vector<std::vector<Cover>> kept;
  std::vector<std::int32_t> live;
  std::int64_t entries = 0;
  for (std::size_t at = 0; at < events.size();) {
    const std::int64_t step = events[at].step;
    for (; at < events.size() && events[at].step == step; ++at) {
      if (events[at].start) {
        live.push_back(events[at].rectangle);
      } else {
        live.erase(std::find(live.begin(), live.end(), events[at].rectangle));
      }
    }
    if (at < events.size() && std::all_of(live.begin(), live.end(), [&](std::int32_t r) {
          return instance.rectangles[r].last >= events[at].step;
        })) {
      continue;
    }
    std::vector<Cover> now = covers_of(instance, live);
    if (!kept.empty() && within(now, kept.back())) continue;
    while (!kept.empty() && within(kept.back(), now)) kept.pop_back();
    entries += static_cast<std::int64_t>(now.size());
    if (entries > most) return std::nullopt;
    kept.push_back(std::move(now));
  }
  const auto forbidden = static_cast<std::int64_t>(instance.forbidden.size());
  if (entries + forbidden * static_cast<std::int64_t>(kept.size()) > most) return std::nullopt;
  return kept;
}

}  // namespace

Sections::Sections(const Instance& instance, std::int64_t most) {
  const auto kept = kept_sections(instance, most);
  if (!kept) return;
  count = static_cast<std::int32_t>(kept->size());
  std::vector<std::int32_t> index(instance.blocks.size(), -1);
  for (const auto& section : *kept) {
    for (const Cover& cover : section) {
      const Block& block = instance.blocks[cover.block];
      if (block.fixed || index[cover.block] >= 0) continue;
      index[cover.block] = static_cast<std::int32_t>(movable.size());
      movable.push_back(cover.block);
      alignments.push_back(block.alignment);
    }
  }

  std::vector<std::vector<Part>> parts(movable.size());
  cover_begin_ = obstacle_begin_ = {0};
  for (std::int32_t t = 0; t < count; ++t) {
    std::vector<core::AddressRange> obstacles = instance.forbidden;
    std::int64_t load = 0;
    for (const Cover& cover : (*kept)[t]) {
      if (const std::int32_t b = index[cover.block]; b >= 0) {
        parts[b].push_back({t, cover.size});
        covers_.push_back({b, cover.size});
        load += cover.size;
      } else {
        const std::int64_t offset = *instance.blocks[cover.block].fixed;
        obstacles.push_back({offset, offset + cover.size});
      }
    }
    std::sort(obstacles.begin(), obstacles.end());
    loads.push_back(load);
    obstacles_.insert(obstacles_.end(), obstacles.begin(), obstacles.end());
    cover_begin_.push_back(static_cast<std::int64_t>(covers_.size()));
    obstacle_begin_.push_back(static_cast<std::int64_t>(obstacles_.size()));
  }
  part_begin_ = {0};
  for (const auto& list : parts) {
    bool plain = true;
    for (std::size_t i = 1; i < list.size(); ++i)
      plain = plain && list[i].size == list[0].size && list[i].section == list[i - 1].section + 1;
    plain_.push_back(plain);
    parts_.insert(parts_.end(), list.begin(), list.end());
    part_begin_.push_back(static_cast<std::int64_t>(parts_.size()));
  }
}

}  // namespace cairn::solvers::plan
