// Compares every op on the device with the host's kernels.
#include <fmt/ranges.h>

#include <map>

#include "cairn/cuda/device.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/cuda/op_cases.h"
#include "cairn/tests/support/device_program.h"
#include "cairn/tests/support/outputs.h"
#include "cairn/tests/support/stored_values.h"

namespace cairn::tests::ops_test {
namespace {

using core::ElementType;
using core::Graph;

/// Returns at most two small cases of each kind of op. A memory checker takes about a minute for all of them.
std::vector<OpCase> few_cases() {
  std::map<core::OpKind, int> seen;
  std::vector<OpCase> few;
  for (OpCase& one : op_cases(false)) {
    const std::int64_t cols = one.args[0].back();
    if (cols > 1 && cols < 100 && ++seen[one.op.kind] <= 2) few.push_back(std::move(one));
  }
  return few;
}

/// Returns, for each channel of each image, the sum over its pixels.
std::vector<double> of_planes(const std::vector<double>& values, const core::Shape& shape) {
  const auto pixels = static_cast<std::size_t>(shape[1] * shape[2]), channels = static_cast<std::size_t>(shape[3]);
  std::vector<double> sums(values.size() / pixels);
  for (std::size_t i = 0; i < values.size(); ++i) sums[i / (pixels * channels) * channels + i % channels] += values[i];
  return sums;
}

void check_ops(const std::vector<OpCase>& cases) {
  cuda::Device device;
  for (const OpCase& one : cases) {
    const Graph plain = graph_of(one, ElementType::f32);
    const Outputs expected = on_host(plain);
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
      const Outputs outputs = on_device(device, way.graph, way.tf32);
      CHECK(on_device(device, way.graph, way.tf32) == outputs);
      REQUIRE(outputs.size() == expected.size());
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        const ElementType stored = core::output_type(*way.graph.op(0), static_cast<std::int32_t>(k));
        if (stored == ElementType::i32) {  // indices are compared only in fp32, because rounding to bf16 creates ties
          if (type == ElementType::f32) CHECK(outputs[k] == expected[k]);
          continue;
        }
        const std::vector<double> actual = stored_values(outputs[k].second, stored);
        const std::vector<double> wanted = stored_values(expected[k].second, ElementType::f32);
        REQUIRE(actual.size() == wanted.size());
        // In bf16, several pixels of a window can tie for the maximum, so the gradient may go to any of them. Sums over
        // all pixels of a channel do not depend on this choice.
        if (one.op.kind == core::OpKind::maxpool_grad && type == ElementType::bf16) {
          CHECK(relative_error(of_planes(actual, one.op.shape), of_planes(wanted, one.op.shape)) <= way.tolerance);
        } else {
          CHECK(relative_error(actual, wanted) <= way.tolerance);
        }
      }
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

TEST_CASE("ops on shapes that take rare paths agree with the host", "[ptx]") {
  if (no_device()) return;
  check_ops(rare_op_cases(false));
}

TEST_CASE("ops with very large windows, or with several tiles of patches, agree with the host") {
  if (no_device()) return;
  check_ops(rare_op_cases(true));
}

TEST_CASE("ops that fill the device agree with the host") {
  if (no_device()) return;
  check_ops(op_cases(true));
}

}  // namespace cairn::tests::ops_test
