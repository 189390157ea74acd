#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/models/evaluate.h"

namespace cairn::tests {

/// Returns the node that computes the loss: it is the only forward node that is kept.
inline core::NodeId loss_node(const core::Graph& graph) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.keep(v) && !graph.backward(v)) return v;
  }
  return core::kNoNode;
}

/// Returns a map from the index of each weight to the node that computes the weight's gradient.
inline std::map<std::int32_t, core::NodeId> gradient_nodes(const core::Graph& graph) {
  std::map<std::int32_t, core::NodeId> nodes;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const core::Op* op = graph.op(v);
    if (op == nullptr || op->writes < 0) continue;
    nodes[graph.residents()[static_cast<std::size_t>(op->writes)].gradient_of] = v;
  }
  return nodes;
}

/// Checks the gradient of every weight along a random direction: the slope of the loss that follows from the gradient
/// must agree with the central difference of the loss over +-step. So `step` must be small compared with the distance
/// to the next kink of a ReLU or of a maximum. Returns the names of the weights whose gradient is 0 everywhere. The
/// gradients must be resident.
inline std::vector<std::string> check_gradients(const core::Graph& graph, double step = 1e-6) {
  constexpr double kTolerance = 1e-5;    // relative error
  const double rounding = 1e-14 / step;  // error of the central difference, because the loss is accurate to about 1e-14

  DoubleEvaluation evaluation(graph);
  evaluation.run_all();
  const core::NodeId loss = loss_node(graph);
  REQUIRE(loss != core::kNoNode);
  const auto loss_at = [&](std::vector<double>& weight, const std::vector<double>& origin,
                           const std::vector<double>& direction, double length) {
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = origin[i] + length * direction[i];
    evaluation.run_forward();
    return evaluation.output(loss)[0];
  };

  std::vector<std::string> without_gradient;
  Noise noise(11);
  for (const auto& [index, node] : gradient_nodes(graph)) {
    const std::string& name = graph.residents()[static_cast<std::size_t>(index)].name;
    std::vector<double>& weight = evaluation.resident(index);
    const std::vector<double> origin = weight, gradient = evaluation.output(node);
    std::vector<double> direction(weight.size());
    double slope = 0.0, norm = 0.0;
    for (std::size_t i = 0; i < weight.size(); ++i) {
      direction[i] = noise();
      slope += gradient[i] * direction[i];
      norm += gradient[i] * gradient[i];
    }
    const double up = loss_at(weight, origin, direction, step);
    const double down = loss_at(weight, origin, direction, -step);
    weight = origin;
    INFO("weight " << name);
    CHECK(slope == Approx((up - down) / (2 * step)).epsilon(kTolerance).margin(rounding));
    if (std::sqrt(norm) < rounding) without_gradient.push_back(name);
  }
  return without_gradient;
}

}  // namespace cairn::tests
