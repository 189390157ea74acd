// Tests loops in which a team (the threads of a warp or of a block) goes over rows that begin at any address, and how
// rows are distributed to teams.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "cairn/runtime/device/reductions.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/fiber_machine.h"

namespace cairn::tests::device_rows_test {
namespace {

using core::Bf16;
using runtime::device::from_float;
using runtime::device::Pack;
using runtime::device::RowLayout;
using runtime::device::Rows;
using runtime::device::to_float;

/// A row of `count` elements. It begins `past` elements behind a 16-byte boundary. The margins before and behind it
/// consist of elements of value -1, so that a write beyond the row is found.
template <class T>
struct Row {
  static constexpr std::int64_t kMargin = 16;
  std::vector<Pack<T>> memory;
  T* data;
  std::int64_t count;

  Row(std::int64_t past, std::int64_t elements)
      : memory(static_cast<std::size_t>((elements + past + 2 * kMargin) / Pack<T>::kWidth + 1)), count(elements) {
    T* all = memory[0].value;
    for (std::size_t i = 0; i < memory.size() * Pack<T>::kWidth; ++i) all[i] = from_float<T>(-1);
    data = all + kMargin + past;
    for (std::int64_t i = 0; i < count; ++i) data[i] = from_float<T>(static_cast<float>(i % 200));
  }
  bool margins_are_whole() const {
    for (std::int64_t i = 1; i <= 8; ++i) {
      if (to_float(data[-i]) != -1 || to_float(data[count + i - 1]) != -1) return false;
    }
    return true;
  }
};

/// Computes out = first + 2 * second in a loop over columns. An earlier loop records which thread handles which column.
template <class T>
struct TwoLoops {
  static constexpr int kThreads = 64;
  Rows<T, 2> rows;
  T* out;
  std::int64_t cols;
  int* seen_by;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t) const {
    bool right = true;
    runtime::device::visit_packs<2>(team, rows, cols, [&]<int W>(std::int64_t first, const float(&values)[2][W]) {
      for (int i = 0; i < W; ++i) {
        const std::int64_t column = first + i;
        right = right && seen_by[column] == -1 && values[0][i] == values[1][i] &&
                values[0][i] == static_cast<float>(column % 200);
        seen_by[column] = team.rank();
      }
    });
    team.sync();
    const auto formula = [&]<int W>(std::int64_t first, const float(&values)[2][W], float(&results)[W]) {
      for (int i = 0; i < W; ++i) {
        right = right && (seen_by[first + i] == team.rank() || !alike());
        results[i] = right ? values[0][i] + 2 * values[1][i] : -7;
      }
    };
    runtime::device::map_packs<2>(team, rows, out, cols, formula);
  }
  bool alike() const { return runtime::device::begin_alike(rows, static_cast<const T*>(out)); }
};

template <class T>
void check_loops() {
  for (const std::int64_t cols : {1, 2, 7, 8, 9, 64, 100, 700}) {
    for (std::int64_t past = 0; past < Pack<T>::kWidth; ++past) {
      for (const std::int64_t other : {past, (past + 1) % Pack<T>::kWidth}) {
        for (const Threads threads : {Threads::one, Threads::forward, Threads::reverse}) {
          const Row<T> first(past, cols), second(other, cols);
          Row<T> out(past, cols);
          for (T* to : {out.data, second.data}) {
            std::vector<int> seen_by(static_cast<std::size_t>(cols), -1);
            FiberMachine(threads).launch(TwoLoops<T>{{first.data, second.data}, to, cols, seen_by.data()}, 1);
            bool right = out.margins_are_whole() && second.margins_are_whole();
            for (std::int64_t c = 0; c < cols; ++c) {
              right = right && to_float(to[c]) == to_float(from_float<T>(static_cast<float>(3 * (c % 200))));
            }
            REQUIRE(right);
          }
        }
      }
    }
  }
}

struct Zeros {
  static constexpr int kThreads = 64;
  float* out;
  std::int64_t cols;
  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t) const {
    runtime::device::fill_row(team, out, cols, 0.0F);
  }
};

}  // namespace

TEST_CASE("device: loops over rows that begin anywhere", "[device]") {
  check_loops<float>();
  check_loops<Bf16>();
}

TEST_CASE("device: a row is filled and nothing else", "[device]") {
  for (const std::int64_t cols : {0, 1, 3, 4, 5, 300}) {
    for (const std::int64_t past : {0, 1, 2, 3}) {
      Row<float> row(past, cols);
      FiberMachine(Threads::forward).launch(Zeros{row.data, cols}, 1);
      CHECK(row.margins_are_whole());
      CHECK(std::all_of(row.data, row.data + cols, [](float x) { return x == 0; }));
    }
  }
}

TEST_CASE("device: packs of bf16 become floats and come back", "[device]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float values[8] = {0, -0.0F, 1.00390625F, -3.14159F, 1e-40F, kInfinity, 3.4e38F, 65280};
  Pack<Bf16> pack;
  runtime::device::store_floats(pack.value, 0, values);
  for (int i = 0; i < 8; ++i) CHECK(pack.value[i].bits == Bf16(values[i]).bits);
  float back[8];
  runtime::device::to_floats(runtime::device::load<8>(pack.value, 0), back);
  for (int i = 0; i < 8; ++i) CHECK(back[i] == to_float(pack.value[i]));
}

TEST_CASE("device: rows of a warp fit what eight warps have", "[device]") {
  for (const std::int64_t width : {4, 8}) {
    for (const std::int64_t inputs : {1, 2}) {
      for (std::int64_t cols = 1; cols * inputs * 16 / width <= 8192; ++cols) {
        const RowLayout layout(32, cols, width, inputs, 96 * 1024);
        REQUIRE(layout.part * layout.of_team == 32);
        REQUIRE((layout.part & (layout.part - 1)) == 0);
        REQUIRE(layout.packs * width >= (cols % width == 0 ? cols : cols + width - 1));
        REQUIRE(layout.shared_bytes <= 96 * 1024 / 8);
        REQUIRE((layout.part == 32 || layout.part * 4 * width >= cols));
      }
    }
  }
}

}  // namespace cairn::tests::device_rows_test
