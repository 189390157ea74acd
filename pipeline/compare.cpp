#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cairn/core/error.h"
#include "cairn/core/support/bf16.h"
#include "cairn/pipeline/internal/backends.h"
#include "cairn/pipeline/run.h"

namespace cairn::pipeline {

Comparison compare(const core::Graph& graph, const Execution& a, const Execution& b) {
  if (a.outputs.size() != b.outputs.size() || a.sinks.size() != b.sinks.size())
    throw core::DefectError(
        fmt::format("the baseline has {} kept outputs and {} sinks, the schedule {} and {}; please "
                    "report this",
                    a.outputs.size(), a.sinks.size(), b.outputs.size(), b.sinks.size()));
  Comparison comparison;
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    const auto& x = a.outputs[i];
    const auto& y = b.outputs[i];
    ++comparison.outputs;
    comparison.bytes += static_cast<std::int64_t>(x.bytes.size());
    comparison.synthetic += graph.op(x.node) == nullptr ? 1 : 0;
    if (x.node != y.node || x.output != y.output || x.bytes != y.bytes) {
      comparison.different.push_back(graph.value_name(graph.value({x.node, x.output})));
    }
  }
  for (std::size_t i = 0; i < a.sinks.size(); ++i) {
    ++comparison.outputs;
    ++comparison.sinks;
    if (a.sinks[i] == b.sinks[i]) continue;
    comparison.different.push_back(graph.value_name(graph.value({a.sinks[i].node, a.sinks[i].output})));
  }
  return comparison;
}

namespace {

double value_at(const std::vector<std::byte>& bytes, core::ElementType type, std::size_t i) {
  float value = 0;
  core::Bf16 half;
  if (type == core::ElementType::bf16) {
    std::memcpy(&half, bytes.data() + i * sizeof(half), sizeof(half));
    value = static_cast<float>(half);
  } else {
    std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
  }
  return static_cast<double>(value);
}

double relative_error(const std::vector<std::byte>& bytes, core::ElementType type,
                      const std::vector<std::byte>& reference) {
  const std::size_t count = bytes.size() / static_cast<std::size_t>(core::element_bytes(type));
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = value_at(bytes, type, i), y = value_at(reference, core::ElementType::f32, i);
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(norm > 0 ? difference / norm : difference);
}

/// Returns the relative rounding error that one op may have in this precision. check_with_host() uses this number as
/// the relative size of the noise (see Closeness).
double rounding_of(core::Precision precision) {
  switch (precision) {
    case core::Precision::fp32:
      return 0x1p-19;  // error of a sum of about a thousand terms if their order changes
    case core::Precision::tf32:
      return 0x1p-10;
    case core::Precision::bf16:
      return 0x1p-8;
  }
  return 0;
}

/// Compares `execution` with two executions in fp32 on the host: `host`, and `disturbed`, in which noise of the
/// relative size rounding_of(precision) was added to every value.
Closeness compare_close(const core::Graph& graph, const Execution& execution, const Execution& host,
                        const Execution& disturbed, core::Precision precision) {
  constexpr double kFactor = 16;
  constexpr double kDecidable = 0.5;
  if (execution.outputs.size() != host.outputs.size() || disturbed.outputs.size() != host.outputs.size())
    throw core::DefectError(fmt::format("{} kept outputs, but the host has {}; please report this",
                                        execution.outputs.size(), host.outputs.size()));
  Closeness result;
  double worst_ratio = 0;
  for (std::size_t i = 0; i < host.outputs.size(); ++i) {
    const KeptBytes& output = execution.outputs[i];
    const std::vector<std::byte>& expected = host.outputs[i].bytes;
    const core::Op* op = graph.op(output.node);
    double error = 0, allowed = 0;
    const core::ElementType type = op == nullptr ? core::ElementType::i32 : core::output_type(*op, output.output);
    if (type == core::ElementType::i32) {  // digests and indices are not rounded
      error = output.bytes == expected ? 0 : 1;
    } else {
      error = relative_error(output.bytes, type, expected);
      allowed = kFactor *
                (rounding_of(precision) + relative_error(disturbed.outputs[i].bytes, core::ElementType::f32, expected));
    }
    ++result.outputs;
    // An integer in an output can be the index of the largest of several values. If the largest values are almost
    // equal, rounding can change the index. Such an output is then counted as undecided.
    const bool rounded = precision != core::Precision::fp32 || disturbed.outputs[i].bytes != expected;
    if (error > 0 && op != nullptr && type == core::ElementType::i32 && rounded) {
      ++result.undecided;
      continue;
    }
    const bool finite = std::isfinite(error);
    // If the allowed error is half of the output's norm or more, rounding alone can change the output very much. Then
    // even a large error does not show that the output is wrong.
    if (finite && allowed >= kDecidable && error <= kFactor * allowed) {
      ++result.undecided;
      continue;
    }
    if (!(error <= allowed)) result.close = false;
    const double ratio = finite ? error / std::max(allowed, 1e-30) : HUGE_VAL;
    if (ratio <= worst_ratio) continue;
    worst_ratio = ratio;
    result.worst_error = error;
    result.worst_allowed = allowed;
    result.worst_output = graph.value_name(graph.value({output.node, output.output}));
  }
  return result;
}

}  // namespace

Closeness check_with_host(const PreparedGraph& graph, const Execution& execution, std::int64_t alignment,
                          std::uint64_t seed, const std::atomic<bool>* stop) {
  const auto host = open_host_backend();
  const core::Graph reference = host->prepare(graph.given, core::Precision::fp32);
  const core::Schedule schedule = core::baseline_schedule(reference);
  const core::Plan plan = solvers::plan_memory(reference, schedule, {.alignment = alignment, .limit = {.work = 0}});
  ExecuteRequest request{.graph = reference, .schedule = schedule, .plan = plan, .seed = seed, .stop = stop};
  const Execution expected = host->execute(request);
  request.rounding_noise = rounding_of(graph.precision);
  return compare_close(graph.prepared, execution, expected, host->execute(request), graph.precision);
}

std::optional<double> loss_of(const core::Graph& graph, const Execution& execution) {
  for (const auto& output : execution.outputs) {
    const core::Op* op = graph.op(output.node);
    if (op == nullptr || !core::is_loss(op->kind)) continue;
    float loss = 0;
    if (output.bytes.size() != sizeof(loss)) continue;
    std::memcpy(&loss, output.bytes.data(), sizeof(loss));
    return loss;
  }
  return std::nullopt;
}

}  // namespace cairn::pipeline
