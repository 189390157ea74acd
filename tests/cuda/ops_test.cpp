// Every op on the device beside the host's kernels.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "core/bf16.h"
#include "core/plan.h"
#include "core/precision.h"
#include "core/schedule.h"
#include "cuda/device.h"
#include "cuda/executor.h"
#include "runtime/executor.h"
#include "tests/catch.h"
#include "tests/cuda/no_device.h"
#include "tests/cuda/op_cases.h"

namespace cairn::tests {
namespace {

using core::ElementType;
using core::Graph;

std::vector<double> values_of(std::span<const std::byte> bytes, ElementType type) {
  std::vector<double> values(bytes.size() / static_cast<std::size_t>(core::element_bytes(type)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    float value = 0;
    core::Bf16 half;
    if (type == ElementType::bf16) {
      std::memcpy(&half, bytes.data() + 2 * i, 2);
      value = static_cast<float>(half);
    } else {
      std::memcpy(&value, bytes.data() + 4 * i, 4);
    }
    values[i] = static_cast<double>(value);
  }
  return values;
}

core::Plan plan_of(const Graph& graph) {
  return core::plan_memory(graph, core::baseline_schedule(graph), {.alignment = 256, .work = 0});
}

std::vector<double> on_host(const Graph& graph) {
  runtime::HostExecutor executor(runtime::compile(graph, core::baseline_schedule(graph), plan_of(graph)));
  executor.run();
  return values_of(executor.outputs().front().bytes, ElementType::f32);
}

std::vector<std::byte> on_device(cuda::Device& device, const Graph& given, bool tf32) {
  const Graph graph = device.with_scratch(given, tf32);
  cuda::Executor executor(device, runtime::compile(graph, core::baseline_schedule(graph), plan_of(graph),
                                                   cuda::compile_options(device, tf32)));
  executor.run();
  const auto bytes = executor.outputs().front().bytes;
  return {bytes.begin(), bytes.end()};
}

/// ||x - y|| / ||y||, or ||x|| where y is zero.
double relative_error(const std::vector<double>& x, const std::vector<double>& y) {
  REQUIRE(x.size() == y.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  return std::sqrt(norm > 0 ? difference / norm : difference);
}

/// One packed and one odd case of every kind: what a memory checker gets through in a minute.
std::vector<OpCase> few_cases() {
  std::map<core::OpKind, int> seen;
  std::vector<OpCase> few;
  for (OpCase& one : op_cases(false)) {
    const std::int64_t cols = one.args[0].back();
    if (cols > 1 && cols < 100 && ++seen[one.op.kind] <= 2) few.push_back(std::move(one));
  }
  return few;
}

void check_ops(const std::vector<OpCase>& cases) {
  cuda::Device device;
  for (const OpCase& one : cases) {
    const Graph plain = graph_of(one, ElementType::f32);
    const std::vector<double> expected = on_host(plain);
    const Graph half = graph_of(one, ElementType::bf16);
    const struct {
      const Graph& graph;
      bool tf32;
      double tolerance;
    } ways[] = {{plain, false, 1e-4}, {plain, true, 3e-3}, {half, false, 5e-2}};
    for (const auto& way : ways) {
      const ElementType type = way.graph.op(0)->type;
      std::string shapes;
      for (const auto& shape : one.args) shapes += fmt::format("[{}] ", fmt::join(shape, ","));
      INFO(core::to_string(one.op.kind) << " " << core::to_string(type) << (way.tf32 ? " tf32 " : " ") << shapes);
      const std::vector<std::byte> bytes = on_device(device, way.graph, way.tf32);
      CHECK(relative_error(values_of(bytes, type), expected) <= way.tolerance);
      CHECK(on_device(device, way.graph, way.tf32) == bytes);
    }
  }
}

}  // namespace

TEST_CASE("an op of every kind agrees with the host, on small shapes", "[sanitize]") {
  if (no_device()) return;
  check_ops(few_cases());
}

TEST_CASE("every op on the device agrees with the host, with the same bits every time") {
  if (no_device()) return;
  check_ops(op_cases(false));
}

TEST_CASE("ops that fill the device agree with the host") {
  if (no_device()) return;
  check_ops(op_cases(true));
}

}  // namespace cairn::tests
