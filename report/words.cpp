#include "cairn/report/support/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "cairn/core/cost_unit.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/text.h"
#include "cairn/report/html/support/words.h"

namespace cairn::report {
namespace {

/// Returns the bytes that one node needs while it runs. If the problem is about plans, subtracts Problem::plan_slack,
/// the largest number of bytes by which a plan can be lower than the peak of its schedule.
std::int64_t needed_by_node(const fit::Problem& problem, const core::PeakBound& needs) {
  return problem.about_plans ? needs.bytes - problem.plan_slack : needs.bytes;
}

/// Says why no schedule needs less than `bound` bytes. `needs` lists the tensors that one node needs at the same time.
/// If `bound` is above the bytes of these tensors, the text says that a search has proved the bound.
std::string reason_of(const fit::Problem& problem, const core::PeakBound& needs, std::int64_t bound) {
  std::string text = core::describe(problem.graph, needs);
  const std::int64_t bytes = needed_by_node(problem, needs);
  if (bytes < needs.bytes)
    text += fmt::format(", minus up to {} that in-place nodes save", bytes_text(needs.bytes - bytes));
  return bound > bytes ? fmt::format("the search proved it; any schedule needs {}, as {}", size_text(bytes), text)
                       : text;
}

std::string task_gap_text(const fit::Task& task, const fit::Answer& answer) {
  const fit::Gap gap = fit::gap_of(task, answer);
  const std::string scope = scope_text(gap.bound.scope);
  const auto text = [&](std::string_view of, const std::string& bound) {
    return fmt::format("{} {}: no schedule{}", of, above_optimum_text(gap.pct()), bound);
  };
  if (gap.of == fit::Gap::Of::plan)
    return text("planned bytes", fmt::format("{} is planned below {}", scope, bytes_text(gap.bound.value)));
  if (gap.of == fit::Gap::Of::peak)
    return text("peak", fmt::format("{}{} has a peak below {}", scope,
                                    task.max_cost ? fmt::format(" that costs no more than {}",
                                                                cost_with_unit(task.problem, *task.max_cost))
                                                  : "",
                                    bytes_text(gap.bound.value)));
  const std::string within = answer.curve ? fmt::format(" whose plan fits into {}",
                                                        bytes_text(answer.curve->points[*answer.curve->knee].budget))
                                          : " within the budget";
  return text("cost",
              fmt::format("{}{} costs less than {}", within, scope, cost_with_unit(task.problem, gap.bound.value)));
}

std::string side_text(const fit::Problem& problem, const fit::CurvePoint* point, std::string_view none) {
  if (point == nullptr) return std::string(none);
  return fmt::format("{} ({:.1f}%) at {:+.2f}%", core::format_bytes(point->memory()),
                     share_pct(problem, point->memory()), increase_pct(point->evaluation.cost, problem.baseline.cost));
}

}  // namespace

BesideKnee beside_knee(const fit::Curve& curve) {
  const std::size_t knee = curve.knee.value();
  BesideKnee sides;
  const auto differs = [&](const fit::CurvePoint& point) {
    return point.known() && point.memory() != curve.points[knee].memory();
  };
  for (std::size_t i = knee; i-- > 0 && sides.more_memory == nullptr;) {
    if (differs(curve.points[i])) sides.more_memory = &curve.points[i];
  }
  for (std::size_t i = knee + 1; i < curve.points.size() && sides.less_memory == nullptr; ++i) {
    if (differs(curve.points[i])) sides.less_memory = &curve.points[i];
  }
  return sides;
}

std::string format_table(const Rows& rows, bool header) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], core::display_width(core::printable(row[c])));
  }
  std::string text;
  const auto append = [&](const std::vector<std::string>& row) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string cell = core::printable(row[c]);
      text += cell;
      if (c + 1 < row.size()) text += std::string(widths[c] - core::display_width(cell) + 2, ' ');
    }
    text += '\n';
  };
  for (std::size_t r = 0; r < rows.size(); ++r) {
    append(rows[r]);
    if (r == 0 && header) {
      std::vector<std::string> rule;
      for (const std::size_t width : widths) rule.emplace_back(width, '-');
      append(rule);
    }
  }
  return text;
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes > -1024 && bytes < 1024) return fmt::format("{} bytes", bytes);
  return fmt::format("{} ({} bytes)", core::format_bytes(bytes), bytes);
}

std::string size_text(std::int64_t bytes) {
  return bytes > -1024 && bytes < 1024 ? fmt::format("{} bytes", bytes) : core::format_bytes(bytes);
}

std::string size_to_type(std::int64_t bytes) { return bytes < 1024 ? size_text(bytes) : core::format_bytes_up(bytes); }

bool read_alike(std::int64_t a, std::int64_t b) { return a != b && size_text(a) == size_text(b); }

std::string baseline_share_text(const fit::Problem& problem, std::int64_t bytes, bool in_full, bool exact) {
  std::string text = exact ? bytes_text(bytes) : size_text(bytes);
  if (problem.hundred_percent == 0) return text;
  const std::string share = fmt::format("{:.1f}%{}", share_pct(problem, bytes), in_full ? " of the baseline peak" : "");
  if (text.back() != ')') return fmt::format("{} ({})", text, share);
  text.pop_back();
  return fmt::format("{}, {})", text, share);
}

std::string cost_with_unit(const fit::Problem& problem, std::int64_t cost) {
  return core::cost_text(cost, problem.graph.cost_unit());
}

std::string cost_and_increase(const fit::Problem& problem, std::int64_t cost) {
  return fmt::format("{} ({:+.2f}%)", cost_with_unit(problem, cost), increase_pct(cost, problem.baseline.cost));
}

std::string baseline_cost_text(const fit::Problem& problem) {
  const std::string& source = problem.graph.cost_unit().source;
  return cost_with_unit(problem, problem.baseline.cost) + (source.empty() ? "" : fmt::format(" ({})", source));
}

std::string baseline_peak_text(const fit::Problem& problem, std::int64_t alignment) {
  std::string text = bytes_text(problem.baseline.peak);
  if (problem.hundred_percent != problem.baseline.peak)
    text += fmt::format("; 100% is {}, with sizes rounded up to {}", bytes_text(problem.hundred_percent),
                        core::option("alignment", std::to_string(alignment)));
  return text;
}

double share_pct(const fit::Problem& problem, std::int64_t bytes) {
  return 100 + increase_pct(bytes, problem.hundred_percent);
}

double increase_pct(std::int64_t value, std::int64_t base) {
  if (base == 0) return 0;
  return 100.0 * static_cast<double>(value - base) / static_cast<double>(base);
}

double percent_above(double value, double base) { return 100 * (value / std::max(base, 1e-12) - 1); }

namespace {
constexpr double kWorthSaying = 100;  // percent; if a gap is larger, the bound is too weak to say much
}

std::string above_optimum_text(double pct) {
  return pct > kWorthSaying ? "more than twice what is proved" : fmt::format("at most {:.2f}% above the optimum", pct);
}

std::string gap_text(double pct) { return pct > kWorthSaying ? "> 100%" : fmt::format("{:.2f}%", pct); }

std::string least_to_most(const std::string& least, const std::string& most) {
  return least == most ? most : fmt::format("{} to {}", least, most);
}

double fraction(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string count_text(std::int64_t count) { return html::grouped(count); }

std::string resident_text(const pipeline::ResidentBytes& resident) {
  std::string text = bytes_text(resident.total());
  std::string_view before = ": ";
  for (const auto& [name, bytes] : resident.parts()) {
    if (name == "unlisted" && resident.parts().size() == 1) break;
    text += fmt::format("{}{} {}", before, name, core::format_bytes(bytes));
    before = ", ";
  }
  return text;
}

std::string share_text(const pipeline::DeviceShare& share, std::int64_t arena_bytes) {
  std::string text = fmt::format("resident {}", core::format_bytes(share.resident.total()));
  if (share.workspace > 0) text += fmt::format(", workspace of libraries {}", core::format_bytes(share.workspace));
  if (share.context > 0) text += fmt::format(", context {}", core::format_bytes(share.context));
  if (arena_bytes > 0) text += fmt::format(", arena {}", core::format_bytes(arena_bytes));
  return text + fmt::format(": {} in all", core::format_bytes(share.beside_arena() + arena_bytes));
}

std::string no_room_text(std::string_view name, const pipeline::DeviceShare& share) {
  return in_lines(
      {verdict_text("", name, " does not fit into " + core::option("device-memory", core::format_bytes(share.device))),
       share_text(share, 0)});
}

std::string no_room_text(const pipeline::NoRoomError& error) {
  return no_room_text(error.name, error.share) + fmt::format("\ntake a smaller {}, another {}, or a larger device",
                                                             core::option("batch"), core::option("optimizer"));
}

std::string batch_text(const fit::LargestBatch& found) {
  if (found.batch == 0)
    return found.refusal_proved ? "none: 1 is proved too large"
                                : "none found: no schedule of a batch of 1 that fits was found in time";
  const std::string sizes = found.as_it_is == found.batch
                                ? fmt::format("{} with or without Cairn", found.batch)
                                : fmt::format("{} with Cairn; without it {}", found.batch, found.as_it_is);
  const std::string above = found.refused == 0     ? ""
                            : found.refusal_proved ? fmt::format("; {} is proved too large", found.refused)
                                                   : fmt::format("; no schedule was found for {}", found.refused);
  return sizes + above + (found.timed_out ? "; the time ended the search" : "");
}

std::string lower_bound_reason(const fit::Problem& problem) {
  return reason_of(problem, core::explain_peak_lower_bound(problem.graph), problem.lower_bound);
}

std::string bound_text(const fit::Problem& problem) {
  const core::PeakBound needs = core::explain_peak_lower_bound(problem.graph);
  const std::string by = needed_by_node(problem, needs) < problem.lower_bound ? ", as the search proved"
                         : needs.node == core::kNoNode                        ? ", set by the kept outputs"
                                                       : fmt::format(", set by '{}'", problem.graph.name(needs.node));
  return fmt::format("the lower bound is {}{}", baseline_share_text(problem, problem.lower_bound), by);
}

std::string rounding_text(const fit::Problem& problem) {
  return problem.rounded_to > 1
             ? "sizes are rounded up to " + core::option("alignment", std::to_string(problem.rounded_to))
             : "";
}

std::string stop_text(solvers::Stop stop) {
  switch (stop) {
    case solvers::Stop::proved:
      return "by a proof that nothing is better";
    case solvers::Stop::stagnated:
      return "because it found nothing better for a long time; a larger " + core::option("time-limit") +
             " searches longer";
    case solvers::Stop::limit:
      return "by the limit; a larger one may bring more";
    case solvers::Stop::interrupted:
      return "by Ctrl-C";
    case solvers::Stop::ended:
      break;
  }
  return "because the solver finished";
}

std::string scope_text(const solvers::Scope& scope) {
  if (scope == solvers::kAnySchedule) return "";
  const std::string text = solvers::describe(scope);
  return scope == solvers::kWithoutRecomputation ? " " + text : fmt::format(" ({})", text);
}

namespace {

/// Formats `bytes`, a budget that is known to suffice, with its percentage. If `bytes` equals the lower bound `bound`,
/// says so instead of giving the percentage.
std::string known_text(const fit::Problem& problem, std::int64_t bytes, std::int64_t bound) {
  std::string size = size_to_type(bytes);
  if (bytes != bound)
    return problem.hundred_percent > 0 ? fmt::format("{} ({:.1f}%)", size, share_pct(problem, bytes)) : size;
  if (bytes < 1024) size = std::to_string(bytes);
  std::erase(size, ' ');
  return fmt::format("that bound ({})", core::option("budget", size));
}

}  // namespace

std::string least_budget_text(const fit::Problem& problem, const fit::LeastBudget& least, std::int64_t bound) {
  return fmt::format("the least budget known to suffice is {}, with {}", known_text(problem, least.memory(), bound),
                     core::option("solver", least.solver));
}

std::string budget_text(const fit::Problem& problem, std::int64_t budget, std::initializer_list<std::int64_t> beside,
                        bool in_full) {
  const bool exact = std::ranges::any_of(beside, [&](std::int64_t bytes) { return read_alike(budget, bytes); });
  return baseline_share_text(problem, budget, in_full, exact);
}

std::string in_lines(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : "\n") + part;
  }
  return text;
}

std::string verdict_text(std::string_view before, std::string_view name, std::string_view after) {
  constexpr std::size_t kLeast = 12, kQuotes = 2;
  const std::size_t others = core::display_width(before) + core::display_width(after) + kQuotes;
  const std::size_t room = kVerdictColumns - std::min(kVerdictColumns, others);
  return fmt::format("{}'{}'{}", before, core::abridged(name, std::max(kLeast, room)), after);
}

std::string not_found_text(const fit::Problem& problem, const fit::LeastBudget& least, solvers::Stop stop) {
  const std::string ended = fmt::format("the search ended {}", stop_text(stop));
  if (!problem.budget)
    return in_lines({verdict_text("found no schedule of ", problem.name, " within the limit"), ended,
                     "raise " + core::option("time-limit")});
  const std::string budget = core::option("budget"), solver = core::option("solver");
  const bool time_helps = stop == solvers::Stop::limit || stop == solvers::Stop::stagnated;
  return in_lines(
      {verdict_text("found no schedule of ", problem.name,
                    fmt::format(" within {}; not proved impossible",
                                budget_text(problem, *problem.budget, {problem.lower_bound, least.memory()}))),
       rounding_text(problem), bound_text(problem), ended, least_budget_text(problem, least, problem.lower_bound),
       time_helps ? fmt::format("raise {} or {}, or try another {}", budget, core::option("time-limit"), solver)
                  : fmt::format("raise {}, or try another {}", budget, solver)});
}

std::string infeasible_text(const fit::Problem& problem, const solvers::SolverInfo& solver, const solvers::Scope& asked,
                            const solvers::Bound& proved, const fit::LeastBudget& least) {
  const std::int64_t budget = problem.budget.value_or(0);
  const core::PeakBound needs = core::explain_peak_lower_bound(problem.graph);
  // If the bytes that one node needs already exceed the budget, reports these bytes, because they are a bound for every
  // schedule. The search may have proved a higher bound, but only for some schedules.
  const std::int64_t least_bytes = needed_by_node(problem, needs);
  const solvers::Bound bound = budget < least_bytes && proved.scope != solvers::kAnySchedule
                                   ? solvers::Bound{least_bytes, solvers::kAnySchedule}
                                   : solvers::Bound{std::max(least_bytes, proved.value), proved.scope};
  std::string others;
  if (!bound.scope.contains(asked)) {
    others = fmt::format("other schedules may fit, which solver '{}' leaves out: try {}", solver.name,
                         core::option("solver", "auto"));
  } else if (bound.scope != solvers::kAnySchedule) {
    others = fmt::format("other schedules may fit, which {} or {} leaves out", core::option("order"),
                         core::option("max-occurrences"));
  }
  return in_lines({verdict_text("no schedule of ", problem.name,
                                fmt::format("{} fits into {}", scope_text(bound.scope),
                                            budget_text(problem, budget, {bound.value, least.memory()},
                                                        bound.scope == solvers::kAnySchedule))),
                   rounding_text(problem),
                   fmt::format("the lower bound is {}: {}",
                               baseline_share_text(problem, bound.value, false, read_alike(budget, bound.value)),
                               reason_of(problem, needs, bound.value)),
                   least_budget_text(problem, least, bound.value), others});
}

std::string proved_text(const fit::Task& task, const fit::Answer& answer) {
  const solvers::Solution& solution = answer.found.solution;
  const fit::Gap gap = fit::gap_of(task, answer);
  const std::string scope = scope_text(gap.bound.scope);
  switch (task.objective) {
    case fit::Objective::within_budget:
    case fit::Objective::within_peak:
      return fmt::format("no schedule{} within the budget costs less", scope);
    case fit::Objective::within_cost:
      return fmt::format("no schedule{} that costs no more than {} has a lower peak", scope,
                         cost_with_unit(task.problem, *task.max_cost));
    case fit::Objective::least_peak:
      return fmt::format("no schedule{} has a lower peak{}", scope,
                         solution.stop == solvers::Stop::proved ? ", and none of this peak costs less"
                                                                : "; its cost is not proved least");
    case fit::Objective::least_budget:
      return fmt::format("no schedule{} has a lower plan{}", scope,
                         solution.stop == solvers::Stop::proved ? ", and none that fits into it costs less"
                                                                : "; its cost is not proved least");
    case fit::Objective::knee:
      break;
  }
  if (gap.value == task.problem.baseline.cost)
    return "no schedule costs less, whatever memory it has; one of this cost may have a lower peak";
  return fmt::format("no schedule{} whose plan fits into {} costs less", scope,
                     bytes_text(answer.curve->points[*answer.curve->knee].budget));
}

std::vector<std::string> proof_row(const fit::Task& task, const fit::Answer& answer) {
  const bool proved = answer.found.solution.status == solvers::Status::optimal;
  return proved ? std::vector<std::string>{"proved", proved_text(task, answer)}
                : std::vector<std::string>{"gap", task_gap_text(task, answer)};
}

/// Says how much of an answer's bound a certificate proves.
std::string certificate_text(const fit::Task& task, const fit::Answer& answer,
                             const solvers::Certificate& certificate) {
  if (fit::proves_bound(task, answer, certificate)) return "proves all of the bound";
  constexpr std::string_view kRest = "the rest of the bound comes from a search, for which there is no certificate";
  if (task.objective == fit::Objective::within_cost) return fmt::format("proves nothing: {}", kRest);
  return fmt::format("proves that the cost is at least {}; {}",
                     cost_and_increase(task.problem, *certificate.least_cost), kRest);
}

fit::Problem problem_of_failure(const fit::Task& task, const fit::Answer& answer) {
  // If the budget is below the lower bound even without rounding, the search did not fail because of rounding. So the
  // message states the unrounded sizes.
  const bool rounded = task.problem.budget && *task.problem.budget >= task.problem.plan_bound();
  fit::Problem problem = rounded ? task.searched() : task.problem;
  if (task.plans_fit()) problem = problem.of_plans();
  problem.lower_bound = std::max(problem.lower_bound, answer.found.solution.peak_bound.value);
  return problem;
}

std::string best_so_far_text(const fit::Task& task, const fit::Answer& answer, const std::string& output) {
  const fit::Problem problem = problem_of_failure(task, answer);
  const std::int64_t peak = core::evaluate(problem.graph, answer.found.solution.schedule).peak;
  // The message states the bytes of the plan if exactly one of plan and peak is within the budget. A plan above the
  // budget is why the search failed, and a plan within it is what the user asked for. In other cases, the message
  // states the peak.
  const bool by_plan = task.plans_fit() && problem.budget && answer.found.plan &&
                       (answer.found.plan->bytes > *problem.budget) != (peak > *problem.budget);
  const std::int64_t bytes = by_plan ? answer.found.plan->bytes : peak;
  const bool above = problem.budget && bytes > *problem.budget;
  const bool alike = above && read_alike(bytes, *problem.budget);
  return in_lines({fmt::format("the best schedule so far {} {}{}", by_plan ? "is planned with" : "has peak",
                               baseline_share_text(problem, bytes, true, alike),
                               above ? fmt::format(", above the budget of {}",
                                                   baseline_share_text(problem, *problem.budget, false, alike))
                                     : ""),
                   rounding_text(problem),
                   output.empty() ? "give -o s.json to have it written"
                                  : fmt::format("it was written to '{}'", core::printable(core::output_name(output)))});
}

std::string failure_text(const fit::Task& task, const solvers::SolverInfo& solver, const solvers::Scope& asked,
                         const fit::Answer& answer, const fit::LeastBudget& least, std::string_view other) {
  const fit::Problem problem = problem_of_failure(task, answer);
  const solvers::Solution& solution = answer.found.solution;
  if (solution.status == solvers::Status::infeasible)
    return infeasible_text(problem, solver, asked, solution.peak_bound, least);
  const std::string ended = fmt::format("the search ended {}", stop_text(solution.stop));
  if (task.max_cost)
    return in_lines(
        {verdict_text("found no schedule of ", problem.name,
                      fmt::format(" that costs no more than {}", cost_with_unit(task.problem, *task.max_cost))),
         ended, "raise " + core::option("max-cost")});
  if (answer.plan_alone_misses(problem.budget))
    return in_lines(
        {verdict_text(
             "found no schedule of ", problem.name,
             fmt::format(" whose plan fits into {}",
                         budget_text(problem, *problem.budget, {answer.found.plan->bytes, problem.lower_bound}))),
         rounding_text(problem),
         fmt::format("the lowest plan needs {}, and {}",
                     baseline_share_text(problem, answer.found.plan->bytes, false,
                                         read_alike(*problem.budget, answer.found.plan->bytes)),
                     bound_text(problem)),
         ended, fmt::format("raise {} or {}{}", core::option("budget"), core::option("time-limit"), other)});
  return in_lines({not_found_text(problem, least, solution.stop),
                   answer.found.plan ? fmt::format("the best so far is planned with {}",
                                                   baseline_share_text(problem, answer.found.plan->bytes))
                                     : ""});
}

std::string answer_table(const fit::Task& task, std::string_view solver, const fit::Answer& answer,
                         const solvers::Certificate* certificate) {
  const fit::Problem& problem = task.problem;
  const core::Graph& graph = problem.graph;
  const solvers::Solution& solution = answer.found.solution;
  const core::Evaluation found = core::evaluate(graph, solution.schedule);
  Rows rows = {{"graph", fmt::format("{}: {} nodes, {} edges", problem.name, graph.node_count(), graph.edge_count())},
               {"solver", fmt::format("{}: {} in {:.2f} s, ended {}", solver, solvers::to_string(solution.status),
                                      answer.found.seconds, stop_text(solution.stop))}};
  if (answer.curve) {
    const BesideKnee sides = beside_knee(*answer.curve);
    rows.push_back({"knee", side_text(problem, &answer.curve->points[*answer.curve->knee], "") +
                                fmt::format(": no budget was given; {} is the least budget known",
                                            core::option("budget", "min"))});
    rows.push_back({"next points", fmt::format("{}; {}", side_text(problem, sides.more_memory, "nothing is cheaper"),
                                               side_text(problem, sides.less_memory, "nothing lower is known"))});
  }
  if (problem.budget) rows.push_back({"budget", bytes_text(*problem.budget)});
  if (task.max_cost) rows.push_back({"cost limit", cost_and_increase(problem, *task.max_cost)});
  rows.push_back(
      {"peak", fmt::format("{}, {:.1f}% of the baseline's {}", bytes_text(found.peak),
                           100 + increase_pct(found.peak, problem.baseline.peak), bytes_text(problem.baseline.peak))});
  std::string planned = fmt::format("{}, with {}", bytes_text(answer.found.plan->bytes),
                                    core::option("alignment", std::to_string(task.alignment)));
  if (problem.budget && answer.found.plan->bytes > *problem.budget)
    planned += fmt::format("; {:.1f}% above the budget, which limits only the peak",
                           increase_pct(answer.found.plan->bytes, *problem.budget));
  rows.push_back({"planned", planned});
  const std::int64_t bound =
      task.plans_fit() ? std::max(task.rounded.plan_bound(), solution.peak_bound.value) : problem.lower_bound;
  rows.push_back({"lower bound", bytes_text(bound) + scope_text(solution.scope)});
  rows.push_back(
      {"cost", graph.host_memory() ? makespan_text(problem, found) : cost_and_increase(problem, found.cost)});
  rows.push_back(proof_row(task, answer));
  if (certificate != nullptr) rows.push_back({"certificate", certificate_text(task, answer, *certificate)});
  const Rows transfers = transfer_rows(graph, solution.schedule, &*answer.found.plan);
  rows.insert(rows.end(), transfers.begin(), transfers.end());
  rows.push_back({"steps", fmt::format("{}, {} of them recomputed", solution.schedule.length(), found.recomputed)});
  rows.push_back({"resident", bytes_text(graph.resident_bytes()) + ", not counted in the budget"});
  return format_table(rows);
}

std::string curve_table(const fit::Problem& problem, std::int64_t alignment, const fit::Curve& curve) {
  const core::CostUnit& unit = problem.graph.cost_unit();
  const bool times = unit.seconds() > 0;
  const auto cost_text = [&](std::int64_t cost) {
    return times ? core::duration_text(static_cast<double>(cost) * unit.seconds()) : std::to_string(cost);
  };
  Rows rows = {{"budget", "of baseline", "planned", "peak",
                times ? "cost" : fmt::format("cost ({})", core::to_string(unit)), "increase", "at least", "gap",
                "status", ""}};
  for (const fit::SamePoints& same : fit::same_points(curve.points)) {
    const fit::CurvePoint &point = curve.points[same.first], &least = curve.points[same.last];
    const auto increase = [&](std::int64_t cost) {
      return fmt::format("{:+.2f}%", increase_pct(cost, problem.baseline.cost));
    };
    const auto share = [&](const fit::CurvePoint& one) {
      return fmt::format("{:.1f}%", share_pct(problem, one.budget));
    };
    std::vector<std::string> row = {least_to_most(core::format_bytes(least.budget), core::format_bytes(point.budget)),
                                    least_to_most(share(least), share(point))};
    if (point.known()) {
      const std::int64_t cost = point.evaluation.cost;
      row.insert(row.end(), {curve.peak_only ? "-" : core::format_bytes(point.memory()),
                             core::format_bytes(point.evaluation.peak), cost_text(cost), increase(cost),
                             increase(point.cost_bound.value), gap_text(fit::gap_pct(cost, point.cost_bound))});
    } else {
      row.insert(row.end(), 6, "-");
    }
    row.insert(row.end(), {std::string(solvers::to_string(point.status)), same.contains(curve.knee) ? "<- knee" : ""});
    rows.push_back(std::move(row));
  }
  const core::Graph& graph = problem.graph;
  std::string text = fmt::format("{}: {} nodes, {} edges; baseline peak {}, cost {}; alignment {}\n\n", problem.name,
                                 graph.node_count(), graph.edge_count(), baseline_peak_text(problem, alignment),
                                 baseline_cost_text(problem), alignment);
  text += format_table(rows, true) + "\n";
  if (curve.knee) text += fmt::format("the knee is {}\n", fit::kKneeDefinition);
  return text +
         fmt::format("stopped after {:.2f} s, {} passes, {}\n", curve.seconds, curve.passes, stop_text(curve.stop));
}

std::string no_points_text(const fit::Problem& problem, const fit::Curve& curve) {
  const std::int64_t most = curve.points.front().budget, bound = curve.peak_bound.value;
  const bool proved = curve.points.front().status == solvers::Status::infeasible;
  return in_lines(
      {verdict_text(proved ? "no schedule of " : "found no schedule of ", problem.name,
                    fmt::format(" {} {}, the largest of the budgets",
                                proved || curve.peak_only ? "fits into" : "whose plan fits into",
                                budget_text(problem, most, {bound, curve.least_memory}))),
       fmt::format("the lower bound is {}", baseline_share_text(problem, bound, false, read_alike(most, bound))),
       fmt::format("the least budget known to suffice is {}", known_text(problem, curve.least_memory, bound)),
       proved ? "" : fmt::format("the search ended {}", stop_text(curve.stop)),
       proved ? "raise " + core::option("budgets")
              : fmt::format("raise {} or {}", core::option("budgets"), core::option("time-limit"))});
}

std::string unaffordable_text(const fit::Task& task) {
  const core::CostUnit& unit = task.problem.graph.cost_unit();
  return verdict_text(
      "no schedule of ", task.problem.name,
      fmt::format(" costs {} or less: running every node once costs {}", core::cost_text(task.max_cost.value(), unit),
                  core::cost_text(task.problem.baseline.cost, unit)));
}

}  // namespace cairn::report
