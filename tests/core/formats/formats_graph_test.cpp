#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/folder.h"
#include "cairn/tests/support/parse_error.h"

namespace cairn::formats_graph_test {

using namespace cairn::core;

namespace {

void check_error(const std::string& text, const std::vector<std::string>& parts) {
  const std::string message = cairn::tests::parse_error(text, "g.json");
  INFO(text);
  CHECK(message.starts_with("g.json: "));
  cairn::tests::check_line(message, parts);
}

std::string cairn_file(const std::string& nodes, const std::string& more = "") {
  return fmt::format(R"({{"format":"cairn.graph","version":1,"name":"t",{}"nodes":[{}]}})", more, nodes);
}

std::string node_link_file(const std::string& nodes, const std::string& edges, const std::string& graph = "") {
  return fmt::format(R"({{"directed":true,"graph":{{{}}},"nodes":[{}],"links":[{}]}})", graph, nodes, edges);
}

/// Returns a graph that uses every feature of the format: ops with attributes of every type, residents, a given order,
/// in-place nodes, and backward nodes.
Graph rich_graph() {
  GraphBuilder builder("rich \"graph\" \u00e9");
  const auto x = builder.add_resident(
      {.name = "x", .shape = {4, 3}, .role = Resident::Role::data, .init = Resident::Init::normal, .scale = 0.1});
  const auto w =
      builder.add_resident({.name = "w", .shape = {3, 2}, .init = Resident::Init::uniform, .scale = 1.0 / 3});
  const auto dw =
      builder.add_resident({.name = "dw", .shape = {3, 2}, .role = Resident::Role::weight_grad, .gradient_of = w});
  builder.add_resident_bytes(1000);

  Op matmul{.kind = OpKind::matmul, .shape = {4, 2}, .args = {Operand::resident(x), Operand::resident(w)}};
  matmul.attrs.m = 4;
  matmul.attrs.n = 2;
  matmul.attrs.k = 3;
  matmul.attrs.alpha = 0.1;
  Op relu{.kind = OpKind::relu, .shape = {4, 2}, .args = {Operand::node(0)}};
  Op dropout{.kind = OpKind::dropout, .shape = {4, 2}, .args = {Operand::node(1)}};
  dropout.attrs.p = 0.1;
  dropout.attrs.seed = ~std::uint64_t{0};
  dropout.attrs.stream = 7;
  Op permute{.kind = OpKind::permute, .shape = {2, 4}, .args = {Operand::node(2)}};
  permute.attrs.perm = {1, 0};
  Op gradient{.kind = OpKind::matmul, .shape = {3, 2}, .args = {Operand::resident(x), Operand::node(2)}, .writes = dw};
  gradient.attrs.m = 3;
  gradient.attrs.n = 2;
  gradient.attrs.k = 4;
  gradient.attrs.trans_a = true;

  builder.add({.name = "matmul", .size = 32, .cost = 5, .scratch = 64, .op = matmul});
  builder.add({.name = "relu", .size = 32, .cost = 1, .scratch = -32, .inplace = 0, .inputs = {0}, .op = relu});
  builder.add({.name = "dropout", .size = 32, .cost = 2, .inputs = {1}, .op = dropout});
  builder.add({.name = "permute", .size = 32, .cost = 2, .keep = true, .inputs = {2}, .op = permute});
  builder.add({.name = "dw", .cost = 9, .keep = true, .backward = true, .forward = 0, .inputs = {2}, .op = gradient});
  builder.set_order({0, 1, 2, 4, 3});
  return builder.build();
}

}  // namespace

TEST_CASE("a graph survives its file unchanged", "[formats]") {
  const Graph graph = rich_graph();
  const std::string text = graph_to_json(graph);
  const Graph read = parse_graph(text, "g.json");
  CHECK(graph_to_json(read) == text);

  CHECK(read.name() == graph.name());
  CHECK(read.fingerprint() == graph.fingerprint());
  CHECK(read.order_was_given());
  CHECK(std::ranges::equal(read.input_order(), graph.input_order()));
  CHECK(read.resident_bytes() == graph.resident_bytes());
  CHECK(std::ranges::equal(read.residents(), graph.residents()));
  REQUIRE(read.node_count() == graph.node_count());
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    CHECK(read.name(v) == graph.name(v));
    CHECK(read.size(v) == graph.size(v));
    CHECK(read.cost(v) == graph.cost(v));
    CHECK(read.scratch(v) == graph.scratch(v));
    CHECK(read.keep(v) == graph.keep(v));
    CHECK(read.backward(v) == graph.backward(v));
    CHECK(read.forward(v) == graph.forward(v));
    CHECK(read.inplace(v) == graph.inplace(v));
    CHECK(std::ranges::equal(read.inputs(v), graph.inputs(v)));
    CHECK(*read.op(v) == *graph.op(v));
  }
}

TEST_CASE("keys at their defaults may be left out, unknown ones are ignored", "[formats]") {
  const Graph graph = parse_graph(
      cairn_file(R"({"size":3,"colour":"red"},{"name":"b","size":4,"inputs":[0,0]})", R"("made_by":{"x":[1]},)"), "g");
  REQUIRE(graph.node_count() == 2);
  CHECK(graph.cost(0) == 0);
  CHECK_FALSE(graph.keep(0));
  CHECK(graph.edge_count() == 1);
  CHECK_FALSE(graph.order_was_given());
  CHECK(graph.resident_bytes() == 0);
  CHECK(parse_graph(cairn_file(""), "g").node_count() == 0);
  CHECK(parse_graph("\xEF\xBB\xBF " + cairn_file(""), "g").node_count() == 0);
}

TEST_CASE("text that is no graph file is refused with its place", "[formats]") {
  check_error("", {"is empty"});
  check_error(" \n\t\r\n", {"is empty"});
  check_error("hello", {"line 1, column 1", "not valid JSON"});
  check_error("{\n  \"format\": cairn", {"line 2, column 13"});
  check_error(R"({"format":"cairn.graph","version":1,"nodes":[{"name":)", {"line 1", "truncated"});
  check_error("[1,2]", {"is not a graph", "a list"});
  check_error("17", {"is not a graph"});
  check_error("{}", {"is not a graph"});
  check_error(R"({"format":"cairn.schedule","version":1})", {"cairn.schedule", "not a cairn.graph"});
  check_error(R"({"format":3,"version":1})", {"format", "string"});
  check_error(R"({"format":"cairn.graph","nodes":[]})", {"version", "missing"});
  check_error(R"({"format":"cairn.graph","version":3,"nodes":[]})", {"version 3"});
  check_error(R"({"format":"cairn.graph","version":1})", {"\"nodes\" is missing"});
  check_error(R"({"format":"cairn.graph","version":1,"nodes":{}})", {"nodes", "must be a list"});
  check_error("id,lower,upper,size\na,0,1,2\n", {"plan --buffers"});
  check_error(std::string(100000, '['), {"nested more than 256 deep"});
  check_error(cairn_file(R"({"size":1e999})"), {"number"});
}

TEST_CASE("wrong values name the node and the key", "[formats]") {
  check_error(cairn_file("3"), {"node 0", "object"});
  check_error(cairn_file(R"({"name":"a"})"), {"node 0 ('a')", "\"size\" is missing"});
  check_error(cairn_file(R"({"name":"a","size":"4"})"), {"node 0 ('a')", "\"size\"", "string"});
  check_error(cairn_file(R"({"name":"a","size":4.5})"), {"node 0 ('a')", "\"size\" must be a whole number, not 4.5"});
  for (const std::string near : {"4096.0000000000001", "4095.99999999999999999", "4096.00000000000000000000000000001"})
    check_error(cairn_file(R"({"name":"a","size":)" + near + "}"),
                {"node 0 ('a')", "\"size\" must be a whole number, not a fraction close to 4096"});
  check_error(cairn_file(R"({"name":"a","size":1e-400})"), {"must be a whole number, not a fraction close to 0"});
  check_error(cairn_file(R"({"name":"a","size":1e30})"), {"\"size\" is 1e+30", "64 bits"});
  check_error(cairn_file(R"({"name":"a","size":9223372036854775808})"), {"\"size\"", "64 bits"});
  check_error(cairn_file(R"({"name":"a","size":99999999999999999999999})"), {"\"size\""});
  check_error(cairn_file(R"({"name":"a","size":-4})"), {"'a'", "negative size"});
  check_error(cairn_file(R"({"name":"a","size":4,"cost":-1})"), {"'a'", "negative cost"});
  check_error(cairn_file(R"({"name":"a","size":4,"cost":null})"), {"\"cost\"", "null"});
  check_error(cairn_file(R"({"name":"a","size":4,"keep":1})"), {"\"keep\"", "true or false"});
  check_error(cairn_file(R"({"name":7,"size":4})"), {"node 0", "\"name\""});
  check_error(cairn_file(R"({"name":"a","size":4,"inputs":3})"), {"\"inputs\"", "list"});
  check_error(cairn_file(R"({"name":"a","size":4,"inputs":["b"]})"), {"\"inputs\"", "string"});
  check_error(cairn_file(R"({"name":"a","size":4,"inputs":[-1]})"), {"\"inputs\" names -1"});
  check_error(cairn_file(R"({"name":"a","size":4,"inputs":[1]})"), {"'a'", "\"inputs\" names 1"});
  check_error(cairn_file(R"({"name":"a","size":4,"inputs":[4294967296]})"), {"\"inputs\" names 4294967296"});
  check_error(cairn_file(R"({"name":"a","size":4,"forward":9})"), {"\"forward\""});
  check_error(cairn_file(R"({"name":"a","size":4,"inplace":0.5})"), {"\"inplace\""});
}

TEST_CASE("what the graph itself refuses is reported with the file", "[formats]") {
  check_error(cairn_file(R"({"name":"a","size":4,"inputs":[1]},{"name":"b","size":4,"inputs":[0]})"),
              {"cycle", "a -> ", "b -> "});
  check_error(cairn_file(R"({"name":"a","size":4,"inputs":[0]})"), {"'a'", "self-loop"});
  check_error(cairn_file(R"({"name":"a","size":4},{"name":"a","size":4})"), {"same name 'a'"});
  check_error(cairn_file(R"({"size":9223372036854775807},{"size":9223372036854775807})"), {"2^62"});
  check_error(cairn_file(R"({"name":"a","size":4,"scratch":-4})"), {"'a'", "scratch -4"});
  check_error(cairn_file(R"({"name":"a","size":4},{"name":"b","size":4,"inplace":0})"),
              {"'b'", "not one of its inputs"});
  const std::string two = R"({"name":"a","size":4},{"name":"b","size":4,"inputs":[0]})";
  check_error(cairn_file(two, R"("order":[0],)"), {"order"});
  check_error(cairn_file(two, R"("order":[0,0],)"), {"order", "'a' twice"});
  check_error(cairn_file(two, R"("order":[1,0],)"), {"order", "not topological", "'b'"});
  check_error(cairn_file(two, R"("order":[0,2],)"), {"\"order\" names 2"});
  check_error(cairn_file(two, R"("order":"01",)"), {"\"order\"", "list"});
}

TEST_CASE("wrong ops and residents are refused", "[formats]") {
  const auto with_op = [](const std::string& op) {
    return cairn_file(R"({"name":"a","size":8,"op":)" + op + "}",
                      R"("residents":[{"name":"w","shape":[2],"role":"weight"}],)");
  };
  CHECK(cairn::tests::parse_error(with_op(R"({"kind":"relu","shape":[2],"args":["r0"]})"), "g.json").empty());
  check_error(with_op("7"), {"\"op\"", "object"});
  check_error(with_op("{}"), {"\"kind\" is missing"});
  check_error(with_op(R"({"kind":"rellu"})"), {"node 0 ('a')", "rellu", "did you mean 'relu'?"});
  check_error(with_op(R"({"kind":"relu","shape":[2],"args":["r1"]})"), {"\"args\"", "r1"});
  check_error(with_op(R"({"kind":"relu","shape":[2],"args":["n7"]})"), {"\"args\"", "n7"});
  check_error(with_op(R"({"kind":"relu","shape":[2],"args":["r-1"]})"), {"\"args\""});
  check_error(with_op(R"({"kind":"relu","shape":[2],"args":["r0x"]})"), {"\"args\""});
  check_error(with_op(R"({"kind":"relu","shape":[2],"args":[""]})"), {"\"args\""});
  check_error(with_op(R"({"kind":"relu","shape":[2],"args":[0]})"), {"\"args\""});
  check_error(with_op(R"({"kind":"relu","shape":[3],"args":["r0"]})"), {"'a'", "relu"});
  check_error(with_op(R"({"kind":"relu","shape":[2],"args":["r0"],"writes":1})"), {"\"writes\" names 1"});
  check_error(with_op(R"({"kind":"dropout","shape":[2],"args":["r0"],"seed":-1})"), {"\"seed\""});
  check_error(with_op(R"({"kind":"dropout","shape":[2],"args":["r0"],"p":"x"})"), {"\"p\"", "number"});

  const auto with_resident = [](const std::string& resident) {
    return cairn_file("", R"("residents":[)" + resident + "],");
  };
  check_error(with_resident("1"), {"resident 0", "object"});
  check_error(with_resident(R"({"name":"w","shape":[-2]})"), {"resident 0 ('w')"});
  check_error(with_resident(R"({"name":"w","shape":[4611686018427387904,4]})"), {"resident 0 ('w')"});
  check_error(with_resident(R"({"name":"w","role":"wight"})"), {"\"role\"", "did you mean 'weight'?"});
  check_error(with_resident(R"({"name":"w","gradient_of":5})"), {"\"gradient_of\" names 5"});
  const std::string huge = R"({"shape":[1152921504606846976]})";
  check_error(with_resident(huge + "," + huge), {"2^62"});
  check_error(cairn_file("", R"("resident_bytes":7,"residents":[{"shape":[2]}],)"), {"\"resident_bytes\" is 7", "8"});
  check_error(cairn_file("", R"("resident_bytes":-1,)"), {"resident_bytes"});
}

TEST_CASE("node-link JSON is read in both dialects", "[formats]") {
  SECTION("ids, cost_ram, cost_cpu, source and target") {
    const Graph graph =
        parse_graph(node_link_file(R"({"name":"conv","backward":false,"cost_cpu":90,"cost_ram":10,"id":4},
                          {"name":"grad","backward":true,"cost_cpu":2.0,"cost_ram":20.0,"id":"x"})",
                                   R"({"source":4,"target":"x"},{"source":4,"target":"x"})", R"("name":"vgg")"),
                    "g.json");
    CHECK(graph.name() == "vgg");
    REQUIRE(graph.node_count() == 2);
    CHECK(graph.name(1) == "grad");
    CHECK(graph.size(1) == 20);
    CHECK(graph.cost(0) == 90);
    CHECK(graph.cost(1) == 2);
    CHECK(graph.backward(1));
    CHECK(graph.edge_count() == 1);
    CHECK(graph.inputs(1)[0] == 0);
  }
  SECTION("name as id, out_cost, duration, numbered edges, an order") {
    const Graph graph =
        parse_graph(node_link_file(R"({"out_cost":1,"duration":2,"name":10},{"out_cost":3,"duration":4,"name":11},
                          {"out_cost":5,"duration":6,"name":12})",
                                   R"({"0":10,"1":11},{"0":10,"1":12})", R"("order":[10,12,11])"),
                    "g.json");
    REQUIRE(graph.node_count() == 3);
    CHECK(graph.name(2) == "12");
    CHECK(graph.size(2) == 5);
    CHECK(graph.cost(2) == 6);
    CHECK(graph.order_was_given());
    CHECK(graph.input_order()[1] == 2);
  }
  SECTION("edges instead of links; without an order, Kahn by index where node order is not topological") {
    const Graph graph =
        parse_graph(R"({"nodes":[{"id":0,"cost_ram":1,"cost_cpu":1.6},{"id":1,"cost_ram":1,"cost_cpu":0},
                                                 {"id":2,"cost_ram":1,"cost_cpu":0}],
                                        "edges":[{"source":2,"target":0}]})",
                    "g.json");
    CHECK(graph.cost(0) == 16);  // all costs are multiplied by 10, because one of them is a fraction
    CHECK(std::ranges::equal(graph.input_order(), std::vector<NodeId>{1, 2, 0}));
  }
}

TEST_CASE("node-link JSON may say size, and cost or weight", "[formats]") {
  for (const char* cost : {"cost", "weight"}) {
    INFO(cost);
    const Graph graph = parse_graph(node_link_file(fmt::format(R"({{"id":"a","size":10,"{0}":3}},
                                        {{"id":"b","size":20,"{0}":4}})",
                                                               cost),
                                                   R"({"source":"a","target":"b"})"),
                                    "g.json");
    REQUIRE(graph.node_count() == 2);
    CHECK(graph.name(1) == "b");
    CHECK(graph.size(1) == 20);
    CHECK(graph.cost(0) == 3);
    CHECK(graph.edge_count() == 1);
  }
  // If a node has keys of the published files (cost_ram, cost_cpu) beside size and weight, the published keys count,
  // and a warning says so.
  std::vector<std::string> told;
  const ReadOptions options{.warn = [&](const ReadWarning& warning) { told.push_back(warning.text); }};
  const Graph both =
      parse_graph(node_link_file(R"({"id":0,"size":1,"cost_ram":10,"weight":1,"cost_cpu":20})", ""), "g.json", options);
  CHECK(both.size(0) == 10);
  CHECK(both.cost(0) == 20);
  CHECK(told ==
        std::vector<std::string>{"g.json: node 0 ('0'): the key \"size\" is ignored, as \"cost_ram\" says the bytes",
                                 "g.json: node 0 ('0'): the key \"weight\" is ignored, as \"cost_cpu\" says the cost"});
}

TEST_CASE("wrong node-link files are refused", "[formats]") {
  const std::string a = R"({"id":0,"cost_ram":1,"cost_cpu":1})";
  const std::string b = R"({"id":1,"cost_ram":1,"cost_cpu":1})";
  check_error(node_link_file(a, R"({"source":0,"target":7})"), {"edge 0", "\"target\" is 7", "no node"});
  check_error(node_link_file(a, R"({"source":"0","target":0})"), {"edge 0", "\"source\"", "no node"});
  check_error(node_link_file(a, R"({"source":0})"), {"edge 0", "\"target\" is missing"});
  check_error(node_link_file(a, R"({"source":[0],"target":0})"), {"edge 0", "a list"});
  check_error(node_link_file(a, "5"), {"edge 0", "object"});
  check_error(node_link_file(a, R"({"source":0,"target":0})"), {"self-loop"});
  check_error(node_link_file(a + "," + a, ""), {"node 1", "is used by two nodes"});
  check_error(node_link_file(a + "," + b, R"({"source":0,"target":1},{"source":1,"target":0})"), {"cycle"});
  check_error(node_link_file(
                  R"({"id":0,"name":"x","cost_ram":1,"cost_cpu":1},{"id":1,"name":"x","cost_ram":1,"cost_cpu":1})", ""),
              {"same name 'x'"});
  check_error(node_link_file(R"({"id":0,"cost_cpu":1})", ""),
              {"node 0", "its bytes are missing", "\"cost_ram\"", "\"out_cost\"", "\"size\""});
  check_error(node_link_file(R"({"id":0,"size":1})", ""),
              {"node 0", "its cost is missing", "\"cost_cpu\"", "\"duration\"", "\"cost\"", "\"weight\""});
  check_error(R"({"directed":false,"nodes":[)" + a + R"(],"links":[]})", {"\"directed\" is false", "DiGraph"});
  check_error(R"({"nodes":[)" + a + R"(],"links":[],"edges":[]})", {"both \"links\" and \"edges\" are there"});
  check_error(node_link_file(R"({"id":0,"cost_ram":1.5,"cost_cpu":1})", ""), {"node 0", "whole number", "1.5"});
  check_error(node_link_file(R"({"id":0,"cost_ram":1,"cost_cpu":1e30})", ""), {"\"cost_cpu\"", "64 bits"});
  check_error(node_link_file(R"({"cost_ram":1,"cost_cpu":1})", ""), {"node 0", "\"id\" is missing"});
  check_error(node_link_file(R"({"id":1.5,"cost_ram":1,"cost_cpu":1})", ""), {"node 0", "\"id\""});
  check_error(node_link_file("1", ""), {"node 0", "object"});
  check_error(node_link_file(a, "", R"("order":[1])"), {"graph.order", "no node"});
  check_error(node_link_file(a + "," + b, "", R"("order":[1])"), {"order"});
  check_error(node_link_file(a, "", R"("order":"x")"), {"graph.order", "list"});
}

TEST_CASE("files are replaced whole or not at all", "[formats]") {
  const cairn::tests::Folder folder;
  const std::string path = folder / "g.json";

  write_file(path, "first");
  write_file(path, std::string("sec\1ond", 7));
  CHECK(read_file(path) == std::string("sec\1ond", 7));
  CHECK(folder.entries() == 1);

  CHECK_THROWS_AS(write_file(folder / "no/such/folder", "x"), InputError);
  CHECK_THROWS_AS(write_file(folder.path(), "x"), InputError);
  CHECK_THROWS_AS(read_file(folder / "missing.json"), InputError);
  CHECK_THROWS_AS(read_file(folder.path()), InputError);
  CHECK(folder.entries() == 1);

  write_file(path, graph_to_json(rich_graph()));
  CHECK(load_graph(path).fingerprint() == rich_graph().fingerprint());
}

}  // namespace cairn::formats_graph_test
