#include "cairn/pipeline/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/formats/support/transfers.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/text.h"
#include "cairn/pipeline/internal/schedule_lines.h"
#include "cairn/sim/generator.h"

namespace cairn::pipeline {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRemarks = 8;
constexpr std::string_view kHeader = "line,valid,peak_bytes,peak_step,cost";
constexpr std::string_view kHostPeak = ",host_peak_bytes";

void keep_first(std::vector<Remark>& remarks) {
  std::sort(remarks.begin(), remarks.end());
  remarks.resize(std::min(remarks.size(), kMostRemarks));
}

/// Evaluates the schedules of one rank (a process that shares the sweep) and stores the results.
class Evaluation {
 public:
  Evaluation(const core::Graph& graph, const sim::TallyOptions& options, sim::Simulator& simulator)
      : tally(options), graph_(graph), simulator_(simulator), fingerprint_(graph.fingerprint()) {}

  sim::Tally tally;
  sim::Entry best{-1, -1, -1};
  core::Schedule best_schedule;
  std::int64_t bad_lines = 0;
  std::vector<Remark> bad, invalid;
  std::optional<sim::Undominated> undominated;

  /// Evaluates the schedules in a batch of lines. If `rows_wanted` is set, returns the lines of the CSV file for these
  /// schedules, else an empty text.
  std::string add(const LineBatch& lines, bool rows_wanted) {
    sim::ScheduleBatch batch(graph_.node_count());
    std::vector<std::int64_t> numbers;
    std::vector<std::string_view> texts;
    for (const auto& [number, text] : lines.schedules()) {
      const std::string problem = parse_schedule_line(text, graph_, fingerprint_, schedule_);
      if (!problem.empty()) {
        ++bad_lines;
        if (bad.size() < kMostRemarks) bad.emplace_back(number, problem);
        continue;
      }
      batch.add(schedule_);
      numbers.push_back(number);
      texts.push_back(text);
    }
    simulator_.evaluate(batch, outcomes_);
    // If the graph has a link to the host's memory, every candidate needs a peak on the host. This peak is 0 for
    // candidates without transfers.
    if (graph_.host_memory()) outcomes_.host_peak.resize(numbers.size(), 0);
    tally.add(numbers, outcomes_);
    for (std::int64_t c = 0; c < outcomes_.count() && invalid.size() < kMostRemarks; ++c) {
      if (outcomes_.valid[c] != 0) continue;
      parse_schedule_line(texts[c], graph_, fingerprint_, schedule_);
      invalid.emplace_back(numbers[c], core::describe(graph_, core::evaluate(graph_, schedule_).defect));
    }
    if (undominated) undominated->add(simulator_, batch, numbers);
    if (!tally.top().empty() && tally.top().front() != best) {
      best = tally.top().front();
      best_schedule = batch.schedule(std::lower_bound(numbers.begin(), numbers.end(), best.index) - numbers.begin());
    }
    return rows_wanted ? rows(numbers) : "";
  }

  /// Returns, as JSON, what `tally` does not hold: the best schedule, and what is wrong with lines of the file.
  Json remembered() const {
    return {{"best", {best.peak, best.cost, best.index}},
            {"steps", best_schedule.steps},
            {"transfers", core::formats::to_json(graph_, best_schedule.transfers)},
            {"bad_lines", bad_lines},
            {"bad", bad},
            {"invalid", invalid}};
  }

 private:
  std::string rows(const std::vector<std::int64_t>& numbers) const {
    const bool link = graph_.host_memory().has_value();
    std::string text;
    for (std::size_t c = 0; c < numbers.size(); ++c) {
      if (outcomes_.valid[c] != 0) {
        fmt::format_to(std::back_inserter(text), "{},1,{},{},{}", numbers[c], outcomes_.peak[c], outcomes_.peak_step[c],
                       outcomes_.cost[c]);
        if (link) fmt::format_to(std::back_inserter(text), ",{}", outcomes_.host_peak[c]);
      } else {
        fmt::format_to(std::back_inserter(text), "{},0,,,{}", numbers[c], link ? "," : "");
      }
      text += '\n';
    }
    return text;
  }

  const core::Graph& graph_;
  sim::Simulator& simulator_;
  std::string fingerprint_;
  core::Schedule schedule_;
  sim::Outcomes outcomes_;
};

/// Merges what the Evaluations of all ranks have found (Evaluation::remembered()) into `swept`. On rank 0, `texts` has
/// these results as JSON; on all other ranks, `texts` is empty.
void collect(const std::vector<std::string>& texts, const core::Graph& graph, Swept& swept) {
  for (const std::string& text : texts) {
    const Json json = Json::parse(text);
    swept.bad_lines += json["bad_lines"].get<std::int64_t>();
    for (const auto& remark : json["bad"].get<std::vector<Remark>>()) swept.bad.push_back(remark);
    for (const auto& remark : json["invalid"].get<std::vector<Remark>>()) swept.invalid.push_back(remark);
    const bool found = !swept.tally.top().empty() && json["best"][2] == swept.tally.top().front().index;
    if (!found) continue;
    swept.best.steps = json["steps"].get<std::vector<core::NodeId>>();
    swept.best.transfers = core::formats::read_transfers(json["transfers"], graph, {.origin = "the best candidate"});
  }
  keep_first(swept.bad);
  keep_first(swept.invalid);
}

}  // namespace

sim::TallyOptions tally_options(const fit::Problem& problem, std::int32_t top) {
  sim::TallyOptions options = sim::tally_options(problem.graph);
  options.top = top;
  if (problem.budget) options.budget = *problem.budget;
  if (problem.graph.host_memory()) options.host_budget = problem.graph.host_memory()->budget;
  return options;
}

RandomSweep random_sweep(const fit::Problem& problem, sim::Sweep wanted, std::string checkpoint, bool resume) {
  RandomSweep random{std::move(wanted), std::move(checkpoint), {}, false};
  if (!resume || random.checkpoint.empty() || !std::filesystem::exists(random.checkpoint)) return random;
  random.sweep =
      sim::resume_sweep(core::read_file(random.checkpoint), random.checkpoint, problem.graph, std::move(random.sweep));
  random.resumed_from = random.sweep.done;
  return random;
}

namespace {

/// Finds the candidates whose memory profiles no other candidate dominates (core/dominance.h). Generates the candidates
/// again in groups whose profiles fit into kMostBytes. Compares at least one group before a limit or the stop flag can
/// end the comparison. Returns whether all candidates were compared.
bool add_undominated(const fit::Problem& problem, sim::Simulator& simulator, const sim::Sweep& sweep,
                     const sim::SweepOptions& options, Swept& swept) {
  constexpr std::int64_t kMostBytes = std::int64_t{128} << 20, kMostCandidates = 1 << 16;
  const double before = swept.result.seconds;
  const core::Stopwatch watch(core::Limit{.seconds = options.seconds - before, .stop = options.stop});
  const core::Graph& graph = problem.graph;
  const std::int64_t steps = sim::most_steps(sweep.generator, graph.node_count(), graph.edge_count());
  const std::int64_t bytes = (2 * steps + 1) * static_cast<std::int64_t>(sizeof(std::int64_t));
  std::int64_t round = std::clamp<std::int64_t>(kMostBytes / bytes, 1, kMostCandidates);
  if (options.at_once > 0) round = std::min(round, options.at_once);
  sim::Undominated& undominated = swept.undominated.emplace(graph);
  std::int64_t done = 0;
  while (done < sweep.done && (done == 0 || !watch.passed())) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(std::min(round, sweep.done - done)));
    std::iota(numbers.begin(), numbers.end(), done);
    const auto count = static_cast<std::int64_t>(numbers.size());
    undominated.add(simulator, simulator.generate(sweep.generator, done, count), numbers);
    done += count;
    if (options.progress)
      options.progress({done, sweep.done, before + watch.seconds(),
                        static_cast<double>(done) / std::max(watch.seconds(), 1e-9), std::nullopt});
  }
  return done == sweep.done;
}

}  // namespace

Swept sweep_random(const fit::Problem& problem, sim::Simulator& simulator, RandomSweep& random,
                   sim::SweepOptions options, sim::Ranks& ranks) {
  if (!random.checkpoint.empty()) {
    options.checkpoint = [&](const sim::Sweep& sweep) {
      core::write_file(random.checkpoint, sim::sweep_to_json(problem.graph, sweep));
    };
  }
  Swept swept;
  swept.result = sim::run_sweep(simulator, random.sweep, options, ranks);
  swept.resumed_from = random.resumed_from;
  const bool compared = !random.undominated || add_undominated(problem, simulator, random.sweep, options, swept);
  if (random.sweep.done < random.sweep.total || !compared) {
    swept.interrupted = options.stop != nullptr && *options.stop;
    swept.timed_out = !swept.interrupted;
  }
  swept.tally = std::move(random.sweep.tally);
  if (!swept.tally.top().empty())
    swept.best = sim::generate(problem.graph, random.sweep.generator, swept.tally.top().front().index);
  return swept;
}

Swept sweep_file(const fit::Problem& problem, sim::Simulator& simulator, const ScheduleFile& file,
                 const sim::TallyOptions& tally, const sim::SweepOptions& options, sim::Ranks& ranks) {
  constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  const core::Stopwatch watch(core::Limit{.stop = options.stop});
  const bool first_rank = ranks.rank() == 0;
  ScheduleLines lines(file.path, options.at_once > 0 ? options.at_once : kNoLimit, options.stop);
  Evaluation evaluation(problem.graph, tally, simulator);
  if (file.undominated) evaluation.undominated.emplace(problem.graph);
  Swept swept;
  std::optional<core::FileWriter> csv;
  if (first_rank && !file.output.empty()) {
    csv.emplace(file.output);
    csv->write(fmt::format("{}{}\n", kHeader, problem.graph.host_memory() ? kHostPeak : ""));
  }

  for (bool more = true; more;) {
    swept.timed_out = watch.seconds() >= options.seconds;
    std::array<std::int64_t, 1> go = {!watch.interrupted() && !swept.timed_out && swept.failure.empty()};
    ranks.broadcast(go);
    if (go[0] == 0) break;
    // Every rank reads the whole file, but parses only every ranks.count()-th batch.
    std::string rows;
    for (int rank = 0; rank < ranks.count() && more; ++rank) {
      LineBatch batch;
      more = lines.next(batch);
      if (more && rank == ranks.rank()) rows = evaluation.add(batch, !file.output.empty());
    }
    const std::string bad = !file.skip_bad_lines && evaluation.bad_lines > 0 ? Json(evaluation.bad.front()).dump() : "";
    std::vector<Remark> all_bad;
    for (const std::string& text : ranks.gather(bad)) {
      if (!text.empty()) all_bad.push_back(Json::parse(text).get<Remark>());
    }
    if (const auto worst = std::min_element(all_bad.begin(), all_bad.end()); worst != all_bad.end())
      swept.failure =
          fmt::format("{}: line {}: {}; mend the line, or leave such lines out with {}", core::input_name(file.path),
                      worst->first, worst->second, core::option("on-bad-line", "skip"));
    for (const std::string& text : ranks.gather(rows)) {
      if (csv) csv->write(text);
    }
    const std::int64_t done = evaluation.tally.candidates();
    std::optional<sim::Entry> best;
    if (!evaluation.tally.top().empty()) best = evaluation.tally.top().front();
    if (first_rank && options.progress)
      options.progress({done, 0, watch.seconds(), static_cast<double>(done) / std::max(watch.seconds(), 1e-9), best});
  }
  swept.interrupted = watch.interrupted();  // the stop flag can also have been raised while the sweep waited for input
  sim::merge_to_first(evaluation.tally, ranks);
  swept.tally = evaluation.tally;
  swept.undominated = std::move(evaluation.undominated);
  collect(ranks.gather(evaluation.remembered().dump()), problem.graph, swept);
  swept.result = {swept.tally.candidates(), watch.seconds()};
  if (csv && swept.failure.empty()) csv->commit();
  return swept;
}

namespace {

/// Throws DefectError if core::evaluate() computes another peak or cost for `schedule` than the sweep, whose result is
/// `entry`.
core::Evaluation require_same(const core::Graph& graph, const core::Schedule& schedule, const sim::Entry& entry) {
  const core::Evaluation evaluation = core::evaluate(graph, schedule);
  if (!evaluation.valid() || evaluation.peak != entry.peak || evaluation.cost != entry.cost)
    throw core::DefectError(fmt::format(
        "the simulator gave candidate {} peak {} and cost {}, but it has {} and {}{}; please report this", entry.index,
        entry.peak, entry.cost, evaluation.peak, evaluation.cost, evaluation.valid() ? "" : " and is invalid"));
  return evaluation;
}

}  // namespace

void check_best(const fit::Problem& problem, const Swept& swept) {
  if (!swept.tally.top().empty()) require_same(problem.graph, swept.best, swept.tally.top().front());
}

std::string random_csv(const fit::Problem& problem, const sim::Generator& generator, const sim::Tally& tally) {
  const bool link = problem.graph.host_memory().has_value();
  std::string text = fmt::format("index,valid,peak_bytes,peak_step,cost,rank,pareto{}\n", link ? kHostPeak : "");
  const auto contains = [](const std::vector<sim::Entry>& entries, const sim::Entry& entry) {
    return std::find(entries.begin(), entries.end(), entry) != entries.end();
  };
  const auto add = [&](const sim::Entry& entry, const std::string& rank, bool pareto) {
    const auto schedule = sim::generate(problem.graph, generator, entry.index);
    const core::Evaluation evaluation = require_same(problem.graph, schedule, entry);
    text += fmt::format("{},1,{},{},{},{},{}", entry.index, entry.peak, evaluation.peak_step, entry.cost, rank,
                        pareto ? 1 : 0);
    text += link ? fmt::format(",{}\n", evaluation.host_peak) : "\n";
  };
  for (std::size_t i = 0; i < tally.top().size(); ++i)
    add(tally.top()[i], std::to_string(i + 1), contains(tally.front(), tally.top()[i]));
  for (const sim::Entry& entry : tally.front()) {
    if (!contains(tally.top(), entry)) add(entry, "", true);
  }
  return text;
}

Histogram shown_histogram(const sim::Tally& tally) {
  constexpr std::int64_t kMostShown = 64;
  const auto& bins = tally.histogram();
  const auto filled = [](std::int64_t count) { return count > 0; };
  const std::int64_t first = std::find_if(bins.begin(), bins.end(), filled) - bins.begin();
  const std::int64_t end = bins.rend() - std::find_if(bins.rbegin(), bins.rend(), filled);
  Histogram shown;
  if (first >= end) return shown;
  const std::int64_t together = (end - first + kMostShown - 1) / kMostShown;
  shown.counts.resize(static_cast<std::size_t>((end - first + together - 1) / together), 0);
  for (std::int64_t b = first; b < end; ++b) shown.counts[static_cast<std::size_t>((b - first) / together)] += bins[b];
  shown.from = tally.options().from + first * tally.options().width();
  shown.width = together * tally.options().width();
  return shown;
}

double Swept::per_second() const { return static_cast<double>(result.evaluated) / std::max(result.seconds, 1e-9); }

std::string SweepOrigin::source() const { return random ? "random" : file.empty() ? "given" : file; }

std::string SweepOrigin::text() const {
  if (random) {
    return fmt::format("random schedules of seed {}, at most {} moves{}", random->seed, random->moves,
                       random->transfers > 0 ? fmt::format(" and {} transfers", random->transfers) : "");
  }
  return file.empty() ? "given schedules" : "schedules of " + file;
}

}  // namespace cairn::pipeline
