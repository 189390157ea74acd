#pragma once

#include "cairn/cli/command.h"
#include "cairn/report/support/explanation.h"

namespace cairn::cli {

using report::Explanation;

/// Adds --explain.
void add_explain(CLI::App& app, bool& explain);

}  // namespace cairn::cli
