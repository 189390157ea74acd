// Tests kernels that run only in rare cases: for convolutions of a library with a bias, and for large synthetic nodes.
#include <string>
#include <utility>
#include <vector>

#include "cairn/cuda/device.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/support/device_program.h"
#include "cairn/tests/support/op_case.h"
#include "cairn/tests/support/outputs.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/stored_values.h"

namespace cairn::tests::paths_test {

using core::ElementType;

TEST_CASE("PTX: the bias of a library's convolution is added by a kernel", "[ptx]") {
  if (no_device()) return;
  fake::set_cudnn(true);
  cuda::Device device;
  for (const std::int64_t channels : {12, 16, 7}) {
    OpCase one{.op = {.kind = core::OpKind::conv2d, .shape = {2, 5, 4, channels}, .attrs = {.stride = 1, .pad = 1}},
               .args = {{2, 5, 4, 8}, {channels, 3, 3, 8}, {channels}}};
    const auto expected = stored_values(on_host(graph_of(one, ElementType::f32)).front().second, ElementType::f32);
    for (const auto& [type, tolerance] : {std::pair{ElementType::f32, 1e-5}, std::pair{ElementType::bf16, 2e-2}}) {
      INFO(channels << " " << core::to_string(type));
      CHECK(relative_error(stored_values(on_device(device, graph_of(one, type)).front().second, type), expected) <=
            tolerance);
    }
  }
  fake::set_cudnn(false);
}

TEST_CASE("PTX: large synthetic nodes, and those of many inputs, have the host's bits", "[ptx]") {
  if (no_device()) return;
  cuda::Device device;
  std::vector<core::Node> nodes = {make_node("large", 40'003)};
  core::Node last = make_node("last", 20'001, {0});
  for (core::NodeId v = 1; v <= 9; ++v) {
    nodes.push_back(make_node("small " + std::to_string(v), 100 + v, {0}));
    last.inputs.emplace_back(v);
  }
  last.keep = true;
  nodes.push_back(last);
  const core::Graph graph = build_graph(nodes);
  CHECK(on_device(device, graph) == on_host(graph));
}

}  // namespace cairn::tests::paths_test
