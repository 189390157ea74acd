#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/grid.h"

/// This kernel adds a bias to the result of a matrix product or convolution. It is used where the library does not add
/// the bias itself.
namespace cairn::runtime::device {

/// Adds the bias to y, in place. place.at[0] is a row of y, and place.at[1] is the number of a chunk of W elements in
/// this row.
template <class T, int W>
struct AddBias : StoreInOrder<T, W> {
  const T* bias;
  std::int64_t chunks;
  CAIRN_HD Chunk<T, W> load(const Place<2>& place) const {
    Chunk<T, W> y = load_chunk<W>(static_cast<const T*>(this->out), place.at[0] * chunks + place.at[1]);
    const Chunk<T, W> b = load_chunk<W>(bias, place.at[1]);
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) y.value[i] = from_float<T>(to_float(y.value[i]) + to_float(b.value[i]));
    return y;
  }
};

/// Adds the bias of `elements` elements to each of the contiguous rows of y. The sums are rounded to T. So a bf16
/// element is rounded twice: when the product is stored, and when the sum is stored.
template <class T, class Machine>
void add_bias(Launcher<Machine>& launcher, const T* bias, T* y, std::int64_t rows, std::int64_t elements) {
  with_width<T>(rows_are_packed<T>(elements), [&]<int kWidth>(Width<kWidth>) {
    const std::int64_t chunks = elements / kWidth;
    for_places<kCopyUnroll<kWidth>>(launcher, Grid<2>({rows, chunks}), AddBias<T, kWidth>{{y}, bias, chunks});
  });
}

}  // namespace cairn::runtime::device
