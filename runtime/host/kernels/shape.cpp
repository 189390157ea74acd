#include <algorithm>
#include <array>
#include <cstdint>

#include "cairn/runtime/host/kernels/call.h"

namespace cairn::runtime::kernels {

template <class T>
void concat(const Call<T>& call) {
  const std::int64_t a_cols = last_extent(call.shape(0));
  const std::int64_t b_cols = last_extent(call.shape(1));
  for_rows(row_count(call.shape(0)), a_cols + b_cols, [&](std::int64_t r) {
    T* out = call.out + r * (a_cols + b_cols);
    std::copy_n(call.arg(0) + r * a_cols, a_cols, out);
    std::copy_n(call.arg(1) + r * b_cols, b_cols, out + a_cols);
  });
}

template <class T>
void slice(const Call<T>& call) {
  const std::int64_t from_cols = last_extent(call.shape(0));
  const std::int64_t cols = last_extent(call.op.shape);
  for_rows(row_count(call.op.shape), cols, [&](std::int64_t r) {
    std::copy_n(call.arg(0) + r * from_cols + call.attrs().offset, cols, call.out + r * cols);
  });
}

// Permutes the axes of a tensor, row by row. A row consists of the elements along the output's last axis.
template <class T>
void permute(const Call<T>& call) {
  constexpr std::size_t kMaxRank = 8;  // check_op refuses more
  const Extents in = call.shape(0);
  const Extents out(call.op.shape);
  if (out.empty()) {
    call.out[0] = call.arg(0)[0];
    return;
  }
  std::array<std::int64_t, kMaxRank> in_stride{};
  std::array<std::int64_t, kMaxRank> stride{};  // stride in x of each axis of the output
  for (std::size_t axis = in.size(); axis-- > 0;) {
    in_stride[axis] = axis + 1 == in.size() ? 1 : in_stride[axis + 1] * in[axis + 1];
  }
  for (std::size_t axis = 0; axis < out.size(); ++axis) {
    stride[axis] = in_stride[static_cast<std::size_t>(call.attrs().perm[axis])];
  }
  const std::size_t last = out.size() - 1;
  const std::int64_t cols = out[last];
  const std::int64_t step = stride[last];
  for_rows(row_count(out), cols, [&, cols, step](std::int64_t row) {
    std::int64_t from = 0;
    for (std::size_t axis = last, rest = static_cast<std::size_t>(row); axis-- > 0;) {
      const auto extent = static_cast<std::size_t>(out[axis]);
      from += static_cast<std::int64_t>(rest % extent) * stride[axis];
      rest /= extent;
    }
    const T* x = call.arg(0) + from;
    T* to = call.out + row * cols;
    if (step == 1) {
      std::copy_n(x, cols, to);
    } else {
      for (std::int64_t c = 0; c < cols; ++c) to[c] = x[c * step];
    }
  });
}

CAIRN_INSTANTIATE_KERNEL(concat);
CAIRN_INSTANTIATE_KERNEL(slice);
CAIRN_INSTANTIATE_KERNEL(permute);

}  // namespace cairn::runtime::kernels
