// The independent check of a plan: shares nothing with the planner.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <vector>

#include "cairn/core/plan.h"

namespace cairn::core {
namespace {

/// "3", or "3[1]" for an output other than the first.
std::string output_text(OutputRef ref) {
  return ref.output == 0 ? fmt::format("{}", ref.node) : fmt::format("{}[{}]", ref.node, ref.output);
}

std::string label(const Buffer& b) {
  return fmt::format("{} of node {} at steps {}..{}, bytes [{}, {})", b.scratch ? "scratch" : "buffer",
                     output_text({b.node, b.output}), b.first, b.last, b.offset, b.offset + b.size);
}

/// b takes over c's storage: it starts at the step at which c ends, at the same offset, since an in-place kernel reads
/// and writes element by element.
bool takes_over(const Buffer& b, const Buffer& c) {
  return !b.scratch && !c.scratch && b.alias_of != OutputRef() && b.alias_of == OutputRef(c.node, c.output) &&
         c.last == b.first && c.offset == b.offset;
}

bool overlap(const Buffer& a, const Buffer& b) { return a.offset < b.offset + b.size && b.offset < a.offset + a.size; }

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
  std::sort(by_start.begin(), by_start.end(), [](const Buffer* a, const Buffer* b) { return a->first < b->first; });
  std::sort(by_end.begin(), by_end.end(), [](const Buffer* a, const Buffer* b) { return a->last < b->last; });
  // Live buffers by offset: but for in-place pairs, which share theirs, they lie behind one another.
  std::multimap<std::int64_t, const Buffer*> live;
  auto ended = by_end.begin();
  for (const Buffer* b : by_start) {
    for (; (*ended)->last < b->first; ++ended) {
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

std::string check_plan(const Graph& graph, const Schedule& schedule, const Plan& plan) {
  // By first step, whether it is scratch, and output.
  std::map<std::tuple<std::int64_t, bool, std::int32_t>, const Buffer*> at;
  for (const Buffer& b : plan.buffers) {
    if (!at.emplace(std::tuple(b.first, b.scratch, b.output), &b).second) {
      return fmt::format("{} is the second one of its step", label(b));
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
      const auto found = at.find({life.first, scratch, scratch ? 0 : life.output});
      if (found == at.end()) {
        return fmt::format("step {} of node {} has no {}", life.first,
                           output_text({life.node, scratch ? 0 : life.output}), scratch ? "scratch" : "buffer");
      }
      const Buffer& b = *found->second;
      if (b.node != life.node) return fmt::format("{}: step {} runs node {}", label(b), life.first, life.node);
      if (b.last != last) return fmt::format("{} must live until step {}", label(b), last);
      if (b.size < size) return fmt::format("{} is smaller than the {} bytes it holds", label(b), size);
      return {};
    };
    if (std::string wrong = demand(false, graph.value_size(x), life.last); !wrong.empty()) return wrong;
    if (life.output == 0) {
      if (std::string wrong = demand(true, graph.scratch(life.node), life.first); !wrong.empty()) return wrong;
    }
    if (graph.value_size(x) == 0) continue;
    const Buffer* b = at.at({life.first, false, life.output});
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
  return check_overlaps(plan);
}

}  // namespace cairn::core
