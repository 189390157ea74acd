#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/objective.h"

namespace cairn::pipeline {

/// Stores in files, for each graph, the schedule with the lowest plan that any command has found. So a command can meet
/// a budget that an earlier command has printed, even if it has too little time to find a schedule for that budget
/// itself. Files may be deleted at any time. Files that cannot be read or written, and wrong plans, are ignored.
class ScheduleCache {
 public:
  /// Uses the files in `folder`. If `folder` is empty, nothing is stored and nothing is found.
  explicit ScheduleCache(std::string folder = default_folder()) : folder_(std::move(folder)) {}

  /// Returns `$CAIRN_CACHE/schedules`, else `$XDG_CACHE_HOME/cairn/schedules`, else `$HOME/.cache/cairn/schedules`,
  /// for the first of these variables that is set. Returns an empty text if this path is not absolute or the home does
  /// not exist.
  static std::string default_folder();

  /// Returns the stored schedule of the task's graph in this scope (the set of allowed schedules), with a plan that has
  /// the task's alignment and overlap_steps (see Request). For a graph with a link, returns the better of the schedule
  /// stored for the same link and host budget, and the one without transfers. Returns nothing if none is stored. O(b +
  /// s log s) for a file of b bytes and a schedule of s steps.
  std::optional<fit::LeastBudget> find(const fit::Task& task, const solvers::Scope& scope) const;

  /// Stores `least` if its plan is lower than the plan of the stored schedule, or if both plans are equally low and
  /// `least` costs less. Returns the better of the two schedules. If two processes call this function at once, the
  /// schedule that is written later stays. Deletes old files, so that only the kMostFiles files that were written last
  /// remain.
  fit::LeastBudget keep(const fit::Task& task, const solvers::Scope& scope, fit::LeastBudget least) const;

  static constexpr int kMostFiles = 500;

 private:
  /// Returns the file for schedules with transfers over the link to the host's memory, if `host` is given, else for
  /// those without.
  std::string path(const fit::Task& task, const solvers::Scope& scope,
                   const std::optional<core::HostMemory>& host) const;
  std::optional<fit::LeastBudget> load(const fit::Task& task, const solvers::Scope& scope,
                                       const std::optional<core::HostMemory>& host) const;
  void drop_old_files() const;

  std::string folder_;
};

}  // namespace cairn::pipeline
