// Runs libFuzzer on every parser. The first byte of an input chooses the parser; the rest is the file to parse. It is a
// bug if a parser neither returns a result nor throws InputError. It is also a bug if an accepted graph changes when it
// is written to a file and read again.
//
//   build/fuzz/parse_fuzz -max_len=4096 CORPUS_FOLDER

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"
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
  // Parsers produce warnings only if ReadOptions::warn is set. Each warning must be a single line.
  const ReadOptions options{.warn = [](const ReadWarning& warning) {
    if (warning.text.find('\n') != std::string::npos) std::abort();
  }};
  switch (parser % 7) {
    case 0: {
      const Graph graph = parse_graph(text, "file", options);
      if (parse_graph(graph_to_json(graph), "again").fingerprint() != graph.fingerprint()) std::abort();
      break;
    }
    case 1:
      parse_schedule(text, "file", small_graph(), {}, options);
      break;
    case 2:
      parse_plan(text, "file", small_graph(), options);
      break;
    case 3:
      parse_minimalloc_csv(text, "file", options);
      break;
    case 4: {
      const Graph& graph = small_graph();
      const auto decomposition = cairn::solvers::parse_td(text, "file", graph);
      const std::string again = cairn::solvers::td_text(decomposition, graph.node_count());
      if (cairn::solvers::parse_td(again, "again", graph).bags != decomposition.bags) std::abort();
      break;
    }
    case 5: {
      // read_file() decompresses the text if it begins with gzip's magic number.
      static const int file = memfd_create("fuzz", 0);
      if (ftruncate(file, 0) != 0 || pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        std::abort();
      read_file("/proc/self/fd/" + std::to_string(file));
      break;
    }
    default: {
      parse_budget(text, 1'000'000'007);
      parse_seconds(text);
      std::int64_t value = 0;
      if (parse_whole(text, value) == NumberFault::none) parse_whole(std::to_string(value), value);
      const std::string shown = printable(text);
      if (printable(shown) != shown || display_width(cut_to_width(text, 7)) > 7) std::abort();
    }
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
