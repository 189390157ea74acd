#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/grid.h"

namespace cairn::runtime::device {

/// Looks up rows of the table by their ids. place.at[0] is a sequence of the batch, place.at[1] is a position in the
/// sequence, and place.at[2] is the number of a chunk of W channels.
template <class T, int W>
struct Embedding : StoreInOrder<T, W> {
  const std::int32_t* ids;
  const T* table;
  std::int64_t sequence, chunks;

  CAIRN_HD Chunk<T, W> load(const Place<3>& place) const {
    const std::int64_t id = ids[place.at[0] * sequence + place.at[1]];
    return load_chunk<W>(table, id * chunks + place.at[2]);
  }
};

/// Looks up rows of the table by their ids. Adds to each row the row of `positions` that belongs to its position in the
/// sequence. The sum is computed in store(), not in load(), so that a thread issues all of its loads before it waits
/// for one.
template <class T, int W>
struct EmbeddingAtPositions {
  Embedding<T, W> entries;
  const T* positions;

  struct Terms {
    Chunk<T, W> entry, position;
  };
  CAIRN_HD Terms load(const Place<3>& place) const {
    return {entries.load(place), load_chunk<W>(positions, place.at[1] * entries.chunks + place.at[2])};
  }
  CAIRN_HD void store(const Place<3>& place, std::int64_t index, const Terms& terms) const {
    Chunk<T, W> sum;
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) {
      sum.value[i] = from_float<T>(to_float(terms.entry.value[i]) + to_float(terms.position.value[i]));
    }
    entries.store(place, index, sum);
  }
};

/// The ids of embedding_grad, sorted and divided into segments of kSegment entries. A run is a maximal sequence of
/// equal ids; the row of the table's gradient for this id is the sum of the rows of dy that belong to the run. Each
/// team sums up one segment, so teams have about equal work however often an id occurs. If a run crosses segments, its
/// parts are summed separately and then added in order. So every sum is in ascending order of position.
template <class T, int W>
struct SortedIds {
  static constexpr int kThreads = 32;
  static constexpr std::int64_t kSegment = 16;

  const std::int32_t* ids;     ///< sorted ids, ascending
  const std::int32_t* places;  ///< row of dy for each sorted id, ascending among equal ids
  /// For each segment that begins within a run (sequence of equal ids): the sum over this run's part in the segment.
  /// The shape is [segments, channels].
  float* heads;
  /// For each segment in which a run begins that continues in the next segment: the sum over this run's part in the
  /// segment. The shape is [segments, channels].
  float* tails;
  T* table;
  std::int64_t count, chunks;
  /// A grid with one place per team. Its axes are the segment and the block of channels that the team handles. A block
  /// has as many chunks of W channels as a team has threads. There are fewer than 2^31 places, because a launch has
  /// fewer than 2^31 teams.
  Grid<2> teams;

  static Grid<2> teams_of(std::int64_t count, std::int64_t chunks) {
    return Grid<2>({blocks_of(count, kSegment), blocks_of(chunks, kThreads)});
  }
  CAIRN_HD std::int64_t segments() const { return (count + kSegment - 1) / kSegment; }
  CAIRN_HD std::int64_t begin(std::int64_t segment) const { return segment * kSegment; }
  CAIRN_HD std::int64_t end(std::int64_t segment) const {
    const std::int64_t next = (segment + 1) * kSegment;
    return next < count ? next : count;
  }
  CAIRN_HD bool begins_run(std::int64_t i) const { return i == 0 || ids[i - 1] != ids[i]; }

  /// Calls body(segment, chunk) for every chunk of W channels that a team handles.
  template <class Team, class F>
  CAIRN_HD void for_chunks(const Team& team, std::int64_t index, const F& body) const {
    const Place<2> place = teams.place(static_cast<std::uint32_t>(index));
    for (int lane = team.rank(); lane < kThreads; lane += team.size()) {
      const std::int64_t chunk = place.at[1] * kThreads + lane;
      if (chunk < chunks) body(place.at[0], chunk);
    }
  }

  CAIRN_HD void store_row(std::int32_t id, std::int64_t chunk, const Chunk<float, W>& sum) const {
    store_chunk(table, id * chunks + chunk, to_chunk<T>(sum.value));
  }
};

/// Sums the rows of dy for each run (sequence of equal ids) of each segment.
template <class T, int W>
struct SumSegments {
  static constexpr int kThreads = SortedIds<T, W>::kThreads;
  SortedIds<T, W> sorted;
  const T* dy;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    sorted.for_chunks(team, index, [&](std::int64_t segment, std::int64_t chunk) { sum(segment, chunk); });
  }

 private:
  CAIRN_HD void sum(std::int64_t segment, std::int64_t chunk) const {
    constexpr int kAhead = 8;
    const std::int64_t end = sorted.end(segment);
    bool from_before = !sorted.begins_run(sorted.begin(segment));
    Chunk<float, W> total = {};
    for (std::int64_t first = sorted.begin(segment); first < end; first += kAhead) {
      Chunk<T, W> rows[kAhead] = {};
      CAIRN_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        if (first + k < end) rows[k] = load_chunk<W>(dy, sorted.places[first + k] * sorted.chunks + chunk);
      }
      CAIRN_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        const std::int64_t next = first + k + 1;
        if (next > end) continue;
        CAIRN_UNROLL
        for (int i = 0; i < W; ++i) total.value[i] += to_float(rows[k].value[i]);
        const bool run_ends = next == sorted.count || sorted.begins_run(next);
        if (!run_ends && next < end) continue;
        if (from_before) {
          store_chunk(sorted.heads, segment * sorted.chunks + chunk, total);
        } else if (!run_ends) {
          store_chunk(sorted.tails, segment * sorted.chunks + chunk, total);
        } else {
          sorted.store_row(sorted.ids[next - 1], chunk, total);
        }
        total = {};
        from_before = false;
      }
    }
  }
};

/// Adds the parts of every run (sequence of equal ids) that crosses segments. The addition is done by the team of the
/// segment in which the run begins.
template <class T, int W>
struct JoinPieces {
  static constexpr int kThreads = SortedIds<T, W>::kThreads;
  SortedIds<T, W> sorted;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    sorted.for_chunks(team, index, [&](std::int64_t segment, std::int64_t chunk) { join(segment, chunk); });
  }

 private:
  CAIRN_HD void join(std::int64_t segment, std::int64_t chunk) const {
    const std::int64_t begin = sorted.begin(segment), end = sorted.end(segment);
    if (end == sorted.count || sorted.begins_run(end)) return;
    const std::int32_t id = sorted.ids[end];
    if (begin > 0 && sorted.ids[begin - 1] == id) return;  // the run began in an earlier segment
    // Searches for the first segment that does not begin with a part of the run.
    std::int64_t low = segment + 1, high = sorted.segments();
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (sorted.ids[sorted.begin(middle)] == id) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const float *tails = sorted.tails, *heads = sorted.heads;
    Chunk<float, W> total = load_chunk<W>(tails, segment * sorted.chunks + chunk);
    add_chunks<8>(heads, (segment + 1) * sorted.chunks + chunk, sorted.chunks, low - segment - 1, total);
    sorted.store_row(id, chunk, total);
  }
};

template <class Machine>
void embedding_rows(Launcher<Machine>& launcher, Call& call) {
  const std::int64_t rows = row_count(call.shape(0)), sequence = last_extent(call.shape(0));
  const std::int64_t channels = last_extent(call.shape(1));
  const auto* ids = call.arg<std::int32_t>(0);
  if (call.args.size() < 3) {
    const bool packed = channels % elements_of_pack(call.op.type) == 0;
    return with_move(call.op.type, packed, [&]<class Word, int kWidth>(Move<Word, kWidth> move) {
      const std::int64_t chunks = channels / move.elements;
      for_places<kCopyUnroll<kWidth>>(
          launcher, Grid<3>({rows, sequence, chunks}),
          Embedding<Word, kWidth>{{call.output<Word>()}, ids, call.arg<Word>(1), sequence, chunks});
    });
  }
  with_storage(call.op.type, [&]<class T>(TypeTag<T>) {
    with_width<T>(rows_are_packed<T>(channels), [&]<int kWidth>(Width<kWidth>) {
      const std::int64_t chunks = channels / kWidth;
      const Embedding<T, kWidth> entries{{call.output<T>()}, ids, call.arg<T>(1), sequence, chunks};
      for_places<kCopyUnroll<kWidth>>(launcher, Grid<3>({rows, sequence, chunks}),
                                      EmbeddingAtPositions<T, kWidth>{entries, call.arg<T>(2)});
    });
  });
}

template <class Machine>
void embedding_grad(Launcher<Machine>& launcher, Call& call) {
  const std::int64_t count = elements(call.shape(1));
  const std::int64_t vocabulary = call.out_shape()[0], channels = call.out_shape()[1];
  auto* ids = call.scratch.take<std::int32_t>(count);
  auto* places = call.scratch.take<std::int32_t>(count);
  auto* workspace = call.scratch.take<std::byte>(launcher.sort_workspace(count));
  launcher.sort_by_key(call.arg<std::int32_t>(1), ids, places, count, vocabulary, workspace);
  with_storage(call.op.type, [&]<class T>(TypeTag<T>) {
    launcher.fill(call.out, 0, vocabulary * channels * static_cast<std::int64_t>(sizeof(T)));
    with_width<T>(rows_are_packed<T>(channels), [&]<int kWidth>(Width<kWidth>) {
      using Sorted = SortedIds<T, kWidth>;
      const std::int64_t chunks = channels / kWidth;
      Sorted sorted{ids, places, nullptr, nullptr, call.output<T>(), count, chunks, Sorted::teams_of(count, chunks)};
      const bool in_pieces = sorted.segments() > 1;
      sorted.heads = call.scratch.take<float>(in_pieces ? sorted.segments() * channels : 0);
      sorted.tails = call.scratch.take<float>(in_pieces ? sorted.segments() * channels : 0);
      const std::int64_t teams = sorted.teams.count();
      launcher.launch(SumSegments<T, kWidth>{sorted, call.arg<T>(0)}, teams);
      if (in_pieces) launcher.launch(JoinPieces<T, kWidth>{sorted}, teams);
    });
  });
}

template <class Machine>
void embedding(Launcher<Machine>& launcher, Call& call) {
  if (call.op.kind == core::OpKind::embedding_grad) return embedding_grad(launcher, call);
  embedding_rows(launcher, call);
}

}  // namespace cairn::runtime::device
