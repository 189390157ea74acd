#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "cairn/core/schedule.h"
#include "cairn/pipeline/objective.h"
#include "cairn/pipeline/request.h"

namespace cairn::python {

/// What Python calls an Answer.
struct Answer {
  pipeline::Task task;
  std::string solver;
  pipeline::Answer answer;
  pipeline::LeastBudget least;
  core::Evaluation found;  ///< of the schedule, on the graph as given
  bool interrupted = false;

  bool shown() const { return answer.has_schedule(); }
};

/// What all searches take, as the command does.
struct SearchArguments {
  std::string solver = "auto";
  std::optional<double> time_limit;  ///< seconds
  std::optional<std::int64_t> work_limit;
  std::uint64_t seed = 0;
  std::int64_t memory = 0;  ///< bytes; 0: SolveOptions' own
  std::string order = "free";
  std::int32_t max_occurrences = 0;  ///< 0: any number
  std::map<std::string, std::int64_t> own;

  /// Throws InputError.
  solvers::SolveOptions options() const;
};

}  // namespace cairn::python
