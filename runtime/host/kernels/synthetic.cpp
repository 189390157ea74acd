#include "cairn/runtime/host/kernels/synthetic.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cairn/runtime/support/element.h"
#include "cairn/runtime/support/loops.h"

namespace cairn::runtime {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::int64_t kWord = sizeof(std::uint64_t);

std::int64_t word_count(std::size_t bytes) { return (static_cast<std::int64_t>(bytes) + kWord - 1) / kWord; }

std::size_t word_bytes(std::size_t bytes, std::int64_t word) {
  return std::min(sizeof(std::uint64_t), bytes - static_cast<std::size_t>(word * kWord));
}

}  // namespace

std::uint64_t synthetic_digest(std::span<const std::byte> bytes) {
  return sum_blocks(word_count(bytes.size()), [=](std::int64_t begin, std::int64_t end) {
    std::uint64_t sum = 0;
    for (std::int64_t j = begin; j < end; ++j) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + j * kWord, word_bytes(bytes.size(), j));
      sum += mix(word, static_cast<std::uint64_t>(j));
    }
    return sum;
  });
}

void run_synthetic(std::int32_t node, std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs) {
  if (std::ranges::all_of(outputs, &std::span<std::byte>::empty)) return;
  std::uint64_t hash = synthetic_seed(node);
  for (const auto& input : inputs) hash = synthetic_join(hash, synthetic_digest(input));
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::uint64_t own = synthetic_output(hash, static_cast<std::int64_t>(k));
    for_elements(word_count(outputs[k].size()), [=, output = outputs[k]](std::int64_t j) {
      const std::uint64_t word = mix(own, static_cast<std::uint64_t>(j));
      std::memcpy(output.data() + j * kWord, &word, word_bytes(output.size(), j));
    });
  }
}

}  // namespace cairn::runtime
