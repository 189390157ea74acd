#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/core/machine/support/machine.h"
#include "cairn/sim/device/candidate_profile.h"
#include "cairn/sim/device/dominance/internal_segments.h"
#include "cairn/sim/device/drawing/random_order.h"
#include "cairn/sim/device/transfers/transfer_profile.h"
#include "cairn/sim/host/lockstep/lockstep.h"
#include "cairn/sim/simulator.h"
#include "cairn/sim/support/dominance.h"

namespace cairn::sim {
namespace {

using device::DrawSpace;
using device::Outcome;
using device::Tables;
using device::TablesView;

device::OutcomesView resized(Outcomes& outcomes, std::int64_t count, bool transfers) {
  outcomes.resize(count, transfers);
  return {outcomes.valid.data(),     outcomes.peak.data(),      outcomes.cost.data(),
          outcomes.peak_step.data(), outcomes.host_peak.data(), outcomes.defect.data()};
}

/// Sorts up to 65,536 nodes by (key, number) into `order`, as sort_by_key() does, but without branches that are hard to
/// predict. Two passes of a radix sort, by eight bits each, sort by the keys' 16 highest bits. An insertion sort then
/// orders the nodes whose 16 highest bits are equal. Random keys are spread over their range, so there are few such
/// nodes.
class NodeSorter {
 public:
  void sort(const std::uint32_t* key, std::int32_t count, std::uint16_t* order) {
    marked_.resize(static_cast<std::size_t>(count));
    passed_.resize(static_cast<std::size_t>(count));
    std::uint32_t highest = 1;
    for (std::int32_t v = 0; v < count; ++v) highest = key[v] > highest ? key[v] : highest;
    const int shift = std::countl_zero(highest);

    // Each entry of these arrays holds a node's number and the highest bits of the node's key.
    std::uint32_t* marked = marked_.data();
    std::uint32_t* passed = passed_.data();
    std::uint32_t low[kDigits] = {}, high[kDigits] = {};
    for (std::int32_t v = 0; v < count; ++v) {
      const std::uint32_t word = (key[v] << shift & 0xFFFF0000U) | static_cast<std::uint32_t>(v);
      marked[v] = word;
      ++low[word >> 16 & 0xFFU];
      ++high[word >> 24];
    }
    std::uint32_t low_sum = 0, high_sum = 0;
    for (int digit = 0; digit < kDigits; ++digit) {
      const std::uint32_t low_count = low[digit], high_count = high[digit];
      low[digit] = low_sum;
      high[digit] = high_sum;
      low_sum += low_count;
      high_sum += high_count;
    }
    for (std::int32_t i = 0; i < count; ++i) passed[low[marked[i] >> 16 & 0xFFU]++] = marked[i];
    for (std::int32_t i = 0; i < count; ++i) order[high[passed[i] >> 24]++] = static_cast<std::uint16_t>(passed[i]);

    for (std::int32_t i = 1; i < count; ++i) {
      const std::uint16_t v = order[i];
      std::int32_t j = i;
      for (; j > 0 && key[order[j - 1]] > key[v]; --j) order[j] = order[j - 1];  // equal keys are already in order
      order[j] = v;
    }
  }

 private:
  static constexpr int kDigits = 256;
  std::vector<std::uint32_t> marked_, passed_;
};

/// Evaluates and draws candidates (schedules) on one thread.
template <class Id>
class Worker {
 public:
  Worker(const TablesView<Id>& graph, const device::MovesView& moves)
      : graph_(graph),
        moves_(moves),
        words_(static_cast<std::size_t>(graph.value_count)),
        orders_(graph, graph.node_count) {}

  /// Calls put_outcome(i, outcome) for each rows[i], in any order.
  template <class Put>
  void evaluate(const Row<Id>* rows, std::int64_t count, const Put& put_outcome) {
    orders_.clear();  // an exception in an earlier call can have left candidates here
    recomputing_.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      const Row<Id>& row = rows[i];
      // A valid schedule contains every node, so a shorter one is invalid.
      if (row.length < graph_.node_count || !all_known(row)) {
        put_outcome(i, Outcome{});
      } else if (row.length == graph_.node_count) {
        orders_.add(row, i);
        if (orders_.full()) flush_orders(put_outcome);
      } else if (row.length > std::int64_t{graph_.node_count} * Lockstep<Id>::kMostOccurrences) {
        put_outcome(i, rewind_one(row));
      } else {
        if (row.length > recomputing_.longest) {
          flush_recomputing(put_outcome);
          recomputing_ = Tile(graph_, std::int64_t{row.length} + row.length / 4);
        }
        recomputing_.add(row, i);
        if (recomputing_.full()) flush_recomputing(put_outcome);
      }
    }
    flush_orders(put_outcome);
    flush_recomputing(put_outcome);
  }

  /// Evaluates candidates that may have transfers. Calls put_outcome(i, outcome) for each rows[i], in any order.
  template <class Put>
  void evaluate_moved(const device::MovedRow<Id>* rows, std::int64_t count, const Put& put_outcome) {
    orders_.clear();
    recomputing_.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      const Row<Id> row{rows[i].steps, rows[i].length};
      const bool in_lanes = row.length >= graph_.node_count && all_known(row) &&
                            row.length <= std::int64_t{graph_.node_count} * Lockstep<Id>::kMostOccurrences;
      if (!in_lanes) {
        put_outcome(i, walk(rows[i], device::IgnoreSteps{}));
        continue;
      }
      const bool order = row.length == graph_.node_count;
      if (!order && row.length > recomputing_.longest) {
        flush_moved(recomputing_, put_outcome);
        recomputing_ = Tile(graph_, std::int64_t{row.length} + row.length / 4);
      }
      Tile& tile = order ? orders_ : recomputing_;
      tile.add(row, i);
      tile.moved.push_back(rows[i]);
      if (tile.full()) flush_moved(tile, put_outcome);
    }
    flush_moved(orders_, put_outcome);
    flush_moved(recomputing_, put_outcome);
  }

  Outcome rewind_one(const Row<Id>& row) {
    return device::rewind(graph_, row.steps, row.length, values(), device::IgnoreSteps{});
  }
  template <class Visit>
  Outcome visit_steps(const Row<Id>& row, const Visit& visit) {
    return device::rewind(graph_, row.steps, row.length, values(), visit);
  }
  /// Finds the segments of a candidate's internal profile. Returns false if it is invalid or has no steps.
  bool find_segments(const Row<Id>& row, core::CanonicalProfile& profile) {
    if (row.length == 0 || !all_known(row)) return false;
    segments_.resize(static_cast<std::size_t>(row.length));
    device::InternalSegments<Id> segments(graph_, row.steps, row.length, segments_.data());
    const Outcome outcome = visit_steps(
        row, [&](std::int32_t i, std::int64_t during, std::int64_t after) { segments.take(i, during, after); });
    if (!outcome.valid) return false;
    segments.end();
    profile.start = segments.start();
    profile.segments.assign(segments_.rend() - segments.count(), segments_.rend());
    return true;
  }

  /// Evaluates a candidate with transfers.
  template <class Visit>
  device::MovedOutcome walk(const device::MovedRow<Id>& row, const Visit& visit) {
    return device::walk_transfers(graph_, moves_, row, walk_arrays(row.length, row.count), visit);
  }
  /// Draws the transfers of candidate `index`, whose steps are `row`. `copies` must have room for 2 *
  /// generator.transfers entries. Returns the number of copies.
  std::int32_t draw_transfers(const Generator& generator, std::int64_t index, const Row<Id>& row, Copy* copies) {
    return device::draw_transfers(graph_, moves_, generator.seed, generator.transfers, index,
                                  device::MovedRow<Id>{row.steps, row.length},
                                  walk_arrays(row.length, 2 * std::int64_t{generator.transfers}), copies);
  }

  /// Draws candidates first .. first + count - 1 of the generator, without transfers. The steps of candidate first + i
  /// go to steps + i * stride.
  void draw(const Generator& generator, std::int64_t first, std::int64_t count, std::int64_t stride, Id* steps,
            std::int32_t* lengths) {
    const bool moves = generator.moves > 0;
    space_.resize(static_cast<std::size_t>(
        DrawSpace::bytes(graph_.node_count, graph_.edge_count, sizeof(Id), moves) / sizeof(std::max_align_t) + 1));
    const DrawSpace space =
        DrawSpace::in(reinterpret_cast<std::byte*>(space_.data()), graph_.node_count, graph_.edge_count);
    DrawOrders& orders = draw_orders();
    const core::SerialTeam team;
    const int lanes = orders.lanes();
    for (std::int64_t i = 0; i < count; ++i) {
      const auto lane = static_cast<int>(i % lanes);
      if (lane == 0) orders.draw(generator.seed, first + i);
      Id* row = steps + i * stride;
      Id* order = moves ? static_cast<Id*>(space.order) : row;
      if constexpr (std::is_same_v<Id, std::uint16_t>) {
        sorter_.sort(orders.keys(lane), graph_.node_count, order);
      } else {
        device::sort_by_key(team, graph_.node_count, orders.keys(lane), space.bucket, order);
      }
      lengths[i] = moves
                       ? device::draw_moves(team, graph_, generator.seed, generator.moves, first + i, space, order, row)
                       : graph_.node_count;
    }
  }

  /// Draws candidates first .. first + count - 1 of a generator without moves and transfers, and evaluates them. Calls
  /// put_outcome(i, outcome) for candidate first + i.
  template <class Put>
  void evaluate_orders(std::uint64_t seed, std::int64_t first, std::int64_t count, const Put& put_outcome) {
    DrawOrders& orders = draw_orders();
    Outcome outcomes[kMostLanes];
    for (std::int64_t begin = 0; begin < count; begin += orders.lanes()) {
      const auto in_lanes = static_cast<int>(std::min<std::int64_t>(orders.lanes(), count - begin));
      orders.draw(seed, first + begin);
      orders.evaluate(in_lanes, outcomes);
      for (int lane = 0; lane < in_lanes; ++lane) put_outcome(begin + lane, outcomes[lane]);
    }
  }

 private:
  static constexpr int kMostLanes = 64;

  /// Candidates that wait until there are enough of them to fill the lanes of a Lockstep, which evaluates them at once.
  struct Tile {
    Tile() = default;
    Tile(const TablesView<Id>& graph, std::int64_t steps) : longest(steps), lockstep(make_lockstep(graph, steps)) {}
    void add(const Row<Id>& row, std::int64_t place) {
      rows.push_back(row);
      places.push_back(place);
    }
    void clear() {
      rows.clear();
      moved.clear();
      places.clear();
    }
    bool full() const {
      constexpr int kWithoutLanes = 16;
      return static_cast<int>(rows.size()) == (lockstep ? lockstep->lanes() : kWithoutLanes);
    }
    /// Returns whether evaluating the candidates in lanes is faster than one by one in scalar code. This depends on how
    /// many lanes are filled, because an empty lane takes as much time as a filled one.
    bool worth_lanes() const { return lockstep && static_cast<int>(rows.size()) * 6 >= lockstep->lanes(); }

    std::int64_t longest = 0;
    std::unique_ptr<Lockstep<Id>> lockstep;
    std::vector<Row<Id>> rows;
    std::vector<device::MovedRow<Id>>
        moved;  ///< the candidates of `rows` with their transfers; only evaluate_moved() fills it
    std::vector<std::int64_t> places;
  };

  bool all_known(const Row<Id>& row) const {
    if (orders_.lockstep) return orders_.lockstep->knows(row);
    Id highest = 0;
    for (std::int32_t i = 0; i < row.length; ++i) highest = std::max(highest, row.steps[i]);
    return row.length == 0 || static_cast<std::int64_t>(highest) < graph_.node_count;
  }

  device::WalkArrays walk_arrays(std::int64_t steps, std::int64_t copies) {
    const std::int64_t bytes = device::WalkArrays::bytes(graph_.value_count, steps, copies, 1);
    const std::size_t words = static_cast<std::size_t>(bytes) / sizeof(std::max_align_t) + 1;
    if (walk_space_.size() < words) walk_space_.resize(words);
    return device::WalkArrays::in(reinterpret_cast<std::byte*>(walk_space_.data()), 0, 1, graph_.value_count, steps,
                                  copies);
  }

  device::ValueWords values() { return {graph_, words_.data()}; }

  DrawOrders& draw_orders() {
    if (!drawn_) drawn_ = make_draw_orders(graph_);
    return *drawn_;
  }

  template <class Put>
  void flush_orders(const Put& put_outcome) {
    flush(orders_, put_outcome, [](Tile& tile, Outcome* outcomes, bool*) {
      tile.lockstep->run_orders(tile.rows.data(), static_cast<int>(tile.rows.size()), outcomes);
    });
  }
  template <class Put>
  void flush_recomputing(const Put& put_outcome) {
    flush(recomputing_, put_outcome, [](Tile& tile, Outcome* outcomes, bool* done) {
      tile.lockstep->run(tile.rows.data(), static_cast<int>(tile.rows.size()), outcomes, done);
    });
  }
  template <class Put, class Run>
  void flush(Tile& tile, const Put& put_outcome, const Run& run) {
    Outcome outcomes[kMostLanes];
    bool done[kMostLanes];
    const bool lanes = tile.worth_lanes();
    std::fill(done, done + kMostLanes, lanes);
    if (lanes) run(tile, outcomes, done);
    for (std::size_t i = 0; i < tile.rows.size(); ++i) {
      put_outcome(tile.places[i], done[i] ? outcomes[i] : rewind_one(tile.rows[i]));
    }
    tile.clear();
  }

  template <class Put>
  void flush_moved(Tile& tile, const Put& put_outcome) {
    device::MovedOutcome outcomes[kMostLanes];
    bool done[kMostLanes] = {};
    if (tile.worth_lanes()) {
      tile.lockstep->run_moved(tile.moved.data(), static_cast<int>(tile.moved.size()), moves_, outcomes, done);
    }
    for (std::size_t i = 0; i < tile.moved.size(); ++i) {
      put_outcome(tile.places[i], done[i] ? outcomes[i] : walk(tile.moved[i], device::IgnoreSteps{}));
    }
    tile.clear();
  }

  TablesView<Id> graph_;
  device::MovesView moves_;
  std::vector<std::uint64_t> words_;
  std::vector<core::Segment> segments_;
  Tile orders_, recomputing_;
  std::vector<std::max_align_t> space_, walk_space_;
  std::unique_ptr<DrawOrders> drawn_;
  NodeSorter sorter_;
};

template <class Id>
class HostSimulator final : public Simulator {
 public:
  HostSimulator(const core::Graph& graph, int threads)
      : graph_(graph), tables_(graph), moved_(device::moved_values(graph)), machine_(threads) {
    const device::MovesView moves{moved_.data(), graph.value_count(), device::is_duplex(graph)};
    for (int i = 0; i < machine_.threads(); ++i) {
      workers_.push_back(std::make_unique<Worker<Id>>(tables_.view(), moves));
    }
  }
  std::string backend() const override { return "host"; }
  std::string device() const override {
    return std::to_string(machine_.threads()) + (machine_.threads() == 1 ? " thread" : " threads");
  }

  void evaluate(const ScheduleBatch& batch, Outcomes& outcomes) override {
    require_same_graph(batch, graph_.node_count());
    const device::OutcomesView into = resized(outcomes, batch.count(), batch.has_transfers());
    const BatchView<Id> view = batch.view<Id>();
    if (batch.has_transfers()) {
      return for_pieces(batch.count(), [&](std::int64_t begin, std::int64_t end, Worker<Id>& worker) {
        std::vector<device::MovedRow<Id>> rows;
        for (std::int64_t c = begin; c < end; ++c) rows.push_back(device::moved_row(view, c));
        worker.evaluate_moved(rows.data(), end - begin, [&](std::int64_t i, const device::MovedOutcome& outcome) {
          device::put(into, begin + i, outcome);
        });
      });
    }
    for_pieces(batch.count(), [&](std::int64_t begin, std::int64_t end, Worker<Id>& worker) {
      std::vector<Row<Id>> rows;
      for (std::int64_t c = begin; c < end; ++c) rows.push_back(row_of(view, c));
      worker.evaluate(rows.data(), end - begin,
                      [&](std::int64_t i, const Outcome& outcome) { into.put(begin + i, outcome); });
    });
  }

  Profiles profiles(const ScheduleBatch& batch) override {
    Profiles profiles = room_for_profiles(*this, batch);
    const BatchView<Id> view = batch.view<Id>();
    for_pieces(batch.count(), [&](std::int64_t begin, std::int64_t end, Worker<Id>& worker) {
      for (std::int64_t c = begin; c < end; ++c) {
        if (profiles.begin[c] == profiles.begin[c + 1]) continue;
        profiles.value[profiles.begin[c]] = 0;
        const device::StoreProfile store{profiles.value.data() + profiles.begin[c]};
        if (batch.has_transfers()) {
          worker.walk(device::moved_row(view, c), store);
        } else {
          worker.visit_steps(row_of(view, c), store);
        }
      }
    });
    return profiles;
  }

  InternalProfiles internal_profiles(const ScheduleBatch& batch) override {
    require_same_graph(batch, graph_.node_count());
    require_no_transfers(batch);
    const BatchView<Id> view = batch.view<Id>();
    std::vector<core::CanonicalProfile> profiles(static_cast<std::size_t>(batch.count()));
    std::vector<std::uint8_t> valid(static_cast<std::size_t>(batch.count()));
    for_pieces(batch.count(), [&](std::int64_t begin, std::int64_t end, Worker<Id>& worker) {
      for (std::int64_t c = begin; c < end; ++c) valid[c] = worker.find_segments(row_of(view, c), profiles[c]) ? 1 : 0;
    });
    InternalProfiles result;
    for (std::int64_t c = 0; c < batch.count(); ++c) {
      if (valid[c] == 0) continue;
      result.candidates.push_back(c);
      result.profiles.add(profiles[c]);
    }
    return result;
  }

  std::vector<std::int64_t> non_dominated(const CanonicalBatch& profiles) override {
    return sim::non_dominated(profiles, machine_.threads());
  }

  ScheduleBatch generate(const Generator& generator, std::int64_t first, std::int64_t count) override {
    ScheduleBatch batch(graph_.node_count());
    const std::int64_t stride = stride_of(generator);
    batch.resize_padded(count, stride);
    Id* steps = batch.steps<Id>();
    for_pieces(count, [&](std::int64_t begin, std::int64_t end, Worker<Id>& worker) {
      worker.draw(generator, first + begin, end - begin, stride, steps + begin * stride, batch.lengths() + begin);
    });
    if (generator.transfers > 0) {
      const BatchView<Id> view = batch.view<Id>();
      std::vector<std::int32_t> counts(static_cast<std::size_t>(count));
      std::vector<Copy> copies;
      std::vector<Copy> drawn(2 * static_cast<std::size_t>(generator.transfers));
      for (std::int64_t c = 0; c < count; ++c) {
        counts[c] = workers_[0]->draw_transfers(generator, first + c, row_of(view, c), drawn.data());
        copies.insert(copies.end(), drawn.begin(), drawn.begin() + counts[c]);
      }
      batch.set_copies(std::move(copies), counts);
    }
    return batch;
  }

  void evaluate(const Generator& generator, std::int64_t first, std::int64_t count, Outcomes& outcomes) override {
    stride_of(generator);  // throws if the generator is not valid
    const device::OutcomesView into = resized(outcomes, count, generator.transfers > 0);
    for_pieces(count, [&](std::int64_t begin, std::int64_t end, Worker<Id>& worker) {
      if (generator.transfers > 0) return evaluate_moved(generator, first, begin, end, worker, into);
      evaluate_drawn(generator, first, begin, end, worker,
                     [&](std::int64_t i, const Outcome& outcome) { into.put(i, outcome); });
    });
  }

  void sweep(const Generator& generator, std::int64_t first, std::int64_t count, Tally& tally) override {
    Outcomes outcomes;
    for (std::int64_t done = 0; done < count; done += kSweepPiece) {
      const std::int64_t piece = std::min(kSweepPiece, count - done);
      evaluate(generator, first + done, piece, outcomes);
      tally.add(first + done, outcomes);
    }
  }

 private:
  static constexpr std::int64_t kSweepPiece = std::int64_t{1} << 18;

  template <class Body>
  void for_pieces(std::int64_t count, const Body& body) {
    constexpr std::int64_t kGrain = 128;
    machine_.for_each(count, kGrain, [&](std::int64_t begin, std::int64_t end, int thread) {
      body(begin, end, *workers_[static_cast<std::size_t>(thread)]);
    });
  }
  static Row<Id> row_of(const BatchView<Id>& view, std::int64_t c) {
    return {view.steps + view.begin[c], view.length[c]};
  }
  std::int64_t stride_of(const Generator& generator) const {
    return most_steps(generator, graph_.node_count(), tables_.view().edge_count);
  }

  /// Draws candidates first + begin .. first + end - 1 and evaluates them in groups. A group is small enough to stay in
  /// the cache until it is evaluated. Calls put_outcome(c, outcome) for candidate first + c.
  template <class Put>
  void evaluate_drawn(const Generator& generator, std::int64_t first, std::int64_t begin, std::int64_t end,
                      Worker<Id>& worker, const Put& put_outcome) {
    if (generator.moves == 0) {
      return worker.evaluate_orders(generator.seed, first + begin, end - begin,
                                    [&](std::int64_t i, const Outcome& outcome) { put_outcome(begin + i, outcome); });
    }
    for_drawn(generator, first, begin, end, worker, [&](std::int64_t c, const Row<Id>* rows, std::int64_t count) {
      worker.evaluate(rows, count, [&](std::int64_t i, const Outcome& outcome) { put_outcome(c + i, outcome); });
    });
  }

  /// Draws the steps of candidates first + begin .. first + end - 1, and calls take(c, rows, count) for each group of
  /// candidates first + c .. first + c + count - 1.
  template <class Take>
  void for_drawn(const Generator& generator, std::int64_t first, std::int64_t begin, std::int64_t end,
                 Worker<Id>& worker, const Take& take) {
    constexpr std::int64_t kDrawn = 64;
    const std::int64_t stride = stride_of(generator);
    std::vector<Id> steps(static_cast<std::size_t>(kDrawn * stride));
    std::int32_t lengths[kDrawn];
    Row<Id> rows[kDrawn];
    for (std::int64_t c = begin; c < end; c += kDrawn) {
      const std::int64_t count = std::min(kDrawn, end - c);
      worker.draw(generator, first + c, count, stride, steps.data(), lengths);
      for (std::int64_t i = 0; i < count; ++i) rows[i] = {steps.data() + i * stride, lengths[i]};
      take(c, rows, count);
    }
  }

  /// Draws candidates first + begin .. first + end - 1 with their transfers and evaluates them. Writes the outcome of
  /// candidate first + c to entry c of `into`.
  void evaluate_moved(const Generator& generator, std::int64_t first, std::int64_t begin, std::int64_t end,
                      Worker<Id>& worker, const device::OutcomesView& into) {
    const std::int64_t most = 2 * std::int64_t{generator.transfers};
    std::vector<Copy> copies;
    std::vector<device::MovedRow<Id>> moved;
    for_drawn(generator, first, begin, end, worker, [&](std::int64_t c, const Row<Id>* rows, std::int64_t count) {
      copies.resize(static_cast<std::size_t>(count * most));
      moved.clear();
      for (std::int64_t i = 0; i < count; ++i) {
        Copy* const own = copies.data() + i * most;
        const std::int32_t drawn = worker.draw_transfers(generator, first + c + i, rows[i], own);
        moved.push_back({rows[i].steps, rows[i].length, own, drawn});
      }
      worker.evaluate_moved(moved.data(), count, [&](std::int64_t i, const device::MovedOutcome& outcome) {
        device::put(into, c + i, outcome);
      });
    });
  }

  core::Graph graph_;
  Tables<Id> tables_;
  std::vector<device::MovedValue> moved_;
  core::HostMachine machine_;
  std::vector<std::unique_ptr<Worker<Id>>> workers_;
};

}  // namespace

std::unique_ptr<Simulator> host_simulator(const core::Graph& graph, int threads) {
  if (ScheduleBatch(graph.node_count()).narrow()) return std::make_unique<HostSimulator<std::uint16_t>>(graph, threads);
  return std::make_unique<HostSimulator<std::uint32_t>>(graph, threads);
}

}  // namespace cairn::sim
