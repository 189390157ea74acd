#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/support/line_reader.h"

namespace cairn::core {

std::string graph_to_gr(const Graph& graph) {
  std::vector<std::pair<NodeId, NodeId>> edges;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId u : graph.predecessors(v)) edges.emplace_back(std::min(u, v), std::max(u, v));
  }
  std::sort(edges.begin(), edges.end());
  std::string text = fmt::format("p tw {} {}\n", graph.node_count(), edges.size());
  for (const auto& [u, v] : edges) fmt::format_to(std::back_inserter(text), "{} {}\n", u + 1, v + 1);
  return text;
}

namespace formats {

Graph graph_from_gr(std::string_view text, std::string_view origin, const ReadOptions& options) {
  // A file need not list vertices without edges, so even a short file can declare very many of them. The number of such
  // vertices is limited, because each takes memory.
  constexpr std::int64_t kMostVertices = std::int64_t{1} << 28, kMostIsolated = 1'000'000;
  LineReader reader(text, origin, options.limit);
  std::int64_t vertices = -1, edge_count = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> edges;
  while (reader.next()) {
    const auto& words = reader.words();
    if (words.front().starts_with('p')) {
      if (vertices >= 0) reader.fail("the p line occurs twice");
      if (words.size() != 4 || words[0] != "p" || words[1] != "tw")
        reader.fail("must be `p tw VERTICES EDGES` with the two numbers");
      vertices = reader.number(2, "the number of vertices", 0, kMostVertices);
      edge_count = reader.number(3, "the number of edges", 0, Limit::kAnyWork);
      continue;
    }
    if (vertices < 0) reader.fail("an edge comes before the line `p tw VERTICES EDGES`");
    if (words.size() != 2) reader.fail(fmt::format("an edge is two vertices, not {} words", words.size()));
    const std::int64_t u = reader.number(0, "a vertex", 1, vertices), v = reader.number(1, "a vertex", 1, vertices);
    if (u == v) reader.fail(fmt::format("the edge joins vertex {} to itself", u));
    edges.emplace_back(std::min(u, v) - 1, std::max(u, v) - 1);
  }
  if (vertices < 0) throw InputError(fmt::format("{}: has no line `p tw VERTICES EDGES`", origin));
  if (const auto found = static_cast<std::int64_t>(edges.size()); found != edge_count)
    throw InputError(fmt::format("{}: its p line says {} edges, but there are {}", origin, edge_count, found));
  if (vertices > 2 * edge_count + kMostIsolated)
    throw InputError(fmt::format("{}: more than {} of its {} vertices have no edge; leave them out", origin,
                                 kMostIsolated, vertices));
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  GraphBuilder builder;
  for (std::int64_t v = 0; v < vertices; ++v) builder.add({.name = fmt::format("v{}", v + 1), .size = 1, .cost = 1});
  for (const auto& [u, v] : edges) builder.add_input(static_cast<NodeId>(v), static_cast<NodeId>(u));
  return build_graph(builder, origin);
}

}  // namespace formats
}  // namespace cairn::core
