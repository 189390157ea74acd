#include "cairn/report/explain/support/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/models/registry.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/schedules.h"

namespace cairn::tests::explain_test {

using namespace cairn::core;
using namespace cairn::report;

namespace {

// The following functions compute the expected results literally by their definitions.

/// Returns the values in memory during a step: those that are live there, and those that the step makes.
std::vector<reference::MadeValue> in_memory(const Graph& graph, const Schedule& schedule, std::int64_t step) {
  std::vector<reference::MadeValue> values = reference::live(graph, schedule, step);
  for (const ValueId x : graph.outputs(schedule.steps[step])) values.push_back({step, x});
  return values;
}

bool holds(const Graph& graph, const Schedule& schedule, std::int64_t step, ValueId value) {
  const auto values = in_memory(graph, schedule, step);
  return std::any_of(values.begin(), values.end(), [&](const auto& made) { return made.value == value; });
}

std::int64_t next_read(const Graph& graph, const Schedule& schedule, reference::MadeValue made, std::int64_t step) {
  for (std::int64_t i = std::max(step, made.step + 1); i < schedule.length(); ++i) {
    if (reference::stands(schedule, schedule.steps[made.step], made.step + 1, i)) return -1;
    if (reference::reads(graph, schedule.steps[i], made.value)) return i;
  }
  return -1;
}

/// Returns whether a value is away at a step: it was made earlier, is not in memory, and is read later or kept.
bool away(const Graph& graph, const Schedule& schedule, std::int64_t step, ValueId value) {
  if (!reference::stands(schedule, graph.producer(value), 0, step)) return false;
  if (holds(graph, schedule, step, value)) return false;
  for (std::int64_t i = step; i < schedule.length(); ++i) {
    if (reference::reads(graph, schedule.steps[i], value)) return true;
  }
  return graph.value_kept(value);
}

std::int64_t away_bytes(const Graph& graph, const Schedule& schedule, std::int64_t step, NodeId node) {
  std::int64_t bytes = 0;
  for (const ValueId x : graph.outputs(node)) bytes += away(graph, schedule, step, x) ? graph.value_size(x) : 0;
  return bytes;
}

void check_shares(const std::vector<MemoryShare>& shares, const MemoryAt& at,
                  const std::function<std::int32_t(const LiveTensor&)>& group_of) {
  std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> sums;
  for (const LiveTensor& tensor : at.tensors) {
    sums[group_of(tensor)].first += tensor.bytes;
    ++sums[group_of(tensor)].second;
  }
  CHECK(shares.size() == sums.size());
  std::int64_t total = 0;
  for (const MemoryShare& share : shares) {
    CHECK(sums[share.group] == std::pair(share.bytes, share.tensors));
    total += share.bytes;
  }
  CHECK(total == at.bytes);
  CHECK(std::is_sorted(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; }));
}

void check_memory(const Graph& graph, const TensorLabels& labels, const Schedule& schedule, const MemoryAt& at) {
  REQUIRE(at.step >= 0);
  CHECK(at.node == schedule.steps[at.step]);
  CHECK(at.bytes == reference::during(graph, schedule, at.step));
  const auto lifetimes = reference::lifetimes(graph, schedule);
  std::map<std::pair<std::int64_t, ValueId>, std::int64_t> last;
  for (const Lifetime& lifetime : lifetimes)
    last[{lifetime.first, graph.value({lifetime.node, lifetime.output})}] = lifetime.last;

  std::set<std::pair<std::int64_t, ValueId>> expected, found;
  for (const auto& made : in_memory(graph, schedule, at.step)) {
    if (graph.value_size(made.value) > 0) expected.insert({made.step, made.value});
  }
  std::int64_t sum = 0, scratch = 0;
  for (const LiveTensor& tensor : at.tensors) {
    sum += tensor.bytes;
    CHECK(tensor.layer == labels.layer_of[tensor.node]);
    if (tensor.value == kNoValue) {
      scratch += tensor.bytes;
      CHECK(tensor.node == at.node);
      CHECK(tensor.kind == (tensor.bytes > 0 ? TensorKind::scratch : TensorKind::in_place));
      CHECK(idle_steps(tensor, at.step) == 0);
      continue;
    }
    CHECK(found.insert({tensor.first, tensor.value}).second);
    CHECK(tensor.node == graph.producer(tensor.value));
    CHECK(tensor.bytes == graph.value_size(tensor.value));
    CHECK(tensor.kind == labels.kind_of[tensor.value]);
    CHECK(tensor.last == last[{tensor.first, tensor.value}]);
    const std::int64_t next = next_read(graph, schedule, {tensor.first, tensor.value}, at.step);
    CHECK(tensor.next_read == next);
    CHECK(tensor.recomputed == reference::stands(schedule, tensor.node, 0, tensor.first));
    std::int64_t idle = 0;
    if (tensor.first != at.step) {
      for (std::int64_t i = at.step; i < schedule.length() && i != next; ++i) ++idle;
    }
    CHECK(idle_steps(tensor, at.step) == idle);
  }
  CHECK(found == expected);
  CHECK(sum == at.bytes);
  CHECK(scratch == graph.scratch(at.node));
  CHECK(std::is_sorted(at.tensors.begin(), at.tensors.end(),
                       [](const auto& a, const auto& b) { return a.bytes > b.bytes; }));
  check_shares(at.by_kind, at, [](const LiveTensor& t) { return static_cast<std::int32_t>(t.kind); });
  check_shares(at.by_layer, at, [](const LiveTensor& t) { return t.layer; });
}

/// Checks what a summary says about the values in memory at the baseline's peak. The summary compares the baseline's
/// peak step with the step `same_node` of the schedule. Both steps run the same node; of the schedule's steps that run
/// this node, `same_node` has the most bytes in memory. Returns the bytes of the values that are in memory at the
/// baseline's peak, absent at step `same_node`, and recomputed later.
std::int64_t check_at_baseline_peak(const Graph& graph, const Schedule& schedule, std::int64_t same_node,
                                    const AtBaselinePeak& at) {
  const Schedule baseline = baseline_schedule(graph);
  const std::int64_t baseline_peak = reference::peak_step(graph, baseline);
  CHECK(at.node == baseline.steps[baseline_peak]);
  CHECK(at.baseline_step == baseline_peak);
  CHECK(at.schedule_step == same_node);
  CHECK(at.baseline_bytes == reference::peak(graph, baseline));
  CHECK(at.schedule_bytes == reference::during(graph, schedule, same_node));
  CHECK(at.baseline_bytes - at.recomputed_later - at.other_order + at.held_more == at.schedule_bytes);
  std::int64_t later = 0, other = 0, more = 0;
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    const bool before = holds(graph, baseline, baseline_peak, x), after = holds(graph, schedule, same_node, x);
    if (before && !after) (away(graph, schedule, same_node, x) ? later : other) += graph.value_size(x);
    if (!before && after) more += graph.value_size(x);
  }
  CHECK(at.recomputed_later == later);
  CHECK(at.other_order == other);
  CHECK(at.held_more == more);
  return later;
}

/// Checks that the shares of all layers, and the total, are sums over the nodes of the summary.
void check_sums(const RecomputationSummary& summary, const RecomputedShare& total) {
  for (const auto field : {&RecomputedShare::nodes, &RecomputedShare::times, &RecomputedShare::extra_cost,
                           &RecomputedShare::saved_at_baseline_peak, &RecomputedShare::saved_at_peak}) {
    std::int64_t sum = 0;
    for (const RecomputedShare& share : summary.by_layer) sum += share.*field;
    CHECK(sum == total.*field);
    CHECK(summary.total.*field == total.*field);
  }
}

void check_events(const Graph& graph, const Schedule& schedule, const std::vector<Recomputation>& events) {
  std::vector<Recomputation> expected;
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    const NodeId v = schedule.steps[i];
    if (!reference::stands(schedule, v, 0, i)) continue;
    Recomputation event{.node = v, .step = i};
    for (std::int64_t j = 0; j < i; ++j) event.made = schedule.steps[j] == v ? j : event.made;
    event.dropped_after = event.made;
    for (std::int64_t j = event.made + 1; j < i; ++j) {
      for (const ValueId x : graph.outputs(v)) {
        if (reference::reads(graph, schedule.steps[j], x)) event.dropped_after = j;
      }
    }
    for (std::int64_t j = i + 1; j < schedule.length() && schedule.steps[j] != v && event.first_use < 0; ++j) {
      for (const ValueId x : graph.outputs(v)) {
        if (reference::reads(graph, schedule.steps[j], x)) event.first_use = j;
      }
    }
    expected.push_back(event);
  }
  CHECK(events == expected);
}

void check_recomputation(const Graph& graph, const TensorLabels& labels, const Schedule& schedule) {
  const RecomputationSummary summary = explain_recomputation(graph, labels, schedule);
  const Schedule baseline = baseline_schedule(graph);
  const Evaluation evaluation = evaluate(graph, schedule);
  check_events(graph, schedule, summary.events);
  CHECK(static_cast<std::int64_t>(summary.events.size()) == reference::recomputed(schedule));

  const std::int64_t peak = reference::peak_step(graph, schedule);
  const std::int64_t baseline_peak = reference::peak_step(graph, baseline);
  std::int64_t same_node = -1;
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    if (schedule.steps[i] != baseline.steps[baseline_peak]) continue;
    if (same_node < 0 || reference::during(graph, schedule, i) > reference::during(graph, schedule, same_node))
      same_node = i;
  }
  const std::int64_t later = check_at_baseline_peak(graph, schedule, same_node, summary.at_baseline_peak);

  double time = 0;
  for (std::int64_t i = 0; i < schedule.length(); ++i) time += static_cast<double>(graph.cost(schedule.steps[i]));
  const bool costless = time == 0;
  if (costless) time = static_cast<double>(schedule.length());
  std::set<NodeId> nodes;
  RecomputedShare total;
  total.nodes = static_cast<std::int64_t>(summary.nodes.size());
  for (const RecomputedNode& node : summary.nodes) {
    CHECK(nodes.insert(node.node).second);
    const NodeId v = node.node;
    CHECK(node.times == std::count(schedule.steps.begin(), schedule.steps.end(), v) - 1);
    CHECK(node.times > 0);
    CHECK(node.extra_cost == node.times * graph.cost(v));
    CHECK(node.bytes == reference::output_bytes(graph, v));
    std::int64_t steps = 0, at_baseline_peak = 0;
    double byte_time = 0;
    for (std::int64_t i = 0; i < schedule.length(); ++i) {
      const std::int64_t bytes = away_bytes(graph, schedule, i, v);
      steps += bytes > 0 ? 1 : 0;
      byte_time += static_cast<double>(bytes) * (costless ? 1.0 : static_cast<double>(graph.cost(schedule.steps[i])));
    }
    for (const ValueId x : graph.outputs(v)) {
      if (holds(graph, baseline, baseline_peak, x) && away(graph, schedule, same_node, x))
        at_baseline_peak += graph.value_size(x);
    }
    CHECK(node.away_steps == steps);
    CHECK(node.saved_at_peak == away_bytes(graph, schedule, peak, v));
    CHECK(node.saved_at_baseline_peak == at_baseline_peak);
    CHECK(node.saved_on_average == Approx(byte_time / time).margin(1e-9));
    total.times += node.times;
    total.extra_cost += node.extra_cost;
    total.saved_at_baseline_peak += node.saved_at_baseline_peak;
    total.saved_at_peak += node.saved_at_peak;
  }
  std::int64_t once = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) once += graph.cost(v);
  CHECK(total.times == evaluation.recomputed);
  CHECK(total.extra_cost == evaluation.cost - once);
  CHECK(total.saved_at_baseline_peak == later);
  check_sums(summary, total);
}

TensorLabels labels_of_names(const std::vector<std::string>& names) {
  GraphBuilder builder;
  for (const std::string& name : names) builder.add(make_node(name, 1));
  return label_tensors(builder.build());
}

std::vector<std::string> layers_of_model(const std::string& name, const std::map<std::string, std::int64_t>& values) {
  models::BuildOptions options;
  for (const auto& [key, value] : values) options.values[key] = value;
  return label_tensors(models::build_model(name, options)).layers;
}

}  // namespace

TEST_CASE("what is in memory at a step is what the definitions say, and its parts sum to it", "[explain]") {
  for_each_schedule(3000, [](Random& random, const Graph& graph, const Schedule& schedule) {
    const TensorLabels labels = label_tensors(graph);
    const MemoryAt peak = memory_at_peak(graph, labels, schedule);
    CHECK(peak.step == reference::peak_step(graph, schedule));
    CHECK(peak.bytes == evaluate(graph, schedule).peak);
    check_memory(graph, labels, schedule, peak);
    check_memory(graph, labels, schedule, memory_at(graph, labels, schedule, random.below(schedule.length())));
  });
}

TEST_CASE("what was recomputed, and what that saves, is what the definitions say", "[explain]") {
  for_each_schedule(3000, [](Random&, const Graph& graph, const Schedule& schedule) {
    check_recomputation(graph, label_tensors(graph), schedule);
  });
}

TEST_CASE("a chain and its backward pass, by hand", "[explain]") {
  // The graph is a chain a -> b -> c -> d, whose outputs have 4, 8, 8 and 2 bytes. Node c overwrites b. Node d also
  // reads a, has a scratch of 1 byte, and is kept.
  Node c = make_node("c", 8, {1}, 30), d = make_node("d", 2, {2, 0}, 40);
  c.scratch = -8;
  c.inplace = 1;
  d.scratch = 1;
  d.keep = true;
  d.backward = true;
  d.forward = 0;
  const Graph graph = build_graph({make_node("a", 4, {}, 10), make_node("b", 8, {0}, 20), c, d});
  const TensorLabels labels = label_tensors(graph);
  CHECK(labels.kinds_known);
  CHECK_FALSE(labels.layers_known);
  CHECK(labels.kind_of == std::vector<TensorKind>{TensorKind::activation, TensorKind::activation,
                                                  TensorKind::activation, TensorKind::kept});

  // The steps of the baseline have 4, 12, 12 and 15 bytes in memory. The steps of the schedule, which recomputes a,
  // have 4, 12, 8, 12 and 15 bytes.
  const Schedule schedule{.steps = {0, 1, 2, 0, 3}};
  const MemoryAt at = memory_at(graph, labels, schedule, 2);
  CHECK(at.bytes == 8);
  REQUIRE(at.tensors.size() == 3);
  CHECK(at.tensors[0] == LiveTensor{1, 1, 8, TensorKind::activation, 0, 1, 2, 2, false});
  CHECK(at.tensors[1] == LiveTensor{2, 2, 8, TensorKind::activation, 0, 2, 4, 4, false});
  CHECK(at.tensors[2] == LiveTensor{kNoValue, 2, -8, TensorKind::in_place, 0, 2, 2, -1, false});
  CHECK(name_of(graph, at.tensors[2]) == "c (in place)");
  CHECK(at.by_kind == std::vector<MemoryShare>{{static_cast<int>(TensorKind::activation), 16, 2},
                                               {static_cast<int>(TensorKind::in_place), -8, 1}});

  const MemoryAt peak = memory_at_peak(graph, labels, schedule);
  CHECK(peak.step == 4);
  CHECK(peak.bytes == 15);
  REQUIRE(peak.tensors.size() == 4);
  CHECK(peak.tensors[1] == LiveTensor{0, 0, 4, TensorKind::activation, 0, 3, 4, 4, true});
  CHECK(peak.tensors[2] == LiveTensor{3, 3, 2, TensorKind::kept, 0, 4, 5, -1, false});
  CHECK(name_of(graph, peak.tensors[3]) == "d (scratch)");

  const RecomputationSummary summary = explain_recomputation(graph, labels, schedule);
  CHECK(summary.events ==
        std::vector<Recomputation>{{.node = 0, .step = 3, .made = 0, .dropped_after = 1, .first_use = 4}});
  REQUIRE(summary.nodes.size() == 1);
  CHECK(summary.nodes[0].times == 1);
  CHECK(summary.nodes[0].extra_cost == 10);
  CHECK(summary.nodes[0].away_steps == 1);  // a is away only at step 2, which has 30 of the total cost of 110
  CHECK(summary.nodes[0].saved_at_peak == 0);
  CHECK(summary.nodes[0].saved_at_baseline_peak == 0);  // a is in memory at the baseline's peak, because d reads it
  CHECK(summary.nodes[0].saved_on_average == Approx(4.0 * 30 / 110));
  CHECK(summary.at_baseline_peak.baseline_bytes == 15);
  CHECK(summary.at_baseline_peak.schedule_bytes == 15);
}

TEST_CASE("what is away where the baseline peaks counts as saved there, by hand", "[explain]") {
  // The graph is an hourglass x -> y -> z -> y' -> x', whose outputs have 10, 10, 10, 1 and 1 bytes. Node y' also reads
  // y, and x' also reads x.
  const Graph graph = build_graph({make_node("x", 10), make_node("y", 10, {0}), make_node("z", 10, {1}),
                                   make_node("y'", 1, {2, 1}), make_node("x'", 1, {3, 0})});
  // The steps of the baseline have 10, 20, 30, 31 and 12 bytes in memory. The steps of the schedule, which recomputes
  // x, have 10, 20, 20, 21, 11 and 12 bytes.
  const Schedule schedule{.steps = {0, 1, 2, 3, 0, 4}};
  const RecomputationSummary summary = explain_recomputation(graph, label_tensors(graph), schedule);
  CHECK(summary.at_baseline_peak.baseline_bytes == 31);
  CHECK(summary.at_baseline_peak.schedule_bytes == 21);
  CHECK(summary.at_baseline_peak.recomputed_later == 10);
  CHECK(summary.at_baseline_peak.other_order == 0);
  CHECK(summary.at_baseline_peak.held_more == 0);
  REQUIRE(summary.nodes.size() == 1);
  CHECK(summary.nodes[0].saved_at_baseline_peak == 10);
  CHECK(summary.nodes[0].saved_at_peak == 10);
  CHECK(summary.nodes[0].away_steps == 2);
  CHECK(summary.nodes[0].saved_on_average == Approx(20.0 / 6));
  CHECK(memory_at_peak(graph, label_tensors(graph), schedule).bytes == 21);
}

TEST_CASE("kinds are said as far as marks and ops tell them", "[explain]") {
  const Graph unmarked = build_graph({make_node("a", 4), make_node("b", 4, {0})});
  CHECK_FALSE(label_tensors(unmarked).kinds_known);
  CHECK(label_tensors(unmarked).kind_of == std::vector<TensorKind>(2, TensorKind::tensor));

  const Graph graph = models::build_model("resnet18", {.values = {{"batch", 2}, {"image", 32}}});
  const TensorLabels labels = label_tensors(graph);
  CHECK(labels.kinds_known);
  std::map<TensorKind, int> counts;
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    const TensorKind kind = labels.kind_of[x];
    ++counts[kind];
    const std::string name = graph.value_name(x);
    CAPTURE(name);
    const Op* op = graph.op(graph.producer(x));
    REQUIRE(op != nullptr);
    if (kind == TensorKind::statistic) CHECK(to_string(op->kind).find("_grad") == std::string_view::npos);
    if (op->kind == OpKind::batchnorm_stats && !graph.value_kept(x)) CHECK(kind == TensorKind::statistic);
    if (kind == TensorKind::gradient) CHECK(graph.backward(graph.producer(x)));
    if (kind == TensorKind::activation) CHECK_FALSE(graph.backward(graph.producer(x)));
    CHECK((kind == TensorKind::kept) == graph.value_kept(x));
  }
  for (const TensorKind kind : {TensorKind::activation, TensorKind::gradient, TensorKind::statistic, TensorKind::kept})
    CHECK(counts[kind] > 0);
  CHECK(counts[TensorKind::tensor] == 0);

  // The forward part of the graph has no backward ops. The kinds of its tensors must still be known, and none of them
  // may be a gradient.
  const TensorLabels inference = label_tensors(forward_part(graph));
  CHECK(inference.kinds_known);
  CHECK(std::count(inference.kind_of.begin(), inference.kind_of.end(), TensorKind::gradient) == 0);
}

TEST_CASE("layers are the prefixes that people would name", "[explain]") {
  const auto has = [](const std::vector<std::string>& layers, const std::string& name) {
    return std::find(layers.begin(), layers.end(), name) != layers.end();
  };
  const std::vector<std::string> gpt2 = layers_of_model("gpt2", {{"layers", 6}, {"batch", 1}, {"seq", 16}});
  CHECK(has(gpt2, "block0"));
  CHECK(has(gpt2, "block5"));
  CHECK(gpt2.size() < 20);
  const std::vector<std::string> resnet = layers_of_model("resnet50", {{"batch", 1}, {"image", 32}});
  CHECK((has(resnet, "layer1") || has(resnet, "layer1.0")));
  const std::vector<std::string> transformer = layers_of_model("transformer", {{"batch", 1}, {"seq", 8}});
  CHECK(has(transformer, "encoder.0"));
  CHECK(has(transformer, "decoder.1"));
  CHECK(has(layers_of_model("unet", {{"batch", 1}, {"image", 32}}), "down1"));

  std::vector<std::string> keras, torch, instances, numbers;
  for (int i = 0; i < 8; ++i) {
    for (const char* part : {"", "_bn", "_relu", "_backward", "_relu_backward"}) {
      keras.push_back(fmt::format("conv_dw_{}{}", i, part));
      keras.push_back(fmt::format("conv_pw_{}{}", i, part));
    }
    for (const char* part : {"self_attn.q_proj", "self_attn.k_proj", "mlp.up_proj", "mlp.down_proj", "input_norm"})
      torch.push_back(fmt::format("model.layers.{}.{}", i, part));
    instances.push_back(fmt::format("native_batch_norm_{}", i));
    instances.push_back(fmt::format("convolution_{}", i));
    instances.push_back(fmt::format("convolution_backward_{}", i));
    numbers.push_back(fmt::format("{}", 10 * i));
  }
  torch.push_back("lm_head");
  CHECK(has(labels_of_names(keras).layers, "conv_dw_3"));
  CHECK(has(labels_of_names(torch).layers, "model.layers.3"));
  CHECK(labels_of_names(instances).layers ==
        std::vector<std::string>{"native_batch_norm", "convolution", "convolution_backward"});
  CHECK(labels_of_names(numbers).layers == std::vector<std::string>{"(all)"});
  CHECK_FALSE(labels_of_names(numbers).layers_known);
  CHECK_FALSE(labels_of_names({"a"}).layers_known);
  CHECK(labels_of_names({}).layers.size() == 1);
}

TEST_CASE("many layers make few rows: ranges of numbers", "[explain]") {
  TensorLabels labels;
  for (int i = 0; i < 10; ++i) labels.layers.push_back(fmt::format("model.layers.{}", (i + 3) % 10));
  labels.layers.insert(labels.layers.begin() + 2, "head");
  labels.layers.push_back("norm12345678901234567890");  // this number is too large to be read as a layer's number
  const LayerRows all = rows_of_layers(labels, 12);
  CHECK(all.names == labels.layers);
  CHECK(all.row_of[11] == 11);
  const LayerRows rows = rows_of_layers(labels, 5);
  CHECK(rows.names == std::vector<std::string>{"model.layers.0-2", "model.layers.3-5", "model.layers.6-9", "head",
                                               "norm12345678901234567890"});
  CHECK(rows.row_of == std::vector<std::int32_t>{1, 1, 3, 1, 2, 2, 2, 2, 0, 0, 0, 4});
  CHECK(rows_of_layers(labels, 3).names ==
        std::vector<std::string>{"model.layers.0-9", "head", "norm12345678901234567890"});
  // These names need at least three rows, even if all numbers are joined into one range. If only two rows are
  // permitted, each name must keep a row of its own.
  CHECK(rows_of_layers(labels, 2).names == labels.layers);
}

TEST_CASE("a backward node belongs to its forward node's layer", "[explain]") {
  GraphBuilder builder;
  for (int i = 0; i < 9; ++i) builder.add(make_node(fmt::format("block{}.part{}", i / 3, i % 3), 1));
  Node gradient = make_node("elsewhere", 1);
  gradient.backward = true;
  gradient.forward = 4;
  builder.add(gradient);
  const TensorLabels labels = label_tensors(builder.build());
  CHECK(labels.layers == std::vector<std::string>{"block0", "block1", "block2"});
  CHECK(labels.layer_of[9] == 1);
}

TEST_CASE("graphs and schedules of a hundred thousand nodes are explained", "[explain]") {
  // The graph is a chain. Its second half reads every tenth value of its first half, and the schedule computes each of
  // these values again just before it is read.
  constexpr NodeId kNodes = 100'000;
  GraphBuilder builder;
  for (NodeId v = 0; v < kNodes; ++v) {
    Node node = make_node(fmt::format("stage{}.op{}", v / 10'000, v), 1 + v % 7);
    if (v > 0) node.inputs.push_back(v - 1);
    if (v > 50'000 && v % 10 == 0) node.inputs.push_back(kNodes - v);
    builder.add(node);
  }
  const Graph graph = builder.build();
  const TensorLabels labels = label_tensors(graph);
  CHECK(labels.layers.size() == 10);
  Schedule schedule;
  for (NodeId v = 0; v < kNodes; ++v) {
    if (v > 50'000 && v % 10 == 0) schedule.steps.push_back(kNodes - v);
    schedule.steps.push_back(v);
  }
  const Evaluation evaluation = evaluate(graph, schedule);
  REQUIRE(evaluation.valid());
  const MemoryAt at = memory_at_peak(graph, labels, schedule);
  CHECK(at.bytes == evaluation.peak);
  std::int64_t sum = 0;
  for (const LiveTensor& tensor : at.tensors) sum += tensor.bytes;
  CHECK(sum == evaluation.peak);
  const RecomputationSummary summary = explain_recomputation(graph, labels, schedule);
  CHECK(static_cast<std::int64_t>(summary.events.size()) == evaluation.recomputed);
  CHECK(summary.total.times == evaluation.recomputed);
}

TEST_CASE("empty schedules have no peak, invalid ones are refused", "[explain]") {
  const Graph empty;
  CHECK(memory_at_peak(empty, label_tensors(empty), {}).step == -1);
  CHECK(explain_recomputation(empty, label_tensors(empty), {}).events.empty());
  for_each_seed(200, [](Random& random) {
    const Graph graph = random_graph(random, any_graph(random));
    const Schedule schedule = random_invalid_schedule(random, graph);
    const TensorLabels labels = label_tensors(graph);
    CHECK_THROWS_AS(memory_at_peak(graph, labels, schedule), InputError);
    CHECK_THROWS_AS(explain_recomputation(graph, labels, schedule), InputError);
  });
  const Graph graph = build_graph({make_node("a", 4)});
  CHECK_THROWS_AS(memory_at(graph, label_tensors(graph), baseline_schedule(graph), 1), InputError);
}

}  // namespace cairn::tests::explain_test
