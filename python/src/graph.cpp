#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/text.h"
#include "cairn/pipeline/request.h"
#include "cairn/python/src/bindings.h"
#include "cairn/python/src/call.h"

namespace cairn::python {
namespace {

using GraphHandle = nb::pointer_and_handle<core::Graph>;

nb::object python_type(const char* name) { return nb::module_::import_("cairn._types").attr(name); }

/// Returns how Python refers to an output of a node: by the node id, or by (node id, output index) if the node has
/// several outputs.
nb::object python_ref(const core::Graph& graph, core::ValueId value) {
  if (value == core::kNoValue) return nb::none();
  const core::OutputRef ref = graph.output_ref(value);
  if (graph.output_count(ref.node) == 1) return nb::int_(ref.node);
  return nb::make_tuple(ref.node, ref.output);
}

nb::object inputs_of(const core::Graph& graph, core::NodeId v) {
  nb::list inputs;
  for (const core::ValueId value : graph.inputs(v)) inputs.append(python_ref(graph, value));
  return nb::tuple(inputs);
}

nb::object outputs_of(const core::Graph& graph, core::NodeId v) {
  const nb::object output = python_type("Output");
  nb::list outputs;
  for (const core::ValueId value : graph.outputs(v)) {
    outputs.append(output(graph.value_size(value), graph.value_kept(value), python_ref(graph, graph.inplace(value)),
                          graph.output_name(value), graph.value_stays(value)));
  }
  return nb::tuple(outputs);
}

nb::object node_named(const core::Graph& graph, std::int64_t asked) {
  require_node(graph, asked);
  const auto v = static_cast<core::NodeId>(asked);
  const core::Op* const op = graph.op(v);
  return python_type("Node")(v, graph.name(v), graph.size(v), graph.cost(v), graph.scratch(v), graph.keep(v),
                             graph.backward(v), graph.pinned(v),
                             graph.forward(v) == core::kNoNode ? nb::none() : nb::object(nb::int_(graph.forward(v))),
                             inputs_of(graph, v), outputs_of(graph, v),
                             op == nullptr ? nb::none() : nb::object(nb::cast(std::string(to_string(op->kind)))));
}

core::Output output_from(nb::handle given) {
  core::Output output;
  if (!nb::hasattr(given, "size")) {
    output.size = integer(given, "an output");
    return output;
  }
  output.size = integer(given.attr("size"), "size of an output");
  output.keep = nb::cast<bool>(given.attr("keep"));
  output.inplace = output_ref(given.attr("inplace"), "inplace of an output");
  output.name = nb::cast<std::string>(given.attr("name"));
  output.stays = nb::cast<bool>(given.attr("stays"));
  return output;
}

core::NodeId add(core::GraphBuilder& builder, std::string name, nb::handle size, nb::handle cost, nb::handle scratch,
                 bool keep, bool backward, bool pinned, nb::handle forward, nb::handle inplace, nb::handle inputs,
                 nb::handle outputs) {
  core::Node node;
  node.name = std::move(name);
  node.size = integer(size, "size");
  node.cost = integer(cost, "cost");
  node.scratch = integer(scratch, "scratch");
  node.keep = keep;
  node.backward = backward;
  node.pinned = pinned;
  if (!forward.is_none()) node.forward = output_ref(forward, "forward").node;
  node.inplace = output_ref(inplace, "inplace");
  for (const nb::handle input : inputs) node.inputs.push_back(output_ref(input, "an input"));
  if (!outputs.is_none()) {
    if (node.size != 0 || keep || !inplace.is_none())
      throw core::InputError(
          fmt::format("node '{}' has outputs: give size, keep and inplace with each of them", node.name));
    for (const nb::handle output : outputs) node.outputs.push_back(output_from(output));
  }
  return builder.add(std::move(node));
}

core::Resident::Role role_of(std::string_view kind) {
  using Role = core::Resident::Role;
  constexpr std::pair<std::string_view, Role> kRoles[] = {
      {"weight", Role::weight}, {"weight_grad", Role::weight_grad}, {"optimizer", Role::optimizer},
      {"data", Role::data},     {"constant", Role::constant},       {"other", Role::constant}};
  for (const auto& [name, role] : kRoles) {
    if (name == kind) return role;
  }
  throw core::InputError(
      fmt::format("a resident's kind is weight, weight_grad, optimizer, data, constant or other, not '{}'", kind));
}

/// Builds a graph from arrays. `inputs` contains the inputs of all nodes, one node after the other, and those of node v
/// begin at index input_begin[v]. Each other array, such as `sizes`, has one entry for each node.
core::Graph from_arrays(std::string name, nb::handle sizes, nb::handle costs, nb::handle input_begin, nb::handle inputs,
                        nb::handle scratch, nb::handle keep, nb::handle backward, nb::handle pinned, nb::handle names,
                        nb::handle order, std::int64_t resident_bytes, std::string cost_unit, std::string cost_source) {
  const std::vector<std::int64_t> size = integers(sizes, "sizes");
  const std::size_t n = size.size();
  const auto column = [&](nb::handle given, const char* what) {
    std::vector<std::int64_t> values = given.is_none() ? std::vector<std::int64_t>(n) : integers(given, what);
    if (values.size() != n) throw core::InputError(fmt::format("{} has {} entries, sizes {}", what, values.size(), n));
    return values;
  };
  const auto cost = column(costs, "costs"), work = column(scratch, "scratch"), kept = column(keep, "keep"),
             back = column(backward, "backward"), pin = column(pinned, "pinned");
  const std::vector<std::int64_t> begin = integers(input_begin, "input_begin");
  const std::vector<core::NodeId> input = node_ids(inputs, "inputs");
  if (begin.size() != n + 1 || begin.front() != 0 || begin.back() != static_cast<std::int64_t>(input.size()))
    throw core::InputError(fmt::format(
        "input_begin must have {} entries, from 0 to the {} inputs: those of node v are input_begin[v] and on", n + 1,
        input.size()));
  if (!std::is_sorted(begin.begin(), begin.end())) throw core::InputError("input_begin must not fall");
  core::GraphBuilder builder(std::move(name));
  for (std::size_t v = 0; v < n; ++v) {
    core::Node node{.size = size[v],
                    .cost = cost[v],
                    .scratch = work[v],
                    .keep = kept[v] != 0,
                    .backward = back[v] != 0,
                    .pinned = pin[v] != 0};
    if (!names.is_none()) node.name = nb::cast<std::string>(names[v]);
    for (std::int64_t i = begin[v]; i < begin[v + 1]; ++i) node.inputs.emplace_back(input[static_cast<std::size_t>(i)]);
    builder.add(std::move(node));
  }
  if (!order.is_none()) builder.set_order(node_ids(order, "order"));
  if (resident_bytes != 0) builder.add_resident_bytes(resident_bytes);
  if (!cost_unit.empty() || !cost_source.empty()) builder.set_cost_unit({std::move(cost_unit), std::move(cost_source)});
  return builder.build();
}

/// Reads a graph without the GIL. Turns the reader's warnings into Python warnings.
core::Graph read(const std::function<core::Graph(const core::ReadOptions&)>& load) {
  Call call;
  std::vector<std::string> warnings;
  core::Graph graph;
  call.run([&] {
    graph = load({.limit = {.stop = call.stop()}, .warn = [&](const core::ReadWarning& warning) {
                    warnings.push_back(core::printable(warning.text));
                  }});
  });
  call.raise_pending();
  for (const std::string& warning : warnings) {
    if (PyErr_WarnEx(PyExc_UserWarning, warning.c_str(), 1) != 0) throw nb::python_error();
  }
  return graph;
}

void write(const core::Graph& graph, nb::handle given) {
  const std::string path = path_of(given);
  core::write_file(path, path.ends_with(".dot")  ? core::graph_to_dot(graph)
                         : path.ends_with(".gr") ? core::graph_to_gr(graph)
                                                 : core::graph_to_json(graph));
}

core::NodeId added(const core::GraphBuilder& builder, std::int64_t v) {
  if (v < 0 || v >= builder.node_count())
    throw core::InputError(fmt::format("node {} was not added; there are {}", v, builder.node_count()));
  return static_cast<core::NodeId>(v);
}

void bind_builder(nb::module_& module) {
  nb::class_<core::GraphBuilder>(
      module, "GraphBuilder",
      "Collects nodes and builds a Graph, which it validates. An input of a node may be added after the node.")
      .def(nb::init<std::string>(), "name"_a = "")
      .def("add", &add,
           nb::sig("def add(self, name: str = '', size: int = 0, cost: int = 0, scratch: int = 0, keep: bool = False, "
                   "backward: bool = False, pinned: bool = False, forward: int | None = None, "
                   "inplace: int | tuple[int, int] | None = None, inputs: Iterable[int | tuple[int, int]] = (), "
                   "outputs: Iterable[cairn._types.Output | int] | None = None) -> int"),
           "name"_a = "", "size"_a = 0, "cost"_a = 0, "scratch"_a = 0, "keep"_a = false, "backward"_a = false,
           "pinned"_a = false, "forward"_a = nb::none(), "inplace"_a = nb::none(), "inputs"_a = nb::tuple(),
           "outputs"_a = nb::none(),
           "Adds a node and returns its id. An input is a node id, or (node id, output index). If a node has several "
           "outputs\n"
           "(or none: an empty list), give `outputs` instead of size, keep and inplace. Sizes are in bytes; cost >= 0.")
      .def(
          "add_input",
          [](core::GraphBuilder& builder, std::int64_t node, nb::handle input) {
            const core::NodeId v = added(builder, node);
            builder.add_input(v, output_ref(input, "an input"));
          },
          "node"_a, "input"_a, nb::sig("def add_input(self, node: int, input: int | tuple[int, int]) -> None"),
          "Adds an input to `node`, which must have been added.")
      .def(
          "add_control_input",
          [](core::GraphBuilder& builder, std::int64_t node, std::int64_t predecessor) {
            const core::NodeId v = added(builder, node);
            builder.add_control_input(v, added(builder, predecessor));
          },
          "node"_a, "predecessor"_a,
          "Makes `node` run after `predecessor` although it reads no result of it. Both must have been added.")
      .def(
          "add_resident",
          [](core::GraphBuilder& builder, std::string name, std::int64_t bytes, std::string_view kind) {
            if (bytes < 0)
              throw core::InputError(fmt::format("resident '{}' has {} bytes; give 0 or more", name, bytes));
            // A resident tensor has elements of 4 bytes. The remaining 1 to 3 bytes are counted without a tensor.
            const bool even = bytes % 4 == 0;
            builder.add_resident({.name = std::move(name), .shape = {bytes / 4}, .role = role_of(kind)});
            if (!even) builder.add_resident_bytes(bytes % 4);
          },
          "name"_a, "bytes"_a, "kind"_a = "other",
          "Adds memory that is in use all the time and is not part of the budget. Kinds: weight, weight_grad, "
          "optimizer,\n"
          "data, constant, other.")
      .def("add_resident_bytes", &core::GraphBuilder::add_resident_bytes, "bytes"_a)
      .def(
          "set_order",
          [](core::GraphBuilder& builder, nb::handle order) { builder.set_order(node_ids(order, "order")); }, "order"_a,
          "Sets the order of the baseline, which runs every node once.")
      .def(
          "set_cost_unit",
          [](core::GraphBuilder& builder, std::string unit, std::string source) {
            builder.set_cost_unit({std::move(unit), std::move(source)});
          },
          "unit"_a, "source"_a = "",
          "Sets the unit of costs, such as \"ns\", and says in words where they come from (`source`).")
      .def("__len__", &core::GraphBuilder::node_count)
      .def(
          "build",
          [](core::GraphBuilder& builder) {
            const nb::gil_scoped_release release;
            return builder.build();
          },
          "Builds the graph and validates it. The builder is empty afterwards. If the graph is invalid, raises an\n"
          "InputError that names the nodes.");
}

using GraphClass = nb::class_<core::Graph>;

void bind_facts(GraphClass& graph) {
  graph.def_prop_ro("name", [](const core::Graph& g) { return g.name(); })
      .def_prop_ro("node_count", &core::Graph::node_count)
      .def_prop_ro("value_count", &core::Graph::value_count, "Number of values. A value is one output of one node.")
      .def_prop_ro("edge_count", &core::Graph::edge_count)
      .def_prop_ro("fingerprint", &core::Graph::fingerprint,
                   "A hash of everything that validity and memory of schedules depend on (not of names and costs): 16 "
                   "hex digits.")
      .def_prop_ro("resident_bytes", &core::Graph::resident_bytes)
      .def_prop_ro(
          "residents",
          [](const core::Graph& g) {
            const nb::object resident = python_type("Resident");
            nb::list list;
            for (const core::Resident& r : g.residents())
              list.append(resident(r.name, r.bytes(), std::string(kind_of(r.role))));
            return list;
          },
          nb::sig("def residents(self) -> list[cairn._types.Resident]"))
      .def_prop_ro("cost_unit", [](const core::Graph& g) { return g.cost_unit().name; })
      .def_prop_ro("cost_source", [](const core::Graph& g) { return g.cost_unit().source; })
      .def_prop_ro("single_output", &core::Graph::single_output)
      .def("__len__", &core::Graph::node_count);
  graph
      .def_prop_ro(
          "baseline",
          [](const core::Graph& g) { return evaluation_of(g, core::evaluate(g, core::baseline_schedule(g))); },
          "The Evaluation of the input order.")
      .def_prop_ro("peak_lower_bound", &core::peak_lower_bound, "No schedule has a peak below this number of bytes.");
}

void bind_views(GraphClass& graph) {
  // The returned arrays are views of the graph's memory: they copy nothing, and keep the graph alive.
  const auto array = [](auto member, auto count, int more = 0) {
    return [member, count, more](GraphHandle g) {
      return view(g.p->view().*member, static_cast<std::size_t>((g.p->*count)() + more), g.h);
    };
  };
  const auto flags = [](auto member, auto count) {
    return [member, count](GraphHandle g) {
      const auto* const values = reinterpret_cast<const bool*>(g.p->view().*member);
      return view(values, static_cast<std::size_t>((g.p->*count)()), g.h);
    };
  };
  using V = core::GraphView;
  constexpr auto kNodes = &core::Graph::node_count;
  constexpr auto kValues = &core::Graph::value_count;
  graph.def_prop_ro("sizes", array(&V::node_size, kNodes), "Of each node: bytes of its outputs together.")
      .def_prop_ro("costs", array(&V::cost, kNodes))
      .def_prop_ro("scratch", array(&V::scratch, kNodes))
      .def_prop_ro("pinned", flags(&V::pinned, kNodes))
      .def_prop_ro("value_sizes", array(&V::size, kValues))
      .def_prop_ro("value_kept", flags(&V::keep, kValues))
      .def_prop_ro("producers", array(&V::producer, kValues), "Of each value: its node.")
      .def_prop_ro("value_begin", array(&V::value_begin, kNodes, 1),
                   "The outputs of node v are values value_begin[v] to value_begin[v + 1].")
      .def_prop_ro("input_begin", array(&V::input_begin, kNodes, 1),
                   "The inputs of node v are input_values[input_begin[v]:input_begin[v + 1]].")
      .def_prop_ro("input_values", array(&V::inputs, &core::Graph::edge_count))
      .def_prop_ro(
          "input_order", [](GraphHandle g) { return view(g.p->input_order(), g.h); }, "The baseline: every node once.")
      .def_prop_ro("order_was_given", &core::Graph::order_was_given);
}

void bind_nodes(GraphClass& graph) {
  const auto at = [](const auto& get) {
    return [get](const core::Graph& g, std::int64_t v) {
      require_node(g, v);
      return get(g, static_cast<core::NodeId>(v));
    };
  };
  const auto neighbours = [](auto of) {
    return [of](GraphHandle g, std::int64_t v) {
      require_node(*g.p, v);
      return view((g.p->*of)(static_cast<core::NodeId>(v)), g.h);
    };
  };
  graph
      .def("node", &node_named, "node"_a, nb::sig("def node(self, node: int) -> cairn._types.Node"),
           "Returns everything that is known about a node.")
      .def("node_name", at([](const core::Graph& g, core::NodeId v) { return g.name(v); }), "node"_a)
      .def("node_id", &cairn::python::node_id, "name"_a, "O(nodes).")
      .def("inputs", at(&inputs_of), "node"_a,
           nb::sig("def inputs(self, node: int) -> tuple[int | tuple[int, int], ...]"),
           "Returns what the node reads: node ids, or (node id, output index) for nodes with several outputs.")
      .def("outputs", at(&outputs_of), "node"_a,
           nb::sig("def outputs(self, node: int) -> tuple[cairn._types.Output, ...]"))
      .def("predecessors", neighbours(&core::Graph::predecessors), "node"_a)
      .def("successors", neighbours(&core::Graph::successors), "node"_a);
}

void bind_texts(GraphClass& graph) {
  graph.def("to_json", &core::graph_to_json)
      .def(
          "write", &write, "path"_a, nb::sig("def write(self, path: str | os.PathLike[str]) -> None"),
          "Writes the graph to a file: as Graphviz if the name ends in .dot, as PACE for .gr, otherwise as Cairn JSON.")
      .def("__repr__",
           [](const core::Graph& g) {
             return fmt::format("<cairn.Graph '{}': {} nodes, {} edges, baseline peak {}>", g.name(), g.node_count(),
                                g.edge_count(), core::format_bytes(core::evaluate(g, core::baseline_schedule(g)).peak));
           })
      .def("_repr_html_", in_module("cairn._picture", "graph_html"), nb::sig("def _repr_html_(self) -> str"))
      .def("__getstate__", &core::graph_to_json)
      .def("__setstate__",
           [](core::Graph& g, const std::string& state) { new (&g) core::Graph(core::parse_graph(state, "a pickle")); })
      .def("to_dot", &core::graph_to_dot)
      .def("to_gr", &core::graph_to_gr,
           "Returns the graph without edge directions as PACE .gr. Node i is vertex i + 1.");
}

/// Reads a sequence of numbers, one for each node of the graph. `what`: the name of the argument in messages.
std::vector<std::int64_t> one_each(const core::Graph& graph, nb::handle given, const char* what) {
  std::vector<std::int64_t> numbers = integers(given, what);
  if (numbers.size() != static_cast<std::size_t>(graph.node_count()))
    throw core::InputError(
        fmt::format("{} has {} entries, the graph {} nodes", what, numbers.size(), graph.node_count()));
  return numbers;
}

/// Gives the outputs of node v that take over the storage of a kept value storage of their own, and raises negative
/// scratch of v to what remains legal: it counts bytes of inputs that only v reads and that are not kept.
void give_own_storage(core::GraphBuilder& builder, const core::Graph& graph, core::NodeId v) {
  const auto is_kept = [&](core::OutputRef ref) {
    const core::Node& node = builder.node(ref.node);
    return node.outputs.empty() ? node.keep : node.outputs[static_cast<std::size_t>(ref.output)].keep;
  };
  core::Node& node = builder.node(v);
  const auto drop = [&](core::OutputRef& inplace) {
    if (inplace.node != core::kNoNode && is_kept(inplace)) inplace = core::OutputRef();
  };
  drop(node.inplace);
  for (core::Output& output : node.outputs) drop(output.inplace);
  std::int64_t taken_over = 0;
  for (const core::ValueId x : graph.inputs(v)) {
    if (graph.readers(x).size() == 1 && !is_kept(graph.output_ref(x))) taken_over += graph.value_size(x);
  }
  node.scratch = std::max(node.scratch, -taken_over);
}

/// Returns a copy of the graph in which the given nodes keep all their outputs to the end of a step. `nodes` is a
/// sequence of ids and names.
core::Graph with_kept(const core::Graph& graph, nb::handle nodes) {
  core::GraphBuilder builder(graph);
  std::vector<core::NodeId> kept;
  for (const nb::handle given : nodes) {
    const std::int64_t id =
        nb::isinstance<nb::str>(given) ? node_id(graph, nb::cast<std::string>(given)) : integer(given, "a node");
    require_node(graph, id);
    core::Node& node = builder.node(static_cast<core::NodeId>(id));
    node.keep = true;
    for (core::Output& output : node.outputs) output.keep = true;
    kept.push_back(static_cast<core::NodeId>(id));
  }
  for (const core::NodeId v : kept) {
    for (const core::NodeId reader : graph.successors(v)) give_own_storage(builder, graph, reader);
  }
  return builder.build();
}

void bind_changes(GraphClass& graph) {
  graph.def_static(
      "from_arrays", &from_arrays,
      nb::sig("def from_arrays(name: str = '', *, sizes: Sequence[int], costs: Sequence[int] | None = None, "
              "input_begin: Sequence[int], inputs: Sequence[int], scratch: Sequence[int] | None = None, "
              "keep: Sequence[bool] | None = None, backward: Sequence[bool] | None = None, pinned: Sequence[bool] "
              "| None = None, "
              "names: Sequence[str] | None = None, order: Sequence[int] | None = None, resident_bytes: int = 0, "
              "cost_unit: str = '', cost_source: str = '') -> Graph"),
      "name"_a = "", nb::kw_only(), "sizes"_a, "costs"_a = nb::none(), "input_begin"_a, "inputs"_a,
      "scratch"_a = nb::none(), "keep"_a = nb::none(), "backward"_a = nb::none(), "pinned"_a = nb::none(),
      "names"_a = nb::none(), "order"_a = nb::none(), "resident_bytes"_a = 0, "cost_unit"_a = "", "cost_source"_a = "",
      "Makes a graph from arrays, each with one property of all nodes. Every node has one output. Node v reads the\n"
      "nodes inputs[input_begin[v]:input_begin[v + 1]]. Numpy arrays are read without an intermediate copy.");
  graph
      .def(
          "with_costs",
          [](const core::Graph& g, nb::handle costs, std::optional<std::string> unit, std::string source) {
            return g.with_costs(one_each(g, costs, "costs"),
                                unit ? std::optional(core::CostUnit{*unit, std::move(source)}) : std::nullopt);
          },
          "costs"_a, "unit"_a = nb::none(), "source"_a = "",
          "Returns the same graph with other costs. The two graphs share everything else.")
      .def(
          "with_scratch",
          [](const core::Graph& g, nb::handle scratch) { return g.with_scratch(one_each(g, scratch, "scratch")); },
          "scratch"_a, "The same graph with other scratch; everything else is shared.")
      .def("with_kept", &with_kept, "nodes"_a, nb::sig("def with_kept(self, nodes: Iterable[int | str]) -> Graph"),
           "The same graph with the outputs of these nodes (ids or names) kept, so that they can be read after a step.")
      .def(
          "with_host_memory",
          [](const core::Graph& g, const std::string& link, const std::string& budget) {
            return g.with_host_memory(pipeline::host_memory_of({.link = link, .host_budget = budget}));
          },
          "link"_a, "host_budget"_a = "",
          "The same graph with a link to the host's memory, as 'pcie4' or '25GB/s,10us'. The cost of a schedule with\n"
          "transfers is then its makespan.")
      .def("forward_part", &core::forward_part, "What remains without the backward nodes.");
}

void bind_files(nb::module_& module) {
  module.def(
      "read_graph",
      [](const std::string& path) {
        return read([&](const core::ReadOptions& options) { return core::load_graph(path, options); });
      },
      "path"_a);
  module.def(
      "parse_graph",
      [](std::string_view text, const std::string& origin) {
        return read([&](const core::ReadOptions& options) { return core::parse_graph(text, origin, options); });
      },
      "text"_a, "origin"_a = "text");
  module.def(
      "write_file", [](const std::string& path, std::string_view text) { core::write_file(path, text); }, "path"_a,
      "text"_a);
}

}  // namespace

std::string_view kind_of(core::Resident::Role role) {
  using Role = core::Resident::Role;
  switch (role) {
    case Role::weight:
      return "weight";
    case Role::weight_grad:
      return "weight_grad";
    case Role::optimizer:
      return "optimizer";
    case Role::data:
      return "data";
    case Role::constant:
      break;
  }
  return "constant";
}

nb::tuple tuple_of(const core::Shape& shape) {
  nb::list extents;
  for (const std::int64_t extent : shape) extents.append(extent);
  return nb::tuple(extents);
}

core::NodeId node_id(const core::Graph& graph, const std::string& name) {
  std::vector<std::string_view> names;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.name(v) == name) return v;
    names.push_back(graph.name(v));
  }
  throw core::InputError(fmt::format("the graph has no node '{}'{}", name, core::did_you_mean(name, names)));
}

void bind_graph(nb::module_& module) {
  bind_builder(module);
  GraphClass graph(
      module, "Graph",
      "A valid directed acyclic computation graph, which cannot be changed. Sizes are in bytes, costs in `cost_unit`.");
  bind_facts(graph);
  bind_views(graph);
  bind_nodes(graph);
  bind_texts(graph);
  bind_changes(graph);
  bind_files(module);
}

}  // namespace cairn::python
