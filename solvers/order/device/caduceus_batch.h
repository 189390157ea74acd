#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/machine/machine.h"

/// Many caduceus graphs (Definition 7.4 of Jin et al.) solved at once. A graph is given by its segments, as an optimal
/// order keeps those of a bend in one piece (Theorem 6.5). The staff's p segments leave p + 1 gaps: gap g is before
/// staff segment g, gap p behind the last one. Ids count along the staff, then bend by bend. All bytes are exact;
/// sums must stay below 2^60.
namespace cairn::solvers {

class CaduceusBatch {
 public:
  struct Bend {
    std::int32_t first, last;  ///< gaps in which it may run
    std::int32_t segments;
  };
  struct Graph {
    std::int64_t segment, bend;           ///< its first ones
    std::int32_t staff, bends, segments;  ///< how many; `segments` with the staff's
  };

  void add_graph(std::span<const core::Segment> staff);
  /// To the last graph. `segments` must be canonical (core::CanonicalProfile). Throws InputError for gaps that the
  /// graph does not have.
  void add_bend(std::int32_t first, std::int32_t last, std::span<const core::Segment> segments);

  const std::vector<core::Segment>& segments() const { return segments_; }
  const std::vector<Bend>& bends() const { return bends_; }
  const std::vector<Graph>& graphs() const { return graphs_; }

 private:
  std::vector<core::Segment> segments_;
  std::vector<Bend> bends_;
  std::vector<Graph> graphs_;
};

enum class CaduceusGoal {
  least_peak,  ///< Algorithm 6: O(s^2 + s p (p + s)) for s segments of bends; far less where gaps hold few of them
  dominant,    ///< Corollary 7.9: up to s times that
};

struct CaduceusAnswers {
  std::vector<std::int64_t> peaks;   ///< by graph, above the bytes at its beginning
  std::vector<std::int32_t> orders;  ///< the ids of the first graph in their order, then those of the second, ...
};

CaduceusAnswers solve_caduceus(const CaduceusBatch& batch, CaduceusGoal goal, core::HostMachine& machine);

}  // namespace cairn::solvers
