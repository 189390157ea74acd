#include "cairn/solvers/order/device/caduceus_batch.h"

#include <string>

#include "cairn/core/error.h"
#include "cairn/solvers/order/device/caduceus_kernel.h"

namespace cairn::solvers {

void CaduceusBatch::add_graph(std::span<const core::Segment> staff) {
  const auto length = static_cast<std::int32_t>(staff.size());
  graphs_.push_back(
      {static_cast<std::int64_t>(segments_.size()), static_cast<std::int64_t>(bends_.size()), length, 0, length});
  segments_.insert(segments_.end(), staff.begin(), staff.end());
}

void CaduceusBatch::add_bend(std::int32_t first, std::int32_t last, std::span<const core::Segment> segments) {
  if (graphs_.empty()) throw core::InputError("a bend needs a caduceus graph before it; call add_graph first");
  Graph& graph = graphs_.back();
  if (first < 0 || first > last || last > graph.staff) {
    throw core::InputError("a bend in the gaps " + std::to_string(first) + " to " + std::to_string(last) +
                           " of a staff of " + std::to_string(graph.staff) +
                           "; give gaps in rising order between 0 and the length of the staff");
  }
  const auto length = static_cast<std::int32_t>(segments.size());
  bends_.push_back({first, last, length});
  segments_.insert(segments_.end(), segments.begin(), segments.end());
  ++graph.bends;
  graph.segments += length;
}

CaduceusAnswers solve_caduceus(const CaduceusBatch& batch, CaduceusGoal goal, core::HostMachine& machine) {
  return device::solve_caduceus(batch, goal, machine);
}

}  // namespace cairn::solvers
