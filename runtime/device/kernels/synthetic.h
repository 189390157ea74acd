#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "cairn/core/host_device.h"
#include "cairn/core/machine/support/team.h"
#include "cairn/runtime/device/call.h"
#include "cairn/runtime/device/elements.h"
#include "cairn/runtime/support/element.h"

/// This file has the synthetic kernel for devices, which executes nodes without an op
/// (runtime/host/kernels/synthetic.h). It gives the same bits as on the host: every digest is a sum of 64-bit words, so
/// the order of additions does not matter.
namespace cairn::runtime::device {

struct Bytes {
  const std::byte* data;
  std::int64_t count;
};
struct OutputBytes {
  std::byte* data;
  std::int64_t count;
};

/// Memory of the machine in which hashes are computed. Each machine has one HashMemory, outside of the arena, which all
/// nodes use one after another.
struct HashMemory {
  static constexpr std::int64_t kPartials = 256;
  std::uint64_t partial[kPartials];  ///< digests of the parts of a tensor
  std::uint64_t hash;                ///< hash of the inputs read so far
};

inline constexpr std::int64_t kWordBytes = 8;

CAIRN_HD inline std::int64_t word_count(std::int64_t bytes) { return (bytes + kWordBytes - 1) / kWordBytes; }

/// Returns word `index` of the bytes, which must begin at a multiple of 8. The last word is padded with zeros.
CAIRN_HD inline std::uint64_t load_word(const Bytes& bytes, std::int64_t index) {
  if ((index + 1) * kWordBytes <= bytes.count) return reinterpret_cast<const std::uint64_t*>(bytes.data)[index];
  std::uint64_t word = 0;
  for (std::int64_t i = index * kWordBytes; i < bytes.count; ++i) {
    word |= static_cast<std::uint64_t>(bytes.data[i]) << 8 * (i - index * kWordBytes);
  }
  return word;
}

CAIRN_HD inline void store_word(std::byte* data, std::int64_t count, std::int64_t index, std::uint64_t word) {
  if ((index + 1) * kWordBytes <= count) {
    reinterpret_cast<std::uint64_t*>(data)[index] = word;
    return;
  }
  for (std::int64_t i = index * kWordBytes; i < count; ++i) {
    data[i] = static_cast<std::byte>(word >> 8 * (i - index * kWordBytes) & 0xFF);
  }
}

/// Returns this thread's part of the digest of the words [begin, end): the sum over the words that it loads.
template <class Team>
CAIRN_HD std::uint64_t partial_digest(const Team& team, const Bytes& bytes, std::int64_t begin, std::int64_t end) {
  std::uint64_t sum = 0;
  load_ahead<4>(
      begin + team.rank(), team.size(), end, [&](std::int64_t j) { return load_word(bytes, j); },
      [&](std::int64_t j, std::uint64_t word) { sum += mix(word, static_cast<std::uint64_t>(j)); });
  return sum;
}

template <class Team>
CAIRN_HD void write_hash(const Team& team, std::uint64_t hash, const OutputBytes& out, std::int64_t begin,
                         std::int64_t end) {
  for (std::int64_t j = begin + team.rank(); j < end; j += team.size()) {
    store_word(out.data, out.count, j, mix(hash, static_cast<std::uint64_t>(j)));
  }
}

/// The synthetic kernel in one launch, for tensors that are so small that one team can read and write them in a few
/// microseconds.
struct SmallSynthetic {
  static constexpr int kThreads = 256;
  static constexpr int kMostInputs = 8;
  static constexpr int kMostOutputs = 4;
  static constexpr std::int64_t kMostBytes = 16384;  ///< largest number of bytes of a tensor that this kernel handles

  std::int32_t node;
  int input_count, output_count;
  Bytes inputs[kMostInputs];
  OutputBytes outputs[kMostOutputs];

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t) const {
    std::uint64_t hash = synthetic_seed(node);
    for (int i = 0; i < input_count; ++i) {
      const std::uint64_t part = partial_digest(team, inputs[i], 0, word_count(inputs[i].count));
      hash = synthetic_join(hash, team.reduce(part, core::Sum()));
    }
    team.sync();  // waits for all reads, because an output may take over an input's storage
    for (int k = 0; k < output_count; ++k) {
      write_hash(team, synthetic_output(hash, k), outputs[k], 0, word_count(outputs[k].count));
    }
  }
};

/// Sets memory.partial[index] to the digest of part `index` of the bytes.
struct DigestParts {
  static constexpr int kThreads = 256;
  Bytes bytes;
  std::int64_t words_per_part;
  HashMemory* memory;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const std::int64_t begin = index * words_per_part;
    const std::int64_t all = word_count(bytes.count);
    const std::int64_t end = begin + words_per_part < all ? begin + words_per_part : all;
    const std::uint64_t sum = team.reduce(partial_digest(team, bytes, begin, end), core::Sum());
    if (team.rank() == 0) memory->partial[index] = sum;
  }
};

/// Adds up the digests of the parts; the sum is the digest of the whole tensor. If `digest` is not nullptr, stores the
/// sum in *digest. Otherwise joins the sum to memory->hash, which begins as the node's seed.
struct JoinParts {
  static constexpr int kThreads = 256;
  std::int32_t node;
  bool first;
  std::int64_t parts;
  HashMemory* memory;
  std::uint64_t* digest;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t) const {
    std::uint64_t sum = 0;
    for (std::int64_t i = team.rank(); i < parts; i += team.size()) sum += memory->partial[i];
    sum = team.reduce(sum, core::Sum());
    if (team.rank() != 0) return;
    if (digest != nullptr) {
      *digest = sum;
    } else {
      memory->hash = synthetic_join(first ? synthetic_seed(node) : memory->hash, sum);
    }
  }
};

struct WriteHash {
  static constexpr int kThreads = 256;
  static constexpr std::int64_t kWords = 4096;  ///< number of words that one team writes
  std::int32_t node;
  bool has_inputs;
  const HashMemory* memory;
  std::int64_t output;  ///< number of the output among the node's outputs
  OutputBytes out;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const std::int64_t all = word_count(out.count);
    const std::int64_t begin = index * kWords;
    const std::int64_t end = begin + kWords < all ? begin + kWords : all;
    const std::uint64_t hash = has_inputs ? memory->hash : synthetic_seed(node);
    write_hash(team, synthetic_output(hash, output), out, begin, end);
  }
};

/// Divides the bytes into parts, writes the digests of the parts to memory->partial, and returns the number of parts.
template <class Machine>
std::int64_t digest_parts(Machine& machine, const Bytes& bytes, HashMemory* memory) {
  constexpr std::int64_t kLeastWords = 4096;
  const std::int64_t words = word_count(bytes.count);
  if (words == 0) return 0;
  std::int64_t per_part = blocks_of(words, HashMemory::kPartials);
  if (per_part < kLeastWords) per_part = kLeastWords;
  const std::int64_t parts = blocks_of(words, per_part);
  machine.launch(DigestParts{bytes, per_part, memory}, parts);
  return parts;
}

/// Stores runtime::synthetic_digest of the bytes in `*digest`.
template <class Machine>
void synthetic_digest(Machine& machine, const Bytes& bytes, HashMemory* memory, std::uint64_t* digest) {
  const std::int64_t parts = digest_parts(machine, bytes, memory);
  machine.launch(JoinParts{0, false, parts, memory, digest}, 1);
}

/// Does the same as runtime::run_synthetic(). Takes one launch if the tensors are small (SmallSynthetic), otherwise two
/// launches per input and one per output.
template <class Machine>
void run_synthetic(Machine& machine, std::int32_t node, std::span<const Bytes> inputs,
                   std::span<const OutputBytes> outputs, HashMemory* memory) {
  std::int64_t all_bytes = 0;
  bool small = inputs.size() <= SmallSynthetic::kMostInputs && outputs.size() <= SmallSynthetic::kMostOutputs;
  for (const OutputBytes& output : outputs) {
    all_bytes += output.count;
    small = small && output.count <= SmallSynthetic::kMostBytes;
  }
  if (all_bytes == 0) return;
  for (const Bytes& input : inputs) small = small && input.count <= SmallSynthetic::kMostBytes;
  if (small) {
    SmallSynthetic kernel{node, static_cast<int>(inputs.size()), static_cast<int>(outputs.size()), {}, {}};
    std::copy(inputs.begin(), inputs.end(), kernel.inputs);
    std::copy(outputs.begin(), outputs.end(), kernel.outputs);
    machine.launch(kernel, 1);
    return;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::int64_t parts = digest_parts(machine, inputs[i], memory);
    machine.launch(JoinParts{node, i == 0, parts, memory, nullptr}, 1);
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::int64_t teams = blocks_of(word_count(outputs[k].count), WriteHash::kWords);
    if (teams == 0) continue;
    machine.launch(WriteHash{node, !inputs.empty(), memory, static_cast<std::int64_t>(k), outputs[k]}, teams);
  }
}

}  // namespace cairn::runtime::device
