#include "cairn/pipeline/run.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/memory.h"
#include "cairn/pipeline/internal/backends.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::pipeline {

std::int64_t synthetic_nodes(const core::Graph& graph) {
  std::int64_t count = 0;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) count += graph.op(v) == nullptr ? 1 : 0;
  return count;
}

std::string_view kernels_of(const core::Graph& graph) {
  const std::int64_t synthetic = synthetic_nodes(graph);
  return synthetic == 0 ? "real" : synthetic == graph.node_count() ? "synthetic" : "mixed";
}

std::optional<double> predicted_seconds(const core::Graph& graph, const fit::Decision& decision) {
  const double unit = graph.cost_unit().seconds();
  if (unit == 0) return std::nullopt;
  return static_cast<double>(decision.evaluation.cost) * unit;
}

bool predicts(const core::Graph& graph, const Backend& backend, core::Precision precision) {
  return graph.cost_unit().source == measured_on(backend, precision);
}

Spread spread_of(const Execution& execution) {
  if (execution.timings.empty()) return {};
  constexpr double kWakeUp = 1e-4;  // seconds that a step can lose to waking up threads even on an idle machine
  const auto [least, most] = std::ranges::minmax(execution.timings, {}, &runtime::Timing::seconds);
  Spread spread{least.seconds, most.seconds, 0};
  const std::vector<bool> disturbed = runtime::disturbed(execution.timings);
  for (std::size_t i = 0; i < disturbed.size(); ++i)
    spread.disturbed += disturbed[i] && execution.timings[i].seconds > least.seconds + kWakeUp ? 1 : 0;
  return spread;
}

/// Executes one of the two schedules that SideBySide compares, several times.
class SideBySide::Turns {
 public:
  Turns(Backend& backend, const ExecuteRequest& request, bool baseline, const RunOptions& options)
      : backend_(backend), baseline_(baseline), progress_(options.progress) {
    ExecuteRequest told = request;
    streams_ = request.streams;
    told.before_step = [this, steps = request.schedule.length()](const runtime::Instruction& instruction) {
      done_ = instruction.step;
      if (watch_ && watch_->passed()) throw TooLong();
      if (progress_) progress_({baseline_, instruction.step, steps, execution_});
    };
    told.delays = true;
    executor_ = backend.load(told);
    updates_ = runtime::updates_weights(told.graph);
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  void execute() {
    if (progress_) progress_({baseline_, 0, steps(), execution_});
    begin_again();
    reports_.push_back(executor_->run(backend_.times_ops_for_free()));
    latest_ = reports_.back().seconds;
    seconds_ += latest_;
    ++execution_;
  }
  /// Executes the schedule once, without storing a report. Stops after `most` seconds. Returns the seconds of a whole
  /// execution, estimated from the executed part if it was stopped.
  double try_execute(double most) {
    watch_.emplace(core::Limit{.seconds = most});
    try {
      execute();
    } catch (const TooLong&) {
    }
    const double seconds = watch_->seconds();
    watch_.reset();
    return executed() ? seconds : seconds * static_cast<double>(steps()) / static_cast<double>(done_ + 1);
  }
  bool executed() const { return !reports_.empty(); }
  void begin_timing() {
    reports_.clear();
    seconds_ = 0;
  }
  double seconds() const { return seconds_; }  ///< sum of the seconds of all timed executions
  double latest() const { return latest_; }    ///< seconds of the last execution

  Execution finish() {
    Execution execution;
    for (const runtime::StepReport& report : reports_) execution.timings.push_back(timing_of(report));
    const auto middle = reports_.begin() + static_cast<std::ptrdiff_t>((reports_.size() - 1) / 2);
    std::ranges::nth_element(reports_, middle, {}, &runtime::StepReport::seconds);
    execution.report = std::move(*middle);
    // If timing single ops slows down an execution, the ops are timed in an additional execution.
    if (!backend_.times_ops_for_free()) {
      begin_again();
      execution.report.op_seconds = executor_->run(true).op_seconds;
    }
    read_results(*executor_, execution);
    if (streams_ > 1) execution.overlap = runtime::overlap(executor_->program(), streams_);
    return execution;
  }

 private:
  struct TooLong {};

  /// Restores the weights that the last execution has updated, so that all executions give the same results.
  void begin_again() {
    if (updates_ && used_) executor_->reset();
    used_ = true;
  }

  std::int64_t steps() const { return static_cast<std::int64_t>(executor_->program().instructions.size()); }

  Backend& backend_;
  bool baseline_;
  std::function<void(const RunProgress&)> progress_;
  std::unique_ptr<runtime::Executor> executor_;
  int streams_ = 1;
  bool updates_ = false;  ///< whether an execution changes weights
  bool used_ = false;     ///< whether an execution was begun
  std::vector<runtime::StepReport> reports_;
  std::optional<core::Stopwatch> watch_;  ///< clock of try_execute() with its limit; empty at other times
  std::int64_t execution_ = 0, done_ = 0;
  double seconds_ = 0, latest_ = 0;
};

SideBySide::SideBySide(Backend& backend, const PreparedGraph& graph, std::int64_t alignment, std::int64_t guard_bytes,
                       const RunOptions& options)
    : backend_(backend), graph_(graph), options_(options), watch_(options.limit) {
  constexpr double kShareOfPlan = 0.1;
  solvers::PlanOptions plan{.alignment = alignment, .guard_bytes = guard_bytes, .limit = watch_.share(kShareOfPlan)};
  plan.limit.seconds = std::max(0.0, plan.limit.seconds);
  result_.baseline = fit::decide_on_baseline(graph.prepared, plan);
  load_baseline();
}

SideBySide::~SideBySide() = default;

void SideBySide::load_baseline() {
  try {
    baseline_ = load(result_.baseline, true);
  } catch (const core::MemoryError& error) {
    result_.why_no_baseline = error.what();
  }
}

std::unique_ptr<SideBySide::Turns> SideBySide::load(const fit::Decision& decision, bool baseline) {
  const std::optional<core::HostMemory>& host = graph_.prepared.host_memory();
  return std::make_unique<Turns>(backend_,
                                 ExecuteRequest{.graph = graph_.prepared,
                                                .schedule = decision.schedule,
                                                .plan = decision.executed_plan(),
                                                .precision = graph_.precision,
                                                .seed = options_.seed,
                                                .guard_bytes = decision.guard_bytes,
                                                .poison = options_.poison,
                                                .reserved_bytes = baseline_ ? runtime::kept_bytes(graph_.prepared) : 0,
                                                .streams = baseline ? 1 : options_.streams,
                                                .half_duplex = host && !host->link.duplex,
                                                .stop = options_.limit.stop},
                                 baseline, options_);
}

double SideBySide::warm_up(double most) {
  constexpr std::int64_t kRoomToSearch = std::int64_t{1} << 30;  // bytes that a search on a large graph needs
  if (!baseline_) return 0;
  const double seconds = baseline_->try_execute(most);
  if (core::available_memory() < kRoomToSearch) baseline_.reset();
  return seconds;
}

/// Executes each schedule of `all` once to warm up. Then executes the schedules in turns, and times these executions.
/// Returns whether there was time for timed executions.
bool SideBySide::take_turns(std::span<Turns* const> all) {
  constexpr int kLeast = 3, kMost = 15;
  constexpr double kEnough = 1;  // once each schedule has run this many seconds, no further timed execution begins
  for (Turns* turns : all) {
    if (!turns->executed()) turns->execute();
  }
  // Returns whether executing each schedule of `all` once more would exceed the time limit.
  const auto no_time = [&] {
    double round = 0;
    for (const Turns* turns : all) round += turns->latest();
    return watch_.passed() || watch_.rest().seconds < round;
  };
  if (no_time()) return false;
  for (Turns* turns : all) turns->begin_timing();
  const int most = options_.repeats > 0 ? options_.repeats : kMost;
  for (int round = 0; round < most; ++round) {
    if (round > 0 && no_time()) break;
    if (options_.repeats == 0 && round >= kLeast && all.front()->seconds() > kEnough) break;
    for (Turns* turns : all) turns->execute();
  }
  return true;
}

RunResult SideBySide::run(const fit::Decision& decision) {
  core::give_back_freed_memory();
  if (!baseline_ && result_.why_no_baseline.empty()) load_baseline();
  std::unique_ptr<Turns> scheduled;
  try {
    scheduled = load(decision, false);
  } catch (const core::DeviceError&) {
    if (!baseline_) throw;
    // Memory does not suffice to load both schedules at once, so first the baseline is executed, and then the schedule.
  }
  result_.interleaved = baseline_ && scheduled;
  if (!baseline_) {
    result_.warmed_up = take_turns(std::array{scheduled.get()});
  } else if (scheduled) {
    result_.warmed_up = take_turns(std::array{baseline_.get(), scheduled.get()});
    result_.baseline_run = baseline_->finish();
  } else {
    result_.warmed_up = take_turns(std::array{baseline_.get()});
    result_.baseline_run = baseline_->finish();
    baseline_.reset();
    scheduled = load(decision, false);
    result_.warmed_up = take_turns(std::array{scheduled.get()}) && result_.warmed_up;
  }
  result_.scheduled_run = scheduled->finish();
  baseline_.reset();
  scheduled.reset();
  if (result_.baseline_run) result_.comparison = compare(graph_.prepared, *result_.baseline_run, result_.scheduled_run);
  result_.loss = loss_of(graph_.prepared, result_.scheduled_run);
  if (options_.check_on_host)
    result_.host_check = check_with_host(graph_, result_.scheduled_run, decision.executed_plan().alignment,
                                         options_.seed, options_.limit.stop);
  return std::move(result_);
}

std::optional<FreeMemoryUse> use_free_memory(Backend& backend, const PreparedGraph& graph, const fit::Task& task,
                                             const fit::Decision& decision, const std::atomic<bool>* stop) {
  constexpr int kMostPlans = 4;
  const std::optional<std::int64_t> budget = task.problem.budget;
  if (task.objective != fit::Objective::within_budget || !budget || decision.memory() > *budget) return std::nullopt;
  const core::Graph& before = graph.prepared;
  const core::Schedule baseline = core::baseline_schedule(before);
  const std::int64_t baseline_peak = core::evaluate(before, baseline).peak;
  const auto variants = [&](core::NodeId v) { return backend.scratch_variants(before, v, graph.precision); };
  solvers::PlanOptions plan{.alignment = decision.executed_plan().alignment,
                            .guard_bytes = decision.guard_bytes,
                            .overlap_steps = decision.overlap_steps};
  plan.limit.stop = stop;
  std::int64_t aim = *budget;
  for (int plans = 0; plans < kMostPlans && !is_raised(stop); ++plans) {
    const std::array<runtime::MemoryLimit, 2> limits = {{{decision.schedule, aim}, {baseline, baseline_peak}}};
    FreeMemoryUse use{graph, {}, 0};
    use.graph.prepared = runtime::use_free_memory(before, limits, variants);
    for (core::NodeId v = 0; v < before.node_count(); ++v)
      use.nodes += use.graph.prepared.scratch(v) != before.scratch(v) ? 1 : 0;
    if (use.nodes == 0) break;
    use.decision = fit::decide_on(use.graph.prepared, decision.solver, decision.schedule, plan);
    if (use.decision.memory() <= *budget) return use;
    // The peak is at most `aim`, but because of gaps between buffers, the plan is above the budget. The next attempt
    // lowers `aim` by the bytes above the budget.
    aim -= use.decision.memory() - *budget;
  }
  return std::nullopt;
}

void require_memory(Backend& backend, const core::Graph& prepared, const fit::Problem& rounded) {
  const std::int64_t least = rounded.plan_bound();
  backend.require_memory(prepared, least, least);
  // No schedule costs less than the baseline. So if the budget allows the baseline, the search can return the baseline,
  // and more memory than the baseline's peak is not needed.
  if (rounded.budget) backend.require_memory(prepared, std::min(*rounded.budget, rounded.baseline.peak), least);
}

RunResult run(Backend& backend, const PreparedGraph& graph, const fit::Decision& decision, const RunOptions& options) {
  return SideBySide(backend, graph, decision.executed_plan().alignment, decision.guard_bytes, options).run(decision);
}

}  // namespace cairn::pipeline
