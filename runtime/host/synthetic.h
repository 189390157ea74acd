#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// The kernel of nodes without an op: reads every byte of its inputs and fills each of its outputs with a hash of
/// them, of the node's id and of the output's number, so that the outputs of two schedules agree if and only if no
/// buffer was ever clobbered.
namespace cairn::runtime {

/// Sum mod 2^64 of mix(word, index) over the 8-byte words (little-endian) of `bytes`, the last one padded with zeros.
/// The order of the sum does not matter, so any machine may take it in parallel. O(bytes).
std::uint64_t synthetic_digest(std::span<const std::byte> bytes);

/// Fills every output: word j is mix(h, j), the last one cut, where h joins the digests of `inputs` in order, then the
/// number of an output but for the first, to the node's seed (element.h). The inputs are digested before anything is
/// written: outputs may take their storage.
void run_synthetic(std::int32_t node, std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs);

}  // namespace cairn::runtime
