#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// This file declares the synthetic kernel, which executes nodes without an op. It reads every byte of its inputs, and
/// fills each output with a hash of these bytes, of the node's id and of the output's number. So if a buffer is
/// overwritten too early, the outputs change.
namespace cairn::runtime {

/// Returns the sum mod 2^64 of mix(word, index) over the 8-byte words (little-endian) of `bytes`; the last word is
/// padded with zeros. The order of the additions does not matter, so machines may compute the sum in parallel.
/// O(bytes).
std::uint64_t synthetic_digest(std::span<const std::byte> bytes);

/// Fills every output. Word j of an output is mix(h, j); the last word can be truncated. The hash h is computed from
/// the node's seed and the digests of `inputs`, in order, and for outputs other than output 0 also from the output's
/// number (runtime/support/element.h). All inputs are read before anything is written, so outputs can take over the
/// storage of inputs.
void run_synthetic(std::int32_t node, std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs);

}  // namespace cairn::runtime
