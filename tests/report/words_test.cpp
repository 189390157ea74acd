// Tests the sentences that both the command and the Python package print.
#include "cairn/report/support/words.h"

#include "cairn/core/graph.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::words_test {
namespace {

/// Returns the sentence that is printed after Ctrl-C if the best schedule so far has a plan of `planned_bytes`, or has
/// no plan if `planned_bytes` is 0.
std::string said(fit::Objective objective, const std::string& budget, std::int64_t planned_bytes) {
  // The graph is a chain of three values. Its only schedule without recomputation has a peak of 200 bytes.
  const core::Graph graph =
      build_graph({make_node("0", 100, {}, 1), make_node("1", 100, {0}, 1), make_node("2", 100, {1}, 1)});
  const fit::Task task{fit::Problem(graph, budget), objective, 1, {}};
  fit::Answer answer;
  answer.found.solution.schedule = core::baseline_schedule(graph);
  answer.found.evaluation = core::evaluate(graph, answer.found.solution.schedule);
  REQUIRE(answer.found.evaluation.peak == 200);
  if (planned_bytes > 0) answer.found.plan = core::Plan{.bytes = planned_bytes};
  return report::best_so_far_text(task, answer, "");
}

/// Returns whether `text` begins with `words`. If a check of the result fails, Catch shows the text.
bool begins(const std::string& text, const std::string& words) {
  UNSCOPED_INFO(text);
  return text.starts_with(words);
}

}  // namespace

TEST_CASE("the best so far is told by its plan where plan and peak are on different sides of the budget") {
  const auto plans = fit::Objective::within_budget;
  CHECK(begins(said(plans, "250", 300), "the best schedule so far is planned with 300 bytes"));
  CHECK(contains(said(plans, "250", 300), "above the budget of 250 bytes"));
  CHECK(begins(said(plans, "199", 190), "the best schedule so far is planned with 190 bytes"));
  CHECK_FALSE(contains(said(plans, "199", 190), "above"));
}

TEST_CASE("the best so far is told by its peak where its plan says nothing else, or is not asked for") {
  const auto plans = fit::Objective::within_budget;
  for (const std::int64_t planned : {0, 210})  // there is no plan, or the plan is within the budget, as the peak is
    CHECK(begins(said(plans, "250", planned), "the best schedule so far has peak 200 bytes"));
  // Both the peak and the plan exceed the budget.
  CHECK(begins(said(plans, "150", 210), "the best schedule so far has peak 200 bytes"));
  CHECK(contains(said(plans, "150", 210), "above the budget of 150 bytes"));
  CHECK(begins(said(fit::Objective::within_peak, "250", 300), "the best schedule so far has peak 200 bytes"));
  CHECK(contains(said(plans, "250", 0), "give -o s.json to have it written"));
}

}  // namespace cairn::tests::words_test
