#include "cairn/solvers/decomposition/td_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/line_reader.h"
#include "cairn/solvers/decomposition/internal/union_find.h"

namespace cairn::solvers {

using core::NodeId;

TreeDecomposition parse_td(std::string_view text, const std::string& origin, const core::Graph& graph,
                           const core::Limit& limit) {
  core::LineReader reader(text, origin, limit);
  const auto refuse = [&](std::string_view message) { throw core::InputError(fmt::format("{}: {}", origin, message)); };
  // The line of a bag has at least four bytes, which limits the number of bags. A file that states a larger number is
  // refused before memory is allocated for the bags.
  const auto most_bags = static_cast<std::int64_t>(std::min<std::size_t>(text.size() / 4 + 1, 1 << 30));
  std::int64_t bag_count = -1, largest = 0;
  TreeDecomposition result;
  std::vector<std::uint8_t> given;
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;
  UnionFind joined(0);
  while (reader.next()) {
    const auto& words = reader.words();
    if (words.front() == "s") {
      if (bag_count >= 0) reader.fail("there is more than one s line");
      if (words.size() != 5 || words[1] != "td")
        reader.fail("must be `s td BAGS LARGEST_BAG VERTICES` with the three numbers");
      bag_count = reader.number(2, "the number of bags", 0, most_bags);
      if (const std::int64_t n = reader.number(4, "the number of vertices", 0, core::Limit::kAnyWork);
          n != graph.node_count())
        reader.fail(fmt::format("it is of a graph of {} vertices, but this one has {}", n, graph.node_count()));
      largest = reader.number(3, "the size of the largest bag", 0, graph.node_count());
      result.bags.resize(bag_count);
      result.tree.resize(bag_count);
      given.resize(bag_count, 0);
      joined = UnionFind(static_cast<std::int32_t>(bag_count));
      continue;
    }
    if (bag_count < 0) reader.fail("the line `s td BAGS LARGEST_BAG VERTICES` must come first");
    if (words.front() == "b") {
      if (words.size() < 2) reader.fail("must be `b BAG VERTEX...`");
      const std::int64_t b = reader.number(1, "a bag", 1, bag_count) - 1;
      if (given[b]) reader.fail(fmt::format("bag {} occurs twice", b + 1));
      given[b] = 1;
      auto& bag = result.bags[b];
      for (std::size_t i = 2; i < words.size(); ++i) {
        bag.push_back(static_cast<NodeId>(reader.number(i, "a vertex", 1, graph.node_count()) - 1));
      }
      std::sort(bag.begin(), bag.end());
      bag.erase(std::unique(bag.begin(), bag.end()), bag.end());
      if (static_cast<std::int64_t>(bag.size()) > largest)
        reader.fail(fmt::format("bag {} has {} vertices, but the s line says at most {}", b + 1, bag.size(), largest));
      result.width = std::max(result.width, static_cast<std::int32_t>(bag.size()) - 1);
      continue;
    }
    if (words.size() != 2) reader.fail("must be `b BAG VERTEX...`, or two bags: an edge of the tree");
    const auto b = static_cast<std::int32_t>(reader.number(0, "a bag", 1, bag_count) - 1);
    const auto c = static_cast<std::int32_t>(reader.number(1, "a bag", 1, bag_count) - 1);
    if (joined.find(b) == joined.find(c))
      reader.fail(fmt::format("the edge between bags {} and {} closes a cycle", b + 1, c + 1));
    joined.join(b, c);
    result.tree[b].push_back(c);
    result.tree[c].push_back(b);
  }
  if (bag_count < 0) refuse("has no line `s td BAGS LARGEST_BAG VERTICES`");
  for (std::int64_t b = 0; b < bag_count; ++b) {
    if (!given[b]) refuse(fmt::format("its s line says {} bags, but bag {} is not given", bag_count, b + 1));
  }
  for (std::int32_t b = 1; b < static_cast<std::int32_t>(bag_count); ++b) {
    if (joined.find(b) != joined.find(0))
      refuse(fmt::format("bags 1 and {} are not connected; join the parts to one tree by edges between bags", b + 1));
  }
  if (result.width + 1 != largest)
    refuse(fmt::format("its s line says the largest bag has {} vertices, but it has {}", largest, result.width + 1));
  if (const std::string problem = check_decomposition(graph, result); !problem.empty())
    refuse("is not a tree decomposition of this graph: " + problem);
  return result;
}

std::string td_text(const TreeDecomposition& decomposition, NodeId node_count) {
  const auto& [bags, tree, width] = decomposition;
  std::string text = fmt::format("s td {} {} {}\n", bags.size(), width + 1, node_count);
  auto out = std::back_inserter(text);
  for (std::size_t b = 0; b < bags.size(); ++b) {
    fmt::format_to(out, "b {}", b + 1);
    for (const NodeId v : bags[b]) fmt::format_to(out, " {}", v + 1);
    text += '\n';
  }
  for (std::size_t b = 0; b < bags.size(); ++b) {
    for (const std::int32_t c : tree[b]) {
      if (static_cast<std::size_t>(c) > b) fmt::format_to(out, "{} {}\n", b + 1, c + 1);
    }
  }
  return text;
}

}  // namespace cairn::solvers
