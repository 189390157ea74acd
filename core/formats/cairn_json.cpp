// Reads and writes Cairn's own graph format (docs/graph_format.md). Besides sizes, costs and edges, a file can hold
//   "residents": [{"name", "role", "type", "shape", "init", "scale", "gradient_of", "master_of": index of a resident}]
//   a node's "op": {"kind", "shape", "type", "args": ["n3", "n3.1", "r0"], "writes": index of a resident, attributes by
//   their names}
// In "args", n3 is the first output of node 3, n3.1 is its second output, and r0 is resident 0. Keys at their default
// values are left out. Unknown keys are reported and ignored. Version 2 adds three things:
//   "pin": true
//   "outputs": [{"size", "keep", "inplace", "name", "stays"}], which replaces a node's "size", "keep" and "inplace"
//   references of the form [node, output] in "inputs" and "inplace", which name one output of a node
// A file gets version 2 only if its graph needs one of these things.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/support/op_attrs.h"
#include "cairn/core/support/sum_limit.h"
#include "cairn/core/support/text.h"

namespace cairn::core {
namespace formats {
namespace {

constexpr std::array<std::string_view, 5> kRoles{"weight", "weight_grad", "optimizer", "data", "constant"};
constexpr std::array<std::string_view, 3> kTypes{"f32", "i32", "bf16"};
constexpr std::array<std::string_view, 7> kInits{"zeros",       "ones",     "normal",  "uniform",
                                                 "norm_params", "sinusoid", "constant"};

constexpr auto kFileKeys = sorted_keys(
    {"cost_source", "cost_unit", "format", "name", "nodes", "order", "resident_bytes", "residents", "version"});
constexpr auto kResidentKeys =
    sorted_keys({"gradient_of", "init", "master_of", "name", "role", "scale", "shape", "type"});
constexpr auto kNodeKeys = sorted_keys(
    {"backward", "cost", "forward", "inplace", "inputs", "keep", "name", "op", "outputs", "pin", "scratch", "size"});
constexpr auto kOutputKeys = sorted_keys({"inplace", "keep", "name", "size", "stays"});

const std::vector<std::string_view>& op_keys() {
  static const std::vector<std::string_view> keys = [] {
    std::vector<std::string_view> all{"args", "kind", "shape", "type", "writes"};
    OpAttrs attrs;
    for_each_attr(attrs, [&](const char* key, const auto&) { all.emplace_back(key); });
    std::sort(all.begin(), all.end());
    return all;
  }();
  return keys;
}

// --- reading -------------------------------------------------------------------------------------------------------

template <std::size_t N>
std::size_t read_name(const Json& object, const char* key, const std::array<std::string_view, N>& names,
                      const Place& place) {
  const std::string name = string_or(object, key, place, names[0]);
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return i;
  }
  place.fail(fmt::format("\"{}\" is '{}', but must be one of {}{}", key, name, fmt::join(names, ", "),
                         did_you_mean(name, names)));
}

void read_attr(const Json& op, const char* key, std::int64_t& attr, const Place& place) {
  attr = int_or(op, key, place, attr);
}
void read_attr(const Json& op, const char* key, bool& attr, const Place& place) {
  attr = bool_or(op, key, place, attr);
}
void read_attr(const Json& op, const char* key, double& attr, const Place& place) {
  attr = number_or(op, key, place, attr);
}
void read_attr(const Json& op, const char* key, std::uint64_t& attr, const Place& place) {
  const Json* value = find(op, key);
  if (value == nullptr) return;
  if (!value->is_number_unsigned()) {
    place.fail(fmt::format("\"{}\" must be an integer from 0 to 2^64 - 1, not {}", key, describe(*value)));
  }
  attr = value->get<std::uint64_t>();
}
void read_attr(const Json& op, const char* key, std::vector<std::int64_t>& attr, const Place& place) {
  attr = read_ints(op, key, place);
}

Operand read_operand(const Json& value, std::int64_t node_count, std::int64_t resident_count, const Place& place) {
  const std::string_view text = value.is_string() ? value.get_ref<const std::string&>() : std::string_view();
  const bool is_node = text.starts_with('n');
  std::int32_t index = -1, output = 0;
  const char* end = text.data() + text.size();
  bool good = text.size() >= 2 && (is_node || text[0] == 'r');
  const auto read = [&](const char* from, std::int32_t& number) {
    const auto [stop, error] = std::from_chars(from, end, number);
    good = error == std::errc() && number >= 0;
    return stop;
  };
  const char* stop = good ? read(text.data() + 1, index) : end;
  if (good && is_node && stop != end && *stop == '.') stop = read(stop + 1, output);
  if (!good || stop != end || index >= (is_node ? node_count : resident_count)) {
    place.fail(
        fmt::format("\"args\" of its op must name nodes (\"n0\" to \"n{}\"; \"n0.1\" is the second output) or "
                    "residents (of which there are {}: \"r0\", ...), not {}",
                    node_count - 1, resident_count, describe(value)));
  }
  return is_node ? Operand::node(index, output) : Operand::resident(index);
}

Op read_op(const Json& json, std::int64_t node_count, std::int64_t resident_count, const Place& place) {
  if (!json.is_object()) place.fail(fmt::format("\"op\" must be an object, not {}", describe(json)));
  place.check_keys(json, op_keys(), "op.");
  Op op;
  require(json, "kind", place);
  try {
    op.kind = op_kind_from_string(string_or(json, "kind", place, ""));
  } catch (const InputError& error) {
    if (std::string_view(error.what()).starts_with(place.origin)) throw;
    place.fail(error.what());
  }
  op.shape = read_ints(json, "shape", place);
  op.type = static_cast<ElementType>(read_name(json, "type", kTypes, place));
  if (const Json* args = find_array(json, "args", place)) {
    for (const Json& arg : *args) op.args.push_back(read_operand(arg, node_count, resident_count, place));
  }
  if (const Json* writes = find(json, "writes")) op.writes = to_index(*writes, resident_count, "writes", place);
  for_each_attr(op.attrs, [&](const char* key, auto& attr) { read_attr(json, key, attr, place); });
  return op;
}

Resident read_resident(const Json& json, std::int64_t index, std::int64_t count, const Place& top) {
  Place place{.origin = top.origin, .list = "resident", .index = index, .notices = top.notices};
  if (!json.is_object()) place.fail(fmt::format("must be an object, not {}", describe(json)));
  Resident resident;
  resident.name = string_or(json, "name", place, "");
  place.name = resident.name;
  place.check_keys(json, kResidentKeys);
  resident.role = static_cast<Resident::Role>(read_name(json, "role", kRoles, place));
  resident.type = static_cast<Resident::Type>(read_name(json, "type", kTypes, place));
  resident.init = static_cast<Resident::Init>(read_name(json, "init", kInits, place));
  resident.scale = number_or(json, "scale", place, resident.scale);
  resident.shape = read_ints(json, "shape", place);
  if (const Json* weight = find(json, "gradient_of")) {
    resident.gradient_of = to_index(*weight, count, "gradient_of", place);
  }
  if (const Json* weight = find(json, "master_of")) {
    resident.master_of = to_index(*weight, count, "master_of", place);
  }
  try {
    resident.bytes();
  } catch (const InputError& error) {
    place.fail(error.what());
  }
  return resident;
}

std::int64_t read_residents(const Json& file, GraphBuilder& builder, const Place& top) {
  const Json* list = find_array(file, "residents", top);
  if (list == nullptr) return 0;
  std::int64_t bytes = 0;
  const auto count = static_cast<std::int64_t>(list->size());
  for (std::int64_t i = 0; i < count; ++i) {
    Resident resident = read_resident((*list)[static_cast<std::size_t>(i)], i, count, top);
    if (resident.bytes() > kSumLimit - bytes)
      top.fail(fmt::format("the residents up to {} are more than 2^62 bytes", i));
    bytes += resident.bytes();
    builder.add_resident(std::move(resident));
  }
  return bytes;
}

/// The version of a file, and its numbers of nodes and residents, which limit the indices in the file.
struct Counts {
  std::int64_t version, nodes, residents;
};

/// Reads a reference to an output. In version 1, it can only be the number of a node; version 2 allows [node, output].
OutputRef read_output_ref(const Json& value, const Counts& counts, const char* key, const Place& place) {
  if (counts.version == 1) return to_index(value, counts.nodes, key, place);
  return to_output_ref(value, counts.nodes, key, place);
}

std::vector<Output> read_outputs(const Json& list, const Counts& counts, const Place& place) {
  std::vector<Output> outputs;
  for (const Json& json : list) {
    if (!json.is_object()) place.fail(fmt::format("\"outputs\" must list objects, not {}", describe(json)));
    place.check_keys(json, kOutputKeys, "outputs.");
    Output& output = outputs.emplace_back();
    output.size = require_int(json, "size", place);
    output.keep = bool_or(json, "keep", place, false);
    output.stays = bool_or(json, "stays", place, false);
    output.name = string_or(json, "name", place, "");
    if (const Json* input = find(json, "inplace")) output.inplace = read_output_ref(*input, counts, "inplace", place);
  }
  return outputs;
}

Node read_node(const Json& json, std::int64_t index, const Counts& counts, Costs& costs, const Place& top) {
  Place place{.origin = top.origin, .list = "node", .index = index, .notices = top.notices};
  if (!json.is_object()) place.fail(fmt::format("must be an object, not {}", describe(json)));
  Node node;
  node.name = string_or(json, "name", place, "");
  place.name = node.name;
  place.check_keys(json, kNodeKeys);
  const Json* outputs = find_array(json, "outputs", place);
  if (counts.version == 1 && (outputs != nullptr || find(json, "pin") != nullptr)) {
    place.fail(fmt::format("\"{}\" needs \"version\": 2 at the top", outputs != nullptr ? "outputs" : "pin"));
  }
  if (outputs != nullptr) {
    for (const char* key : {"size", "keep", "inplace"}) {
      if (find(json, key) != nullptr)
        place.fail(fmt::format("has \"outputs\", so \"{}\" belongs into one of them", key));
    }
    node.outputs = read_outputs(*outputs, counts, place);
  } else {
    node.size = require_int(json, "size", place);
  }
  if (const Json* cost = find(json, "cost")) {
    node.cost = costs.read(*cost, "cost", place, static_cast<NodeId>(index));
  }
  node.scratch = int_or(json, "scratch", place, 0);
  node.keep = bool_or(json, "keep", place, false);
  node.backward = bool_or(json, "backward", place, false);
  node.pinned = bool_or(json, "pin", place, false);
  if (const Json* inputs = find_array(json, "inputs", place)) {
    node.inputs.reserve(inputs->size());
    for (const Json& input : *inputs) node.inputs.push_back(read_output_ref(input, counts, "inputs", place));
  }
  if (const Json* input = find(json, "inplace")) node.inplace = read_output_ref(*input, counts, "inplace", place);
  if (const Json* forward = find(json, "forward")) node.forward = to_index(*forward, counts.nodes, "forward", place);
  if (const Json* op = find(json, "op")) node.op = read_op(*op, counts.nodes, counts.residents, place);
  return node;
}

// --- writing -------------------------------------------------------------------------------------------------------

OrderedJson op_to_json(const Op& op) {
  OrderedJson json{{"kind", to_string(op.kind)}, {"shape", op.shape}};
  OrderedJson& args = json["args"] = OrderedJson::array();
  for (const Operand& arg : op.args) {
    const std::string output = arg.output == 0 ? "" : fmt::format(".{}", arg.output);
    args.push_back(fmt::format("{}{}{}", arg.kind == Operand::Kind::node ? 'n' : 'r', arg.index, output));
  }
  if (op.type != ElementType::f32) json["type"] = kTypes[static_cast<std::size_t>(op.type)];
  if (op.writes >= 0) json["writes"] = op.writes;
  OpAttrs standard;
  OrderedJson defaults;
  for_each_attr(standard, [&](const char* key, const auto& attr) { defaults[key] = attr; });
  for_each_attr(op.attrs, [&](const char* key, const auto& attr) {
    const OrderedJson value = attr;
    if (value != defaults[key]) json[key] = value;
  });
  return json;
}

OrderedJson resident_to_json(const Resident& resident) {
  OrderedJson json{{"name", resident.name},
                   {"role", kRoles[static_cast<std::size_t>(resident.role)]},
                   {"type", kTypes[static_cast<std::size_t>(resident.type)]},
                   {"shape", resident.shape},
                   {"init", kInits[static_cast<std::size_t>(resident.init)]},
                   {"scale", resident.scale}};
  if (resident.gradient_of >= 0) json["gradient_of"] = resident.gradient_of;
  if (resident.master_of >= 0) json["master_of"] = resident.master_of;
  return json;
}

OrderedJson node_to_json(const Graph& graph, NodeId v) {
  const Node node = node_of(graph, v);
  OrderedJson json{{"name", node.name}};
  if (node.outputs.empty()) json["size"] = node.size;
  json["cost"] = node.cost;
  if (node.scratch != 0) json["scratch"] = node.scratch;
  if (node.keep) json["keep"] = true;
  json["inputs"] = OrderedJson::array();
  for (const OutputRef input : node.inputs) json["inputs"].push_back(to_json(input));
  if (node.inplace != OutputRef()) json["inplace"] = to_json(node.inplace);
  for (const Output& output : node.outputs) {
    OrderedJson& listed = json["outputs"].emplace_back();
    if (!output.name.empty()) listed["name"] = output.name;
    listed["size"] = output.size;
    if (output.keep) listed["keep"] = true;
    if (output.stays) listed["stays"] = true;
    if (output.inplace != OutputRef()) listed["inplace"] = to_json(output.inplace);
  }
  if (node.pinned) json["pin"] = true;
  if (graph.backward(v)) json["backward"] = true;
  if (graph.forward(v) != kNoNode) json["forward"] = graph.forward(v);
  if (const Op* op = graph.op(v)) json["op"] = op_to_json(*op);
  return json;
}

}  // namespace

Graph graph_from_cairn_json(const Json& file, std::string_view origin, Notices& notices) {
  const Place top{.origin = origin, .notices = &notices};
  const std::int64_t version = check_header(file, "cairn.graph", top, nullptr, {}, 2);
  top.check_keys(file, kFileKeys);
  GraphBuilder builder(string_or(file, "name", top, ""));

  const CostUnit unit{string_or(file, "cost_unit", top, ""), string_or(file, "cost_source", top, "")};
  try {
    builder.set_cost_unit(unit);
  } catch (const InputError& error) {
    top.fail(error.what());
  }

  const std::int64_t listed_bytes = read_residents(file, builder, top);
  const std::int64_t bytes = int_or(file, "resident_bytes", top, listed_bytes);
  if (bytes < listed_bytes || bytes > kSumLimit) {
    top.fail(
        fmt::format("\"resident_bytes\" is {}, but must be at least the {} bytes of the listed residents and at "
                    "most 2^62",
                    bytes, listed_bytes));
  }
  builder.add_resident_bytes(bytes - listed_bytes);

  const Json* residents = find(file, "residents");
  const auto resident_count = residents == nullptr ? 0 : static_cast<std::int64_t>(residents->size());
  const Json& nodes = require_array(file, "nodes", top);
  const auto node_count = static_cast<std::int64_t>(nodes.size());
  const Counts counts{version, node_count, resident_count};
  Costs costs;
  for (std::int64_t v = 0; v < node_count; ++v) {
    builder.add(read_node(nodes[static_cast<std::size_t>(v)], v, counts, costs, top));
  }
  costs.scale(builder, unit, top);
  if (const Json* order = find_array(file, "order", top)) {
    std::vector<NodeId> steps;
    steps.reserve(order->size());
    for (const Json& v : *order) steps.push_back(to_index(v, node_count, "order", top));
    builder.set_order(std::move(steps));
  }
  return build_graph(builder, origin);
}

}  // namespace formats

std::string graph_to_json(const Graph& graph) {
  using namespace formats;
  bool version_2 = !graph.single_output();
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    const ValueId first = graph.value(v);
    version_2 = version_2 || graph.pinned(v) || !graph.output_name(first).empty() || graph.value_stays(first);
  }
  OrderedJson head{{"format", "cairn.graph"},
                   {"version", version_2 ? 2 : 1},
                   {"name", graph.name()},
                   {"resident_bytes", graph.resident_bytes()}};
  if (!graph.cost_unit().name.empty()) head["cost_unit"] = graph.cost_unit().name;
  if (!graph.cost_unit().source.empty()) head["cost_source"] = graph.cost_unit().source;
  if (graph.order_was_given()) {
    head["order"] = std::vector<NodeId>(graph.input_order().begin(), graph.input_order().end());
  }
  std::string text = dump(head);
  text.pop_back();
  if (!graph.residents().empty()) {
    append_list(text, "residents", graph.residents().size(),
                [&](std::size_t i) { return resident_to_json(graph.residents()[i]); });
  }
  append_list(text, "nodes", static_cast<std::size_t>(graph.node_count()),
              [&](std::size_t v) { return node_to_json(graph, static_cast<NodeId>(v)); });
  return text + "}\n";
}

}  // namespace cairn::core
