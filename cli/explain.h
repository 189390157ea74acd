#pragma once

#include "cairn/cli/command.h"
#include "cairn/pipeline/internal/explanation.h"

namespace cairn::cli {

using pipeline::Explanation;

/// Adds --explain.
void add_explain(CLI::App& app, bool& explain);

}  // namespace cairn::cli
