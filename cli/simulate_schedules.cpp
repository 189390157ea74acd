#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "cairn/cli/schedule_lines.h"
#include "cairn/cli/simulate.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"

namespace cairn::cli {
namespace {

constexpr std::string_view kHeader = "line,valid,peak_bytes,peak_step,cost\n";

void keep_first(std::vector<Remark>& remarks) {
  std::sort(remarks.begin(), remarks.end());
  remarks.resize(std::min(remarks.size(), kMostRemarks));
}

/// What one rank does with its batches, and what it remembers of them.
class Evaluation {
 public:
  Evaluation(const core::Graph& graph, const sim::TallyOptions& options, sim::Simulator& simulator)
      : tally(options), graph_(graph), simulator_(simulator), fingerprint_(graph.fingerprint()) {}

  sim::Tally tally;
  sim::Entry best{-1, -1, -1};
  core::Schedule best_schedule;
  std::int64_t bad_lines = 0;
  std::vector<Remark> bad, invalid;

  /// Returns the rows of the CSV file, if they are wanted.
  std::string add(const LineBatch& lines, bool rows_wanted) {
    sim::ScheduleBatch batch(graph_.node_count());
    std::vector<std::int64_t> numbers;
    std::vector<std::string_view> texts;
    for (const auto& [number, text] : lines.schedules()) {
      const std::string problem = parse_schedule_line(text, fingerprint_, steps_);
      if (!problem.empty()) {
        ++bad_lines;
        if (bad.size() < kMostRemarks) bad.emplace_back(number, problem);
        continue;
      }
      batch.add(steps_);
      numbers.push_back(number);
      texts.push_back(text);
    }
    simulator_.evaluate(batch, outcomes_);
    tally.add(numbers, outcomes_);
    for (std::int64_t c = 0; c < outcomes_.count() && invalid.size() < kMostRemarks; ++c) {
      if (outcomes_.valid[c] != 0) continue;
      parse_schedule_line(texts[c], fingerprint_, steps_);
      invalid.emplace_back(numbers[c], core::describe(graph_, core::evaluate(graph_, {steps_}).defect));
    }
    if (!tally.top().empty() && tally.top().front() != best) {
      best = tally.top().front();
      best_schedule = batch.schedule(std::lower_bound(numbers.begin(), numbers.end(), best.index) - numbers.begin());
    }
    return rows_wanted ? rows(numbers) : "";
  }

  Json remembered() const {
    return {{"best", {best.peak, best.cost, best.index}},
            {"steps", best_schedule.steps},
            {"bad_lines", bad_lines},
            {"bad", bad},
            {"invalid", invalid}};
  }

 private:
  std::string rows(const std::vector<std::int64_t>& numbers) const {
    std::string text;
    for (std::size_t c = 0; c < numbers.size(); ++c) {
      if (outcomes_.valid[c] != 0) {
        fmt::format_to(std::back_inserter(text), "{},1,{},{},{}\n", numbers[c], outcomes_.peak[c],
                       outcomes_.peak_step[c], outcomes_.cost[c]);
      } else {
        fmt::format_to(std::back_inserter(text), "{},0,,,\n", numbers[c]);
      }
    }
    return text;
  }

  const core::Graph& graph_;
  sim::Simulator& simulator_;
  std::string fingerprint_;
  std::vector<core::NodeId> steps_;
  sim::Outcomes outcomes_;
};

/// Puts together what the ranks remember; on rank 0.
void collect(const std::vector<std::string>& texts, Swept& swept) {
  for (const std::string& text : texts) {
    const Json json = Json::parse(text);
    swept.bad_lines += json["bad_lines"].get<std::int64_t>();
    for (const auto& remark : json["bad"].get<std::vector<Remark>>()) swept.bad.push_back(remark);
    for (const auto& remark : json["invalid"].get<std::vector<Remark>>()) swept.invalid.push_back(remark);
    const bool found = !swept.tally.top().empty() && json["best"][2] == swept.tally.top().front().index;
    if (found) swept.best.steps = json["steps"].get<std::vector<core::NodeId>>();
  }
  keep_first(swept.bad);
  keep_first(swept.invalid);
}

}  // namespace

Swept sweep_schedules(const SimulateArguments& arguments, const Problem& problem, const sim::TallyOptions& options,
                      sim::Simulator& simulator, Processes& processes) {
  constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const bool first_rank = processes.rank() == 0, stop_on_bad = arguments.on_bad_line == "stop";
  const double limit = arguments.time_limit.empty() ? std::numeric_limits<double>::infinity()
                                                    : core::parse_seconds(arguments.time_limit);
  ScheduleLines lines(arguments.schedules, arguments.at_once > 0 ? arguments.at_once : kNoLimit);
  Evaluation evaluation(problem.graph, options, simulator);
  Swept swept;
  SweepLine line(arguments.console, problem);
  std::optional<core::FileWriter> csv;
  if (first_rank && !arguments.output.empty()) {
    csv.emplace(arguments.output);
    csv->write(kHeader);
  }

  for (bool more = true; more;) {
    swept.timed_out = seconds() >= limit;
    std::array<std::int64_t, 1> go = {!catch_interrupt() && !swept.timed_out && swept.failure.empty()};
    processes.broadcast(go);
    if (go[0] == 0) break;
    // Every rank reads the whole file, and parses only its own batches.
    std::string rows;
    for (int rank = 0; rank < processes.count() && more; ++rank) {
      LineBatch batch;
      more = lines.next(batch);
      if (more && rank == processes.rank()) rows = evaluation.add(batch, !arguments.output.empty());
    }
    const std::string bad = stop_on_bad && evaluation.bad_lines > 0 ? Json(evaluation.bad.front()).dump() : "";
    std::vector<Remark> all_bad;
    for (const std::string& text : processes.gather(bad)) {
      if (!text.empty()) all_bad.push_back(Json::parse(text).get<Remark>());
    }
    if (const auto worst = std::min_element(all_bad.begin(), all_bad.end()); worst != all_bad.end())
      swept.failure =
          fmt::format("{}: line {}: {}; mend the line, or leave such lines out with --on-bad-line skip",
                      arguments.schedules == "-" ? "stdin" : arguments.schedules, worst->first, worst->second);
    for (const std::string& text : processes.gather(rows)) {
      if (csv) csv->write(text);
    }
    const std::int64_t done = evaluation.tally.candidates();
    std::optional<sim::Entry> best;
    if (!evaluation.tally.top().empty()) best = evaluation.tally.top().front();
    if (first_rank) line.show({done, 0, seconds(), static_cast<double>(done) / std::max(seconds(), 1e-9), best});
  }
  swept.interrupted = catch_interrupt();  // waiting for input, too
  sim::merge_to_first(evaluation.tally, processes);
  swept.tally = evaluation.tally;
  collect(processes.gather(evaluation.remembered().dump()), swept);
  swept.result = {swept.tally.candidates(), seconds()};
  if (csv && swept.failure.empty()) csv->commit();
  return swept;
}

}  // namespace cairn::cli
