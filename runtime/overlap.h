#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/runtime/program.h"

namespace cairn::runtime {

inline constexpr int kMostStreams = 16;

/// The instructions of a program on several streams. Those of one stream run one after another, in the order of the
/// program; those of different streams can run at the same time. Each instruction waits for the ones that it depends
/// on, so that the results have the same bits as on one stream.
struct Overlap {
  int streams = 1;
  std::vector<std::int32_t> stream;           ///< stream of each instruction, from 0
  std::vector<std::size_t> wait_begin = {0};  ///< index in `waits` of the first wait of each instruction, and the end
  std::vector<std::int64_t> waits;            ///< steps of earlier instructions on other streams

  /// Sum of all instructions' costs, in the unit of the graph's costs: the time of a step on one stream.
  std::int64_t cost = 0;
  /// Time of a step if every instruction takes its cost, also beside others, and waits are free. On a device,
  /// instructions that share its processors take longer. So a step hardly gets faster than this.
  std::int64_t makespan = 0;
  /// Costs on the longest path of instructions that depend on each other. No number of streams has a lower makespan.
  std::int64_t critical_path = 0;

  /// Returns the steps of the earlier instructions for which an instruction must wait, the latest first.
  std::span<const std::int64_t> waits_of(std::int64_t step) const {
    const auto at = static_cast<std::size_t>(step);
    return {waits.data() + wait_begin[at], waits.data() + wait_begin[at + 1]};
  }
};

/// Assigns the instructions of a program to `streams` streams, at most kMostStreams. An instruction depends on
/// - those that wrote what it reads in the arena or in resident tensors,
/// - those that read or wrote the bytes that it writes: outputs, scratch, and residents that an update changes,
/// - the latest execution of every predecessor of its node, because of edges that only order nodes,
/// - the previous execution of the same node, if a digest of the node's output is stored.
///
/// Guards and poison are not considered, so programs that use them need one stream. Waits that follow from the order
/// within a stream and from other waits are left out. Streams are chosen in the order of the program, in a simulation
/// in which every instruction takes its cost: an instruction goes behind its predecessor on the longest path if that is
/// the last instruction of its stream, otherwise to the stream on which it starts earliest. Throws InputError for
/// another number of streams, and for several streams if the program has copies. O(T log T + d log d) for T steps and d
/// dependences, times the number of streams.
Overlap overlap(const Program& program, int streams);

}  // namespace cairn::runtime
