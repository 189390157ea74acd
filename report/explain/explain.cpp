#include "cairn/report/explain/support/explain.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/op.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/saturating.h"

namespace cairn::report {
namespace {

// --- kinds ---------------------------------------------------------------------------------------------------------

bool computes_gradient(core::OpKind kind) {
  using enum core::OpKind;
  switch (kind) {
    case relu_grad:
    case gelu_grad:
    case conv2d_grad_input:
    case conv2d_grad_weight:
    case batchnorm_grad_params:
    case batchnorm_grad_input:
    case layernorm_grad_params:
    case layernorm_grad_input:
    case maxpool_grad:
    case maxpool_with_indices_grad:
    case mean_pool_grad:
    case upsample_grad:
    case softmax_grad:
    case embedding_grad:
    case cross_entropy_grad:
    case mse_grad:
      return true;
    default:
      return false;
  }
}

bool is_statistic(core::OpKind kind, std::int32_t output) {
  using enum core::OpKind;
  switch (kind) {
    case batchnorm_stats:
    case layernorm_stats:
      return true;
    case batchnorm_with_stats:
    case layernorm_with_stats:
    case maxpool_with_indices:
      return output == 1;
    default:
      return false;
  }
}

/// Returns whether the nodes without a backward mark are certainly forward nodes. This is so if some node has a
/// backward mark, or if every node has an op and no op computes a gradient.
bool tells_forward_from_backward(const core::Graph& graph) {
  bool marked = false, inference = graph.node_count() > 0;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    marked = marked || graph.backward(v) || graph.forward(v) != core::kNoNode;
    inference = inference && graph.op(v) != nullptr && !computes_gradient(graph.op(v)->kind);
  }
  return marked || inference;
}

void label_kinds(const core::Graph& graph, TensorLabels& labels) {
  labels.kinds_known = tells_forward_from_backward(graph);
  labels.kind_of.resize(static_cast<std::size_t>(graph.value_count()));
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    const core::NodeId v = graph.producer(x);
    const core::Op* op = graph.op(v);
    const bool backward = graph.backward(v) || graph.forward(v) != core::kNoNode || (op && computes_gradient(op->kind));
    TensorKind& kind = labels.kind_of[x];
    if (graph.value_kept(x)) {
      kind = TensorKind::kept;
    } else if (backward) {
      kind = TensorKind::gradient;
    } else if (op && is_statistic(op->kind, graph.output_ref(x).output)) {
      kind = TensorKind::statistic;
    } else {
      kind = labels.kinds_known ? TensorKind::activation : TensorKind::tensor;
    }
  }
}

// --- layers --------------------------------------------------------------------------------------------------------

/// A rule that takes the name of a node's layer from the beginning of the node's name. The characters in `separators`
/// divide the node's name into components. The first `depth` components are the layer's name. If `digits` is false, a
/// number at the end of the layer's name is removed.
struct Prefix {
  std::string_view separators;
  int depth;
  bool digits;

  std::string_view of(std::string_view name) const {
    std::size_t end = 0;
    for (int part = 0; part < depth && end < name.size(); ++part) {
      const std::size_t begin = name.find_first_not_of(separators, end);
      end = std::min(name.size(), name.find_first_of(separators, begin == std::string_view::npos ? end : begin));
    }
    std::string_view prefix = name.substr(0, end);
    if (!digits) prefix = without_number(prefix);
    return prefix;
  }

 private:
  static std::string_view without_number(std::string_view text) {
    const std::size_t last = text.find_last_not_of("0123456789");
    if (last == std::string_view::npos) return {};
    if (last + 1 == text.size()) return text;
    const std::size_t end = text.substr(0, last + 1).find_last_not_of("._/#:-");
    return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
  }
};

constexpr std::string_view kPathSeparators = "./:#", kWordSeparators = "./:#_-";
constexpr int kDeepest = 8;

struct Grouping {
  std::vector<std::string_view> names;
  std::vector<std::int32_t> group_of;  ///< group of each node, as an index in `names`
  std::size_t largest = 0;             ///< number of nodes in the largest group
};

std::optional<Grouping> group_names(const std::vector<std::string_view>& names, const Prefix& prefix,
                                    std::size_t most) {
  Grouping grouping;
  grouping.group_of.reserve(names.size());
  std::unordered_map<std::string_view, std::int32_t> places;
  std::vector<std::size_t> counts;
  for (const std::string_view name : names) {
    const auto [place, is_new] = places.emplace(prefix.of(name), static_cast<std::int32_t>(places.size()));
    if (is_new) {
      if (places.size() > most) return std::nullopt;
      grouping.names.push_back(place->first);
      counts.push_back(0);
    }
    grouping.group_of.push_back(place->second);
    grouping.largest = std::max(grouping.largest, ++counts[place->second]);
  }
  return grouping;
}

/// Groups nodes by layers. Tries several rules (Prefix), those of lowest `depth` first. A rule is rejected in these
/// cases, because its layers would not help the reader: there is only one layer, a layer has fewer than three nodes on
/// average, or one layer has more than three quarters of the nodes. Uses the first rule for which no layer has more
/// than a third of the nodes. If there is none, uses the rule whose largest layer has the fewest nodes. Returns nothing
/// if all rules are rejected.
std::optional<Grouping> find_layers(const std::vector<std::string_view>& names) {
  std::optional<Grouping> best;
  for (const std::string_view separators : {kPathSeparators, kWordSeparators}) {
    for (int depth = 1; depth <= kDeepest; ++depth) {
      bool deeper = false;
      for (const bool digits : {false, true}) {
        std::optional<Grouping> found = group_names(names, {separators, depth, digits}, names.size() / 3);
        deeper = found.has_value();
        if (!found || found->names.size() < 2 || 4 * found->largest > 3 * names.size()) continue;
        if (3 * found->largest <= names.size()) return found;
        if (!best || found->largest < best->largest) best = std::move(found);
      }
      if (!deeper) break;
    }
  }
  return best;
}

void label_layers(const core::Graph& graph, TensorLabels& labels) {
  std::vector<std::string_view> names;
  names.reserve(static_cast<std::size_t>(graph.node_count()));
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const core::NodeId forward = graph.forward(v);
    names.push_back(graph.name(forward == core::kNoNode ? v : forward));
  }
  if (std::optional<Grouping> found = find_layers(names)) {
    labels.layers_known = true;
    for (const std::string_view name : found->names) labels.layers.emplace_back(name.empty() ? "(no prefix)" : name);
    labels.layer_of = std::move(found->group_of);
  } else {
    labels.layers = {"(all)"};
    labels.layer_of.assign(names.size(), 0);
  }
}

// --- lifetimes -----------------------------------------------------------------------------------------------------

/// Holds the lifetimes of the values of a schedule. Each output of each step has one lifetime. The index of a lifetime
/// is called its slot. Slots are ordered by step, then by output. The lifetimes that fetches from the host make come
/// after all of these.
class Timeline {
 public:
  Timeline(const core::Graph& graph, const core::Schedule& schedule)
      : graph_(graph), schedule_(schedule), slots_(core::lifetimes(graph, schedule)) {
    begin_.reserve(schedule.steps.size() + 1);
    begin_.push_back(0);
    for (const core::NodeId v : schedule.steps) begin_.push_back(begin_.back() + graph.output_count(v));
    for (const core::Lifetime& slot : slots_) last_.push_back(slot.last);
    const auto& [evicts, fetches] = schedule.transfers;
    for (auto slot = static_cast<std::size_t>(begin_.back()); slot < slots_.size(); ++slot) {
      const core::Evict& evict = evicts[fetches[slots_[slot].fetch].evict];
      std::int64_t& last = last_[begin_[evict.made] + graph.output_ref(evict.value).output];
      last = std::max(last, slots_[slot].last);
    }
  }

  std::int64_t length() const { return schedule_.length(); }
  core::NodeId node(std::int64_t step) const { return schedule_.steps[step]; }
  /// Returns the last step that reads output `k` of step `step`, as core::Lifetime defines it. Reads of copies that
  /// were fetched back from the host count, too.
  std::int64_t last(std::int64_t step, std::int32_t k) const { return last_[begin_[step] + k]; }
  const std::vector<core::Lifetime>& slots() const { return slots_; }
  std::int64_t slot(std::int64_t step) const { return begin_[step]; }

  /// Returns, for each value, how many occurrences of the value are in device memory during a step. While copies run,
  /// there can be more than one.
  std::vector<std::int32_t> in_memory(std::int64_t step) const {
    std::vector<std::int32_t> held(static_cast<std::size_t>(graph_.value_count()), 0);
    for (const core::Lifetime& slot : slots_) {
      if (slot.first_moment() <= 2 * step && 2 * step <= slot.last_moment())
        ++held[graph_.value({slot.node, slot.output})];
    }
    return held;
  }

  /// Returns, for each value, whether it is only on the host during a step: its evict is over, and a fetch will bring
  /// it back later.
  std::vector<std::uint8_t> on_host(std::int64_t step) const {
    std::vector<std::uint8_t> away(static_cast<std::size_t>(graph_.value_count()), 0);
    const auto& [evicts, fetches] = schedule_.transfers;
    for (const core::Fetch& fetch : fetches) {
      const core::Evict& evict = evicts[fetch.evict];
      if (evict.finish <= step && step <= fetch.start) away[evict.value] = 1;
    }
    return away;
  }

 private:
  const core::Graph& graph_;
  const core::Schedule& schedule_;
  std::vector<core::Lifetime> slots_;
  std::vector<std::int64_t> begin_;  ///< first slot of each step
  std::vector<std::int64_t> last_;   ///< last step that reads the slot's output or a fetched copy of it
};

bool larger(const MemoryShare& a, const MemoryShare& b) {
  return std::tuple(-a.bytes, a.group) < std::tuple(-b.bytes, b.group);
}

template <class GroupOf>
std::vector<MemoryShare> shares_of(const std::vector<LiveTensor>& tensors, std::size_t groups,
                                   const GroupOf& group_of) {
  std::vector<MemoryShare> all(groups);
  for (const LiveTensor& tensor : tensors) {
    MemoryShare& share = all[group_of(tensor)];
    share.bytes += tensor.bytes;
    ++share.tensors;
  }
  for (std::size_t g = 0; g < groups; ++g) all[g].group = static_cast<std::int32_t>(g);
  std::erase_if(all, [](const MemoryShare& share) { return share.tensors == 0; });
  std::sort(all.begin(), all.end(), larger);
  return all;
}

/// Sets LiveTensor::next_read of each tensor to the first step at or after `from` that reads the tensor.
void find_next_reads(const core::Graph& graph, const core::Schedule& schedule, std::int64_t from,
                     std::vector<LiveTensor>& tensors) {
  constexpr std::int64_t kNone = -1, kWanted = -2;
  std::vector<std::int64_t> read(static_cast<std::size_t>(graph.value_count()), kNone);
  for (const LiveTensor& tensor : tensors) {
    if (tensor.value != core::kNoValue) read[tensor.value] = kWanted;
  }
  for (std::int64_t i = from; i < schedule.length(); ++i) {
    const core::NodeId v = schedule.steps[i];
    for (const core::ValueId x : graph.inputs(v)) {
      if (read[x] == kWanted) read[x] = i;
    }
    if (i == from) continue;
    for (const core::ValueId x : graph.outputs(v)) {
      if (read[x] == kWanted) read[x] = kNone;
    }
  }
  // Reads after the end of a tensor's lifetime are reads of another occurrence of the same value, which was fetched or
  // computed again. So such reads do not count.
  for (LiveTensor& tensor : tensors) {
    if (tensor.value != core::kNoValue && read[tensor.value] >= 0 && read[tensor.value] <= tensor.last)
      tensor.next_read = read[tensor.value];
  }
}

// --- recomputation -------------------------------------------------------------------------------------------------

std::int64_t step_of_most(const core::Evaluation& evaluation, const core::Schedule& schedule) {
  if (!evaluation.valid()) throw core::InputError("the schedule is not valid; evaluate() says why");
  return schedule.steps.empty() ? -1 : evaluation.peak_step;
}

/// The steps from `begin` to `end`, both included, during which `value` is away before `node` runs again. Away means:
/// dropped and not yet computed again (see RecomputedNode).
struct Gap {
  core::NodeId node;
  core::ValueId value;
  std::int64_t begin, end;
  bool covers(std::int64_t step) const { return begin <= step && step <= end; }
};

struct Runs {
  std::vector<Recomputation> events;
  std::vector<std::vector<std::int64_t>> steps;  ///< steps at which each of `nodes` runs
  std::vector<core::NodeId> nodes;               ///< the recomputed nodes, in the order of their first recomputations
};

Runs find_runs(const core::Graph& graph, const core::Schedule& schedule, const Timeline& timeline) {
  Runs runs;
  const auto n = static_cast<std::size_t>(graph.node_count());
  std::vector<std::int64_t> latest(n, -1), event_of(n, -1);
  std::vector<std::int32_t> place(n, -1);
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    const core::NodeId v = schedule.steps[i];
    for (const core::NodeId u : graph.predecessors(v)) {
      if (event_of[u] >= 0 && runs.events[event_of[u]].first_use < 0) runs.events[event_of[u]].first_use = i;
    }
    if (const std::int64_t made = latest[v]; made >= 0) {
      Recomputation event{.node = v, .step = i, .made = made, .dropped_after = made};
      for (std::int32_t k = 0; k < graph.output_count(v); ++k)
        event.dropped_after = std::max(event.dropped_after, timeline.last(made, k));
      event_of[v] = static_cast<std::int64_t>(runs.events.size());
      runs.events.push_back(event);
      if (place[v] < 0) {
        place[v] = static_cast<std::int32_t>(runs.nodes.size());
        runs.nodes.push_back(v);
        runs.steps.push_back({made});
      }
      runs.steps[place[v]].push_back(i);
    }
    latest[v] = i;
  }
  return runs;
}

template <class Visit>
void for_each_gap(const core::Graph& graph, const Timeline& timeline, core::NodeId v,
                  const std::vector<std::int64_t>& runs, const Visit& visit) {
  for (const core::ValueId x : graph.outputs(v)) {
    if (graph.value_size(x) == 0) continue;
    const std::int32_t k = graph.output_ref(x).output;
    bool wanted = false;  // whether a value that run `r` or a later run computes is read or kept
    for (std::size_t r = runs.size(); r-- > 1;) {
      wanted = wanted || timeline.last(runs[r], k) > runs[r];
      const Gap gap{v, x, timeline.last(runs[r - 1], k) + 1, runs[r] - 1};
      if (wanted && gap.begin <= gap.end) visit(gap, r);
    }
  }
}

std::vector<double> clock_of(const core::Graph& graph, const core::Schedule& schedule) {
  const bool costs =
      std::any_of(schedule.steps.begin(), schedule.steps.end(), [&](core::NodeId v) { return graph.cost(v) > 0; });
  std::vector<double> time{0};
  time.reserve(schedule.steps.size() + 1);
  for (const core::NodeId v : schedule.steps)
    time.push_back(time.back() + (costs ? static_cast<double>(graph.cost(v)) : 1));
  return time;
}

void add_node(RecomputedShare& share, const RecomputedNode& node) {
  ++share.nodes;
  share.times += node.times;
  share.extra_cost = core::saturating_add(share.extra_cost, node.extra_cost);
  share.saved_at_baseline_peak += node.saved_at_baseline_peak;
  share.saved_at_peak += node.saved_at_peak;
  share.saved_on_average += node.saved_on_average;
}

template <class T>
bool saves_more(const T& a, const T& b) {
  return std::tuple(-a.saved_at_baseline_peak, -a.saved_on_average) <
         std::tuple(-b.saved_at_baseline_peak, -b.saved_on_average);
}

}  // namespace

std::string_view to_string(TensorKind kind) {
  constexpr std::array<std::string_view, kTensorKinds> kNames = {"activation", "gradient", "statistic", "tensor",
                                                                 "kept",       "scratch",  "in_place"};
  return kNames[static_cast<std::size_t>(kind)];
}

TensorLabels label_tensors(const core::Graph& graph) {
  TensorLabels labels;
  label_kinds(graph, labels);
  label_layers(graph, labels);
  return labels;
}

LayerRows rows_of_layers(const TensorLabels& labels, std::size_t most) {
  LayerRows rows{labels.layers, std::vector<std::int32_t>(labels.layers.size())};
  std::iota(rows.row_of.begin(), rows.row_of.end(), 0);
  if (labels.layers.size() <= most) return rows;

  // Layers of one family differ only in the number at the end of their names. Families are in the order of their first
  // layers.
  std::vector<std::vector<std::pair<std::uint64_t, std::int32_t>>> families;
  std::unordered_map<std::string_view, std::size_t> family_of;
  for (std::size_t i = 0; i < labels.layers.size(); ++i) {
    const std::string_view name = labels.layers[i];
    const std::string_view stem = name.substr(0, name.find_last_not_of("0123456789") + 1);
    const std::string_view digits = name.substr(stem.size());
    const bool numbered = !digits.empty() && digits.size() <= 18;
    const auto [place, is_new] = family_of.emplace(numbered ? stem : name, families.size());
    if (is_new) families.emplace_back();
    families[place->second].emplace_back(numbered ? std::stoull(std::string(digits)) : 0, static_cast<std::int32_t>(i));
  }
  if (families.size() > most) return rows;

  const auto parts = [](std::size_t members, std::size_t width) { return (members + width - 1) / width; };
  std::size_t width = 0, count = 0;
  do {
    ++width;
    count = 0;
    for (const auto& family : families) count += parts(family.size(), width);
  } while (count > most);
  rows.names.clear();
  for (auto& family : families) {
    std::sort(family.begin(), family.end());
    const std::size_t into = parts(family.size(), width);
    for (std::size_t part = 0; part < into; ++part) {
      const std::size_t begin = family.size() * part / into, end = family.size() * (part + 1) / into;
      std::string name = labels.layers[family[begin].second];
      if (end - begin > 1) name += "-" + std::to_string(family[end - 1].first);
      for (std::size_t i = begin; i < end; ++i)
        rows.row_of[family[i].second] = static_cast<std::int32_t>(rows.names.size());
      rows.names.push_back(std::move(name));
    }
  }
  return rows;
}

std::string name_of(const core::Graph& graph, const LiveTensor& tensor) {
  if (tensor.value != core::kNoValue) return graph.value_name(tensor.value);
  return graph.name(tensor.node) + (tensor.kind == TensorKind::scratch ? " (scratch)" : " (in place)");
}

std::int64_t idle_steps(const LiveTensor& tensor, std::int64_t step) {
  if (tensor.first == step) return 0;
  return (tensor.next_read >= 0 ? tensor.next_read : tensor.last) - step;
}

MemoryAt memory_at(const core::Graph& graph, const TensorLabels& labels, const core::Schedule& schedule,
                   std::int64_t step, bool after) {
  const Timeline timeline(graph, schedule);
  if (step < 0 || step >= schedule.length()) throw core::InputError("the schedule has no such step");
  MemoryAt memory{.step = step, .node = schedule.steps[step], .after = after};
  const std::int64_t moment = 2 * step + (after ? 1 : 0);
  std::vector<std::int64_t> first_run(static_cast<std::size_t>(graph.node_count()), -1);
  for (std::int64_t i = step; i >= 0; --i) first_run[schedule.steps[i]] = i;
  for (const core::Lifetime& life : timeline.slots()) {
    const core::ValueId x = graph.value({life.node, life.output});
    if (life.first_moment() > moment || life.last_moment() < moment || graph.value_size(x) == 0) continue;
    std::int64_t made = life.first;
    if (life.fetch >= 0) made = schedule.transfers.evicts[schedule.transfers.fetches[life.fetch].evict].made;
    memory.tensors.push_back({x, life.node, graph.value_size(x), labels.kind_of[x], labels.layer_of[life.node],
                              life.first, life.last, -1, first_run[life.node] < made, life.fetch >= 0});
  }
  if (const std::int64_t scratch = graph.scratch(memory.node); scratch != 0 && !after) {
    memory.tensors.push_back({core::kNoValue, memory.node, scratch,
                              scratch > 0 ? TensorKind::scratch : TensorKind::in_place, labels.layer_of[memory.node],
                              step, step, -1, false, false});
  }
  std::sort(memory.tensors.begin(), memory.tensors.end(), [](const LiveTensor& a, const LiveTensor& b) {
    return std::tuple(-a.bytes, a.first, a.value) < std::tuple(-b.bytes, b.first, b.value);
  });
  find_next_reads(graph, schedule, after ? step + 1 : step, memory.tensors);
  for (const LiveTensor& tensor : memory.tensors) memory.bytes += tensor.bytes;
  memory.by_kind =
      shares_of(memory.tensors, kTensorKinds, [](const LiveTensor& t) { return static_cast<std::size_t>(t.kind); });
  memory.by_layer = shares_of(memory.tensors, labels.layers.size(),
                              [](const LiveTensor& t) { return static_cast<std::size_t>(t.layer); });
  return memory;
}

MemoryAt memory_at_peak(const core::Graph& graph, const TensorLabels& labels, const core::Schedule& schedule) {
  const core::Evaluation evaluation = core::evaluate(graph, schedule);
  const std::int64_t step = step_of_most(evaluation, schedule);
  if (step < 0) return {};
  MemoryAt during = memory_at(graph, labels, schedule, step);
  // Memory after a step can be higher than during the step only if copies run after it. So if the peak is not during
  // the step, it is right after it.
  return during.bytes == evaluation.peak ? during : memory_at(graph, labels, schedule, step, true);
}

RecomputationSummary explain_recomputation(const core::Graph& graph, const TensorLabels& labels,
                                           const core::Schedule& schedule) {
  RecomputationSummary summary;
  summary.total.layer = -1;
  const core::Schedule baseline = core::baseline_schedule(graph);
  core::Evaluator evaluator(graph);
  const std::int64_t baseline_peak = step_of_most(evaluator.evaluate(baseline), baseline);
  const std::int64_t peak = step_of_most(evaluator.evaluate(schedule), schedule);
  if (peak < 0) return summary;

  const Timeline timeline(graph, schedule);
  AtBaselinePeak& at = summary.at_baseline_peak;
  at.node = baseline.steps[baseline_peak];
  at.baseline_step = baseline_peak;
  at.baseline_bytes = evaluator.profile(baseline.steps)[2 * baseline_peak + 1];
  const std::vector<std::int64_t> profile = evaluator.profile(schedule);
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    if (schedule.steps[i] != at.node || (at.schedule_step >= 0 && profile[2 * i + 1] <= at.schedule_bytes)) continue;
    at.schedule_step = i;
    at.schedule_bytes = profile[2 * i + 1];
  }
  const std::vector<std::int32_t> before = Timeline(graph, baseline).in_memory(baseline_peak);
  const std::vector<std::int32_t> after = timeline.in_memory(at.schedule_step);
  const std::vector<std::uint8_t> on_host = timeline.on_host(at.schedule_step);
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    if (before[x] != 0 && after[x] == 0) (on_host[x] != 0 ? at.on_host : at.other_order) += graph.value_size(x);
    if (after[x] > before[x]) at.held_more += (after[x] - before[x]) * graph.value_size(x);
  }

  Runs runs = find_runs(graph, schedule, timeline);
  const std::vector<double> clock = clock_of(graph, schedule);
  std::vector<std::int64_t> away_from;
  for (std::size_t i = 0; i < runs.nodes.size(); ++i) {
    const core::NodeId v = runs.nodes[i];
    RecomputedNode node{.node = v, .times = static_cast<std::int64_t>(runs.steps[i].size()) - 1};
    for (std::int64_t r = 0; r < node.times; ++r)
      node.extra_cost = core::saturating_add(node.extra_cost, graph.cost(v));
    node.bytes = graph.size(v);
    away_from = runs.steps[i];  // for each run of v, the first step before it at which an output of v was away
    for_each_gap(graph, timeline, v, runs.steps[i], [&](const Gap& gap, std::size_t run) {
      const std::int64_t bytes = graph.value_size(gap.value);
      away_from[run] = std::min(away_from[run], gap.begin);
      if (gap.covers(peak)) node.saved_at_peak += bytes;
      if (gap.covers(at.schedule_step) && before[gap.value] != 0) node.saved_at_baseline_peak += bytes;
      node.saved_on_average += static_cast<double>(bytes) * (clock[gap.end + 1] - clock[gap.begin]) / clock.back();
    });
    for (std::size_t r = 1; r < away_from.size(); ++r) node.away_steps += runs.steps[i][r] - away_from[r];
    at.recomputed_later += node.saved_at_baseline_peak;
    summary.nodes.push_back(node);
  }
  at.other_order -= at.recomputed_later;
  summary.events = std::move(runs.events);
  std::sort(summary.nodes.begin(), summary.nodes.end(), [](const RecomputedNode& a, const RecomputedNode& b) {
    return saves_more(a, b) || (!saves_more(b, a) && a.node < b.node);
  });

  summary.by_layer.resize(labels.layers.size());
  for (std::size_t i = 0; i < labels.layers.size(); ++i) summary.by_layer[i].layer = static_cast<std::int32_t>(i);
  for (const RecomputedNode& node : summary.nodes) {
    add_node(summary.by_layer[labels.layer_of[node.node]], node);
    add_node(summary.total, node);
  }
  std::erase_if(summary.by_layer, [](const RecomputedShare& share) { return share.nodes == 0; });
  std::stable_sort(summary.by_layer.begin(), summary.by_layer.end(), saves_more<RecomputedShare>);
  return summary;
}

}  // namespace cairn::report
