#pragma once

#include <string>

#include "cairn/core/formats/files.h"
#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/precision.h"
#include "cairn/models/registry.h"

/// This library has the steps of the subcommands as functions:
/// - load or build a graph (this file);
/// - state a request (request.h);
/// - ask what the graph needs (info.h);
/// - execute a schedule (backend.h, run.h);
/// - evaluate many schedules (sweep.h).
namespace cairn::pipeline {

/// A graph that the user names: a file in any readable format, `-` for standard input, or a model of models::registry()
/// with its options.
struct GraphSource {
  std::string name;
  models::BuildOptions options;  ///< options of a model; files have none
  bool forward = false;          ///< whether to leave out the backward nodes (core::forward_part)
  bool unit_cost = false;        ///< whether to set every node's cost to 1
  /// Options for reading a file. load() obeys the time limit in these options and the time limit in its argument
  /// `limit`. It obeys the stop flag of `limit` or, if `limit` has no stop flag, the stop flag in these options.
  core::ReadOptions reading;

  bool is_model() const;
  /// Returns whether load() reads a file. It does so if `name` is not a model and a file of that name exists, or `name`
  /// looks like a path.
  bool is_file() const;
  /// Loads the file within the limit, or builds the model. Throws InputError; for an unknown name, the message suggests
  /// the nearest model.
  core::Graph load(const core::Limit& limit = {}) const;
  /// Builds the model named `name`, even if a file of the same name exists. Throws InputError.
  core::Graph build() const;
  /// Returns `loaded`, a result of load(), with tensors stored in `precision`. A model's costs become estimates for
  /// that precision; a file's costs do not change.
  core::Graph stored_as(const core::Graph& loaded, core::Precision precision) const;

 private:
  core::Graph as_asked(core::Graph graph) const;
};

/// Throws InputError if no node of the graph has an op, because a precision would then change nothing.
void require_ops(const core::Graph& graph, core::Precision asked);

}  // namespace cairn::pipeline
