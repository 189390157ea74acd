#pragma once

#include <cstdint>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"

namespace cairn::core {

/// How an execution stores tensors and multiplies matrices.
enum class Precision : std::uint8_t {
  fp32,  ///< stored and multiplied as fp32
  tf32,  ///< stored as fp32; factors of matrix products and convolutions are rounded to TF32, sums are fp32
  bf16,  ///< stored and multiplied as bf16, but for what output_type and arg_type keep in fp32; sums are fp32
};

std::string_view to_string(Precision precision);
/// Throws InputError that suggests the nearest name.
Precision precision_from_string(std::string_view name);

/// Whether any op of the graph is stored as bf16.
bool stores_bf16(const Graph& graph);

/// How the graph is stored: bf16 where any op is, else fp32.
inline Precision stored_precision(const Graph& graph) { return stores_bf16(graph) ? Precision::bf16 : Precision::fp32; }

/// The graph with its tensors stored as `precision` wants it: sizes of nodes with an op, types of ops and residents.
/// Scratch and costs stay. Nodes without an op stay as they are. A graph that stores bf16 is returned as it is for
/// bf16; throws InputError when it is asked for in fp32 or tf32. O(n + m).
Graph with_precision(const Graph& graph, Precision precision);

/// What costs by a roofline are counted in: ns of that machine, named where it is one of roofline_of().
CostUnit cost_unit_of(const Roofline& roofline);
/// The graph with the roofline's cost for every node that has an op.
Graph with_roofline_costs(const Graph& graph, const Roofline& roofline);

/// An H200's data sheet for products in this precision (dense): 67, 495 and 990 TFLOP/s; 4.8 TB/s.
Roofline roofline_of(Precision precision);

/// Shapes of the arguments of v's op, in order. v must have an op.
std::vector<Shape> arg_shapes(const Graph& graph, NodeId v);
/// How an operand is stored.
ElementType type_of(const Graph& graph, const Operand& operand);

}  // namespace cairn::core
