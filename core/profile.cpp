#include "cairn/core/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "cairn/core/error.h"
#include "cairn/core/internal/trace.h"
#include "cairn/core/internal/transfer_trace.h"
#include "cairn/core/support/saturating.h"
#include "cairn/core/support/text.h"
#include "cairn/core/support/timeline.h"

namespace cairn::core {
namespace {

constexpr std::size_t kMostSlots = std::numeric_limits<std::int32_t>::max() - 1;

/// Returns the least number of bytes that are in memory while v runs: those of its inputs, outputs and scratch.
std::int64_t working_set(const Graph& graph, NodeId v) {
  std::int64_t bytes = graph.size(v) + graph.scratch(v);
  for (const ValueId x : graph.inputs(v)) bytes += graph.value_size(x);
  return bytes;
}

std::string join_words(const std::vector<std::string>& words) {
  return words.size() < 2 ? fmt::format("{}", fmt::join(words, ""))
                          : fmt::format("{} and {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

}  // namespace

Defect trace_last_reads(const GraphView& graph, std::span<const NodeId> steps, std::vector<std::int32_t>& latest,
                        std::vector<std::int32_t>& last_read) {
  if (steps.size() > kMostSlots) throw InputError("the schedule has more than 2^31 - 2 steps");
  const auto length = static_cast<std::int32_t>(steps.size());
  latest.assign(graph.node_count, -1);
  last_read.clear();
  for (std::int32_t i = 0; i < length; ++i) {
    const NodeId v = steps[i];
    if (v < 0 || v >= graph.node_count) return {Defect::Kind::unknown_node, i, v, kNoNode};
    for (std::int32_t e = graph.input_begin[v]; e < graph.input_begin[v + 1]; ++e) {
      const ValueId x = graph.inputs[e];
      const NodeId u = graph.producer[x];
      if (latest[u] < 0) return {Defect::Kind::missing_input, i, v, u};
      last_read[latest[u] + (x - graph.value_begin[u])] = i;
    }
    if (graph.pinned[v] != 0 && latest[v] >= 0) return {Defect::Kind::pinned_again, i, v, kNoNode};
    latest[v] = static_cast<std::int32_t>(last_read.size());
    last_read.insert(last_read.end(), graph.value_begin[v + 1] - graph.value_begin[v], i);
    if (last_read.size() > kMostSlots) throw InputError("the schedule makes more than 2^31 - 2 values");
  }
  for (ValueId x = 0; x < graph.value_count; ++x) {
    const NodeId v = graph.producer[x];
    const bool unread = graph.successor_begin[v] == graph.successor_begin[v + 1];
    if (latest[v] < 0 && (graph.keep[x] != 0 || unread)) return {Defect::Kind::missing_node, -1, v, kNoNode};
    if (latest[v] >= 0 && graph.keep[x] != 0) last_read[latest[v] + (x - graph.value_begin[v])] = length;
  }
  return {};
}

namespace {

std::string_view text_of(Defect::Reason reason, bool evict) {
  using Reason = Defect::Reason;
  switch (reason) {
    case Reason::none:
      return "nothing is wrong";
    case Reason::unknown_value:
      return evict ? "there is no such value" : "there is no such evict";
    case Reason::pinned:
      return "the node is pinned, and values of pinned nodes stay on the device";
    case Reason::in_place:
      return "another node overwrites the value in place, so that it must stay on the device";
    case Reason::no_bytes:
      return "the value has no bytes";
    case Reason::not_made:
      return "step `made` does not compute the value";
    case Reason::starts_early:
      return evict ? "it starts before the value is computed" : "it starts before its evict is over";
    case Reason::finishes_early:
      return "`finish` is not after `start`";
    case Reason::finishes_late:
      return evict ? "it finishes after the end of the schedule" : "it finishes after the last step that could read it";
    case Reason::twice:
      return "the same occurrence of the value is evicted twice";
    case Reason::unread:
      return evict ? "nothing fetches the copy on the host" : "nothing reads the fetched value";
  }
  return "";
}

std::string describe_transfer(const Graph& graph, const Defect& defect) {
  const bool evict = defect.kind == Defect::Kind::bad_evict;
  const std::string of = defect.node == kNoNode ? "" : fmt::format(" of '{}'", graph.name(defect.node));
  return fmt::format("{} {}{}: {}", evict ? "evict" : "fetch", defect.transfer, of, text_of(defect.reason, evict));
}

}  // namespace

std::string describe(const Graph& graph, const Defect& defect) {
  switch (defect.kind) {
    case Defect::Kind::none:
      return "valid";
    case Defect::Kind::unknown_node:
      return fmt::format("step {}: there is no node {}", defect.step, defect.node);
    case Defect::Kind::missing_input:
      return fmt::format("step {}: node '{}' reads node '{}' before it was computed", defect.step,
                         graph.name(defect.node), graph.name(defect.input));
    case Defect::Kind::missing_node:
      return fmt::format("node '{}' is never computed", graph.name(defect.node));
    case Defect::Kind::pinned_again:
      return fmt::format("step {}: node '{}' runs again, but is pinned to run once", defect.step,
                         graph.name(defect.node));
    case Defect::Kind::input_on_host:
      return fmt::format("step {}: node '{}' reads node '{}' while its value is on the host only", defect.step,
                         graph.name(defect.node), graph.name(defect.input));
    case Defect::Kind::kept_on_host:
      return fmt::format("node '{}' is kept, but its value is on the host at the end", graph.name(defect.node));
    case Defect::Kind::bad_evict:
    case Defect::Kind::bad_fetch:
      return describe_transfer(graph, defect);
  }
  return {};
}

Evaluator::Evaluator(const Graph& graph) : owner_(graph), graph_(owner_.view()), pinned_(graph.has_pinned()) {}

template <bool kSingle, bool kPinned>
Defect Evaluator::trace(std::span<const NodeId> steps) {
  const auto length = static_cast<std::int32_t>(steps.size());
  const auto first_output = [&](NodeId v) { return kSingle ? v : graph_.value_begin[v]; };
  last_read_.assign(static_cast<std::size_t>(graph_.value_count), -1);
  freed_.assign(steps.size() + 1, 0);
  recomputed_ = 0;
  std::int32_t* const last_read = last_read_.data();
  std::int64_t* const freed = freed_.data();
  for (std::int32_t i = 0; i < length; ++i) {
    const NodeId v = steps[i];
    if (v < 0 || v >= graph_.node_count) return {Defect::Kind::unknown_node, i, v, kNoNode};
    for (std::int32_t e = graph_.input_begin[v]; e < graph_.input_begin[v + 1]; ++e) {
      const ValueId x = graph_.inputs[e];
      if (last_read[x] < 0) return {Defect::Kind::missing_input, i, v, kSingle ? x : graph_.producer[x]};
      last_read[x] = i;
    }
    const ValueId first = first_output(v);
    if (kPinned && graph_.pinned[v] != 0 && last_read[first] >= 0) return {Defect::Kind::pinned_again, i, v, kNoNode};
    const bool again = last_read[first] >= 0;
    recomputed_ += again ? 1 : 0;
    ValueId x = first;
    do {
      if (again) freed[last_read[x]] += graph_.size[x];
      last_read[x] = i;
    } while (!kSingle && ++x < graph_.value_begin[v + 1]);
  }
  for (NodeId v = 0; v < graph_.node_count; ++v) {
    const bool ran = last_read[first_output(v)] >= 0;
    bool wanted = graph_.successor_begin[v] == graph_.successor_begin[v + 1];
    ValueId x = first_output(v);
    do {
      const bool keep = graph_.keep[x] != 0;
      if (ran && !keep) freed[last_read[x]] += graph_.size[x];
      wanted = wanted || keep;
    } while (!kSingle && ++x < graph_.value_begin[v + 1]);
    if (!ran && wanted) return {Defect::Kind::missing_node, -1, v, kNoNode};
  }
  return {};
}

Defect Evaluator::trace(std::span<const NodeId> steps) {
  if (steps.size() > kMostSlots) throw InputError("the schedule has more than 2^31 - 2 steps");
  if (graph_.single_output) return pinned_ ? trace<true, true>(steps) : trace<true, false>(steps);
  return pinned_ ? trace<false, true>(steps) : trace<false, false>(steps);
}

Evaluation Evaluator::evaluate(std::span<const NodeId> steps) {
  Evaluation result;
  result.defect = trace(steps);
  if (!result.valid()) return result;

  std::int64_t live = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const NodeId v = steps[i];
    live += graph_.node_size[v];
    const std::int64_t during = live + graph_.scratch[v];
    if (during > result.peak || result.peak_step < 0) {
      result.peak = during;
      result.peak_step = static_cast<std::int64_t>(i);
    }
    live -= freed_[i];
    result.cost = saturating_add(result.cost, graph_.cost[v]);
  }
  result.recomputed = recomputed_;
  return result;
}

std::vector<std::int64_t> Evaluator::profile(std::span<const NodeId> steps) {
  if (trace(steps).kind != Defect::Kind::none) throw InputError("the schedule is not valid; evaluate() says why");
  std::vector<std::int64_t> profile{0};
  profile.reserve(2 * steps.size() + 1);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::int64_t held = profile.back() + graph_.node_size[steps[i]];
    profile.push_back(held + graph_.scratch[steps[i]]);
    profile.push_back(held - freed_[i]);
  }
  return profile;
}

namespace {

/// Returns the profile of a schedule with transfers from its lifetimes.
std::vector<std::int64_t> profile_of(const Graph& graph, const Schedule& schedule, const std::vector<Lifetime>& lives) {
  // Entry 1 + m of the profile is the memory at moment m. Moment 2i is step i, and moment 2i + 1 lies between steps i
  // and i + 1 (see Lifetime). The lifetimes of kept values end after the last moment.
  const std::size_t moments = 2 * schedule.steps.size();
  std::vector<std::int64_t> profile(moments + 2, 0);
  for (const Lifetime& life : lives) {
    const std::int64_t bytes = graph.value_size(graph.value({life.node, life.output}));
    profile[1 + life.first_moment()] += bytes;
    profile[std::min<std::size_t>(2 + life.last_moment(), moments + 1)] -= bytes;
  }
  profile.pop_back();
  std::partial_sum(profile.begin(), profile.end(), profile.begin());
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) profile[2 * i + 1] += graph.scratch(schedule.steps[i]);
  return profile;
}

}  // namespace

std::vector<std::int64_t> Evaluator::profile(const Schedule& schedule) {
  if (schedule.transfers.empty()) return profile(schedule.steps);
  const TransferTrace trace = trace_transfers(owner_, schedule);
  if (trace.defect.kind != Defect::Kind::none) throw InputError("the schedule is not valid; evaluate() says why");
  return profile_of(owner_, schedule, trace.lives);
}

Evaluation Evaluator::evaluate(const Schedule& schedule) {
  if (schedule.transfers.empty()) return evaluate(schedule.steps);
  const TransferTrace trace = trace_transfers(owner_, schedule);
  Evaluation result{.defect = trace.defect};
  if (!result.valid()) return result;
  const std::vector<std::int64_t> profile = profile_of(owner_, schedule, trace.lives);
  for (std::size_t entry = 1; entry < profile.size(); ++entry) {
    if (profile[entry] <= result.peak && result.peak_step >= 0) continue;
    result.peak = profile[entry];
    result.peak_step = static_cast<std::int64_t>(entry - 1) / 2;
  }
  if (owner_.host_memory()) {
    const Timeline times = timeline(owner_, schedule, owner_.host_memory()->link);
    result.cost = times.makespan;
    result.waiting = times.waiting;
  } else {
    for (const NodeId v : schedule.steps) result.cost = saturating_add(result.cost, graph_.cost[v]);
  }
  result.host_peak = core::host_peak(owner_, schedule);
  result.recomputed = recomputed_steps(owner_, schedule);
  return result;
}

Evaluation evaluate(const Graph& graph, const Schedule& schedule) { return Evaluator(graph).evaluate(schedule); }

std::int64_t peak_lower_bound(const Graph& graph) {
  std::int64_t kept = 0, most = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) most = std::max(most, working_set(graph, v));
  for (ValueId x = 0; x < graph.value_count(); ++x) kept += graph.value_kept(x) ? graph.value_size(x) : 0;
  return std::max(kept, most);
}

std::string_view to_string(PeakBound::Kind kind) {
  switch (kind) {
    case PeakBound::Kind::input:
      return "input";
    case PeakBound::Kind::output:
      return "output";
    case PeakBound::Kind::scratch:
      return "scratch";
    case PeakBound::Kind::kept:
      return "kept";
  }
  return "unknown";
}

PeakBound explain_peak_lower_bound(const Graph& graph) {
  PeakBound bound{.bytes = peak_lower_bound(graph)};
  const auto add = [&](PeakBound::Kind kind, ValueId value, std::int64_t bytes) {
    if (bytes != 0) bound.parts.push_back({kind, value, bytes});
  };
  for (NodeId v = 0; v < graph.node_count() && bound.node == kNoNode; ++v) {
    if (bound.bytes > 0 && working_set(graph, v) == bound.bytes) bound.node = v;
  }
  if (const NodeId v = bound.node; v != kNoNode) {
    for (const ValueId x : graph.inputs(v)) add(PeakBound::Kind::input, x, graph.value_size(x));
    for (const ValueId x : graph.outputs(v)) add(PeakBound::Kind::output, x, graph.value_size(x));
    add(PeakBound::Kind::scratch, kNoValue, graph.scratch(v));
  } else {
    for (ValueId x = 0; x < graph.value_count(); ++x) {
      if (graph.value_kept(x)) add(PeakBound::Kind::kept, x, graph.value_size(x));
    }
  }
  std::stable_sort(bound.parts.begin(), bound.parts.end(), [](const PeakBound::Part& a, const PeakBound::Part& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.bytes > b.bytes;
  });
  return bound;
}

std::string describe(const Graph& graph, const PeakBound& bound) {
  constexpr std::size_t kNamed = 3;
  const auto part = [](std::string_view what, std::int64_t bytes) {
    return fmt::format("{} ({})", what, format_bytes(bytes));
  };
  const auto of_kind = [&](PeakBound::Kind kind) {
    std::vector<PeakBound::Part> parts;
    std::copy_if(bound.parts.begin(), bound.parts.end(), std::back_inserter(parts),
                 [&](const PeakBound::Part& p) { return p.kind == kind; });
    return parts;
  };
  std::vector<std::string> items;
  /// Names the largest parts and gives the total of the others.
  const auto name_largest = [&](std::string_view one, std::string_view several, PeakBound::Kind kind) {
    const std::vector<PeakBound::Part> parts = of_kind(kind);
    const std::size_t named = parts.size() == kNamed + 1 ? parts.size() : std::min(parts.size(), kNamed);
    std::int64_t others = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (i >= named) {
        others += parts[i].bytes;
        continue;
      }
      const std::string name = fmt::format("'{}'", graph.value_name(parts[i].value));
      const std::string_view prefix = i > 0 ? "" : parts.size() == 1 ? one : several;
      items.push_back(part(fmt::format("{}{}", prefix, name), parts[i].bytes));
    }
    if (named < parts.size()) items.push_back(part(fmt::format("{} more", parts.size() - named), others));
  };
  if (bound.parts.empty()) return "no node needs memory";
  if (bound.node == kNoNode) {
    name_largest("the kept value ", "the kept values ", PeakBound::Kind::kept);
    return fmt::format("{} {} in memory at the end", join_words(items),
                       bound.parts.size() == 1 ? "is" : "are together");
  }

  name_largest("its input ", "its inputs ", PeakBound::Kind::input);
  const std::vector<PeakBound::Part> outputs = of_kind(PeakBound::Kind::output);
  std::int64_t made = 0;
  for (const PeakBound::Part& output : outputs) made += output.bytes;
  if (outputs.size() == 1) items.push_back(part("its output", made));
  if (outputs.size() > 1) items.push_back(part(fmt::format("its {} outputs", outputs.size()), made));
  const std::int64_t scratch = graph.scratch(bound.node);
  if (scratch > 0) items.push_back(part("scratch", scratch));
  std::string text = fmt::format("'{}' needs {} in memory{}", graph.name(bound.node), join_words(items),
                                 items.size() > 1 ? " together" : "");
  if (scratch < 0) {
    std::vector<std::string> from;
    for (const ValueId x : graph.outputs(bound.node)) {
      if (graph.inplace(x) != kNoValue) from.push_back(fmt::format("'{}'", graph.value_name(graph.inplace(x))));
    }
    text += fmt::format(", less {} that it takes over{}", format_bytes(-scratch),
                        from.empty() ? "" : " from " + join_words(from));
  }
  return text;
}

}  // namespace cairn::core
