#pragma once

#include <string>

#include "cairn/core/formats/files.h"
#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/precision.h"
#include "cairn/models/registry.h"

/// What a user does, as a library: load or build a graph (here), say what is looked for (request.h), ask what it needs
/// (info.h), execute what was decided on (backend.h, run.h), or evaluate many schedules (sweep.h).
namespace cairn::pipeline {

/// A graph by its name: a file in any format that can be read, `-` for standard input, or one of models::registry()
/// with its options.
struct GraphSource {
  std::string name;
  models::BuildOptions options;  ///< of models; files have none
  bool forward = false;          ///< the graph without its backward nodes: core::forward_part
  bool unit_cost = false;        ///< every node costs 1
  core::ReadOptions reading;     ///< of files; load() has a limit of its own

  bool is_model() const;
  /// Whether load() would look for a file: one of that name exists, or the name looks like a path.
  bool is_file() const;
  /// Loads the file, which the limit may end, or builds the model. Throws InputError, which suggests the nearest model.
  core::Graph load(const core::Limit& limit = {}) const;
  /// Builds the model, even where there is a file of that name. Throws InputError.
  core::Graph build() const;
  /// What load() gave, stored as `precision` wants it; a model's costs are estimates for that precision, a file's stay.
  core::Graph stored_as(const core::Graph& loaded, core::Precision precision) const;

 private:
  core::Graph as_asked(core::Graph graph) const;
};

}  // namespace cairn::pipeline
