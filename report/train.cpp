#include "cairn/pipeline/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/support/text.h"
#include "cairn/report/html/support/words.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"

namespace cairn::report {
namespace {

using pipeline::TestResult;
using pipeline::TrainOutcome;

/// Divides the training steps into at most `most` groups of successive steps, all of nearly the same size. Returns the
/// mean loss of each group.
std::vector<double> mean_losses(const std::vector<float>& losses, std::size_t most) {
  const std::size_t groups = std::min(most, losses.size());
  std::vector<double> means;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t begin = losses.size() * g / groups, end = losses.size() * (g + 1) / groups;
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += static_cast<double>(losses[i]);
    means.push_back(sum / static_cast<double>(end - begin));
  }
  return means;
}

/// Draws the losses as a picture made of characters, with the training steps from left to right.
std::string loss_picture(const std::vector<float>& losses, std::int64_t steps) {
  constexpr std::size_t kColumns = 64, kRows = 8;
  const std::vector<double> means = mean_losses(losses, kColumns);
  if (means.size() < 2) return "";
  const auto [least, most] = std::ranges::minmax(means);
  const double range = std::max(most - least, 1e-12);
  std::string text;
  for (std::size_t row = 0; row < kRows; ++row) {
    const bool labelled = row == 0 || row + 1 == kRows;
    text += labelled ? fmt::format("{:>9.4g} |", row == 0 ? most : least) : fmt::format("{:>9} |", "");
    std::string line;
    for (const double mean : means) {
      const auto at = static_cast<std::size_t>(std::lround(static_cast<double>(kRows - 1) * (most - mean) / range));
      line += at == row ? '*' : ' ';
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text + fmt::format("{:>9} +{}\n{:>9}  step 1{:>{}}\n", "loss", std::string(means.size(), '-'), "",
                            fmt::format("step {}", steps), std::max<std::size_t>(means.size(), 18) - 6);
}

std::string seconds_text(const pipeline::TrainResult& result) {
  const std::int64_t done = result.steps - result.first_step;
  if (done == 0) return "";
  return fmt::format("{:.1f} s for {} steps, {:.3g} ms a step", result.seconds, done,
                     1e3 * result.seconds / static_cast<double>(done));
}

}  // namespace

std::string test_text(const TestResult& test) {
  const std::string loss = fmt::format("loss {:.4f}", test.loss);
  return test.accuracy ? fmt::format("{}, accuracy {:.2f}%", loss, 100 * *test.accuracy) : loss;
}

Json train_json(const TrainOutcome& outcome) {
  const pipeline::TrainResult& result = outcome.result;
  Json json = describe(outcome.problem);
  json["backend"] = outcome.backend.name();
  json["device"] = outcome.backend.device();
  json["precision"] = core::to_string(outcome.precision);
  json["solver"] = outcome.decision.solver;
  json["data"] = outcome.data.name;
  json["steps"] = result.steps;
  json["first_step"] = result.first_step;
  json["interrupted"] = result.interrupted;
  json["losses"] = result.losses;
  json["tests"] = Json::array();
  for (const TestResult& test : result.tests)
    json["tests"].push_back({{"step", test.step}, {"loss", test.loss}, {"accuracy", or_null(test.accuracy)}});
  json["loss"] = result.losses.empty() ? Json(nullptr) : Json(result.losses.back());
  json["accuracy"] = result.tests.empty() ? Json(nullptr) : or_null(result.tests.back().accuracy);
  json["seconds"] = result.seconds;
  json["planned_bytes"] = result.planned_bytes;
  json["measured_peak_bytes"] = or_null(result.measured_peak_bytes);
  json["weights"] = result.digest;
  add_streams(json, outcome.decision, result.overlap);
  return json;
}

std::string train_table(const TrainOutcome& outcome) {
  const pipeline::TrainResult& result = outcome.result;
  const std::int64_t baseline = outcome.problem.baseline.peak;
  Rows rows;
  rows.push_back({"steps", result.first_step > 0
                               ? fmt::format("{}, continued after {}", result.steps, result.first_step)
                               : std::to_string(result.steps)});
  if (!result.losses.empty()) rows.push_back({"loss", fmt::format("{:.6g}", result.losses.back())});
  for (const TestResult& test : result.tests)
    rows.push_back({fmt::format("test after {}", test.step), test_text(test)});
  rows.push_back(
      {"planned", fmt::format("{} ({:.1f}% of the baseline's peak)", core::format_bytes(result.planned_bytes),
                              100 * fraction(result.planned_bytes, baseline))});
  rows.push_back({"measured", result.measured_peak_bytes ? core::format_bytes(*result.measured_peak_bytes)
                                                         : "nothing: no step was left to do"});
  if (result.overlap)
    rows.push_back({"streams", streams_text(outcome.problem.graph, outcome.decision, *result.overlap)});
  if (const std::string seconds = seconds_text(result); !seconds.empty()) rows.push_back({"time", seconds});
  rows.push_back({"weights", fmt::format("hash {}", result.digest)});
  return format_table(rows) + "\n" + loss_picture(result.losses, result.steps);
}

std::string train_page(const TrainOutcome& outcome) {
  const pipeline::TrainResult& result = outcome.result;
  const fit::Problem& problem = outcome.problem;
  Report page = html::of_graph("cairn train", problem.graph, problem.name);
  page.summary +=
      fmt::format(" \u00b7 {} steps on {} \u00b7 {}", result.steps, outcome.data.name, outcome.backend.device());
  add_schedule(page, {outcome.decision.solver, outcome.decision.schedule, outcome.decision.executed_plan()},
               outcome.decision.evaluation);
  add_memory_facts(page, problem, outcome.decision.evaluation.peak);
  add_cost_fact(page, problem, outcome.decision.evaluation);
  add_budget(page, problem, result.planned_bytes);
  if (!result.losses.empty())
    page.facts.push_back({"Loss", fmt::format("{:.4g}", result.losses.back()),
                          fmt::format("{:.4g} at the first step", result.losses.front())});
  if (!result.tests.empty()) {
    const TestResult& last = result.tests.back();
    page.facts.push_back(
        {"Test", last.accuracy ? fmt::format("{:.2f}%", 100 * *last.accuracy) : fmt::format("{:.4f}", last.loss),
         last.accuracy ? "accuracy on the test part" : "mean loss on the test part"});
  }
  add_streams_fact(page, problem.graph, outcome.decision, result.overlap);
  if (result.measured_peak_bytes)
    page.facts.push_back({"Measured peak", core::format_bytes(*result.measured_peak_bytes), seconds_text(result)});
  ReportLosses losses{{}, {}};
  constexpr std::size_t kMostPoints = 500;
  losses.training = mean_losses(result.losses, kMostPoints);
  losses.steps = result.steps;
  for (const TestResult& test : result.tests) losses.tests.emplace_back(test.step, test.loss);
  page.pictures.push_back(
      {"Loss", "Each point of the line is a mean over successive steps; rings are tests.", losses_svg(losses)});
  ReportTable tests{"Tests", "", {"after step", "loss", "accuracy"}, {}};
  for (const TestResult& test : result.tests)
    tests.rows.push_back({{html::grouped(test.step), fmt::format("{:.4f}", test.loss),
                           test.accuracy ? fmt::format("{:.2f}%", 100 * *test.accuracy) : "-"}});
  if (!tests.rows.empty()) page.tables.push_back(std::move(tests));
  return report_page(page);
}

}  // namespace cairn::report
