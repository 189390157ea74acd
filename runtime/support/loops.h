#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "cairn/core/machine/support/thread_pool.h"

/// This file has parallel loops, which run on the threads of core's thread pool. Results do not depend on the number of
/// threads, because the division into blocks depends only on sizes, and partial sums are added in the order of the
/// blocks.
namespace cairn::runtime {

/// Calls body(begin, end) for the blocks [0, block), [block, 2 block), ... of [0, n), in parallel.
template <class F>
void for_blocks(std::int64_t n, std::int64_t block, const F& body) {
  core::parallel_blocks(n, block, core::thread_count(),
                        [&](std::int64_t begin, std::int64_t end, int) { body(begin, end); });
}

inline constexpr std::int64_t kElementBlock = 16384;  ///< number of elements in a block of an elementwise loop
inline constexpr std::int64_t kColumnBlock = 32;      ///< number of columns in a block of a sum over rows

/// Returns the number of rows in a block of about kElementBlock elements.
inline std::int64_t row_block(std::int64_t cols) { return std::max<std::int64_t>(1, kElementBlock / cols); }

/// Calls body(i) for every i in [0, n), in parallel.
template <class F>
void for_elements(std::int64_t n, const F& body) {
  for_blocks(n, kElementBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

/// Calls body(r) for every row r in [0, rows), in parallel. `cols` is the number of elements of a row; it decides how
/// many rows form a block.
template <class F>
void for_rows(std::int64_t rows, std::int64_t cols, const F& body) {
  for_blocks(rows, row_block(cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) body(r);
  });
}

/// Returns the sum of body(begin, end) over at most 64 blocks of [0, n).
template <class F>
auto sum_blocks(std::int64_t n, const F& body) {
  using Value = std::invoke_result_t<F, std::int64_t, std::int64_t>;
  constexpr std::int64_t kMaxBlocks = 64;
  const std::int64_t block = std::max<std::int64_t>(1, (n + kMaxBlocks - 1) / kMaxBlocks);
  std::array<Value, kMaxBlocks> partial{};
  for_blocks(n, block, [&](std::int64_t begin, std::int64_t end) {
    partial[static_cast<std::size_t>(begin / block)] = body(begin, end);
  });
  Value total{};
  for (const Value& value : partial) total += value;
  return total;
}

/// Returns the sum of term(i) for i below n. Runs on one thread, in double, with eight interleaved partial sums that
/// the compiler can vectorise.
template <class F>
double sum_lanes(std::int64_t n, const F& term) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[static_cast<std::size_t>(lane)] += static_cast<double>(term(i + lane));
    }
  }
  double total = 0;
  for (const double lane : lanes) total += lane;
  for (; i < n; ++i) total += static_cast<double>(term(i));
  return total;
}

}  // namespace cairn::runtime
