#pragma once

#include "cairn/runtime/device/families.h"
#include "cairn/runtime/device/machine.h"

namespace cairn::runtime::device {

/// A product with its workspace out of the op's scratch.
template <class Machine>
void run_gemm(Machine& machine, Scratch& scratch, const GemmShape& shape, const GemmOperands& operands) {
  machine.gemm(shape, operands, scratch.take<std::byte>(machine.gemm_workspace(shape)));
}

template <class Machine>
void matmul(Machine& machine, Call& call) {
  const core::OpAttrs& a = call.attrs();
  GemmShape shape;
  shape.trans_a = a.trans_a;
  shape.trans_b = a.trans_b;
  shape.bias = call.args.size() == 3;
  shape.tf32 = call.tf32;
  shape.type = call.op.type;
  shape.batch = a.batch;
  shape.m = a.m;
  shape.n = a.n;
  shape.k = a.k;
  GemmOperands operands;
  operands.alpha = static_cast<float>(a.alpha);
  operands.a = call.args[0].data;
  operands.b = call.args[1].data;
  operands.bias = shape.bias ? call.args[2].data : nullptr;
  operands.c = call.out;
  run_gemm(machine, call.scratch, shape, operands);
}

}  // namespace cairn::runtime::device
