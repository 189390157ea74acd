#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cairn/runtime/program.h"

namespace cairn::runtime {

inline constexpr int kMostStreams = 16;

/// Assigns the instructions of a program to several streams. Instructions of one stream run one after another, in the
/// order of the program; instructions of different streams can run at the same time. Each instruction waits for the
/// instructions that it depends on, so the results have the same bits as on one stream.
struct Overlap {
  int streams = 1;
  std::vector<std::int32_t> stream;  ///< stream of each instruction, from 0
  std::vector<std::size_t> wait_begin = {
      0};  ///< index in `waits` of the first wait of each instruction; the last entry is the size of `waits`
  std::vector<std::int64_t> waits;  ///< for each wait, the step of the instruction that must end, on another stream

  /// Sum of all instructions' costs, in the unit of the graph's costs: the time of a step on one stream.
  std::int64_t cost = 0;
  /// Time of a training step, assuming that every instruction takes its cost even while others run, and that waits are
  /// free. On a device, instructions that run at the same time slow each other down, so a real step is hardly ever
  /// faster than this.
  std::int64_t makespan = 0;
  /// Sum of the costs on the longest path of instructions each of which depends on the one before. The makespan cannot
  /// be lower, however many streams there are.
  std::int64_t critical_path = 0;

  /// Returns the steps of the earlier instructions for which an instruction must wait, the latest first.
  std::span<const std::int64_t> waits_of(std::int64_t step) const {
    const auto at = static_cast<std::size_t>(step);
    return {waits.data() + wait_begin[at], waits.data() + wait_begin[at + 1]};
  }
};

/// Assigns the instructions of a program to `streams` streams, at most kMostStreams. An instruction depends on
/// - the instructions that wrote what it reads in the arena or in resident tensors,
/// - the instructions that read or wrote the bytes that it writes: outputs, scratch, and residents that an update
///   changes,
/// - the latest execution of every predecessor of its node, because an edge can order two nodes without carrying data,
/// - the previous execution of the same node, if a digest of the node's output is stored.
///
/// Writes of guards and poison (runtime/support/execution.h) are not considered, so programs that use these need one
/// stream. A wait is left out if the order within a stream and the remaining waits imply it. The instructions are
/// assigned in the order of the program, in a simulation in which every instruction takes its cost. Let p be the
/// predecessor of an instruction on the longest path that ends with the instruction. If p is the last instruction of
/// its stream so far, the instruction goes to the stream of p, otherwise to the stream on which it starts earliest.
/// Throws InputError if `streams` is not in 1 .. kMostStreams, and for several streams if the program has copies. O(T
/// log T + d log d) for T steps and d dependences, times the number of streams.
Overlap overlap(const Program& program, int streams);

}  // namespace cairn::runtime
