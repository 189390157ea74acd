#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

/// The ordering problem in the form that the exact search uses. Sets of steps are rows of bits.
namespace cairn::solvers {

using Word = std::uint64_t;
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

inline bool test_bit(const Word* bits, std::int32_t i) { return (bits[i / 64] >> (i % 64) & 1) != 0; }
inline void set_bit(Word* bits, std::int32_t i) { bits[i / 64] |= Word{1} << (i % 64); }
inline void clear_bit(Word* bits, std::int32_t i) { bits[i / 64] &= ~(Word{1} << (i % 64)); }

/// Calls visit(i) for the index i of every bit that is set, in ascending order.
template <class Visit>
void for_each_bit(const Word* bits, std::int32_t words, const Visit& visit) {
  for (std::int32_t w = 0; w < words; ++w) {
    for (Word rest = bits[w]; rest != 0; rest &= rest - 1) visit(64 * w + std::countr_zero(rest));
  }
}

/// Several lists of numbers, stored in one array.
struct Lists {
  std::vector<std::int32_t> begin{0}, items;

  std::span<const std::int32_t> operator[](std::int32_t i) const {
    return {items.data() + begin[i], items.data() + begin[i + 1]};
  }
  void close() { begin.push_back(static_cast<std::int32_t>(items.size())); }
};

/// Rows of bits, all of the same length.
struct BitRows {
  std::int32_t words = 0;
  std::vector<Word> bits;

  Word* operator[](std::int32_t row) { return bits.data() + static_cast<std::size_t>(row) * words; }
  const Word* operator[](std::int32_t row) const { return bits.data() + static_cast<std::size_t>(row) * words; }
};

/// Groups of steps that share bytes. The bytes of a group in CutProblem::first are allocated when the first step of the
/// group runs. The bytes of a group in CutProblem::last are freed when the last step of the group has run.
struct Groups {
  std::vector<std::int64_t> bytes;
  BitRows members;
  Lists of;  ///< for each step, the numbers of the groups that contain it
  // Bytes and members of each group in `of`. They are stored again here, in the order of `of`, so that the search reads
  // them sequentially.
  std::vector<std::int64_t> item_bytes;
  BitRows item_members;
};

/// An ordering problem in the form that the search uses. An order goes from the empty set to the set of all steps. The
/// memory after a set of steps is the sum of these terms:
/// - rise - drop of the steps in the set;
/// - the bytes of the `first` groups that have a member in the set;
/// - minus the bytes of the `last` groups whose members are all in the set.
/// This function is submodular. If time is reversed, the problem keeps its form, but rise and drop, predecessors and
/// successors, and first and last groups are exchanged.
struct CutProblem {
  std::int32_t count = 0, words = 0;
  std::int64_t start = 0;  ///< memory before the first step
  std::vector<std::int64_t> rise, drop;
  BitRows needs;  ///< predecessors of each step
  Lists predecessors, successors;
  Groups first, last;
  BitRows related;  ///< for each step: its successors and all steps that share a group with it
};

}  // namespace cairn::solvers
