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

/// Memory profiles of many candidates, one behind the other: candidate c's is value[begin[c]] .. value[begin[c + 1] -
/// 1]; no entries where it is invalid.
struct Profiles {
  std::vector<std::int64_t> begin{0};
  std::vector<std::int64_t> value;  ///< bytes: (0, during(1), after(1), .., during(T), after(T))
};

/// Evaluates many schedules of one graph at once. A batch of a graph with another number of nodes, or a generator with
/// moves below 0, is refused with InputError. Every backend gives exactly the same answers. For one thread at a
/// time. Batches larger than the backend's memory are split by it.
class Simulator {
 public:
  virtual ~Simulator() = default;

  virtual std::string backend() const = 0;  ///< host or cuda
  virtual std::string device() const = 0;   ///< in words

  virtual void evaluate(const ScheduleBatch& batch, Outcomes& outcomes) = 0;
  virtual Profiles profiles(const ScheduleBatch& batch) = 0;
  /// The profiles that no other one dominates (DominanceSet::non_dominated of sim/dominance.h).
  virtual std::vector<std::int64_t> non_dominated(const CanonicalBatch& profiles);

  /// Candidates first .. first + count - 1 of the generator.
  virtual ScheduleBatch generate(const Generator& generator, std::int64_t first, std::int64_t count) = 0;
  /// What became of them; the schedules themselves are nowhere stored.
  virtual void evaluate(const Generator& generator, std::int64_t first, std::int64_t count, Outcomes& outcomes) = 0;
  /// The same, added to a tally.
  virtual void sweep(const Generator& generator, std::int64_t first, std::int64_t count, Tally& tally) = 0;
};

/// For implementations: throws InputError where the batch was not made for that many nodes.
void require_same_graph(const ScheduleBatch& batch, core::NodeId node_count);
/// For implementations: the places of all profiles of the batch, with zeros for entries.
Profiles room_for_profiles(Simulator& simulator, const ScheduleBatch& batch);

/// On CPU threads; as many as there are cores for 0. The graph is kept.
std::unique_ptr<Simulator> host_simulator(const core::Graph& graph, int threads = 0);

}  // namespace cairn::sim
