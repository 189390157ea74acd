#pragma once

#include <cstdint>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"

namespace cairn::core {

/// Precision with which an execution stores tensors and multiplies matrices.
enum class Precision : std::uint8_t {
  fp32,  ///< stored and multiplied as fp32
  tf32,  ///< stored as fp32; factors of matrix products and convolutions are rounded to TF32, sums are fp32
  bf16,  ///< stored and multiplied as bf16, except what output_type and arg_type keep in fp32; sums are fp32
};

std::string_view to_string(Precision precision);
/// Returns the precision of that name. Throws InputError that suggests the nearest name.
Precision precision_from_string(std::string_view name);

/// Whether any op of the graph is stored as bf16.
bool stores_bf16(const Graph& graph);

/// The precision that the graph is stored in: bf16 if any op is, else fp32.
inline Precision stored_precision(const Graph& graph) { return stores_bf16(graph) ? Precision::bf16 : Precision::fp32; }

/// Returns the graph with its tensors stored as `precision` requires. Changes the sizes of nodes with an op, and the
/// types of ops and residents. Scratch, costs, and nodes without an op stay. A graph that stores bf16 is returned
/// unchanged for bf16; for fp32 or tf32, InputError is thrown. O(n + m).
Graph with_precision(const Graph& graph, Precision precision);

/// The unit of costs computed by a roofline. It is ns, of a named machine if the roofline is one of roofline_of().
CostUnit cost_unit_of(const Roofline& roofline);
/// Returns the graph with the roofline's cost for every node that has an op.
Graph with_roofline_costs(const Graph& graph, const Roofline& roofline);

/// The roofline by an H200's data sheet for dense products in this precision: 67, 495 or 990 TFLOP/s, and 4.8 TB/s.
Roofline roofline_of(Precision precision);

/// Shapes of the arguments of v's op, in order. v must have an op.
std::vector<Shape> arg_shapes(const Graph& graph, NodeId v);
/// Element type of an operand.
ElementType type_of(const Graph& graph, const Operand& operand);

}  // namespace cairn::core
