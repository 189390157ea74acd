#include <algorithm>
#include <cstdint>

#include "cairn/runtime/host/kernels/call.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::runtime::kernels {

template <class T>
void embedding(const Call<T>& call) {
  const std::int32_t* ids = call.args[0].integers();
  const std::int64_t count = elements(call.shape(0));
  const std::int64_t channels = call.shape(1)[1];
  check_range("id", ids, count, call.shape(1)[0]);
  const bool has_positions = call.args.size() == 3;
  const std::int64_t sequence = last_extent(call.shape(0));
  for_rows(count, channels, [&](std::int64_t i) {
    const T* entry = call.arg(1) + ids[i] * channels;
    T* out = call.out + i * channels;
    if (!has_positions) {
      std::copy_n(entry, channels, out);
      return;
    }
    const T* position = call.arg(2) + i % sequence * channels;
    for (std::int64_t c = 0; c < channels; ++c) out[c] = entry[c] + position[c];
  });
}

// Each thread computes some columns of the table's gradient. An element in row `id` is a sum over the tokens with this
// id. One thread alone adds up the sum, in the order of the tokens' positions, so the bits do not depend on the number
// of threads.
template <class T>
void embedding_grad(const Call<T>& call) {
  const T* dy = call.arg(0);
  const std::int32_t* ids = call.args[1].integers();
  const std::int64_t count = elements(call.shape(1));
  const std::int64_t vocabulary = call.op.shape[0];
  const std::int64_t channels = call.op.shape[1];
  check_range("id", ids, count, vocabulary);
  for_elements(vocabulary * channels, [&](std::int64_t i) { call.out[i] = T(0); });
  for_blocks(channels, kColumnBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i) {
      T* out = call.out + ids[i] * channels;
      for (std::int64_t c = begin; c < end; ++c) out[c] += dy[i * channels + c];
    }
  });
}

CAIRN_INSTANTIATE_KERNEL(embedding);
CAIRN_INSTANTIATE_KERNEL(embedding_grad);

}  // namespace cairn::runtime::kernels
