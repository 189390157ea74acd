// Checks plans independently of the planner, with which this file shares no code.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <vector>

#include "cairn/core/plan.h"
#include "cairn/core/support/sum_limit.h"

namespace cairn::core {
namespace {

/// Returns the text of an output, such as "3", or "3[1]" if it is not the first output of its node.
std::string output_text(OutputRef ref) {
  return ref.output == 0 ? fmt::format("{}", ref.node) : fmt::format("{}[{}]", ref.node, ref.output);
}

std::string label(const Buffer& b) {
  return fmt::format("{} of node {} at steps {}..{}, bytes [{}, {})", b.scratch ? "scratch" : "buffer",
                     output_text({b.node, b.output}), b.first, b.last, b.offset, b.offset + b.size);
}

/// Returns whether b takes over c's storage correctly: b starts at the step at which c ends, and at the same offset.
/// The offset must be the same because an in-place kernel reads and writes element by element.
bool takes_over(const Buffer& b, const Buffer& c) {
  return !b.scratch && !c.scratch && c.evict < 0 && b.fetch < 0 && b.alias_of != OutputRef() &&
         b.alias_of == OutputRef(c.node, c.output) && c.last == b.first && c.offset == b.offset;
}

bool overlap(const Buffer& a, const Buffer& b) { return a.offset < b.offset + b.size && b.offset < a.offset + a.size; }

struct Placed {
  const BufferSpec* spec;
  std::int64_t offset, size;
};

std::string label(const Placed& p) {
  return fmt::format("buffer '{}' at times {} to {}, bytes [{}, {})", p.spec->id, p.spec->lower, p.spec->upper,
                     p.offset, p.offset + p.size);
}

std::string check_offset(const Placed& p, std::int64_t alignment) {
  if (p.offset < 0 || p.offset > kSumLimit || p.size < 0 || p.size > kSumLimit)
    return fmt::format("buffer '{}' of {} bytes at offset {} does not lie between 0 and 2^62", p.spec->id, p.size,
                       p.offset);
  for (const std::int64_t a : {alignment, p.spec->alignment}) {
    if (a < 1 || p.offset % a != 0) return fmt::format("{} is not aligned to {}", label(p), a);
  }
  return {};
}

std::string check_forbidden(const std::vector<Placed>& placed, std::span<const AddressRange> forbidden) {
  std::vector<AddressRange> ranges(forbidden.begin(), forbidden.end());
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.lower < b.lower; });
  // Replaces range r by the range with the largest upper end among ranges 0 to r. A buffer that ends above the lower
  // ends of these ranges overlaps one of them exactly if it overlaps the range with the largest upper end.
  for (std::size_t r = 1; r < ranges.size(); ++r) {
    if (ranges[r - 1].upper > ranges[r].upper) ranges[r] = ranges[r - 1];
  }
  for (const Placed& p : placed) {
    const auto behind = std::partition_point(ranges.begin(), ranges.end(),
                                             [&](const AddressRange& r) { return r.lower < p.offset + p.size; });
    if (p.size == 0 || behind == ranges.begin()) continue;
    const AddressRange& range = *std::prev(behind);
    if (range.upper <= p.offset) continue;
    if (range.lower == range.upper) return fmt::format("{} lies across the wall at {}", label(p), range.lower);
    return fmt::format("{} lies on the forbidden bytes [{}, {})", label(p), range.lower, range.upper);
  }
  return {};
}

/// Returns a text that names two buffers that overlap while both hold bytes, or an empty text if there are none.
std::string check_apart(const std::vector<Placed>& placed) {
  struct Event {
    std::int64_t time;
    bool starts;
    const Placed* placed;
  };
  std::vector<Event> events;
  for (const Placed& p : placed) {
    if (p.size == 0) continue;
    events.push_back({p.spec->lower, true, &p});
    for (const auto& [lower, upper] : p.spec->gaps) {
      events.push_back({lower, false, &p});
      events.push_back({upper, true, &p});
    }
    events.push_back({p.spec->upper, false, &p});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : a.starts < b.starts; });
  std::map<std::int64_t, const Placed*> live;  // the live buffers by offset; no two overlap
  for (const Event& event : events) {
    const Placed& p = *event.placed;
    if (!event.starts) {
      live.erase(p.offset);
      continue;
    }
    const auto above = live.lower_bound(p.offset);
    const Placed* hit = nullptr;
    if (above != live.end() && above->first < p.offset + p.size) hit = above->second;
    if (above != live.begin() && std::prev(above)->first + std::prev(above)->second->size > p.offset)
      hit = std::prev(above)->second;
    if (hit != nullptr)
      return fmt::format("{} and {} hold bytes at time {} and overlap", label(*hit), label(p), event.time);
    live.emplace(p.offset, &p);
  }
  return {};
}

}  // namespace

std::string check_overlaps(const Plan& plan) {
  for (const Buffer& b : plan.buffers) {
    if (b.size < 0 || b.offset < 0 || b.offset > plan.bytes - b.size) {
      return fmt::format("{} lies outside the arena of {} bytes", label(b), plan.bytes);
    }
    if (plan.alignment < 1 || b.offset % plan.alignment != 0) {
      return fmt::format("{} is not aligned to {}", label(b), plan.alignment);
    }
    if (b.last < b.first) return fmt::format("{} ends before it starts", label(b));
  }
  std::vector<const Buffer*> by_start, by_end;
  for (const Buffer& b : plan.buffers) {
    if (b.size > 0) by_start.push_back(&b);
  }
  by_end = by_start;
  std::sort(by_start.begin(), by_start.end(),
            [](const Buffer* a, const Buffer* b) { return a->first_moment() < b->first_moment(); });
  std::sort(by_end.begin(), by_end.end(),
            [](const Buffer* a, const Buffer* b) { return a->last_moment() < b->last_moment(); });
  // Live buffers by offset. No two of them overlap, except an in-place output and the input whose storage it takes
  // over.
  std::multimap<std::int64_t, const Buffer*> live;
  auto ended = by_end.begin();
  for (const Buffer* b : by_start) {
    for (; (*ended)->last_moment() < b->first_moment(); ++ended) {
      const auto [from, to] = live.equal_range((*ended)->offset);
      live.erase(std::find_if(from, to, [&](const auto& entry) { return entry.second == *ended; }));
    }
    auto near = live.lower_bound(b->offset);
    if (near != live.begin()) near = live.lower_bound(std::prev(near)->first);
    for (; near != live.end() && near->first < b->offset + b->size; ++near) {
      const Buffer* c = near->second;
      if (overlap(*b, *c) && !takes_over(*b, *c) && !takes_over(*c, *b)) {
        return fmt::format("{} and {} are live at once and overlap", label(*c), label(*b));
      }
    }
    live.emplace(b->offset, b);
  }
  return {};
}

namespace {

/// Returns what is wrong with the plan of the copies on the host, or an empty text. Compares the plan with the
/// lifetimes of the copies, which it computes directly from the transfers.
std::string check_host(const Graph& graph, const Schedule& schedule, const Plan& plan) {
  const Transfers& transfers = schedule.transfers;
  if (plan.host_buffers.size() != transfers.evicts.size()) {
    return fmt::format("{} buffers on the host, but the schedule has {} evicts", plan.host_buffers.size(),
                       transfers.evicts.size());
  }
  for (std::size_t e = 0; e < transfers.evicts.size(); ++e) {
    const Buffer& b = plan.host_buffers[e];
    const Evict& evict = transfers.evicts[e];
    std::int64_t last = evict.start;
    for (const Fetch& fetch : transfers.fetches) {
      if (fetch.evict == static_cast<std::int32_t>(e)) last = std::max(last, fetch.finish - 1);
    }
    const bool named = b.evict == static_cast<std::int32_t>(e) && graph.value({b.node, b.output}) == evict.value;
    if (!named) return fmt::format("buffer {} on the host is not that of evict {}", e, e);
    if (b.first != evict.start || b.last != last) {
      return fmt::format("on the host, {} must live from step {} to {}", label(b), evict.start, last);
    }
    if (b.size < graph.value_size(evict.value)) return fmt::format("on the host, {} is too small", label(b));
  }
  const Plan host{.bytes = plan.host_bytes, .alignment = plan.alignment, .buffers = plan.host_buffers};
  const std::string wrong = check_overlaps(host);
  return wrong.empty() ? wrong : "on the host, " + wrong;
}

}  // namespace

std::string check_plan(const Graph& graph, const Schedule& schedule, const Plan& plan) {
  std::map<std::tuple<std::int64_t, bool, std::int32_t, std::int32_t>, const Buffer*> at;
  for (const Buffer& b : plan.buffers) {
    if (!at.emplace(std::tuple(b.first, b.scratch, b.output, b.fetch), &b).second) {
      return fmt::format("{} is a duplicate in its step", label(b));
    }
  }
  std::size_t expected = 0;
  const std::vector<Lifetime> lives = lifetimes(graph, schedule);
  std::vector<const Buffer*> latest(graph.value_count(), nullptr);
  for (const Lifetime& life : lives) {
    const ValueId x = graph.value({life.node, life.output});
    const auto demand = [&](bool scratch, std::int64_t size, std::int64_t last) -> std::string {
      if (size <= 0) return {};
      ++expected;
      const auto found = at.find({life.first, scratch, scratch ? 0 : life.output, life.fetch});
      if (found == at.end()) {
        return fmt::format("step {} of node {} has no {}", life.first,
                           output_text({life.node, scratch ? 0 : life.output}), scratch ? "scratch" : "buffer");
      }
      const Buffer& b = *found->second;
      if (b.node != life.node) return fmt::format("{}: step {} runs node {}", label(b), life.first, life.node);
      if (b.last != last) return fmt::format("{} must live until step {}", label(b), last);
      if (b.evict != (scratch ? -1 : life.evict)) {
        return fmt::format("{} must name evict {}, not {}", label(b), scratch ? -1 : life.evict, b.evict);
      }
      if (b.size < size) return fmt::format("{} is smaller than the {} bytes it holds", label(b), size);
      return {};
    };
    if (std::string wrong = demand(false, graph.value_size(x), life.last); !wrong.empty()) return wrong;
    if (life.output == 0 && life.fetch < 0) {
      if (std::string wrong = demand(true, graph.scratch(life.node), life.first); !wrong.empty()) return wrong;
    }
    if (graph.value_size(x) == 0) continue;
    const Buffer* b = at.at({life.first, false, life.output, life.fetch});
    if (b->alias_of != OutputRef()) {
      const ValueId taken = graph.inplace(x);
      const bool legal = taken != kNoValue && graph.output_ref(taken) == b->alias_of && latest[taken] != nullptr &&
                         takes_over(*b, *latest[taken]);
      if (!legal) return fmt::format("{} must not share the storage of node {}", label(*b), output_text(b->alias_of));
    }
    latest[x] = b;
  }
  if (expected != plan.buffers.size()) {
    return fmt::format("{} buffers, but the schedule needs {}", plan.buffers.size(), expected);
  }
  if (std::string wrong = check_host(graph, schedule, plan); !wrong.empty()) return wrong;
  return check_overlaps(plan);
}

std::string check_specs(const std::vector<BufferSpec>& specs, std::span<const AddressRange> forbidden, const Plan& plan,
                        std::int64_t guard_bytes) {
  if (plan.buffers.size() != specs.size())
    return fmt::format("{} buffers, but the problem has {}", plan.buffers.size(), specs.size());
  const std::int64_t guard = align_up(guard_bytes, plan.alignment);
  std::vector<Placed> placed;
  std::vector<std::uint8_t> seen(specs.size(), 0);
  std::int64_t top = 0, top_of_bytes = 0;
  for (const Buffer& b : plan.buffers) {
    if (b.node < 0 || static_cast<std::size_t>(b.node) >= specs.size() || seen[b.node])
      return fmt::format("buffer {} is unknown or occurs twice", b.node);
    seen[b.node] = 1;
    const BufferSpec& spec = specs[b.node];
    if (b.first != spec.lower || b.last != spec.upper - 1)
      return fmt::format("buffer '{}' lives from {} to {}, not from {} to {}", spec.id, b.first, b.last, spec.lower,
                         spec.upper - 1);
    if (b.size < spec.size) return fmt::format("buffer '{}' has {} bytes, but needs {}", spec.id, b.size, spec.size);
    placed.push_back({&spec, b.offset, b.size + guard});
    if (std::string wrong = check_offset(placed.back(), plan.alignment); !wrong.empty()) return wrong;
    if (spec.offset && b.offset != *spec.offset)
      return fmt::format("{} must lie at {}", label(placed.back()), *spec.offset);
    const std::int64_t end = b.offset + placed.back().size;
    top = std::max(top, end);
    if (placed.back().size > 0) top_of_bytes = std::max(top_of_bytes, end);
  }
  if (plan.bytes < top_of_bytes || plan.bytes > top)
    return fmt::format("the buffers need {} bytes, not {}", top_of_bytes, plan.bytes);
  if (std::string wrong = check_forbidden(placed, forbidden); !wrong.empty()) return wrong;
  return check_apart(placed);
}

std::string check_fixed_offsets(const std::vector<BufferSpec>& specs, std::span<const AddressRange> forbidden,
                                std::int64_t alignment, std::optional<std::int64_t> capacity) {
  constexpr std::int64_t kMostAlignment = std::int64_t{1} << 30;
  if (alignment < 1 || alignment > kMostAlignment)
    return fmt::format("alignment {} is not between 1 and 2^30 bytes", alignment);
  std::vector<Placed> placed;
  for (const BufferSpec& spec : specs) {
    if (!spec.offset) continue;
    if (spec.size > kSumLimit) return fmt::format("buffer '{}' has more than 2^62 bytes", spec.id);
    placed.push_back({&spec, *spec.offset, align_up(spec.size, alignment)});
    if (std::string wrong = check_offset(placed.back(), alignment); !wrong.empty()) return wrong;
    if (capacity && (*spec.offset > *capacity || placed.back().size > *capacity - *spec.offset))
      return fmt::format("{} lies beyond the capacity of {} bytes", label(placed.back()), *capacity);
  }
  if (std::string wrong = check_forbidden(placed, forbidden); !wrong.empty()) return wrong;
  return check_apart(placed);
}

}  // namespace cairn::core
