// Says how good a plan is, and why no plan within a capacity is known.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"
#include "cairn/solvers/fit/solve.h"

namespace cairn::report {

Json plan_json(const fit::FoundPlan& found) {
  const core::Plan& plan = found.solution.plan;
  return {{"status", solvers::to_string(found.status())},
          {"buffers", plan.buffers.size()},
          {"planned_bytes", plan.bytes},
          {"proved_bytes", found.solution.lower_bound},
          {"gap_pct", increase_pct(plan.bytes, found.solution.lower_bound)},
          {"lower_bound_bytes", plan.lower_bound},
          {"fragmentation_pct", increase_pct(plan.bytes, plan.lower_bound)},
          {"alignment", plan.alignment},
          {"seconds", found.seconds},
          {"timed_out", found.solution.timed_out}};
}

Json plan_json(const core::Graph& graph, const core::Schedule& schedule, const fit::FoundPlan& found) {
  const core::Evaluation evaluation = core::evaluate(graph, schedule);
  Json json = plan_json(found);
  json["graph"] = graph.name();
  json["fingerprint"] = graph.fingerprint();
  json["steps"] = schedule.length();
  json["peak_bytes"] = evaluation.peak;
  json["cost"] = evaluation.cost;
  return json;
}

std::string plan_quality(const fit::FoundPlan& result) {
  const solvers::PlanSolution& found = result.solution;
  if (found.plan.bytes == found.lower_bound) return "proved least";
  return fmt::format("at most {:.2f}% above the least, which is {} or more",
                     increase_pct(found.plan.bytes, found.lower_bound), bytes_text(found.lower_bound));
}

Rows plan_rows(const fit::FoundPlan& result) {
  const core::Plan& plan = result.solution.plan;
  Rows rows = {{"buffers", std::to_string(plan.buffers.size())},
               {"planned", fmt::format("{}: {}", bytes_text(plan.bytes), plan_quality(result))},
               {"live at once", fmt::format("{}, {:.2f}% below", bytes_text(plan.lower_bound),
                                            0.0 - increase_pct(plan.lower_bound, plan.bytes))}};
  if (result.capacity) rows.push_back({"capacity", bytes_text(*result.capacity) + ": the plan fits"});
  rows.push_back(
      {"searched", fmt::format("{:.2f} s{}", result.seconds, result.solution.timed_out ? ", to the limit" : "")});
  return rows;
}

std::string conflict_text(const std::vector<std::string>& ids) {
  constexpr std::size_t kShown = 5;
  if (ids.empty()) return "";
  if (ids.size() == 1) return fmt::format("buffer {} alone does not fit", ids[0]);
  const std::size_t shown = std::min(kShown, ids.size());
  return fmt::format("{} buffers alone do not fit: {}{}", ids.size(),
                     fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < ids.size() ? ", ..." : "");
}

std::string no_plan_text(const std::string& name, const fit::FoundPlan& result, const std::string& conflict) {
  const std::int64_t capacity = result.capacity.value(), live = result.solution.plan.lower_bound,
                     bound = result.solution.lower_bound, planned = result.solution.plan.bytes;
  const auto alike = [&](std::int64_t bytes) { return read_alike(bytes, capacity); };
  const bool exact = alike(live) || alike(bound) || alike(planned);
  const auto size = [&](std::int64_t bytes) { return exact ? bytes_text(bytes) : size_text(bytes); };
  const std::string known = size(planned) + " are known to suffice";
  if (result.status() != solvers::Status::infeasible)
    return in_lines(
        {verdict_text("found no plan of ", name, fmt::format(" within {}; not proved impossible", size(capacity))),
         "the lower bound is " + size(bound), known});
  return in_lines({verdict_text("no plan of ", name, " fits into " + size(capacity)),
                   live > capacity ? size(live) + " are live at once" : size(bound) + " are needed", conflict, known});
}

}  // namespace cairn::report
