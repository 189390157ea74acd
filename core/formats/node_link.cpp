// Reads networkx node-link JSON. Computation graphs are published in two dialects of it; the keys of Cairn's own format
// are accepted, too:
//   Checkmate/MOCCASIN   nodes {"id", "name", "cost_ram" bytes, "cost_cpu", "backward"}, edges {"source", "target"}
//   random layered       nodes {"name" (their id), "out_cost" bytes, "duration"}, edges {"0", "1"}
//   others               nodes {"id", "size" bytes, "cost" or "weight"}
// Edges are under "links" or "edges". Ids are integers or strings. Sizes must be integers. If some costs are not
// integers, all costs are multiplied by the same factor (Costs::scale). "graph" may hold "name" and "order" (a list of
// ids). Self-loops are errors; repeated edges count once.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <span>
#include <unordered_map>
#include <utility>

#include "cairn/core/formats/support/json.h"

namespace cairn::core::formats {
namespace {

// Keys under which a node may give its bytes or its cost. If a node has several of the keys of one list, the first of
// them in the list counts.
constexpr std::array<const char*, 3> kSizeKeys{"cost_ram", "out_cost", "size"};
constexpr std::array<const char*, 4> kCostKeys{"cost_cpu", "duration", "cost", "weight"};

/// Returns the text of an id. 1 and "1" are different ids, so a string keeps its quotes.
std::string id_text(const Json& id, const char* key, const Place& place) {
  if (!id.is_number_integer() && !id.is_string()) {
    place.fail(fmt::format("\"{}\" must be a node's id (an integer or a string), not {}", key, describe(id)));
  }
  return id.dump();
}

constexpr auto kNodeLinkKeys = sorted_keys({"directed", "edges", "graph", "links", "multigraph", "nodes"});
constexpr auto kNodeLinkNodeKeys = sorted_keys(
    {"backward", "cost", "cost_cpu", "cost_ram", "duration", "id", "name", "out_cost", "param_cost", "size", "weight"});
constexpr auto kNodeLinkEdgeKeys = sorted_keys({"0", "1", "key", "source", "target"});

class NodeLinkReader {
 public:
  NodeLinkReader(const Json& file, std::string_view origin, Notices& notices)
      : file_(file), top_{.origin = origin, .notices = &notices} {}

  Graph read() {
    top_.check_keys(file_, kNodeLinkKeys);
    if (const Json* directed = find(file_, "directed"); directed != nullptr && *directed == false)
      top_.fail("\"directed\" is false, but a computation graph is directed; write a networkx.DiGraph");
    const Json* header = find(file_, "graph");
    if (header != nullptr && header->is_object()) {
      if (const Json* name = find(*header, "name"); name != nullptr && name->is_string()) {
        builder_.set_name(name->get<std::string>());
      }
    } else {
      header = nullptr;
    }
    read_nodes();
    read_edges();
    if (header != nullptr) read_order(*header);
    return build_graph(builder_, top_.origin);
  }

 private:
  void read_nodes() {
    const Json& nodes = require_array(file_, "nodes", top_);
    for (std::size_t v = 0; v < nodes.size(); ++v) read_node(nodes[v], static_cast<std::int64_t>(v));
    costs_.scale(builder_, {}, top_);
  }

  void read_node(const Json& json, std::int64_t index) {
    Place place{.origin = top_.origin, .list = "node", .index = index, .notices = top_.notices};
    if (!json.is_object()) place.fail(fmt::format("must be an object, not {}", describe(json)));
    const char* id_key = !json.contains("id") && json.contains("name") ? "name" : "id";
    const std::string id = id_text(require(json, id_key, place), id_key, place);
    place.name = id;
    place.check_keys(json, kNodeLinkNodeKeys);

    Node node;
    node.size = require_int(json, key_of(json, kSizeKeys, "bytes", place), place);
    const char* cost_key = key_of(json, kCostKeys, "cost", place);
    node.cost = costs_.read(json[cost_key], cost_key, place, builder_.node_count());
    const Json* name = find(json, "name");
    if (name == nullptr || !name->is_string()) name = &json[id_key];
    node.name = name->is_string() ? name->get<std::string>() : id;
    const Json* backward = find(json, "backward");
    node.backward = backward != nullptr && backward->is_boolean() && backward->get<bool>();
    if (!ids_.emplace(id, builder_.add(std::move(node))).second) {
      place.fail(fmt::format("its \"{}\" is used by two nodes; give each node its own", id_key));
    }
  }

  /// Returns the first of `keys` that the node has. Adds a warning for every other one of `keys` that the node has.
  static const char* key_of(const Json& node, std::span<const char* const> keys, const char* what, const Place& place) {
    const char* first = nullptr;
    for (const char* key : keys) {
      if (!node.contains(key)) continue;
      if (first == nullptr) {
        first = key;
      } else if (place.notices->wanted()) {
        place.notices->add(ReadWarning::Kind::unknown_key, fmt::format("node/{}/{}", first, key), [&] {
          return fmt::format("{}: the key \"{}\" is ignored, as \"{}\" says the {}", place.text(), key, first, what);
        });
      }
    }
    if (first == nullptr)
      place.fail(fmt::format("its {} {} missing; give one of \"{}\"", what,
                             what == std::string_view("bytes") ? "are" : "is", fmt::join(keys, "\", \"")));
    return first;
  }

  void read_edges() {
    if (file_.contains("links") && file_.contains("edges"))
      top_.fail("both \"links\" and \"edges\" are there; keep the one that holds the edges");
    const char* key = file_.contains("links") ? "links" : "edges";
    const Json& edges = require_array(file_, key, top_);
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const Place place{
          .origin = top_.origin, .list = "edge", .index = static_cast<std::int64_t>(e), .notices = top_.notices};
      if (!edges[e].is_object()) place.fail(fmt::format("must be an object, not {}", describe(edges[e])));
      place.check_keys(edges[e], kNodeLinkEdgeKeys);
      const bool numbered = edges[e].contains("0");
      const NodeId from = find_node(edges[e], numbered ? "0" : "source", place);
      builder_.add_input(find_node(edges[e], numbered ? "1" : "target", place), from);
    }
  }

  void read_order(const Json& header) {
    const Json* order = find(header, "order");
    if (order == nullptr || order->is_null()) return;
    if (!order->is_array()) top_.fail(fmt::format("\"graph.order\" must be a list, not {}", describe(*order)));
    if (order->empty()) return;
    std::vector<NodeId> steps;
    for (const Json& id : *order) steps.push_back(known(id, "graph.order", top_));
    builder_.set_order(std::move(steps));
  }

  NodeId find_node(const Json& edge, const char* key, const Place& place) {
    return known(require(edge, key, place), key, place);
  }

  NodeId known(const Json& id, const char* key, const Place& place) {
    const auto node = ids_.find(id_text(id, key, place));
    if (node == ids_.end()) {
      place.fail(
          fmt::format("\"{}\" is {}, but no node has this id; add the node or drop the entry", key, describe(id)));
    }
    return node->second;
  }

  const Json& file_;
  Place top_;
  GraphBuilder builder_;
  Costs costs_;
  std::unordered_map<std::string, NodeId> ids_;
};

}  // namespace

Graph graph_from_node_link(const Json& file, std::string_view origin, Notices& notices) {
  return NodeLinkReader(file, origin, notices).read();
}

}  // namespace cairn::core::formats
