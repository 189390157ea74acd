// Places of grids, and windows along an axis.
#include <array>
#include <limits>
#include <random>
#include <vector>

#include "cairn/runtime/device/grid.h"
#include "cairn/tests/catch.h"

namespace cairn::tests {
namespace {

using runtime::device::Divisor;
using runtime::device::Grid;
using runtime::device::Range;
using runtime::device::Slide;

template <int N>
std::array<std::int64_t, N> place_by_division(const std::int64_t (&extents)[N], std::int64_t index) {
  std::array<std::int64_t, N> place{};
  for (int axis = N; axis-- > 1; index /= extents[axis]) place[static_cast<std::size_t>(axis)] = index % extents[axis];
  place[0] = index;
  return place;
}

template <bool kNarrow, int N>
std::array<std::int64_t, N> place_of(const Grid<N>& grid, std::int64_t index) {
  return std::to_array(grid.template place<kNarrow>(index).at);
}

template <int N>
void check_places(const std::int64_t (&extents)[N], const std::vector<std::int64_t>& indices) {
  const Grid<N> grid(extents);
  for (const std::int64_t index : indices) {
    const auto expected = place_by_division(extents, index);
    REQUIRE(place_of<false>(grid, index) == expected);
    if (grid.narrow()) REQUIRE(place_of<true>(grid, index) == expected);
  }
}

/// At the beginnings and ends of lines, and in between.
template <int N>
void check_large(const std::int64_t (&extents)[N], std::mt19937_64& random) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  std::vector<std::int64_t> indices = {0, count - 1};
  for (int i = 0; i < 2000; ++i) {
    const auto index = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
    const std::int64_t line = index / extents[N - 1] * extents[N - 1];
    for (const std::int64_t near : {index, line, line - 1}) {
      if (near >= 0) indices.push_back(near);
    }
  }
  check_places(extents, indices);
}

}  // namespace

TEST_CASE("device: division by a constant", "[device]") {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> divisors = {1, 2, 3, 7, 640, 641, 65535, 65536, 65537, (1LL << 31) - 1, 1LL << 31};
  for (int i = 0; i < 200; ++i) divisors.push_back(1 + static_cast<std::int64_t>(random() >> (33 + random() % 31)));
  for (const std::int64_t d : divisors) {
    const Divisor divisor(d);
    const auto check = [&](std::uint64_t n) {
      if (n > std::numeric_limits<std::uint32_t>::max()) return;
      REQUIRE(divisor.quotient(static_cast<std::uint32_t>(n)) == n / static_cast<std::uint64_t>(d));
    };
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t n = random() >> (32 + random() % 32);
      const std::uint64_t multiple = n / static_cast<std::uint64_t>(d) * static_cast<std::uint64_t>(d);
      for (const std::uint64_t near : {n, multiple, multiple + static_cast<std::uint64_t>(d) - 1}) check(near);
    }
    check(std::numeric_limits<std::uint32_t>::max());
  }
}

TEST_CASE("device: places of small grids and of those beyond 2^31", "[device]") {
  std::vector<std::int64_t> all(2 * 3 * 5 * 7);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  check_places({2, 3, 5, 7}, all);
  check_places({210}, all);
  check_places({1, 1, 210, 1}, all);
  std::mt19937_64 random(2);
  check_large({3, (1 << 29) + 1}, random);
  check_large({46341, 46340}, random);
  check_large({1, 1LL << 33}, random);
  check_large({5, (1LL << 40) + 3}, random);
  check_large({7, 224, 224, 3, 1LL << 20}, random);
  check_large({1LL << 30, 3, 7, 11}, random);
  CHECK(Grid<2>({1, (1LL << 31) - 1}).narrow());
  CHECK_FALSE(Grid<2>({1, 1LL << 31}).narrow());
}

TEST_CASE("device: windows along an axis", "[device]") {
  for (const std::int64_t extent : {1, 4, 9}) {
    for (const std::int64_t kernel : {1, 2, 3, 5}) {
      for (const std::int64_t stride : {1, 2, 3, 7}) {
        for (const std::int64_t pad : {0, 1, 4}) {
          if (kernel > extent + 2 * pad) continue;
          const std::int64_t windows = (extent + 2 * pad - kernel) / stride + 1;
          const Slide slide(extent, windows, kernel, stride, pad);
          for (std::int64_t position = 0; position < extent; ++position) {
            const Range over = slide.over(position);
            for (std::int64_t window = 0; window < windows; ++window) {
              const std::int64_t begin = window * stride - pad;
              CHECK(slide.origin(window) == begin);
              const bool covers = begin <= position && position < begin + kernel;
              REQUIRE((over.begin <= window && window < over.end) == covers);
              const Range inside = slide.inside(window);
              REQUIRE((inside.begin <= position && position < inside.end) == covers);
            }
          }
        }
      }
    }
  }
}

}  // namespace cairn::tests
