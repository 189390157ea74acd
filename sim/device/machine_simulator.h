#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/machine/support/machine.h"
#include "cairn/sim/device/candidate_profile.h"
#include "cairn/sim/device/drawing/bucket_lanes.h"
#include "cairn/sim/device/drawing/draw_lanes.h"
#include "cairn/sim/device/drawing/order_lanes.h"
#include "cairn/sim/device/drawing/random_order.h"
#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/intrinsics.h"
#include "cairn/sim/device/simulator_kernels.h"
#include "cairn/sim/device/transfers/transfer.h"
#include "cairn/sim/device/transfers/transfer_kernels.h"
#include "cairn/sim/simulator.h"

/// Implements Simulator on any Machine (core/machine/support/machine.h): cuda/ runs it on a GPU, tests run it on the
/// host.
namespace cairn::sim::device {

template <class Machine, class Id>
class MachineSimulator : public Simulator {
 public:
  template <class T>
  using Array = typename Machine::template ArrayOf<T>;

  /// Creates a simulator on `machine`, which must outlive it and must be bound (Machine::bind) during this call.
  /// Batches are evaluated in pieces. `most_bytes` limits the memory that one piece and its outcomes take; 0 stands for
  /// a quarter of the free memory, but at most 4 GiB.
  MachineSimulator(Machine& machine, const core::Graph& graph, std::int64_t most_bytes = 0)
      : machine_(machine),
        node_count_(graph.node_count()),
        tables_(Tables<Id>(graph).upload(machine)),
        moved_(uploaded(machine, std::span<const MovedValue>(moved_values(graph)))),
        moves_{moved_.data(), graph.value_count(), is_duplex(graph)} {
    constexpr std::int64_t kMost = std::int64_t{4} << 30;
    most_bytes_ = most_bytes > 0 ? most_bytes : std::min(kMost, machine_.free_bytes() / 4);
  }

  void evaluate(const ScheduleBatch& batch, Outcomes& outcomes) override {
    const auto bound = machine_.bind();
    outcomes.resize(batch.count(), batch.has_transfers());
    for_pieces(batch, 0, [&](const BatchView<Id>& piece, std::int64_t first, bool orders) {
      if (batch.has_transfers()) {
        evaluate_moved(piece, sizes_of(batch, first, piece.count));
      } else {
        evaluate_piece(piece, orders);
      }
      download(piece.count, first, outcomes);
    });
  }

  sim::Profiles profiles(const ScheduleBatch& batch) override {
    const auto bound = machine_.bind();
    sim::Profiles profiles = room_for_profiles(*this, batch);
    constexpr std::int64_t kEntriesOfStep = 2;
    for_pieces(batch, kEntriesOfStep * sizeof(std::int64_t),
               [&](const BatchView<Id>& piece, std::int64_t first, bool /*orders*/) {
                 std::vector<std::int64_t> begin(profiles.begin.begin() + first,
                                                 profiles.begin.begin() + first + piece.count + 1);
                 const std::int64_t offset = begin.front(), entries = begin.back() - offset;
                 for (std::int64_t& place : begin) place -= offset;
                 const auto begins = machine_.template array<std::int64_t>(piece.count + 1);
                 const auto values = machine_.template array<std::int64_t>(entries);
                 machine_.upload(begin.data(), piece.count + 1, begins.data());
                 if (batch.has_transfers()) {
                   const WalkSizes sizes = sizes_of(batch, first, piece.count);
                   walk(piece.count, sizes, [&](const auto& space, std::int64_t teams) {
                     return WriteMovedProfiles<Id, std::decay_t<decltype(space)>>{
                         tables_.view, moves_, piece, begins.data(), values.data(), sizes, space, teams};
                   });
                   return machine_.download(values.data(), entries, profiles.value.data() + offset);
                 }
                 launch_with_space(
                     teams_of_rewind(piece.count), bytes_of_rewind(), [&](const auto& space, std::int64_t teams) {
                       using Space = std::decay_t<decltype(space)>;
                       return WriteProfiles<Id, Space>{tables_.view, piece, begins.data(), values.data(), space, teams};
                     });
                 machine_.download(values.data(), entries, profiles.value.data() + offset);
               });
    return profiles;
  }

  InternalProfiles internal_profiles(const ScheduleBatch& batch) override {
    require_no_transfers(batch);
    const auto bound = machine_.bind();
    InternalProfiles result;
    for_pieces(batch, 2 * sizeof(core::Segment), [&](const BatchView<Id>& piece, std::int64_t first, bool /*orders*/) {
      const BatchView<Id> all = batch.view<Id>();
      const std::int64_t last = first + piece.count - 1, steps = all.begin[last] + all.length[last] - all.begin[first];
      const auto found = machine_.template array<core::Segment>(steps);
      const auto starts = machine_.template array<std::int64_t>(piece.count);
      const auto counts = machine_.template array<std::int64_t>(piece.count);
      launch_with_space(teams_of_rewind(piece.count), bytes_of_rewind(), [&](const auto& space, std::int64_t teams) {
        using Space = std::decay_t<decltype(space)>;
        return FindInternalSegments<Id, Space>{
            tables_.view, piece, found.data(), starts.data(), counts.data(), room(valid_, piece.count), space, teams};
      });
      const auto begins = machine_.template array<std::int64_t>(piece.count + 1);
      machine_.exclusive_sum(counts.data(), begins.data(), piece.count);
      const std::vector<std::int64_t> of_segments = downloaded(machine_, begins.data(), piece.count + 1);
      const auto segments = machine_.template array<core::Segment>(of_segments.back());
      machine_.launch(PlaceInternalSegments{piece.begin, found.data(), begins.data(), segments.data()}, piece.count);
      const CanonicalBatch profiles(downloaded(machine_, starts.data(), piece.count), of_segments,
                                    downloaded(machine_, segments.data(), of_segments.back()));
      const std::vector<std::uint8_t> valid = downloaded(machine_, valid_.data(), piece.count);
      for (std::int64_t c = 0; c < piece.count; ++c) {
        if (valid[c] == 0) continue;
        result.candidates.push_back(first + c);
        result.profiles.add(profiles[c]);
      }
    });
    return result;
  }

  ScheduleBatch generate(const Generator& generator, std::int64_t first, std::int64_t count) override {
    const auto bound = machine_.bind();
    ScheduleBatch batch(node_count_);
    const std::int64_t stride = stride_of(generator);
    batch.resize_padded(count, stride);
    Id* steps = batch.steps<Id>();
    std::vector<Copy> copies;
    std::vector<std::int32_t> counts(static_cast<std::size_t>(generator.transfers > 0 ? count : 0));
    const std::int64_t at_once = piece_of(generator);
    for (std::int64_t done = 0; done < count; done += at_once) {
      const std::int64_t piece_count = std::min(at_once, count - done);
      // The `stride` entries of every candidate are copied to the host, but a schedule can be shorter than `stride` if
      // there are recomputation moves. So the remaining entries must be initialised.
      if (generator.moves > 0)
        machine_.fill(room(steps_, piece_count * stride), 0, piece_count * stride * std::int64_t{sizeof(Id)});
      const std::int64_t most = 2 * std::int64_t{generator.transfers};
      // Entries of copies must be initialised, too, because a candidate can have fewer than `most` copies.
      if (most > 0)
        machine_.fill(room(copies_, piece_count * most), 0, piece_count * most * std::int64_t{sizeof(Copy)});
      const BatchView<Id> piece = draw(generator, first + done, piece_count);
      machine_.download(piece.steps, piece.count * stride, steps + done * stride);
      machine_.download(piece.length, piece.count, batch.lengths() + done);
      if (most == 0) continue;
      machine_.download(piece.copies_count, piece_count, counts.data() + done);
      const std::vector<Copy> drawn = downloaded(machine_, piece.copies, piece_count * most);
      for (std::int64_t c = 0; c < piece_count; ++c) {
        copies.insert(copies.end(), drawn.begin() + c * most, drawn.begin() + c * most + counts[done + c]);
      }
    }
    if (generator.transfers > 0) batch.set_copies(std::move(copies), counts);
    return batch;
  }

  void evaluate(const Generator& generator, std::int64_t first, std::int64_t count, Outcomes& outcomes) override {
    const auto bound = machine_.bind();
    outcomes.resize(count, generator.transfers > 0);
    const std::int64_t at_once = piece_of(generator);
    for (std::int64_t done = 0; done < count; done += at_once) {
      const std::int64_t piece_count = std::min(at_once, count - done);
      draw_and_evaluate(generator, first + done, piece_count, true);
      download(piece_count, done, outcomes);
    }
  }

  void sweep(const Generator& generator, std::int64_t first, std::int64_t count, Tally& tally) override {
    const auto bound = machine_.bind();
    if (generator.transfers > 0) return sweep_moved(generator, first, count, tally);
    // Candidates that may belong to the best candidates or to the Pareto front become entries, which are copied to the
    // host and added to the tally there. While the tally is empty, every candidate becomes an entry, so the first piece
    // is small. This piece fills the list of best candidates and the front; after that, few candidates become entries.
    constexpr std::int64_t kFirst = 4096;
    const std::int64_t at_once = piece_of(generator);
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t wanted = tally.candidates() == 0 ? std::min(kFirst, at_once) : at_once;
      const std::int64_t piece_count = std::min(wanted, count - done);
      draw_and_evaluate(generator, first + done, piece_count, false);
      add_to(tally, first + done, piece_count);
      done += piece_count;
    }
  }

 protected:
  std::int64_t piece_of(const Generator& generator) const {
    return fitting(stride_of(generator), 2 * std::int64_t{generator.transfers});
  }
  /// Draws candidates into the machine's memory. The result is valid until the next call.
  BatchView<Id> draw(const Generator& generator, std::int64_t first, std::int64_t count) {
    BatchView<Id> batch = draw_steps(generator, first, count);
    if (generator.transfers == 0) return batch;
    Copy* const copies = room(copies_, count * 2 * generator.transfers);
    std::int64_t* const begin = room(copies_begin_, count);
    std::int32_t* const counts = room(copies_count_, count);
    const WalkSizes sizes = sizes_of(generator);
    walk(count, sizes, [&](const auto& space, std::int64_t teams) {
      return DrawCopies<Id, std::decay_t<decltype(space)>>{tables_.view, moves_, generator.seed, generator.transfers,
                                                           first,        batch,  copies,         begin,
                                                           counts,       sizes,  space,          teams};
    });
    batch.copies = copies;
    batch.copies_begin = begin;
    batch.copies_count = counts;
    return batch;
  }
  BatchView<Id> draw_steps(const Generator& generator, std::int64_t first, std::int64_t count) {
    const std::int64_t stride = stride_of(generator);
    const BatchView<Id> batch{room(steps_, count * stride), room(begin_, count), room(length_, count), count};
    if constexpr (kInLanes) {
      if (generator.moves == 0) {
        run_keys<std::int32_t>(generator, first, count, {}, steps_.data());
        machine_.launch(PlaceOrders{begin_.data(), length_.data(), node_count_}, count);
        return batch;
      }
    }
    const std::int64_t bytes = DrawSpace::bytes(node_count_, tables_.view.edge_count, sizeof(Id), generator.moves > 0);
    launch_with_space(count, bytes, [&](const auto& space, std::int64_t teams) {
      using Space = std::decay_t<decltype(space)>;
      return DrawSchedules<Id, Space>{tables_.view,  generator.seed, generator.moves, first, count, stride,
                                      steps_.data(), begin_.data(),  length_.data(),  space, teams};
    });
    return batch;
  }
  /// Evaluates a piece of a batch and leaves the outcomes in the machine's memory. `orders` says whether every
  /// candidate has as many steps as there are nodes.
  void evaluate_piece(const BatchView<Id>& piece, bool orders) {
    const OutcomesView outcomes = outcomes_room(piece.count);
    if (!orders) {
      launch_with_space(teams_of_rewind(piece.count), bytes_of_rewind(), [&](const auto& space, std::int64_t teams) {
        return EvaluateAny<Id, std::decay_t<decltype(space)>>{tables_.view, piece, outcomes, space, teams};
      });
    } else if (tables_.view.unit > 0) {
      evaluate_orders<std::int32_t>(piece, outcomes);
    } else {
      evaluate_orders<std::int64_t>(piece, outcomes);
    }
  }
  /// Evaluates a piece whose candidates have transfers, and leaves the outcomes in the machine's memory. `sizes` are
  /// the largest numbers of values, steps and copies of a candidate of the piece.
  void evaluate_moved(const BatchView<Id>& piece, const WalkSizes& sizes) {
    OutcomesView outcomes = outcomes_room(piece.count);
    outcomes.host_peak = room(host_peak_, piece.count);
    outcomes.defect = room(defect_, piece.count);
    walk(piece.count, sizes, [&](const auto& space, std::int64_t teams) {
      return EvaluateMoved<Id, std::decay_t<decltype(space)>>{tables_.view, moves_, piece, outcomes,
                                                              sizes,        space,  teams};
    });
  }
  /// Draws candidates, evaluates them and leaves the outcomes in the machine's memory. Orders that are drawn in lanes
  /// (one order per lane of a team, sim/device/lanes.h) are evaluated without storing their steps. `with_steps` says
  /// whether Outcomes::peak_step is wanted.
  void draw_and_evaluate(const Generator& generator, std::int64_t first, std::int64_t count, bool with_steps) {
    if (generator.transfers > 0) return evaluate_moved(draw(generator, first, count), sizes_of(generator));
    if constexpr (kInLanes) {
      if (generator.moves == 0) {
        OutcomesView outcomes = outcomes_room(count);
        if (!with_steps) outcomes.peak_step = nullptr;
        if (tables_.view.unit > 0) return run_keys<std::int32_t>(generator, first, count, outcomes, nullptr);
        return run_keys<std::int64_t>(generator, first, count, outcomes, nullptr);
      }
    }
    evaluate_piece(draw(generator, first, count), generator.moves == 0);
  }
  Machine& machine_;

 private:
  // Number of bytes per candidate in the arrays peak_, cost_, peak_step_, valid_, marked_ and places_.
  static constexpr std::int64_t kOutcomeBytes = 8 + 8 + 4 + 1 + 1 + 8;
  // Number of bytes per candidate with transfers in the arrays host_peak_, defect_, copies_begin_ and copies_count_.
  static constexpr std::int64_t kMovedBytes = 8 + 1 + 8 + 4;

  /// Returns the number of candidates whose steps, copies and outcomes fit into a piece.
  std::int64_t fitting(std::int64_t steps_of_one, std::int64_t copies_of_one) const {
    constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 20;
    const std::int64_t bytes = steps_of_one * static_cast<std::int64_t>(sizeof(Id) + sizeof(std::uint32_t)) + 16 +
                               kOutcomeBytes +
                               (copies_of_one > 0 ? copies_of_one * std::int64_t{sizeof(Copy)} + kMovedBytes : 0);
    return std::clamp<std::int64_t>(most_bytes_ / bytes, 1, kMostAtOnce);
  }

  std::int64_t stride_of(const Generator& generator) const {
    return most_steps(generator, node_count_, tables_.view.edge_count);
  }

  template <class T>
  T* room(Array<T>& array, std::int64_t count) {
    return device::room(machine_, array, count);
  }
  OutcomesView outcomes_room(std::int64_t count) {
    return {room(valid_, count), room(peak_, count), room(cost_, count), room(peak_step_, count)};
  }

  /// Calls body(piece, first, orders) for pieces that cover the batch and fit into most_bytes_. `orders` says whether
  /// every candidate of the piece has as many steps as there are nodes. `more_of_step` is the number of additional
  /// bytes per step that body() needs.
  template <class Body>
  void for_pieces(const ScheduleBatch& batch, std::int64_t more_of_step, const Body& body) {
    require_same_graph(batch, node_count_);
    const BatchView<Id> all = batch.view<Id>();
    for (std::int64_t first = 0; first < all.count;) {
      std::int64_t count = 0, bytes = 0;
      bool orders = true;
      const std::int64_t offset = all.begin[first];
      while (first + count < all.count) {
        const std::int64_t c = first + count;
        bytes = (all.begin[c] + all.length[c] - offset) * (static_cast<std::int64_t>(sizeof(Id)) + more_of_step) +
                (count + 1) * (12 + kOutcomeBytes);
        if (batch.has_transfers()) {
          const std::int64_t copies = all.copies_begin[c] + all.copies_count[c] - all.copies_begin[first];
          bytes += copies * std::int64_t{sizeof(Copy)} + (count + 1) * kMovedBytes;
        }
        if (count > 0 && bytes > most_bytes_) break;
        orders = orders && all.length[c] == node_count_;
        ++count;
      }
      const std::int64_t last = first + count - 1;
      const std::int64_t steps = all.begin[last] + all.length[last] - offset;
      std::vector<std::int64_t> begin(all.begin + first, all.begin + first + count);
      for (std::int64_t& place : begin) place -= offset;
      machine_.upload(all.steps + offset, steps, room(steps_, steps));
      machine_.upload(begin.data(), count, room(begin_, count));
      machine_.upload(all.length + first, count, room(length_, count));
      BatchView<Id> piece{steps_.data(), begin_.data(), length_.data(), count};
      if (batch.has_transfers()) upload_copies(all, first, piece);
      body(piece, first, orders);
      first += count;
    }
  }

  /// Uploads the copies of candidates first .. first + piece.count - 1 of `all`, and sets the pointers of `piece` to
  /// them.
  void upload_copies(const BatchView<Id>& all, std::int64_t first, BatchView<Id>& piece) {
    const std::int64_t last = first + piece.count - 1, offset = all.copies_begin[first];
    const std::int64_t copies = all.copies_begin[last] + all.copies_count[last] - offset;
    std::vector<std::int64_t> begin(all.copies_begin + first, all.copies_begin + last + 1);
    for (std::int64_t& place : begin) place -= offset;
    machine_.upload(all.copies + offset, copies, room(copies_, copies));
    machine_.upload(begin.data(), piece.count, room(copies_begin_, piece.count));
    machine_.upload(all.copies_count + first, piece.count, room(copies_count_, piece.count));
    piece.copies = copies_.data();
    piece.copies_begin = copies_begin_.data();
    piece.copies_count = copies_count_.data();
  }

  /// Returns the largest numbers of values, steps and copies of the candidates first .. first + count - 1 of a batch.
  /// They determine the sizes of the arrays for a walk, i.e. for an evaluation with transfers
  /// (sim/device/transfers/transfer_profile.h).
  WalkSizes sizes_of(const ScheduleBatch& batch, std::int64_t first, std::int64_t count) const {
    const BatchView<Id> all = batch.view<Id>();
    WalkSizes sizes{.values = moves_.value_count};
    for (std::int64_t c = first; c < first + count; ++c) {
      sizes.steps = std::max<std::int64_t>(sizes.steps, all.length[c]);
      sizes.copies = std::max<std::int64_t>(sizes.copies, all.copies_count[c]);
    }
    return sizes;
  }
  WalkSizes sizes_of(const Generator& generator) const {
    return {moves_.value_count, stride_of(generator), 2 * std::int64_t{generator.transfers}};
  }

  /// Launches a functor of sim/device/transfers/transfer_kernels.h for `count` candidates, with arrays of the given
  /// sizes.
  template <class Make>
  void walk(std::int64_t count, const WalkSizes& sizes, const Make& make) {
    launch_with_space((count + kThreadsOfWalk - 1) / kThreadsOfWalk, sizes.bytes(kThreadsOfWalk), make);
  }

  /// Evaluates candidates with transfers and adds the results to a tally. Copies the outcomes of all candidates to the
  /// host, because the distributions of makespans and host peaks (Tally::makespans) are counted there.
  void sweep_moved(const Generator& generator, std::int64_t first, std::int64_t count, Tally& tally) {
    const std::int64_t at_once = piece_of(generator);
    Outcomes outcomes;
    for (std::int64_t done = 0; done < count; done += at_once) {
      evaluate(generator, first + done, std::min(at_once, count - done), outcomes);
      tally.add(first + done, outcomes);
    }
  }

  static std::int64_t teams_of_rewind(std::int64_t count) { return (count + kThreadsOfRewind - 1) / kThreadsOfRewind; }
  /// Returns the bytes that the ValueBits (sim/device/candidate_profile.h) of a team's candidates take.
  std::int64_t bytes_of_rewind() const {
    return ValueBits::words(tables_.view.value_count) * kThreadsOfRewind *
           static_cast<std::int64_t>(sizeof(std::uint32_t));
  }

  /// Whether orders are drawn in lanes. This is so only with 16-bit ids, because rank_keys() takes fewer than 2^16
  /// nodes.
  static constexpr bool kInLanes = sizeof(Id) == sizeof(std::uint16_t);

  /// A number of lanes as a template argument. The more lanes a team has, the more candidates share each read of the
  /// graph's tables.
  template <int kCount>
  using LaneCount = std::integral_constant<int, kCount>;

  /// Chooses the number k of lanes of a team, and calls call(LaneCount<k>(), in_shared, room). The arrays of k lanes
  /// take bytes_of(LaneCount<k>()) bytes. First tries whether the arrays of 32 or 16 lanes fit into half of the shared
  /// memory, then whether those of 16 or 8 lanes fit into all of it. `room` is the number of bytes of shared memory
  /// that the arrays may use. If the arrays do not fit for any k, in_shared is false, and they are in the machine's
  /// memory.
  template <class BytesOf, class Call>
  void choose_lanes(const BytesOf& bytes_of, const Call& call) const {
    if constexpr (kMayShare) {
      const std::int64_t all = machine_.shared_limit(), half = all / 2;
      if (bytes_of(LaneCount<32>()) <= half) return call(LaneCount<32>(), std::true_type(), half);
      if (bytes_of(LaneCount<16>()) <= half) return call(LaneCount<16>(), std::true_type(), half);
      if (bytes_of(LaneCount<16>()) <= all) return call(LaneCount<16>(), std::true_type(), all);
      if (bytes_of(LaneCount<8>()) <= all) return call(LaneCount<8>(), std::true_type(), all);
    }
    call(LaneCount<8>(), std::false_type(), std::int64_t{0});
  }

  template <class Sum>
  void evaluate_orders(const BatchView<Id>& piece, const OutcomesView& outcomes) {
    const auto bytes_of = [&](auto lanes) {
      return EvaluateOrders<Id, Sum, decltype(lanes)::value, SharedSpace>::bytes(node_count_);
    };
    choose_lanes(bytes_of, [&](auto lanes, auto in_shared, std::int64_t /*room*/) {
      constexpr int kOfTeam = decltype(lanes)::value;
      launch_in<decltype(in_shared)::value>(
          (piece.count + kOfTeam - 1) / kOfTeam, bytes_of(lanes), [&](const auto& space, std::int64_t teams) {
            using Space = std::decay_t<decltype(space)>;
            return EvaluateOrders<Id, Sum, kOfTeam, Space>{tables_.view, piece, outcomes, space, teams};
          });
    });
  }

  /// Draws orders in lanes. Evaluates them, or writes their steps if `steps` is not nullptr.
  template <class Sum>
  void run_keys(const Generator& generator, std::int64_t first, std::int64_t count, const OutcomesView& outcomes,
                Id* steps) {
    const std::int64_t least_buckets = node_count_ / 4 + 1;
    const auto bytes_of = [&](auto lanes) {
      return std::max(EvaluateKeys<Id, Sum, decltype(lanes)::value, SharedSpace>::bytes(node_count_, least_buckets),
                      bytes_of_ranks<Sum>());
    };
    choose_lanes(bytes_of, [&](auto lanes, auto in_shared, std::int64_t room_for_arrays) {
      constexpr int kOfTeam = decltype(lanes)::value;
      const std::int64_t groups = (count + kOfTeam - 1) / kOfTeam;
      std::uint32_t* const highest = room(highest_, groups * kOfTeam);
      const DrawnOrders<Id, kOfTeam> drawn{
          tables_.view, room(keys_, groups * kOfTeam * std::max<std::int64_t>(node_count_, 1)),
          highest,      groups,
          count,        room(by_ranks_, groups)};
      machine_.launch(DrawKeys<Id, kOfTeam>{tables_.view, generator.seed, first, drawn.keys, highest},
                      groups * kOfTeam);
      if (steps == nullptr) {
        // The shared memory that is left is used for more buckets.
        constexpr std::int64_t kBytesOfBucket = 2 * kOfTeam * sizeof(Sum), kAlignment = 64;
        const std::int64_t more = (room_for_arrays - bytes_of(lanes) - kAlignment) / kBytesOfBucket;
        const std::int64_t buckets = std::clamp(least_buckets + more, least_buckets, node_count_ + std::int64_t{1});
        launch_in<decltype(in_shared)::value>(groups,
                                              EvaluateKeys<Id, Sum, kOfTeam, SharedSpace>::bytes(node_count_, buckets),
                                              [&](const auto& space, std::int64_t teams) {
                                                using Space = std::decay_t<decltype(space)>;
                                                return EvaluateKeys<Id, Sum, kOfTeam, Space>{
                                                    drawn, outcomes, space, teams, static_cast<std::int32_t>(buckets)};
                                              });
      }
      launch_in<decltype(in_shared)::value>(groups, bytes_of_ranks<Sum>(), [&](const auto& space, std::int64_t teams) {
        using Space = std::decay_t<decltype(space)>;
        return RankKeys<Id, Sum, kOfTeam, Space>{drawn, outcomes, steps, space, teams};
      });
    });
  }
  template <class Sum>
  std::int64_t bytes_of_ranks() const {
    return RankKeys<Id, Sum, 8, SharedSpace>::bytes(node_count_);  // the same for any number of lanes
  }

  /// Whether arrays may be in shared memory. The wide type of ids is for graphs of at least 65,535 nodes, and no GPU
  /// has enough shared memory for the arrays of such a graph.
  static constexpr bool kMayShare = sizeof(Id) == sizeof(std::uint16_t);

  /// Launches `work` teams with the functor that make(space, teams) returns; a team's arrays take `bytes` bytes. If a
  /// team's arrays do not fit into the shared memory, they are in the machine's memory instead. In that case, launches
  /// only as many teams as can run at once.
  template <class Make>
  void launch_with_space(std::int64_t work, std::int64_t bytes, const Make& make) {
    using Functor = decltype(make(GlobalSpace(), work));
    if constexpr (kMayShare) {
      constexpr std::int64_t kTeamsOfBlock = Functor::kThreads == 32 ? core::kWarpsOfBlock : 1;
      if (bytes * kTeamsOfBlock <= machine_.shared_limit()) return launch_in<true>(work, bytes, make);
    }
    launch_in<false>(work, bytes, make);
  }
  template <bool kShared, class Make>
  void launch_in(std::int64_t work, std::int64_t bytes, const Make& make) {
    if constexpr (kShared) {
      machine_.launch(make(SharedSpace(), work), work, bytes);
    } else {
      using Functor = decltype(make(GlobalSpace(), work));
      constexpr std::int64_t kAlignment = 256;
      GlobalSpace space;
      space.bytes = (std::max<std::int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
      const std::int64_t at_once = std::min(work, machine_.template resident_teams<Functor>(0));
      const std::int64_t teams =
          std::clamp<std::int64_t>((machine_.free_bytes() + spaces_.size()) / 2 / space.bytes, 1, at_once);
      space.pieces = room(spaces_, teams * space.bytes);
      machine_.launch(make(space, teams), teams);
    }
  }

  void download(std::int64_t count, std::int64_t to, Outcomes& outcomes) {
    machine_.download(valid_.data(), count, outcomes.valid.data() + to);
    machine_.download(peak_.data(), count, outcomes.peak.data() + to);
    machine_.download(cost_.data(), count, outcomes.cost.data() + to);
    machine_.download(peak_step_.data(), count, outcomes.peak_step.data() + to);
    if (outcomes.host_peak.empty()) return;
    machine_.download(host_peak_.data(), count, outcomes.host_peak.data() + to);
    machine_.download(defect_.data(), count, outcomes.defect.data() + to);
  }

  void add_to(Tally& tally, std::int64_t first, std::int64_t count) {
    const TallyOptions& options = tally.options();
    const OutcomesView outcomes{valid_.data(), peak_.data(), cost_.data(), peak_step_.data()};
    constexpr std::int64_t kMostTeams = 512;
    const std::int64_t teams = std::min(kMostTeams, (count + CountOutcomes::kThreads - 1) / CountOutcomes::kThreads);
    const auto counts = machine_.template array<Counted>(teams);
    const auto histogram = machine_.template array<std::int64_t>(options.bins);
    machine_.fill(histogram.data(), 0, options.bins * static_cast<std::int64_t>(sizeof(std::int64_t)));
    machine_.launch(CountOutcomes{outcomes, count, options.from, options.budget, options.shift, options.bins, teams,
                                  histogram.data(), counts.data()},
                    teams);
    const std::vector<Entry>& best = tally.front();
    const auto front = uploaded(machine_, std::span(best));
    machine_.launch(
        Mark<IsEntry>{{outcomes, first, tally.worst_top(), front.data(), front.size()}, room(marked_, count)}, count);
    const std::int64_t found = machine_.select(marked_.data(), count, room(places_, count));

    for (const Counted& part : downloaded(machine_, counts.data(), teams)) tally.add_counts(part.counts());
    tally.add_histogram(downloaded(machine_, histogram.data(), options.bins));
    machine_.launch(GatherEntries{outcomes, places_.data(), room(entries_, found), first}, found);
    for (const Entry& entry : downloaded(machine_, entries_.data(), found)) {
      if (entry.peak < 0) {
        tally.add_invalid(entry.index);
      } else {
        tally.add_entry(entry);
      }
    }
  }

  core::NodeId node_count_;
  std::int64_t most_bytes_ = 0;
  typename Tables<Id>::template Copy<Machine> tables_;
  Array<MovedValue> moved_;
  MovesView moves_;
  Array<Copy> copies_;
  Array<std::int64_t> copies_begin_, host_peak_;
  Array<std::int32_t> copies_count_;
  Array<core::Defect::Kind> defect_;
  Array<Id> steps_;
  Array<std::int64_t> begin_, peak_, cost_, places_;
  Array<std::int32_t> length_, peak_step_;
  Array<std::uint32_t> keys_, highest_;  ///< for DrawKeys
  Array<std::uint8_t> valid_, marked_, by_ranks_;
  Array<Entry> entries_;
  Array<std::byte> spaces_;
};

}  // namespace cairn::sim::device
