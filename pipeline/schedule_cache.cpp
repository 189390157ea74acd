#include "cairn/pipeline/support/schedule_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/registry.h"

namespace cairn::pipeline {

namespace fs = std::filesystem;

std::string ScheduleCache::default_folder() {
  constexpr std::string_view kHome = "HOME";
  for (const auto& [variable, below] : {std::pair<std::string_view, const char*>{"CAIRN_CACHE", "schedules"},
                                        {"XDG_CACHE_HOME", "cairn/schedules"},
                                        {kHome, ".cache/cairn/schedules"}}) {
    const char* const value = std::getenv(variable.data());
    if (value == nullptr || *value == '\0') continue;
    // A relative path is not used, because its meaning would depend on the current folder. $HOME must exist, because
    // the user of a system service often has a home folder that does not exist.
    std::error_code ignored;
    const bool usable = fs::path(value).is_absolute() && (variable != kHome || fs::is_directory(value, ignored));
    return usable ? (fs::path(value) / below).string() : std::string();
  }
  return {};
}

std::string ScheduleCache::path(const fit::Task& task, const solvers::Scope& scope,
                                const std::optional<core::HostMemory>& host) const {
  const std::string overlap = task.overlap_steps == 0 ? "" : fmt::format("-{}", task.overlap_steps);
  const std::string link = !host ? ""
                                 : fmt::format("-link-{}-{}-{}-{}", host->link.bytes_per_second, host->link.latency_ns,
                                               host->link.duplex, host->budget);
  return fmt::format("{}/{}-{}-{}-{}{}{}.json", folder_, task.problem.graph.fingerprint(), task.alignment,
                     static_cast<int>(scope.order), scope.max_occurrences, overlap, link);
}

std::optional<fit::LeastBudget> ScheduleCache::find(const fit::Task& task, const solvers::Scope& scope) const {
  const std::optional<core::HostMemory>& host = task.problem.graph.host_memory();
  std::optional<fit::LeastBudget> found = load(task, scope, std::nullopt);
  if (!host) return found;
  std::optional<fit::LeastBudget> with_link = load(task, scope, host);
  return with_link && (!found || with_link->is_below(*found)) ? with_link : found;
}

std::optional<fit::LeastBudget> ScheduleCache::load(const fit::Task& task, const solvers::Scope& scope,
                                                    const std::optional<core::HostMemory>& host) const {
  const core::Graph& graph = task.problem.graph;
  if (folder_.empty()) return std::nullopt;
  try {
    core::ScheduleFile file = core::load_schedule(path(task, scope, host), graph);
    if (!scope.contains(graph, file.schedule)) return std::nullopt;
    auto plan = fit::plan_at(graph, file.schedule, file.offsets, task.alignment, task.overlap_steps);
    if (!plan || (host && plan->host_bytes > host->budget)) return std::nullopt;
    fit::LeastBudget least;
    least.take(fit::PlannedSchedule(graph, std::move(file.schedule), std::move(plan)),
               solvers::find_solver(file.solver).name);
    least.lowest = least.schedule;
    least.bound = {task.rounded.plan_bound(), solvers::kAnySchedule};
    return least;
  } catch (const core::Error&) {
    return std::nullopt;
  }
}

fit::LeastBudget ScheduleCache::keep(const fit::Task& task, const solvers::Scope& scope, fit::LeastBudget least) const {
  const core::Graph& graph = task.problem.graph;
  if (folder_.empty()) return least;
  std::optional<fit::LeastBudget> stored = find(task, scope);
  if (stored && (!least.plan || !least.is_below(*stored))) {
    least.take(*stored, stored->solver);
    return least;
  }
  if (!least.plan || !scope.contains(graph, least.schedule)) return least;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  try {
    core::write_file(path(task, scope, graph.host_memory()),
                     core::schedule_to_json(graph, least.schedule, least.solver, least.plan));
    drop_old_files();
  } catch (const core::Error&) {  // for example if the folder cannot be written or is full
  }
  return least;
}

void ScheduleCache::drop_old_files() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder_, ignored), end; !ignored && entry != end; entry.increment(ignored))
    files.emplace_back(entry->last_write_time(ignored), entry->path());
  if (files.size() <= kMostFiles) return;
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i + kMostFiles < files.size(); ++i) fs::remove(files[i].second, ignored);
}

}  // namespace cairn::pipeline
