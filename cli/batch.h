#pragma once

#include <string>

#include "cairn/cli/arguments.h"
#include "cairn/cli/command.h"
#include "cairn/cli/objective.h"
#include "cairn/cli/output.h"
#include "cairn/core/limit.h"
#include "cairn/pipeline/device_memory.h"

/// --batch auto: the largest batch of a model that fits.
namespace cairn::cli {

/// Whether the graph is a model with a batch.
bool takes_batch(const GraphArguments& graph);

/// The largest batch that fits into the budget or the device that `objective` names. Throws InputError where it names
/// none of that size.
fit::LargestBatch largest_batch(const GraphArguments& graph, const ObjectiveArguments& objective,
                                const AlignmentChoice& alignment, const SolverArguments& search, const Console& console,
                                const core::Limit& limit);

/// `graph` with --batch auto replaced by what was found in half of the time limit, said on stderr. Throws InputError,
/// and Failure where not even a batch of 1 fits.
GraphArguments with_largest_batch(GraphArguments graph, const ObjectiveArguments& objective,
                                  const AlignmentChoice& alignment, const SolverArguments& search,
                                  const Console& console);

/// The arguments of a command that has all of those.
template <class Arguments>
Arguments with_batch(Arguments arguments) {
  if constexpr (requires { arguments.backend.precision; }) arguments.graph.precision = arguments.backend;
  if (arguments.graph.batch_auto)
    arguments.graph = with_largest_batch(std::move(arguments.graph), arguments.objective, arguments.alignment,
                                         arguments.search, arguments.console);
  return arguments;
}

}  // namespace cairn::cli
