#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cairn/solvers/order/internal/reduction/step_graph.h"

/// This file describes the problem of ordering the steps of a StepGraph, in the form that the exact search
/// (cut_search.h) uses. Sets of steps are stored as rows of bits.
namespace cairn::solvers {

using Word = std::uint64_t;
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

inline bool test_bit(const Word* bits, std::int32_t i) { return (bits[i / 64] >> (i % 64) & 1) != 0; }
inline void set_bit(Word* bits, std::int32_t i) { bits[i / 64] |= Word{1} << (i % 64); }
inline void clear_bit(Word* bits, std::int32_t i) { bits[i / 64] &= ~(Word{1} << (i % 64)); }

template <class Visit>
void for_each_bit(const Word* bits, std::int32_t words, const Visit& visit) {
  for (std::int32_t w = 0; w < words; ++w) {
    for (Word rest = bits[w]; rest != 0; rest &= rest - 1) visit(64 * w + std::countr_zero(rest));
  }
}

struct BitRows {
  std::int32_t words = 0;
  std::vector<Word> bits;

  Word* operator[](std::int32_t row) { return bits.data() + static_cast<std::size_t>(row) * words; }
  const Word* operator[](std::int32_t row) const { return bits.data() + static_cast<std::size_t>(row) * words; }
};

/// Stores groups of steps, each with a number of bytes. The bytes of a group in CutProblem::first are allocated when
/// the first of its steps begins to run. The bytes of a group in CutProblem::last are freed when the last of its steps
/// has run.
struct Groups {
  std::vector<std::int64_t> bytes;
  BitRows members;
  Lists of;  ///< for each step, the groups that contain it
  // Bytes and members of the group of each entry in `of`, copied so that the search reads memory sequentially.
  std::vector<std::int64_t> item_bytes;
  BitRows item_members;
};

/// Describes a problem of ordering steps. When a step begins, memory rises by its `rise` and by the bytes of the
/// `first` groups that it allocates. When the step ends, memory falls by its `drop` and by the bytes of the `last`
/// groups that it frees. So the memory after a set of steps has run is the sum of these terms:
/// - `start`, and rise - drop of each step in the set;
/// - the bytes of each `first` group that has a step in the set;
/// - minus the bytes of each `last` group whose steps are all in the set.
///
/// This sum is a submodular function of the set.
///
/// An order read backwards is an order of another problem of this form, in which rise and drop, predecessors and
/// successors, and `first` and `last` groups are exchanged.
struct CutProblem {
  std::int32_t count = 0, words = 0;  ///< count: number of steps; words: number of words per row of a BitRows
  std::int64_t start = 0;
  std::vector<std::int64_t> rise, drop;
  BitRows needs;
  Lists predecessors, successors;
  Groups first, last;
  BitRows related;  ///< for each step: its successors and all steps that share a group with it
};

}  // namespace cairn::solvers
