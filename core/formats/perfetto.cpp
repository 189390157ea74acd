#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/formats/internal/json.h"
#include "cairn/core/profile.h"

namespace cairn::core {
namespace {

using namespace formats;

/// For every step the highest address in use, plus one.
std::vector<std::int64_t> arena_heights(const Plan& plan, std::int64_t steps) {
  std::vector<std::vector<const Buffer*>> born(static_cast<std::size_t>(steps)), dies(born.size());
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.first < 0 || buffer.first >= steps || buffer.last < buffer.first) continue;
    born[static_cast<std::size_t>(buffer.first)].push_back(&buffer);
    if (buffer.last < steps) dies[static_cast<std::size_t>(buffer.last)].push_back(&buffer);
  }
  std::multiset<std::int64_t> tops;
  std::vector<std::int64_t> heights(born.size());
  for (std::size_t i = 0; i < born.size(); ++i) {
    for (const Buffer* buffer : born[i]) tops.insert(buffer->offset + buffer->size);
    heights[i] = tops.empty() ? 0 : *tops.rbegin();
    for (const Buffer* buffer : dies[i]) tops.erase(tops.find(buffer->offset + buffer->size));
  }
  return heights;
}

OrderedJson counter(const char* name, double microseconds, std::int64_t bytes) {
  return {{"name", name}, {"ph", "C"}, {"ts", microseconds}, {"pid", 1}, {"args", {{"bytes", bytes}}}};
}

OrderedJson slice(const Graph& graph, NodeId v, std::size_t step, bool again, double begin, double duration) {
  const char* category = again ? "recomputation" : graph.backward(v) ? "backward" : "forward";
  OrderedJson args{{"step", step}, {"node", v}, {"size", graph.size(v)}, {"cost", graph.cost(v)}};
  if (graph.scratch(v) != 0) args["scratch"] = graph.scratch(v);
  if (const Op* op = graph.op(v)) args["op"] = to_string(op->kind);
  return {{"name", graph.name(v) + (again ? " (recomputed)" : "")},
          {"cat", category},
          {"ph", "X"},
          {"ts", begin},
          {"dur", duration},
          {"pid", 1},
          {"tid", 1},
          {"args", args}};
}

}  // namespace

std::string perfetto_trace(const Graph& graph, const Schedule& schedule, const Plan& plan,
                           const std::vector<double>& op_ns) {
  const std::size_t steps = schedule.steps.size();
  if (!op_ns.empty() && op_ns.size() != steps) {
    throw InputError(fmt::format("the trace needs one duration a step, but got {} for {} steps", op_ns.size(), steps));
  }
  const std::vector<std::int64_t> profile = Evaluator(graph).profile(schedule.steps);
  const std::vector<std::int64_t> heights = arena_heights(plan, schedule.length());

  std::string text =
      "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" +
      dump({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", "cairn " + graph.name()}}}}) + ",\n" +
      dump({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", "schedule"}}}});
  const auto add = [&text](const OrderedJson& event) { text += ",\n" + dump(event); };

  std::vector<std::uint8_t> done(static_cast<std::size_t>(graph.node_count()), 0);
  double now = 0;  // microseconds, the format's unit
  for (std::size_t i = 0; i < steps; ++i) {
    const NodeId v = schedule.steps[i];
    const double duration = (op_ns.empty() ? static_cast<double>(graph.cost(v)) : op_ns[i]) / 1000;
    add(slice(graph, v, i, done[v] != 0, now, duration));
    add(counter("live bytes", now, profile[2 * i + 1]));
    add(counter("arena bytes", now, heights[i]));
    done[v] = 1;
    now += duration;
  }
  add(counter("live bytes", now, profile.back()));
  return text + "\n]}\n";
}

}  // namespace cairn::core
