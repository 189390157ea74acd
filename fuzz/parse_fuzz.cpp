// libFuzzer over every parser: the first byte chooses it, the rest is the file. Any end but a result or an InputError
// is a bug, as is an accepted graph that does not survive its own file.
//
//   build/fuzz/parse_fuzz -max_len=4096 CORPUS_FOLDER

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/solvers/decomposition/td_file.h"

namespace {

using namespace cairn::core;

const Graph& small_graph() {
  static const Graph graph = parse_graph(
      R"({"format":"cairn.graph","version":1,"nodes":[{"name":"a","size":8,"cost":1},{"name":"b","size":8,"inputs":[0]}]})",
      "graph");
  return graph;
}

void parse(std::uint8_t parser, std::string_view text) {
  switch (parser % 6) {
    case 0: {
      const Graph graph = parse_graph(text, "file");
      if (parse_graph(graph_to_json(graph), "again").fingerprint() != graph.fingerprint()) std::abort();
      break;
    }
    case 1:
      parse_schedule(text, "file", small_graph());
      break;
    case 2:
      parse_plan(text, "file", small_graph());
      break;
    case 3:
      parse_minimalloc_csv(text, "file");
      break;
    case 4: {
      const Graph& graph = small_graph();
      const auto decomposition = cairn::solvers::parse_td(text, "file", graph);
      const std::string again = cairn::solvers::td_text(decomposition, graph.node_count());
      if (cairn::solvers::parse_td(again, "again", graph).bags != decomposition.bags) std::abort();
      break;
    }
    default:
      parse_budget(text, 1'000'000'007);
      parse_seconds(text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    parse(data[0], {reinterpret_cast<const char*>(data + 1), size - 1});
  } catch (const InputError&) {
  }
  return 0;
}
