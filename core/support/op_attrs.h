#pragma once

#include "cairn/core/op.h"

namespace cairn::core {

/// Calls visit(name, member) for every attribute of an op. `Attrs` is OpAttrs or const OpAttrs.
template <typename Attrs, typename Visit>
void for_each_attr(Attrs& attrs, const Visit& visit) {
  visit("batch", attrs.batch);
  visit("m", attrs.m);
  visit("n", attrs.n);
  visit("k", attrs.k);
  visit("trans_a", attrs.trans_a);
  visit("trans_b", attrs.trans_b);
  visit("rows", attrs.rows);
  visit("cols", attrs.cols);
  visit("kernel", attrs.kernel);
  visit("stride", attrs.stride);
  visit("pad", attrs.pad);
  visit("offset", attrs.offset);
  visit("causal", attrs.causal);
  visit("alpha", attrs.alpha);
  visit("eps", attrs.eps);
  visit("p", attrs.p);
  visit("seed", attrs.seed);
  visit("stream", attrs.stream);
  visit("beta1", attrs.beta1);
  visit("beta2", attrs.beta2);
  visit("decay", attrs.decay);
  visit("limit", attrs.limit);
  visit("perm", attrs.perm);
}

}  // namespace cairn::core
