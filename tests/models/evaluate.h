#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/runtime/host/kernels.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::tests {

/// Draws numbers that are uniform in [-1, 1). The numbers are the same on every platform.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : engine_(seed) {}
  double operator()() { return 2.0 * (static_cast<double>(engine_() >> 11) * 0x1p-53) - 1.0; }

 private:
  std::mt19937_64 engine_;
};

/// Executes the nodes of a graph in input order with the kernels in double precision. Every output has memory of its
/// own. The weights have their usual initial values plus a little noise. So no bias of a layer and no shift of a norm
/// is 0.
class DoubleEvaluation {
 public:
  explicit DoubleEvaluation(const core::Graph& graph)
      : graph_(graph), nodes_(static_cast<std::size_t>(graph.node_count())) {
    Noise noise(7);
    const auto residents = graph.residents();
    for (std::size_t i = 0; i < residents.size(); ++i) {
      tensors_.push_back(initial(residents[i], static_cast<std::int32_t>(i), noise));
    }
  }

  /// Runs, in input order, the nodes for which `wanted` returns true.
  template <class Predicate>
  void run(Predicate wanted) {
    for (const core::NodeId v : graph_.input_order()) {
      if (wanted(v)) run_node(v);
    }
  }
  void run_forward() {
    run([&](core::NodeId v) { return !graph_.backward(v); });
  }
  void run_all() {
    run([](core::NodeId) { return true; });
  }

  std::vector<double>& resident(std::int32_t index) { return tensors_[static_cast<std::size_t>(index)].values; }
  /// Returns the output of a node. If the node writes into a resident tensor, this is the resident tensor.
  std::vector<double>& output(core::NodeId v) {
    const std::int32_t writes = graph_.op(v)->writes;
    return writes >= 0 ? resident(writes) : nodes_[static_cast<std::size_t>(v)];
  }

 private:
  struct Values {
    std::vector<double> values;
    std::vector<std::int32_t> integers;
  };

  static Values initial(const core::Resident& resident, std::int32_t index, Noise& noise) {
    const auto count = static_cast<std::size_t>(core::element_count(resident.shape));
    Values tensor;
    if (resident.role == core::Resident::Role::optimizer) return tensor;
    if (resident.type == core::Resident::Type::i32) {
      tensor.integers.resize(count);
      runtime::fill_resident(resident, index, 1, std::as_writable_bytes(std::span(tensor.integers)));
      return tensor;
    }
    std::vector<float> floats(count);
    runtime::fill_resident(resident, index, 1, std::as_writable_bytes(std::span(floats)));
    tensor.values.assign(floats.begin(), floats.end());
    if (resident.role == core::Resident::Role::weight) {
      for (double& value : tensor.values) value += 0.1 * noise();
    }
    return tensor;
  }

  void run_node(core::NodeId v) {
    const core::Op& op = *graph_.op(v);
    std::vector<runtime::TensorRef<double>> args;
    std::vector<core::Shape> shapes;
    for (const core::Operand& arg : op.args) {
      args.push_back(tensor(arg));
      shapes.emplace_back(args.back().shape.begin(), args.back().shape.end());
    }
    std::vector<double>& out = output(v);
    out.resize(static_cast<std::size_t>(core::element_count(op.shape)));
    scratch_.resize(static_cast<std::size_t>(core::op_work(op, shapes).scratch / 4));
    runtime::run_op<double>(op, args, out.data(), scratch_.data());
  }

  runtime::TensorRef<double> tensor(const core::Operand& arg) {
    if (arg.kind == core::Operand::Kind::node) return {output(arg.index).data(), graph_.op(arg.index)->shape};
    const Values& values = tensors_[static_cast<std::size_t>(arg.index)];
    const core::Shape& shape = graph_.residents()[static_cast<std::size_t>(arg.index)].shape;
    if (!values.integers.empty()) return {values.integers.data(), shape};
    return {values.values.data(), shape};
  }

  core::Graph graph_;
  std::vector<Values> tensors_;             ///< elements of each resident, by the index of the resident
  std::vector<std::vector<double>> nodes_;  ///< output of each node, by the id of the node
  std::vector<double> scratch_;
};

}  // namespace cairn::tests
