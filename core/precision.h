#pragma once

#include <cstdint>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"

namespace cairn::core {

/// Precision with which an execution stores tensors and multiplies matrices.
enum class Precision : std::uint8_t {
  fp32,  ///< stored and multiplied as fp32
  tf32,  ///< stored as fp32; factors of matrix products and convolutions are rounded to TF32, and sums are fp32
  bf16,  ///< stored and multiplied as bf16, except tensors that output_type and arg_type keep in fp32; sums are fp32
};

std::string_view to_string(Precision precision);
/// Returns the precision named `name`. Throws InputError if there is none; the message suggests the nearest name.
Precision precision_from_string(std::string_view name);

/// Returns whether any op of the graph is stored as bf16.
bool stores_bf16(const Graph& graph);

/// Returns the precision that the graph is stored in: bf16 if any op is stored as bf16, else fp32.
inline Precision stored_precision(const Graph& graph) { return stores_bf16(graph) ? Precision::bf16 : Precision::fp32; }

/// Returns the graph with its tensors stored as `precision` requires. This changes the types of ops and residents, and
/// the sizes of nodes that have an op. Negative scratch, which is the storage that an in-place output takes over,
/// shrinks in proportion to the output. Other scratch, costs, and nodes without an op stay unchanged. A graph that
/// already stores its tensors as bf16 is returned unchanged if `precision` is bf16; otherwise InputError is thrown.
/// O(nodes + edges).
Graph with_precision(const Graph& graph, Precision precision);

/// Adapts the update `op` of a weight (is_update) to op.type, the type in which weights are stored. args[1] of the
/// update is the weight. If op.type is bf16, the weight becomes bf16, and the update works on an fp32 copy of the
/// weight, a new resident tensor `<weight>.master`. The copy is needed because rounding to bf16 would lose small
/// changes of a weight. If op.type is not bf16, nothing changes.
void add_master(GraphBuilder& builder, Op& op);

/// Returns the unit of costs that a roofline computes, which is ns. The unit's source names a GPU if the roofline is
/// one of roofline_of().
CostUnit cost_unit_of(const Roofline& roofline);
/// Returns the graph with the roofline's cost for every node that has an op. Other nodes keep their cost.
Graph with_roofline_costs(const Graph& graph, const Roofline& roofline);

/// Returns the roofline of an H200 for dense products in this precision, by its data sheet: 4.8 TB/s, and 67 TFLOP/s
/// for fp32, 495 for tf32 or 990 for bf16.
Roofline roofline_of(Precision precision);

/// Returns the shapes of the arguments of v's op, in order. v must have an op.
std::vector<Shape> arg_shapes(const Graph& graph, NodeId v);
/// Returns the element type of an operand.
ElementType type_of(const Graph& graph, const Operand& operand);

}  // namespace cairn::core
