#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/objective.h"

namespace cairn::pipeline {

/// Stores, for each graph, the schedule of the lowest plan that any command has found, in files. So a command meets a
/// budget that an earlier command has named, even if a busy machine leaves it too little time to find the schedule
/// again. Files may be deleted at any time. A file that cannot be read or written is ignored, and so is a plan that is
/// wrong.
class ScheduleCache {
 public:
  /// Uses the files in `folder`. An empty text stands for no folder: nothing is stored and nothing is found.
  explicit ScheduleCache(std::string folder = default_folder()) : folder_(std::move(folder)) {}

  /// Returns `$CAIRN_CACHE/schedules` or, if that variable is not set, `$XDG_CACHE_HOME/cairn/schedules` or
  /// `$HOME/.cache/cairn/schedules`. Returns an empty text if the first of these that is set is not absolute, or if it
  /// is a home that does not exist.
  static std::string default_folder();

  /// Returns the stored schedule of the task's graph, with its plan for the task's alignment, among the schedules of a
  /// scope. O(file size + steps * log steps).
  std::optional<fit::LeastBudget> find(const fit::Task& task, const solvers::Scope& scope) const;

  /// Stores a schedule if its plan is lower than that of find(). If both are of the same height, the cheaper one counts
  /// as lower. Returns the one of the two with the lower plan. If two processes call this function at once, the result
  /// of the later one stays. Keeps at most kMostFiles files in the folder, those that were written last.
  fit::LeastBudget keep(const fit::Task& task, const solvers::Scope& scope, fit::LeastBudget least) const;

  static constexpr int kMostFiles = 500;

 private:
  std::string path(const fit::Task& task, const solvers::Scope& scope) const;
  void drop_old_files() const;

  std::string folder_;
};

}  // namespace cairn::pipeline
