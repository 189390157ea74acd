#include "cairn/runtime/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "cairn/core/precision.h"
#include "cairn/core/support/sum_limit.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::runtime {
namespace {

core::Resident random_argument(const core::Graph& graph, core::NodeId v, std::size_t arg) {
  core::Resident resident;
  resident.shape = core::arg_shapes(graph, v)[arg];
  resident.type = core::type_of(graph, graph.op(v)->args[arg]);
  resident.role = core::Resident::Role::data;
  resident.init = core::Resident::Init::uniform;
  if (resident.type == core::ElementType::i32) resident.scale = static_cast<double>(index_limit(graph, v));
  return resident;
}

std::int64_t bytes_of(const core::Graph& graph, core::NodeId v) {
  const core::Op& op = *graph.op(v);
  std::int64_t bytes = 0;
  for (std::int32_t k = 0; k < core::output_count(op.kind); ++k) bytes += core::output_bytes(op, k);
  for (std::size_t i = 0; i < op.args.size(); ++i) bytes += random_argument(graph, v, i).bytes();
  return bytes;
}

/// Completes a node of a sample graph whose op updates a weight (core::is_update): makes the op write its own argument
/// 1, which is the weight.
void set_target(core::GraphBuilder& builder, core::Node& node) {
  node.pinned = true;
  for (core::Output& output : node.outputs) output.size = 0;
  node.size = 0;
  node.op->writes = node.op->args[1].index;
  for (const std::size_t i : core::updated_args(node.op->kind))
    builder.resident(node.op->args[i].index).role = core::Resident::Role::optimizer;
  builder.resident(node.op->writes).role = core::Resident::Role::weight;
  core::add_master(builder, *node.op);
}

}  // namespace

std::string op_signature(const core::Graph& graph, core::NodeId v) {
  const core::Op& op = *graph.op(v);
  const core::OpAttrs& a = op.attrs;
  std::string text =
      fmt::format("{} {} [{}]", core::to_string(op.kind), core::to_string(op.type), fmt::join(op.shape, ","));
  const std::vector<core::Shape> shapes = core::arg_shapes(graph, v);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    text += fmt::format(" {} [{}]", core::to_string(core::type_of(graph, op.args[i])), fmt::join(shapes[i], ","));
  }
  // The text leaves out seeds, and factors such as alpha and eps, because they change values but not the choice of
  // kernels.
  return text + fmt::format(" {} {} {} {} {}{} {} {} {} {} {} {} {} [{}]", a.batch, a.m, a.n, a.k, a.trans_a, a.trans_b,
                            a.rows, a.cols, a.kernel, a.stride, a.pad, a.offset, a.causal, fmt::join(a.perm, ","));
}

core::Graph sample_graph(const core::Graph& graph, core::NodeId v, std::int64_t copies) {
  core::GraphBuilder builder("sample of " + graph.name(v));
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    core::Node node;
    node.name = fmt::format("{} {}", graph.name(v), copy);
    node.op = *graph.op(v);
    node.op->writes = -1;
    core::set_sizes(node);
    node.scratch = std::max<std::int64_t>(0, graph.scratch(v));
    node.keep = true;  // so that every copy writes memory of its own
    for (core::Output& output : node.outputs) output.keep = true;
    for (std::size_t i = 0; i < node.op->args.size(); ++i) {
      core::Resident argument = random_argument(graph, v, i);
      argument.name = fmt::format("argument {} of {}", i, copy);
      node.op->args[i] = core::Operand::resident(builder.add_resident(std::move(argument)));
    }
    if (core::is_update(node.op->kind)) set_target(builder, node);
    builder.add(std::move(node));
  }
  return builder.build();
}

std::int64_t sample_copies(const core::Graph& graph, core::NodeId v, std::int64_t cache_bytes) {
  constexpr std::int64_t kMost = 32;
  const std::int64_t bytes = std::max<std::int64_t>(1, bytes_of(graph, v));
  return std::clamp<std::int64_t>((2 * cache_bytes + bytes - 1) / bytes, 1, kMost);
}

namespace {

bool has_evidence(const Timing& timing) {
  return timing.delays.preemptions > 0 || timing.delays.seconds > 0.1 * timing.seconds;
}

/// Returns the index of the shortest timing without evidence of a disturbance (disturbed()). If all timings have such
/// evidence, returns the index of the shortest timing.
std::size_t reference_of(std::span<const Timing> timings) {
  std::size_t least = 0;
  for (std::size_t i = 1; i < timings.size(); ++i) {
    const bool worse = has_evidence(timings[i]), than = has_evidence(timings[least]);
    if (worse != than ? than : timings[i].seconds < timings[least].seconds) least = i;
  }
  return least;
}

double least_of(std::span<const Timing> timings) { return std::ranges::min(timings, {}, &Timing::seconds).seconds; }

}  // namespace

std::vector<bool> disturbed(std::span<const Timing> timings) {
  constexpr double kFar = 2, kNear = 1.2, kMostlyWaiting = 0.5;
  std::vector<bool> result(timings.size());
  if (timings.empty()) return result;
  const Timing& reference = timings[reference_of(timings)];
  for (std::size_t i = 0; i < timings.size(); ++i) {
    const Timing& timing = timings[i];
    result[i] = timing.seconds > kFar * reference.seconds ||
                (has_evidence(timing) && timing.seconds > kNear * reference.seconds) ||
                timing.delays.seconds > kMostlyWaiting * timing.seconds;
  }
  return result;
}

TimedWork time_work(const std::function<std::vector<Timing>()>& run, const TimingOptions& options) {
  const auto expired = [&] { return options.expired && options.expired(); };
  std::vector<Timing> timings = run();
  std::vector<bool> flags(timings.size(), false);
  if (!expired()) timings.clear();  // the first timings were only the warm-up
  const auto least = static_cast<std::size_t>(options.least);
  double total = 0;
  while (timings.empty() || !expired()) {
    const std::vector<Timing> pieces = run();
    timings.insert(timings.end(), pieces.begin(), pieces.end());
    for (const Timing& piece : pieces) total += piece.seconds;
    flags = disturbed(timings);
    std::size_t clean = 0;
    double clean_seconds = 0;
    for (std::size_t i = 0; i < timings.size(); ++i) {
      clean += flags[i] ? 0 : 1;
      clean_seconds += flags[i] ? 0 : timings[i].seconds;
    }
    if (clean >= static_cast<std::size_t>(options.most) || (clean >= least && clean_seconds >= options.seconds)) break;
    const std::size_t least_runs = (least + pieces.size() - 1) / pieces.size();
    const double undisturbed =
        std::max(options.seconds, static_cast<double>(least_runs * pieces.size()) * least_of(timings));
    if (clean < timings.size() && timings.size() >= least && total > options.most_effort * undisturbed) break;
  }
  TimedWork result;
  result.timings = static_cast<std::int64_t>(timings.size());
  result.repeated = std::ranges::count(flags, true);
  std::vector<double> seconds, undelayed;
  for (std::size_t i = 0; i < timings.size(); ++i)
    flags[i] ? undelayed.push_back(timings[i].undelayed_seconds()) : seconds.push_back(timings[i].seconds);
  result.disturbed = seconds.empty();
  if (3 * result.repeated <= result.timings) {
    result.seconds = median(std::move(seconds));
  } else {
    result.seconds = median(std::move(undelayed));
    if (!seconds.empty()) result.seconds = std::min(result.seconds, std::ranges::min(seconds));
  }
  return result;
}

std::vector<DistinctOp> distinct_ops(const core::Graph& graph) {
  std::map<std::string, DistinctOp> of_signature;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.op(v) == nullptr) continue;
    DistinctOp& op = of_signature[op_signature(graph, v)];
    if (op.nodes++ == 0) op.node = v;
    op.cost += graph.cost(v);
  }
  std::vector<DistinctOp> ops;
  for (const auto& [signature, op] : of_signature) ops.push_back(op);
  std::ranges::sort(ops, [](const DistinctOp& a, const DistinctOp& b) {
    return a.cost != b.cost ? a.cost > b.cost : a.node < b.node;
  });
  return ops;
}

double remaining_seconds(double seconds, double seconds_of_op, std::int64_t ops_done, double work_done,
                         std::int64_t ops_left, double work_left) {
  const double beyond = std::max(0.0, seconds - seconds_of_op * static_cast<double>(ops_done));
  return seconds_of_op * static_cast<double>(ops_left) + (work_done > 0 ? beyond / work_done * work_left : 0);
}

MeasuredGraph measure_costs(const core::Graph& graph, const std::function<std::optional<double>(core::NodeId)>& measure,
                            const std::string& source) {
  MeasuredGraph result;
  std::map<std::string, std::int64_t> cost_of;
  std::vector<double> ratios;  // measured costs divided by former ones
  const std::vector<DistinctOp> ops = distinct_ops(graph);
  result.distinct_ops = static_cast<std::int64_t>(ops.size());
  for (const DistinctOp& op : ops) {
    const std::optional<double> seconds = measure(op.node);
    if (!seconds) break;
    const std::int64_t cost = std::max<std::int64_t>(1, std::llround(*seconds * 1e9));
    cost_of.emplace(op_signature(graph, op.node), cost);
    if (graph.cost(op.node) > 0) ratios.push_back(static_cast<double>(cost) / static_cast<double>(graph.cost(op.node)));
  }
  result.measured_ops = static_cast<std::int64_t>(cost_of.size());
  const double ns = graph.cost_unit().seconds() * 1e9;  // of one unit of the former costs; 0 if that is unknown
  if (result.measured_ops < result.distinct_ops && !ratios.empty()) result.scale = median(std::move(ratios));
  const auto times = [](std::int64_t cost, double factor) {
    constexpr auto kMost = static_cast<double>(core::kSumLimit);
    return static_cast<std::int64_t>(std::llround(std::min(static_cast<double>(cost) * factor, kMost)));
  };

  std::vector<std::int64_t> cost(graph.view().cost, graph.view().cost + graph.node_count());
  std::int64_t others = 0;  // number of nodes without an op that have a cost
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.op(v) == nullptr) {
      others += cost[v] > 0 ? 1 : 0;
      if (ns > 0 && result.measured_ops > 0) cost[v] = times(cost[v], ns);
      continue;
    }
    const auto known = cost_of.find(op_signature(graph, v));
    if (known != cost_of.end()) {
      cost[v] = known->second;
      ++result.measured_nodes;
    } else {
      result.unmeasured.push_back(v);
      if (result.scale != 1) cost[v] = std::max<std::int64_t>(1, times(cost[v], result.scale));
    }
  }

  constexpr std::size_t kMostText = 400;  // the limit of core::check_cost_unit
  core::CostUnit unit = graph.cost_unit();
  if (result.measured_nodes > 0) {
    const std::string former = unit.source.empty() ? "the costs that were given" : unit.source;
    std::string text = source;
    if (!result.unmeasured.empty())
      text += fmt::format("; {} nodes not measured: {}{}", result.unmeasured.size(), former,
                          result.scale != 1 ? fmt::format(", times {:.4g}", result.scale) : "");
    if (others > 0) text += fmt::format("; {} nodes without an op: {}", others, former);
    if (text.size() > kMostText) text = text.substr(0, kMostText - 3) + "...";
    // If the unit of the costs of nodes without an op is unknown, the graph as a whole has no known unit.
    const bool mixed = others > 0 && ns == 0;
    unit = {mixed ? "" : core::kNanoseconds, std::move(text)};
  }
  result.graph = graph.with_costs(std::move(cost), std::move(unit));
  return result;
}

double median(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("the median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace cairn::runtime
