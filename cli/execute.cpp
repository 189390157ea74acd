#include "cli/execute.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "cli/common.h"

namespace cairn::cli {

Execution execute(runtime::Program program, runtime::ExecuteOptions options, int repeats) {
  options.before_step = [](const runtime::Instruction& instruction) {
    if (catch_interrupt()) throw Failure(kInterrupted, fmt::format("interrupted at step {}", instruction.step));
  };
  runtime::HostExecutor executor(std::move(program), options);
  Execution execution;
  execution.report = executor.run(true);
  for (int i = 1; i < repeats; ++i) {
    runtime::StepReport report = executor.run(true);
    if (report.seconds < execution.report.seconds) execution.report = std::move(report);
  }
  for (const auto& output : executor.outputs())
    execution.outputs.push_back({output.node, {output.bytes.begin(), output.bytes.end()}});
  execution.sinks = executor.sink_digests();
  return execution;
}

Comparison compare(const core::Graph& graph, const Execution& a, const Execution& b) {
  if (a.outputs.size() != b.outputs.size() || a.sinks.size() != b.sinks.size())
    throw Failure(kDefect, fmt::format("the baseline has {} kept outputs and {} sinks, the schedule {} and {}; please "
                                       "report this",
                                       a.outputs.size(), a.sinks.size(), b.outputs.size(), b.sinks.size()));
  Comparison comparison;
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    const auto& x = a.outputs[i];
    const auto& y = b.outputs[i];
    ++comparison.outputs;
    comparison.bytes += static_cast<std::int64_t>(x.bytes.size());
    if (x.node != y.node || x.bytes != y.bytes) comparison.different.push_back(graph.name(x.node));
  }
  for (std::size_t i = 0; i < a.sinks.size(); ++i) {
    ++comparison.outputs;
    ++comparison.sinks;
    if (!(a.sinks[i] == b.sinks[i])) comparison.different.push_back(graph.name(a.sinks[i].node));
  }
  return comparison;
}

std::optional<double> loss_of(const core::Graph& graph, const Execution& execution) {
  for (const auto& output : execution.outputs) {
    const core::Op* op = graph.op(output.node);
    if (op == nullptr || (op->kind != core::OpKind::cross_entropy && op->kind != core::OpKind::mse)) continue;
    float loss = 0;
    if (output.bytes.size() != sizeof(loss)) continue;
    std::memcpy(&loss, output.bytes.data(), sizeof(loss));
    return loss;
  }
  return std::nullopt;
}

}  // namespace cairn::cli
