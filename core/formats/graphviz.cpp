#include <fmt/format.h>

#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"

namespace cairn::core {
namespace {

/// Escapes text for a quoted DOT string, so that quotes and backslashes are shown as they are.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string node_line(const Graph& graph, NodeId v) {
  std::string label = fmt::format("{}\\n{}", escaped(graph.name(v)), format_bytes(graph.size(v)));
  if (graph.output_count(v) > 1) label += fmt::format(" in {} outputs", graph.output_count(v));
  if (graph.scratch(v) != 0) label += fmt::format("\\nscratch {}", format_bytes(graph.scratch(v)));
  return fmt::format("  n{} [label=\"{}\", fillcolor=\"{}\"{}];\n", v, label, graph.backward(v) ? "#f6d5b8" : "#cfe3f5",
                     graph.keep(v) ? ", peripheries=2, penwidth=2" : "");
}

}  // namespace

std::string graph_to_dot(const Graph& graph) {
  std::string text = fmt::format(
      "// Blue: forward, orange: backward, double border: kept to the end, dashed: the storage that is taken over.\n"
      "digraph \"{}\" {{\n"
      "  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10];\n"
      "  edge [color=\"#707070\", arrowsize=0.6];\n",
      escaped(graph.name()));
  for (NodeId v = 0; v < graph.node_count(); ++v) text += node_line(graph, v);
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const ValueId x : graph.inputs(v)) {
      bool taken = false;
      for (const ValueId own : graph.outputs(v)) taken = taken || graph.inplace(own) == x;
      std::string style = taken ? "style=dashed" : "";
      if (graph.output_count(graph.producer(x)) > 1) {
        style += fmt::format("{}taillabel=\"{}\"", taken ? ", " : "", graph.output_ref(x).output);
      }
      text += fmt::format("  n{} -> n{}{};\n", graph.producer(x), v, style.empty() ? "" : fmt::format(" [{}]", style));
    }
  }
  return text + "}\n";
}

}  // namespace cairn::core
