// Tests nodes with several outputs, pinned nodes and control edges in graphs, files and schedules. Property tests of
// the memory model, as in evaluator_property_test.cpp, also use such graphs.

#include <algorithm>
#include <string>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/graph.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/parse_error.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::core::values_test {
namespace {

using tests::contains;
using tests::make_node;
using tests::Random;
using tests::random_graph;
using tests::random_schedule;

std::string error_of(GraphBuilder builder) {
  return tests::error_of([&] { builder.build(); });
}

std::string file_error(const std::string& text) { return tests::parse_error(text, "g.json"); }

std::string file(int version, const std::string& nodes) {
  return R"({"format":"cairn.graph","version":)" + std::to_string(version) + R"(,"nodes":[)" + nodes + "]}";
}

/// Returns a graph of three nodes. Node `norm` has the outputs `x` (100 bytes) and `statistics` (4 bytes). Node `use`
/// reads `x`. Node `backward` reads the output of `use` and `statistics`.
GraphBuilder norm() {
  GraphBuilder builder("norm");
  Node node = make_node("norm");
  node.outputs = {{.size = 100, .name = "x"}, {.size = 4, .name = "statistics"}};
  builder.add(node);
  builder.add(make_node("use", 10, {0}));
  node = make_node("backward", 1, {1});
  node.inputs.emplace_back(0, 1);
  node.keep = true;
  builder.add(node);
  return builder;
}

}  // namespace

TEST_CASE("each output of a node has a life of its own") {
  const Graph graph = norm().build();
  CHECK_FALSE(graph.single_output());
  CHECK(graph.value_count() == 4);
  CHECK(graph.size(0) == 104);
  CHECK(graph.value({0, 1}) == 1);
  CHECK(graph.producer(1) == 0);
  CHECK(graph.output_ref(3) == OutputRef(2));
  CHECK(graph.value_name(1) == "norm[statistics]");
  CHECK(graph.value_name(2) == "use");
  CHECK(std::ranges::equal(graph.predecessors(2), std::vector<NodeId>{1, 0}));
  CHECK(std::ranges::equal(graph.successors(0), std::vector<NodeId>{1, 2}));
  CHECK(std::ranges::equal(graph.readers(0), std::vector<NodeId>{1}));
  // The large output x is freed after its last read. If x lived as long as the statistics, the three steps would need
  // 104, 114 and 115 bytes.
  CHECK(Evaluator(graph).profile(std::vector<NodeId>{0, 1, 2}) ==
        std::vector<std::int64_t>{0, 104, 104, 114, 14, 15, 1});
}

TEST_CASE("one listed output is the same as none listed") {
  tests::for_each_seed(500, [&](Random& random) {
    std::vector<Node> nodes = tests::random_nodes(random);
    const std::string before = tests::build_graph(nodes).fingerprint();
    for (Node& node : nodes) {
      node.outputs = {{node.size, node.keep, node.inplace, ""}};
      node.size = -1;  // is ignored, because `outputs` is given
    }
    const Graph graph = tests::build_graph(nodes);
    REQUIRE(graph.single_output());
    REQUIRE(graph.fingerprint() == before);
    REQUIRE(contains(graph_to_json(graph), "\"version\":1"));
  });
}

TEST_CASE("values, their readers and neighbours are those of the description") {
  tests::for_each_seed(3000, [&](Random& random) {
    const std::vector<Node> nodes = tests::random_nodes(random, {.several_outputs = true, .pinned = true});
    const Graph graph = tests::build_graph(nodes);
    ValueId x = 0;
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      const Node& node = nodes[static_cast<std::size_t>(v)];
      REQUIRE(graph.output_count(v) == static_cast<std::int32_t>(node.outputs.size()));
      REQUIRE(graph.pinned(v) == node.pinned);
      std::int64_t size = 0;
      bool keep = false;
      std::vector<NodeId> successors;
      for (std::int32_t k = 0; k < graph.output_count(v); ++k, ++x) {
        const Output& output = node.outputs[static_cast<std::size_t>(k)];
        REQUIRE(graph.value({v, k}) == x);
        REQUIRE(graph.output_ref(x) == OutputRef(v, k));
        REQUIRE(graph.value_size(x) == output.size);
        REQUIRE(graph.value_kept(x) == output.keep);
        REQUIRE(graph.inplace(x) == graph.value(output.inplace));
        std::vector<NodeId> readers;
        for (NodeId w = 0; w < graph.node_count(); ++w) {
          const auto& inputs = nodes[static_cast<std::size_t>(w)].inputs;
          if (std::find(inputs.begin(), inputs.end(), OutputRef(v, k)) != inputs.end()) readers.push_back(w);
        }
        REQUIRE(std::ranges::equal(graph.readers(x), readers));
        successors.insert(successors.end(), readers.begin(), readers.end());
        size += output.size;
        keep = keep || output.keep;
      }
      std::sort(successors.begin(), successors.end());
      successors.erase(std::unique(successors.begin(), successors.end()), successors.end());
      REQUIRE(std::ranges::equal(graph.successors(v), successors));
      REQUIRE(graph.size(v) == size);
      REQUIRE(graph.keep(v) == keep);
      REQUIRE(graph.required(v) == (keep || successors.empty()));
    }
    REQUIRE(x == graph.value_count());
  });
}

TEST_CASE("graphs with several outputs and pins survive their files and alignment") {
  tests::for_each_seed(2000, [&](Random& random) {
    const Graph graph = random_graph(random, {.several_outputs = true, .pinned = random.chance(50)});
    const Graph read = parse_graph(graph_to_json(graph), "g.json");
    REQUIRE(read.fingerprint() == graph.fingerprint());
    REQUIRE(graph_to_json(read) == graph_to_json(graph));
    REQUIRE(GraphBuilder(graph).build().fingerprint() == graph.fingerprint());
    for (ValueId x = 0; x < graph.value_count(); ++x) REQUIRE(read.output_name(x) == graph.output_name(x));
    const Graph aligned = align_sizes(graph, 8);
    for (ValueId x = 0; x < graph.value_count(); ++x)
      REQUIRE(aligned.value_size(x) == align_up(graph.value_size(x), 8));
    const Schedule schedule = random_schedule(random, graph);
    REQUIRE(evaluate(aligned, schedule).peak >= evaluate(graph, schedule).peak);
    REQUIRE(parse_schedule(schedule_to_json(graph, schedule, "test"), "s.json", graph).schedule == schedule);
  });
}

TEST_CASE("what outputs, pins and control edges are enters the fingerprint") {
  tests::for_each_seed(300, [&](Random& random) {
    const std::vector<Node> nodes = tests::random_nodes(random, {.scratch = false, .in_place = false});
    const std::string fingerprint = tests::build_graph(nodes).fingerprint();
    const auto i = random.place(nodes);
    const auto with = [&](const auto& change) {
      std::vector<Node> changed = nodes;
      change(changed[i]);
      return tests::build_graph(changed).fingerprint();
    };
    REQUIRE(with([](Node& node) { node.pinned = true; }) != fingerprint);
    const auto split = [](std::int64_t more, bool keep) {
      return [=](Node& node) { node.outputs = {{.size = node.size, .keep = node.keep}, {.size = more, .keep = keep}}; };
    };
    REQUIRE(with(split(0, false)) != fingerprint);
    REQUIRE(with(split(0, false)) != with(split(1, false)));
    REQUIRE(with(split(1, true)) != with(split(1, false)));
  });
}

TEST_CASE("a control edge orders, and holds no memory") {
  GraphBuilder builder;
  builder.add(make_node("a", 10));
  builder.add(make_node("b", 5));
  builder.add(make_node("c", 1, {0}));
  builder.add_control_input(1, 0);
  builder.add_control_input(2, 1);
  builder.add_control_input(1, 0);  // the edge exists already, so this call changes nothing
  const Graph graph = builder.build();
  CHECK(graph.output_count(0) == 2);
  CHECK(std::ranges::equal(graph.predecessors(1), std::vector<NodeId>{0}));
  CHECK_FALSE(evaluate(graph, Schedule{.steps = {1, 0, 2}}).valid());
  // No node reads the output of b, so it is freed at once, although c has to run after b.
  CHECK(Evaluator(graph).profile(std::vector<NodeId>{0, 1, 2}) == std::vector<std::int64_t>{0, 10, 10, 15, 10, 11, 0});
  // A node of size 0 still has a single output after another node gets a control edge from it.
  GraphBuilder bare = GraphBuilder();
  bare.add(make_node("writes", 0));
  bare.add(make_node("after", 1));
  bare.add_control_input(1, 0);
  CHECK(bare.build().single_output());
}

TEST_CASE("a pinned node never has to run twice") {
  // An order in which every node runs once provides all inputs. So no valid graph forces a pinned node, which must run
  // only once, to run again.
  tests::for_each_seed(1000, [&](Random& random) {
    const Graph graph = random_graph(random, {.several_outputs = random.chance(50), .pinned = true});
    REQUIRE(reference::valid(graph, baseline_schedule(graph)));
    Schedule repeated = random_schedule(random, graph);
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      if (graph.pinned(v)) repeated.steps.push_back(v);
    }
    REQUIRE(evaluate(graph, run_pinned_once(graph, repeated)).valid());
  });
  const Graph graph = [] {
    GraphBuilder builder;
    builder.add(make_node("dropout", 1));
    builder.node(0).pinned = true;
    return builder.build();
  }();
  const Evaluation twice = evaluate(graph, Schedule{.steps = {0, 0}});
  CHECK(twice.defect == Defect{Defect::Kind::pinned_again, 1, 0, kNoNode});
  CHECK(describe(graph, twice.defect) == "step 1: node 'dropout' runs again, but is pinned to run once");
}

TEST_CASE("wrong outputs are named") {
  GraphBuilder builder = norm();
  builder.add_input(1, {0, 2});
  CHECK(error_of(builder) == "node 'use' reads output 2 of node 'norm', which has only outputs 0 to 1");
  builder = norm();
  builder.add_input(2, {1, 1});
  CHECK(error_of(builder) == "node 'backward' reads output 1 of node 'use', which has only output 0");
  builder = norm();
  builder.node(0).outputs[1].name = "x";
  CHECK(error_of(builder) == "outputs 0 and 1 of node 'norm' have the same name 'x'; give each its own");
  builder = norm();
  builder.node(1).outputs = {{.size = 1, .inplace = 0}, {.size = 1, .inplace = 0}};
  CHECK(error_of(builder) == "outputs 0 and 1 of node 'use' both take over the storage of output 0 of node 'norm'");
  builder = norm();
  builder.node(1).outputs = {{.size = 1}, {.size = 1, .inplace = {0, 1}}};
  CHECK(contains(error_of(builder),
                 "output 1 of node 'use' takes over the storage of node 0, which is not one of its inputs"));
  builder = norm();
  builder.node(0).outputs[1].size = -4;
  CHECK(error_of(builder) == "node 'norm' has the negative size -4");
  builder = norm();
  builder.node(2).scratch = -2;  // the output of node 2 has only 1 byte
  CHECK(contains(error_of(builder), "may take over at most 1 bytes"));

  const std::string two = R"({"name":"a","outputs":[{"size":1},{"size":2}]},{"name":"b","size":3,"inputs":[[0,)";
  CHECK(file_error(file(2, two + "1]]}")).empty());
  CHECK(contains(file_error(file(2, two + "2]]}")), "g.json: node 'b' reads output 2 of node 'a'"));
  CHECK(contains(file_error(file(2, two + "-1]]}")), "node 1 ('b')"));
  CHECK(contains(file_error(file(2, two + "1,0]]}")), "\"inputs\" must be a node or [node, output]"));
  CHECK(contains(file_error(file(1, two + "1]]}")), "node 0 ('a'): \"outputs\" needs \"version\": 2"));
  CHECK(contains(file_error(file(1, R"({"name":"a","size":1,"pin":true})")), "\"pin\" needs \"version\": 2"));
  CHECK(contains(file_error(file(2, R"({"name":"a","size":1,"outputs":[{"size":1}]})")),
                 "has \"outputs\", so \"size\" belongs into one of them"));
  CHECK(contains(file_error(file(2, R"({"name":"a","outputs":[3]})")), "\"outputs\" must list objects"));
  CHECK(contains(file_error(file(2, R"({"name":"a","outputs":[{"size":1,"name":"x"},{"size":1,"name":"x"}]})")),
                 "have the same name 'x'"));
  CHECK(contains(file_error(file(3, "")), "has version 3, but only versions 1 to 2 can be read"));
  // A node with an empty list of outputs is read as a node of size 0. Readers of it need no bytes, but must run after
  // it.
  const Graph none = parse_graph(file(2, R"({"name":"a","outputs":[]},{"name":"b","size":1,"inputs":[0]})"), "g.json");
  CHECK(none.size(0) == 0);
  CHECK(none.single_output());
}

TEST_CASE("the least peak and the cheapest schedule by sets of values") {
  // The reference's search must agree with a full enumeration of all schedules of at most six steps.
  tests::for_each_seed(300, [&](Random& random) {
    const Graph graph = random_graph(random, {.min_nodes = 1, .max_nodes = 4, .several_outputs = true, .pinned = true});
    const std::int64_t budget =
        random.between(reference::peak_lower_bound(graph), reference::peak(graph, baseline_schedule(graph)) + 1);
    const auto found = reference::cheapest_within(graph, budget);
    if (found) {
      REQUIRE(reference::valid(graph, *found));
      REQUIRE(reference::peak(graph, *found) <= budget);
    }
    constexpr std::int64_t kMostSteps = 6;
    std::vector<Schedule> all{{}};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Schedule schedule = all[i];
      if (reference::valid(graph, schedule) && reference::peak(graph, schedule) <= budget) {
        REQUIRE(found);
        REQUIRE(reference::cost(graph, *found) <= reference::cost(graph, schedule));
      }
      if (schedule.length() == kMostSteps) continue;
      for (NodeId v = 0; v < graph.node_count(); ++v) {
        all.push_back(schedule);
        all.back().steps.push_back(v);
      }
    }
  });
}

}  // namespace cairn::core::values_test
