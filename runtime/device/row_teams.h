#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/machine.h"
#include "cairn/runtime/device/rows.h"

/// Ops whose rows are independent of each other. A row has a warp, or a part of one where it is short, or a block where
/// it is long. Rows that are read twice are staged in shared memory where they fit.
namespace cairn::runtime::device {

/// Neighbouring threads of a warp that have a row to themselves: a Team without shared memory. All parts of a warp come
/// to the same syncs and reductions; a part without a row has a rank at which no loop begins.
template <class Warp>
class WarpPart {
 public:
  static constexpr int kSlotBytes = 16;

  /// `size` is a power of two that divides the warp's. `slots` are kSlotBytes for every thread of the warp; not needed
  /// where the part is the whole warp.
  CAIRN_HD WarpPart(const Warp& warp, int size, bool has_row, std::byte* slots)
      : warp_(warp), size_(size), rank_(has_row ? warp.rank() & (size - 1) : kNoRow), slots_(slots) {}

  CAIRN_HD int rank() const { return rank_; }
  CAIRN_HD int size() const { return size_; }
  CAIRN_HD void sync() const { warp_.sync(); }
  template <class T, class Op>
  CAIRN_HD T reduce(T value, const Op& op) const {
    static_assert(sizeof(T) <= kSlotBytes);
    if (size_ == warp_.size()) return warp_.reduce(value, op);
    T* slots = reinterpret_cast<T*>(slots_);
    const int own = warp_.rank();
    for (int bit = size_ / 2; bit > 0; bit /= 2) {
      slots[own] = value;
      warp_.sync();
      value = op(slots[own & ~bit], slots[own | bit]);  // the same expression, so the same bits, in both threads
      warp_.sync();
    }
    return value;
  }

 private:
  static constexpr int kNoRow = 1 << 30;

  const Warp& warp_;
  int size_;
  int rank_;
  std::byte* slots_;
};

/// How rows are shared out to teams of `threads`; depends on their length alone, but for `staged`. A warp's rows are
/// short and always staged.
struct RowLayout {
  int part = 0;            ///< threads of a row
  int of_team = 0;         ///< rows of a team
  std::int64_t slots = 0;  ///< bytes for the reductions of parts
  std::int64_t packs = 0;  ///< of a staged row, wherever it begins
  bool staged = false;
  std::int64_t shared_bytes = 0;

  /// `width`: elements of a pack. `inputs`: rows that are read side by side, 0 where none is read twice.
  RowLayout(int threads, std::int64_t cols, std::int64_t width, std::int64_t inputs, std::int64_t shared_limit)
      : part(threads), packs(cols % width == 0 ? cols / width : blocks_of(cols + width - 1, width)) {
    if (threads == kWarp) {
      // Some packs for every thread, so that what it does once for a row does not outweigh what it does for packs.
      constexpr std::int64_t kPacksOfThread = 4;
      while (part > 1 && part / 2 * kPacksOfThread * width >= cols) part /= 2;
    }
    if (part < threads) slots = threads * 16;
    // Neighbouring rows then begin at different banks of the shared memory, which has eight of 16 bytes.
    while (part < 8 && (packs % part != 0 || packs / part % 2 == 0)) ++packs;
    of_team = threads / part;
    const std::int64_t stage = of_team * inputs * packs * 16;
    staged = inputs > 0 && (threads == kWarp || stage <= shared_limit);
    shared_bytes = slots + (staged ? stage : 0);
  }

  static constexpr int kWarp = 32;
};

/// An op on rows: op(team, row, source, cols, out row) for every row. `source` is Rows or StagedRows of its N
/// arguments; `out row` may be that of an argument; nullptr where the op writes none. Op has
///   Storage, kInputs (N), kReadsTwice (whether staging is of use)
template <class Op, int Threads>
struct RowTeams {
  static constexpr int kThreads = Threads;
  static constexpr int kInputs = Op::kInputs;
  using T = typename Op::Storage;

  Op op;
  const T* in[kInputs];
  T* out;
  std::int64_t rows, cols;
  RowLayout layout;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    if constexpr (kThreads > RowLayout::kWarp) {
      run(team, index, 0, team.template shared<T>());
    } else {
      auto* slots = team.template shared<std::byte>();
      T* stage = reinterpret_cast<T*>(slots + layout.slots);
      const int size = layout.part < team.size() ? layout.part : team.size();
      const std::int64_t first = index * layout.of_team;
      const int here = first + layout.of_team < rows ? layout.of_team : static_cast<int>(rows - first);
      const int own = team.rank() / size;
      for (int begin = 0; begin < here; begin += team.size() / size) {
        const bool has_row = begin + own < here;
        run(WarpPart<Team>(team, size, has_row, slots), has_row ? first + begin + own : first, own, stage);
      }
    }
  }

 private:
  template <class Team>
  CAIRN_HD void run(const Team& team, std::int64_t row, int own, T* stage) const {
    Rows<T, kInputs> from;
    CAIRN_UNROLL
    for (int n = 0; n < kInputs; ++n) from.row[n] = in[n] + row * cols;
    T* to = out == nullptr ? nullptr : out + row * cols;
    if constexpr (Op::kReadsTwice) {
      constexpr bool kAlwaysStaged = kThreads == RowLayout::kWarp;
      if (kAlwaysStaged || layout.staged) {
        const std::int64_t stride = layout.packs * Pack<T>::kWidth;
        StagedRows<T, kInputs> both{from, {}};
        CAIRN_UNROLL
        for (int n = 0; n < kInputs; ++n) {
          both.copy[n] = stage + (n * layout.of_team + own) * stride + elements_past_boundary(from.row[n]);
        }
        op(team, row, both, cols, to);
      } else {
        op(team, row, from, cols, to);
      }
    } else {
      op(team, row, from, cols, to);
    }
  }
};

template <int Threads, class Machine, class Op>
void launch_row_teams(Machine& machine, const Op& op, const typename Op::Storage* const (&in)[Op::kInputs],
                      typename Op::Storage* out, std::int64_t rows, std::int64_t cols) {
  const RowLayout layout(Threads, cols, Pack<typename Op::Storage>::kWidth, Op::kReadsTwice ? Op::kInputs : 0,
                         machine.shared_limit());
  RowTeams<Op, Threads> teams{op, {}, out, rows, cols, layout};
  for (int n = 0; n < Op::kInputs; ++n) teams.in[n] = in[n];
  machine.launch(teams, blocks_of(rows, layout.of_team), layout.shared_bytes);
}

/// Applies an op to all rows.
template <class Machine, class Op>
void launch_rows(Machine& machine, const Op& op, const typename Op::Storage* const (&in)[Op::kInputs],
                 typename Op::Storage* out, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kWarpBytes = 8192;    // so that several warps' staged rows fit a block's shared memory
  constexpr std::int64_t kBlockBytes = 65536;  // so that several blocks' rows fit; of larger rows one must do
  const std::int64_t bytes = cols * static_cast<std::int64_t>(sizeof(typename Op::Storage)) * Op::kInputs;
  if (bytes <= kWarpBytes) return launch_row_teams<RowLayout::kWarp>(machine, op, in, out, rows, cols);
  if constexpr (Op::kReadsTwice) {
    if (bytes > kBlockBytes) return launch_row_teams<1024>(machine, op, in, out, rows, cols);
  }
  launch_row_teams<256>(machine, op, in, out, rows, cols);
}

}  // namespace cairn::runtime::device
