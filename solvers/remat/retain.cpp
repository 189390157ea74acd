#include <algorithm>
#include <cstdint>
#include <vector>

#include "cairn/core/editable_schedule.h"
#include "cairn/core/random.h"
#include "cairn/solvers/remat/internal/refine.h"

namespace cairn::solvers {

using core::EditableSchedule;

void retain_where_it_fits(const core::Graph& graph, EditableSchedule& schedule, std::int64_t budget,
                          std::uint64_t noise_seed) {
  constexpr int kMostRounds = 4;
  struct Candidate {
    double worth;
    EditableSchedule::Place place;
    EditableSchedule::Occurrence recomputation;
  };
  core::Random random(noise_seed);
  std::vector<Candidate> candidates;
  bool changed = true;
  for (int round = 0; round < kMostRounds && changed; ++round) {
    schedule.close_gaps();
    candidates.clear();
    for (auto o = schedule.first(); o != schedule.end(); o = schedule.next(o)) {
      const auto before = schedule.previous_of_node(o);
      if (before == EditableSchedule::kNone) continue;
      const core::NodeId v = schedule.node(o);
      const auto steps_between = static_cast<double>(schedule.place(o) - schedule.last_use(before));
      const double area = static_cast<double>(graph.size(v)) * steps_between + 1.0;
      const double noise = noise_seed == 0 ? 1.0 : 0.25 + 1.5 * random.uniform();
      candidates.push_back({(static_cast<double>(graph.cost(v)) + 1e-3) / area * noise, schedule.place(o), o});
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.worth != b.worth ? a.worth > b.worth : a.place > b.place;
    });
    changed = false;
    for (const auto& [worth, place, o] : candidates) {
      const bool gone = schedule.place(o) < 0;
      const auto before = gone ? EditableSchedule::kNone : schedule.previous_of_node(o);
      if (before == EditableSchedule::kNone) continue;
      // What o makes and somebody reads lives on from the occurrence before. Places that emptied in this round count
      // with the memory there.
      std::int64_t bytes = 0;
      EditableSchedule::Place first = place;
      const std::int32_t outputs = graph.output_count(schedule.node(o));
      for (std::int32_t k = 0; k < outputs; ++k) {
        if (outputs > 1 && schedule.last_use(o, k) == schedule.place(o)) continue;
        bytes += graph.value_size(graph.value({schedule.node(o), k}));
        first = std::min(first, schedule.last_use(before, k) + 1);
      }
      if (bytes > 0 && schedule.max(first, place - 1) > budget - bytes) continue;
      schedule.drop_with_unneeded(o);
      changed = true;
    }
  }
}

}  // namespace cairn::solvers
