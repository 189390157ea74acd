#include "cairn/cli/objective.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "cairn/core/text.h"

namespace cairn::cli {
namespace {

using pipeline::Objective;

/// "10%": of the baseline's cost, on top of it; "1.1x": times it; or a cost. Throws InputError.
std::int64_t parse_cost(const std::string& text, std::int64_t baseline) {
  std::int64_t whole = 0;
  const char* last = text.data() + text.size();
  if (std::from_chars(text.data(), last, whole) == std::from_chars_result{last, {}} && whole >= 0) return whole;
  double number = 0;
  std::size_t end = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  const std::string unit = text.substr(end);
  const double cost = unit == "%"   ? (1 + number / 100) * static_cast<double>(baseline)
                      : unit == "x" ? number * static_cast<double>(baseline)
                                    : number;
  if (unit.empty() && number != std::floor(number)) end = 0;  // costs are whole
  const bool known_unit = unit.empty() || unit == "%" || unit == "x";
  if (end == 0 || !known_unit || !std::isfinite(cost) || number < 0 || cost >= 9e18)
    throw core::InputError(fmt::format(
        "--max-cost '{}' is no cost; give 10% (above the baseline's {}), 1.1x (times it), or a cost as 12345", text,
        baseline));
  // What costs that many percent more to the unit is within; the product may be a hair below.
  return static_cast<std::int64_t>(cost * (1 + 1e-12) + 1e-9);
}

/// What a success's status `optimal` means.
std::string proved_text(const pipeline::Task& task, const pipeline::Answer& answer) {
  const solvers::Solution& solution = answer.found.solution;
  const pipeline::Gap gap = pipeline::gap_of(task, answer);
  const std::string scope = scope_text(gap.bound.scope);
  switch (task.objective) {
    case Objective::within_budget:
    case Objective::within_peak:
      return fmt::format("no schedule{} within the budget costs less", scope);
    case Objective::within_cost:
      return fmt::format("no schedule{} that costs no more than {} has a lower peak", scope,
                         cost_with_unit(task.problem, *task.max_cost));
    case Objective::least_peak:
      return fmt::format("no schedule{} has a lower peak{}", scope,
                         solution.stop == solvers::Stop::proved ? ", and none of this peak costs less"
                                                                : "; its cost is not proved least");
    case Objective::least_budget:
      return fmt::format("no schedule{} has a lower plan{}", scope,
                         solution.stop == solvers::Stop::proved ? ", and none that fits into it costs less"
                                                                : "; its cost is not proved least");
    case Objective::knee:
      break;
  }
  if (gap.value == task.problem.baseline.cost)
    return "no schedule costs less, whatever memory it has; one of this cost may have a lower peak";
  return fmt::format("no schedule{} whose plan fits into {} costs less", scope,
                     bytes_text(answer.curve->points[*answer.curve->knee].budget));
}

std::string gap_text(const pipeline::Task& task, const pipeline::Answer& answer) {
  const pipeline::Gap gap = pipeline::gap_of(task, answer);
  const std::string scope = scope_text(gap.bound.scope);
  const auto text = [&](std::string_view of, const std::string& bound) {
    return fmt::format("{} at most {:.2f}% above the optimum: no schedule{}", of, gap.pct(), bound);
  };
  if (gap.of == pipeline::Gap::Of::plan)
    return text("planned bytes", fmt::format("{} is planned below {}", scope, bytes_text(gap.bound.value)));
  if (gap.of == pipeline::Gap::Of::peak)
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

}  // namespace

void ObjectiveArguments::add_to(CLI::App& app, const std::string& help) {
  add_budget(app, budget, help + ", or 80% of the baseline peak; min: the least there is");
  device.add_to(app);
  app.add_option("--max-cost", max_cost,
                 "the least peak for at most this cost: 10% above the baseline's, 1.1x, or a cost as 12345");
}

void add_peak_only(CLI::App& app, bool& peak_only) {
  app.add_flag("--peak-only", peak_only, "budgets are on the peak of the schedule, whatever the height of its plan");
}

pipeline::Task ObjectiveArguments::task(core::Graph graph, const std::string& name, const AlignmentChoice& alignment,
                                        const SolverArguments& search) const {
  const bool least = budget == "min";
  if (!budget.empty() && !max_cost.empty())
    throw core::InputError("--budget and --max-cost both limit the search; drop one of them");
  if (peak_only && budget.empty()) throw core::InputError("--peak-only is about a --budget; give one, or drop it");
  if (!budget.empty() && device.given())
    throw core::InputError("--budget and --device-memory both say what the arena may have; drop one of them");
  if (!max_cost.empty() && device.given())
    throw core::InputError("--max-cost and --device-memory both limit the search; drop one of them");
  const std::int64_t bytes = alignment.of(graph);
  const std::string given = device.given() ? std::to_string(device.budget(graph, name)) : least ? "" : budget;
  pipeline::Problem problem(std::move(graph), given, name, peak_only ? 1 : bytes);
  Objective objective = Objective::least_peak;
  std::optional<std::int64_t> most;
  if (!max_cost.empty()) {
    objective = Objective::within_cost;
    most = parse_cost(max_cost, problem.baseline.cost);
  } else if (problem.budget) {
    objective = peak_only ? Objective::within_peak : Objective::within_budget;
  } else if (least && !peak_only) {
    objective = Objective::least_budget;
  } else if (!least && search.solver == "auto") {
    objective = Objective::knee;
  }
  pipeline::Task task{std::move(problem), objective, bytes, most};
  if (task.unaffordable()) {
    Json json = describe(task.problem);
    json["max_cost"] = or_null(most);
    json["status"] = solvers::to_string(solvers::Status::infeasible);
    json["stopped"] = solvers::to_string(solvers::Stop::proved);
    throw Failure(
        kInfeasible,
        fmt::format("no schedule of '{}' costs {} or less: running every node once costs {}", task.problem.name,
                    cost_with_unit(task.problem, *most), cost_with_unit(task.problem, task.problem.baseline.cost)),
        std::move(json));
  }
  return task;
}

void add_proof(Json& json, const pipeline::Task& task, const pipeline::Answer& answer) {
  const solvers::Solution& solution = answer.found.solution;
  const solvers::Status status =
      answer.success || solution.status == solvers::Status::infeasible ? solution.status : solvers::Status::not_found;
  json["objective"] = pipeline::to_string(task.objective);
  json["max_cost"] = or_null(task.max_cost);
  json["status"] = solvers::to_string(status);
  json["stopped"] = solvers::to_string(solution.stop);
  json["scope"] = solvers::describe(solution.scope);
  json["lower_bound_scope"] = solvers::describe(solution.peak_bound.scope);
  json["lower_bound_cost"] = solution.cost_bound.value;
  json["lower_bound_cost_scope"] = solvers::describe(solution.cost_bound.scope);
  json["gap_pct"] = json["gap_of"] = json["proved"] = nullptr;
  if (!answer.success) return;
  const pipeline::Gap gap = pipeline::gap_of(task, answer);
  json["gap_pct"] = gap.pct();
  json["gap_of"] = gap.of_what();
  if (status == solvers::Status::optimal) json["proved"] = proved_text(task, answer);
}

std::vector<std::string> proof_row(const pipeline::Task& task, const pipeline::Answer& answer) {
  const bool proved = answer.found.solution.status == solvers::Status::optimal;
  return proved ? std::vector<std::string>{"proved", proved_text(task, answer)}
                : std::vector<std::string>{"gap", gap_text(task, answer)};
}

pipeline::Problem problem_of_failure(const pipeline::Task& task, const pipeline::Answer& answer) {
  // What does not fit as it is does not because of rounding.
  const bool rounded = task.problem.budget && *task.problem.budget >= task.problem.lower_bound;
  pipeline::Problem problem = rounded ? task.searched() : task.problem;
  problem.lower_bound = std::max(problem.lower_bound, answer.found.solution.peak_bound.value);
  return problem;
}

Failure failure_of(const pipeline::Task& task, const SolverArguments& search, const pipeline::Answer& answer,
                   const pipeline::LeastBudget& least, const std::string& output, std::string_view other, Json json) {
  const pipeline::Problem problem = problem_of_failure(task, answer);
  const solvers::Solution& solution = answer.found.solution;
  if (solution.status == solvers::Status::infeasible) {
    json["lower_bound_peak_bytes"] = problem.lower_bound;
    return infeasible_failure(problem, search.find(), search.options().scope, solution.peak_bound, least,
                              std::move(json));
  }
  const std::string ended = fmt::format("the search ended {}", stop_text(solution.stop));
  if (task.max_cost)
    return {kNotFound,
            fmt::format("found no schedule of '{}' that costs no more than {}; {}; raise --max-cost", problem.name,
                        cost_with_unit(task.problem, *task.max_cost), ended),
            std::move(json)};
  std::string message = not_found_text(problem, least, solution.stop);
  if (answer.plan_alone_misses(problem.budget)) {
    message = fmt::format(
        "found no schedule of '{}' whose plan fits into {}{}: the lowest plan needs {}, and {}; {}; raise --budget or "
        "--time-limit{}",
        problem.name, baseline_share_text(problem, *problem.budget, true), rounding_text(problem),
        baseline_share_text(problem, answer.plan->bytes), bound_text(problem), ended, other);
  } else if (answer.plan) {
    message += fmt::format("; the best so far is planned with {}", baseline_share_text(problem, answer.plan->bytes));
  }
  if (answer.plan && !output.empty())
    message += fmt::format("; the best so far was written to '{}'", core::output_name(output));
  return {kNotFound, message, std::move(json)};
}

}  // namespace cairn::cli
