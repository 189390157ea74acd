#include "cairn/cli/fit.h"

#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"

namespace {

using namespace cairn;

/// Budgets that the stub below was asked for.
std::vector<std::int64_t> asked;

/// Three independent chains' worth of nothing: single nodes, kept, so that every schedule is one order of them.
core::Graph kept_nodes() {
  core::GraphBuilder builder("kept");
  for (const char* name : {"a", "b", "c"}) {
    core::Node node;
    node.name = name;
    node.size = 100;
    node.keep = true;
    builder.add(std::move(node));
  }
  return builder.build();
}

/// Returns the baseline and claims that its peak is within the budget, down to 290.
solvers::Solution optimist(const core::Graph& graph, const solvers::SolveOptions& options) {
  asked.push_back(*options.budget);
  solvers::Solution solution;
  if (*options.budget < 290) return solution;
  solution.status = solvers::Status::feasible;
  solution.schedule = core::baseline_schedule(graph);
  solution.peak = 290;
  return solution;
}
const solvers::SolverInfo kOptimist = {"optimist", "", "", optimist};

}  // namespace

TEST_CASE("fit takes the first plan that fits") {
  asked.clear();
  const core::Graph graph = kept_nodes();
  const auto fit = cli::fit_to_budget(graph, graph, 300, kOptimist, {}, {});
  CHECK(fit.fits());
  CHECK(fit.rounds == 1);
  CHECK(fit.plan.bytes == 300);
  CHECK(asked == std::vector<std::int64_t>{300});
}

TEST_CASE("fit lowers the solver's budget by the excess of the plan, then gives up with the lowest plan") {
  asked.clear();
  const core::Graph graph = kept_nodes();
  const auto fit = cli::fit_to_budget(graph, graph, 299, kOptimist, {}, {});
  CHECK_FALSE(fit.fits());
  CHECK(fit.planned());
  CHECK(fit.plan.bytes == 300);
  CHECK(asked == std::vector<std::int64_t>{299, 298, 297, 296, 295, 294, 293, 292});
  CHECK(fit.rounds == 8);
}

TEST_CASE("fit stops where the solver finds nothing") {
  asked.clear();
  const core::Graph graph = kept_nodes();
  const auto fit = cli::fit_to_budget(graph, graph, 280, kOptimist, {}, {});
  CHECK_FALSE(fit.planned());
  CHECK_FALSE(fit.fits());
  CHECK(asked == std::vector<std::int64_t>{280});
}

TEST_CASE("the status decides whether a solver succeeded, as the empty graph's schedule has no steps") {
  solvers::Solution solution;
  CHECK_FALSE(cli::meets(solution, std::nullopt));
  solution.status = solvers::Status::optimal;
  CHECK(cli::meets(solution, std::nullopt));
  CHECK(cli::meets(solution, 1));
  solution.peak = 2;
  CHECK_FALSE(cli::meets(solution, 1));
}

TEST_CASE("fit gives every round at most half of the time that is left") {
  const core::Graph graph = kept_nodes();
  static double seconds = 0;
  const solvers::SolverInfo watcher = {"watcher", "", "", [](const core::Graph&, const solvers::SolveOptions& options) {
                                         seconds = options.limit.seconds;
                                         return solvers::Solution{};
                                       }};
  solvers::SolveOptions options;
  options.limit.seconds = 100;
  cli::fit_to_budget(graph, graph, 280, watcher, options, {});
  CHECK(seconds <= 50);
}
