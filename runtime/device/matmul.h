#pragma once

#include "cairn/runtime/device/call.h"

namespace cairn::runtime::device {

template <class Machine>
void matmul(Launcher<Machine>&, Call& call) {
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
  call.gemm(shape, operands, call.scratch.take<std::byte>(call.library.gemm_workspace(shape)));
}

}  // namespace cairn::runtime::device
