#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/generator.h"
#include "cairn/sim/schedule_batch.h"
#include "cairn/sim/tally.h"

namespace cairn::sim {

/// Memory profiles of many candidates in one array. The profile of candidate c is value[begin[c]] .. value[begin[c + 1]
/// - 1]. The profile of an invalid candidate is empty.
struct Profiles {
  std::vector<std::int64_t> begin{0};
  /// Memory in bytes. For a candidate of T steps, the values are 0, during(1), after(1), ..., during(T), after(T), as
  /// in core::Evaluator::profile.
  std::vector<std::int64_t> value;
};

/// Canonical internal profiles (sim/undominated.h) of the valid candidates of a batch that have steps.
struct InternalProfiles {
  std::vector<std::int64_t> candidates;  ///< ascending indices of these candidates in the batch
  CanonicalBatch profiles;               ///< one profile for each entry of `candidates`
  bool operator==(const InternalProfiles&) const = default;
};

/// Evaluates many schedules of one graph at once. Every backend gives exactly the same results. A batch that exceeds
/// the backend's memory is split. The functions throw InputError for a batch that was made for another number of nodes,
/// and for a generator whose moves or transfers are below 0. Only one thread may use a Simulator at a time.
class Simulator {
 public:
  virtual ~Simulator() = default;

  virtual std::string backend() const = 0;  ///< host or cuda
  virtual std::string device() const = 0;   ///< description for people

  virtual void evaluate(const ScheduleBatch& batch, Outcomes& outcomes) = 0;
  virtual Profiles profiles(const ScheduleBatch& batch) = 0;
  /// Finds the segments of the profiles while the candidates are evaluated, without storing the profiles. Takes O(steps
  /// + inputs and outputs of all steps) time. Throws InputError for a batch with transfers.
  virtual InternalProfiles internal_profiles(const ScheduleBatch& batch) = 0;
  /// Returns the ascending indices of the profiles that no other profile dominates (DominanceSet::non_dominated in
  /// sim/support/dominance.h).
  virtual std::vector<std::int64_t> non_dominated(const CanonicalBatch& profiles);

  /// Generates candidates first .. first + count - 1 of the generator.
  virtual ScheduleBatch generate(const Generator& generator, std::int64_t first, std::int64_t count) = 0;
  /// Evaluates candidates first .. first + count - 1 of the generator without storing their schedules.
  virtual void evaluate(const Generator& generator, std::int64_t first, std::int64_t count, Outcomes& outcomes) = 0;
  /// Evaluates candidates first .. first + count - 1 of the generator and adds the results to a tally.
  virtual void sweep(const Generator& generator, std::int64_t first, std::int64_t count, Tally& tally) = 0;
};

/// Throws InputError if the batch was made for another number of nodes. For implementations of Simulator.
void require_same_graph(const ScheduleBatch& batch, core::NodeId node_count);
/// Throws InputError if the batch has transfers. For implementations of Simulator::internal_profiles().
void require_no_transfers(const ScheduleBatch& batch);
/// Evaluates the batch to find the valid candidates, and returns Profiles with room for the profiles of these, filled
/// with zeros. For implementations of Simulator.
Profiles room_for_profiles(Simulator& simulator, const ScheduleBatch& batch);

/// Returns a simulator that uses `threads` threads of the CPU (0: core::thread_count()). The simulator holds a copy of
/// the graph.
std::unique_ptr<Simulator> host_simulator(const core::Graph& graph, int threads = 0);

}  // namespace cairn::sim
