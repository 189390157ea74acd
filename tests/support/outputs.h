#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/runtime/executor.h"

namespace cairn::tests {

using Bytes = std::vector<std::byte>;
using Outputs = std::vector<std::pair<core::OutputRef, Bytes>>;

inline Outputs outputs_of(runtime::Executor& executor) {
  Outputs outputs;
  for (const runtime::Output& output : executor.outputs()) {
    outputs.emplace_back(core::OutputRef(output.node, output.output), Bytes(output.bytes.begin(), output.bytes.end()));
  }
  return outputs;
}

}  // namespace cairn::tests
