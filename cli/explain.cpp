#include "cairn/cli/explain.h"

#include <CLI/CLI.hpp>

namespace cairn::cli {

void add_explain(CLI::App& app, bool& explain) {
  app.add_flag("--explain", explain,
               "say more of the peak: by layer, the largest tensors, how long each is idle; and what each layer's "
               "recomputation saves for which cost (--json always has it)");
}

}  // namespace cairn::cli
