// Tests Grid, which numbers the places of a grid, and Slide, which computes the windows along an axis.
#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <vector>

#include "cairn/runtime/device/grid.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/fiber_machine.h"

namespace cairn::tests::device_grid_test {
namespace {

using runtime::device::Divisor;
using runtime::device::Grid;
using runtime::device::GridPart;
using runtime::device::Range;
using runtime::device::Slide;

template <int N>
std::array<std::int64_t, N> place_by_division(const std::int64_t (&extents)[N], std::int64_t index) {
  std::array<std::int64_t, N> place{};
  for (int axis = N; axis-- > 1; index /= extents[axis]) place[static_cast<std::size_t>(axis)] = index % extents[axis];
  place[0] = index;
  return place;
}

/// Checks that the parts of a grid, one after another, contain the places of the grid in order. In a large part, checks
/// only the places at its ends and some places in between.
template <int N>
void check_parts(const std::int64_t (&extents)[N], std::int64_t most, std::mt19937_64& random) {
  const Grid<N> grid(extents);
  const std::vector<GridPart<N>> parts = parts_of(grid, most);
  std::int64_t next = 0;
  for (const GridPart<N>& part : parts) {
    const std::int64_t count = part.grid.count();
    REQUIRE((count >= 1 && count <= most));
    REQUIRE(part.first_index == next);
    REQUIRE(part.is_all == (parts.size() == 1));
    const auto check = [&](std::int64_t index) {
      const auto expected = place_by_division(extents, part.first_index + index);
      REQUIRE(std::to_array(part.place(static_cast<std::uint32_t>(index)).at) == expected);
      if (part.is_all) REQUIRE(std::to_array(grid.place(static_cast<std::uint32_t>(index)).at) == expected);
    };
    constexpr std::int64_t kSome = 300;
    for (std::int64_t i = 0; i < std::min(count, kSome); ++i) check(i);
    for (std::int64_t i = std::max<std::int64_t>(0, count - kSome); i < count; ++i) check(i);
    for (std::int64_t i = 0; i < kSome; ++i) {
      const auto index = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
      const std::int64_t line = index / extents[N - 1] * extents[N - 1];
      for (const std::int64_t near : {index, line, line - 1}) {
        if (near >= 0) check(near);
      }
    }
    next += count;
  }
  REQUIRE(next == grid.count());
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
  std::mt19937_64 random(2);
  const auto check = [&]<int N>(const std::int64_t(&extents)[N]) {
    check_parts(extents, runtime::device::kMostPlaces, random);
  };
  check({2, 3, 5, 7});
  check({210});
  check({1, 1, 210, 1});
  check({3, (1 << 29) + 1});
  check({46341, 46340});
  check({46341, 46341});
  check({1, 1LL << 32});
  check({5, (1LL << 40) + 3});
  check({(1LL << 40) + 3, 5});
  check({7, 224, 224, 3, 1LL << 20});
  check({1LL << 30, 3, 7, 11});
  CHECK(parts_of(Grid<2>({1, (1LL << 31) - 1}), runtime::device::kMostPlaces).size() == 1);
  CHECK(parts_of(Grid<2>({1, 1LL << 31}), runtime::device::kMostPlaces).size() == 2);
}

TEST_CASE("device: a grid of any extents is divided into parts of any size", "[device]") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    std::int64_t extents[4];
    for (std::int64_t& extent : extents) extent = 1 + static_cast<std::int64_t>(random() % 9);
    check_parts(extents, 1 + static_cast<std::int64_t>(random() % 400), random);
  }
}

/// Stores at every place of a grid a number that occurs at no other place.
struct Numbers : runtime::device::StoreInOrder<float, 1> {
  runtime::device::Chunk<float, 1> load(const runtime::device::Place<3>& place) const {
    return {{static_cast<float>(place.at[0] * 10000 + place.at[1] * 100 + place.at[2])}};
  }
};

template <int kUnroll>
void check_computed_in_parts(std::int64_t most) {
  using Functor = runtime::device::ForPlaces<kUnroll, 3, Numbers>;
  const Grid<3> grid({7, 30, 11});
  std::vector<float> out(static_cast<std::size_t>(grid.count()), -1.0F);
  FiberMachine machine;
  for (const auto& part : parts_of(grid, most))
    machine.launch(Functor{{out.data()}, part}, runtime::device::blocks_of(part.grid.count(), Functor::kPlaces));
  std::size_t i = 0;
  for (int a = 0; a < 7; ++a) {
    for (int b = 0; b < 30; ++b) {
      for (int c = 0; c < 11; ++c) REQUIRE(out[i++] == static_cast<float>(a * 10000 + b * 100 + c));
    }
  }
}

TEST_CASE("device: a grid is computed in parts as at once", "[device]") {
  for (const std::int64_t most : {1000000, 2000, 700, 330, 100, 11, 7, 1}) {
    check_computed_in_parts<1>(most);
    check_computed_in_parts<4>(most);
  }
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

}  // namespace cairn::tests::device_grid_test
