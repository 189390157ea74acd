#pragma once

#include "cairn/cli/arguments.h"
#include "cairn/cli/command.h"
#include "cairn/cli/objective.h"
#include "cairn/cli/output.h"
#include "cairn/core/limit.h"

/// Implements --batch auto, which finds the largest batch of a model that fits.
namespace cairn::cli {

/// Returns whether the graph is a model with a batch.
bool takes_batch(const GraphArguments& graph);

/// Finds the largest batch that fits into the budget of `objective` or, if `objective` has a device memory, into that
/// memory. Throws InputError if there is no device memory and the budget is not a number of bytes, i.e. if it is
/// missing, "min" or a percentage. Throws InputError if `graph` is not a model with a batch.
fit::LargestBatch largest_batch(const GraphArguments& graph, const ObjectiveArguments& objective,
                                const AlignmentChoice& alignment, const SolverArguments& search, const Console& console,
                                const core::Limit& limit);

/// Returns `graph` with the largest batch that fits, for --batch auto. The search takes at most half of the time limit.
/// Reports the batch on stderr unless console.quiet is set. Throws InputError as largest_batch() does. Throws Failure
/// if not even a batch of 1 fits, or after Ctrl-C.
GraphArguments with_largest_batch(GraphArguments graph, const ObjectiveArguments& objective,
                                  const AlignmentChoice& alignment, const SolverArguments& search,
                                  const Console& console);

/// Returns the subcommand's arguments. If the user gave --batch auto, replaces the graph in them by the result of
/// with_largest_batch(). `Arguments` must have the members that this function uses.
template <class Arguments>
Arguments with_batch(Arguments arguments) {
  if constexpr (requires { arguments.backend.precision; }) arguments.graph.precision = arguments.backend;
  if (arguments.graph.batch_auto)
    arguments.graph = with_largest_batch(std::move(arguments.graph), arguments.objective, arguments.alignment,
                                         arguments.search, arguments.console);
  return arguments;
}

}  // namespace cairn::cli
