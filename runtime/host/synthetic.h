#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// The kernel of nodes without an op. It reads every byte of its inputs and fills each output with a hash of them, of
/// the node's id and of the output's number. So the outputs of two schedules agree if and only if no buffer was ever
/// clobbered.
namespace cairn::runtime {

/// Returns the sum mod 2^64 of mix(word, index) over the 8-byte words (little-endian) of `bytes`, the last one padded
/// with zeros. The order of the sum does not matter, so any machine may compute it in parallel. O(bytes).
std::uint64_t synthetic_digest(std::span<const std::byte> bytes);

/// Fills every output: word j is mix(h, j), with the last word cut. h is the node's seed, joined with the digests of
/// `inputs` in order and then, except for the first output, with the output's number (runtime/support/element.h). The
/// inputs are digested before anything is written, so outputs may take their storage.
void run_synthetic(std::int32_t node, std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs);

}  // namespace cairn::runtime
