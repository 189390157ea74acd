#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/json.h"

namespace cairn::formats_files_test {

using namespace cairn::core;

namespace {

using cairn::tests::check_fields;
using cairn::tests::contains;
using cairn::tests::error_of;

/// Returns the graph with the edges a -> b -> c -> d and a -> d. A schedule can save the bytes of `a` by recomputing
/// it. Node `c` overwrites the output of `b`. Node `d` has scratch and is kept.
Graph chain(std::int64_t size_of_a = 4) {
  GraphBuilder builder("chain");
  Node node{.name = "a", .size = size_of_a, .cost = 1000};
  builder.add(node);
  node.name = "b";
  node.size = 8;
  node.inputs = {0};
  builder.add(node);
  node.name = "c";
  node.scratch = -8;
  node.inplace = 1;
  node.inputs = {1};
  builder.add(node);
  node.name = "d<&\"'>";
  node.size = 2;
  node.scratch = 1;
  node.inplace = kNoNode;
  node.inputs = {2, 0};
  node.keep = true;
  node.backward = true;
  builder.add(node);
  return builder.build();
}

const Schedule kSchedule{.steps = {0, 1, 2, 0, 3}};

Plan chain_plan() {
  return {.bytes = 15,
          .lower_bound = 15,
          .alignment = 1,
          .buffers = {{.node = 0, .first = 0, .last = 1, .size = 4, .offset = 8},
                      {.node = 1, .first = 1, .last = 2, .size = 8, .offset = 0},
                      {.node = 2, .first = 2, .last = 4, .size = 8, .offset = 0, .alias_of = 1},
                      {.node = 0, .first = 3, .last = 4, .size = 4, .offset = 8},
                      {.node = 3, .first = 4, .last = 5, .size = 2, .offset = 12},
                      {.node = 3, .first = 4, .last = 4, .size = 1, .offset = 14, .scratch = true}}};
}

std::string schedule_error(const std::string& text) {
  return error_of([&] { parse_schedule(text, "s.json", chain()); });
}
std::string plan_error(const std::string& text) {
  return error_of([&] { parse_plan(text, "p.json", chain()); });
}
std::string csv_error(const std::string& text) {
  return error_of([&] { parse_minimalloc_csv(text, "b.csv"); });
}

std::string schedule_file(const std::string& more) {
  return fmt::format(R"({{"format":"cairn.schedule","version":1,"graph":"{}",{}}})", chain().fingerprint(), more);
}
std::string plan_file(const std::string& more) {
  return fmt::format(R"({{"format":"cairn.plan","version":1,"graph":"{}",{}}})", chain().fingerprint(), more);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a schedule survives its file", "[formats]") {
  const Graph graph = chain();
  const std::string text = schedule_to_json(graph, kSchedule, "greedy");
  const ScheduleFile file = parse_schedule(text, "s.json", graph);
  CHECK(file.schedule == kSchedule);
  CHECK(file.solver == "greedy");
  CHECK(file.graph == graph.fingerprint());
  CHECK(file.peak_bytes == 15);
  CHECK(file.cost == 5000);
  const auto json = nlohmann::json::parse(text);
  check_fields(json, {{"peak_bytes", 15}, {"cost", 5000}});
  CHECK_THROWS_AS(schedule_to_json(graph, Schedule{.steps = {3}}, "x"), InputError);
}

TEST_CASE("a schedule file keeps the offsets of a plan", "[formats]") {
  const Graph graph = chain();
  Plan plan;
  plan.bytes = 48;
  plan.alignment = 16;
  for (const std::int64_t offset : {0, 16, 32, 0}) plan.buffers.push_back({.offset = offset});
  const std::string text = schedule_to_json(graph, kSchedule, "greedy", plan);
  CHECK(parse_schedule(text, "s.json", graph).offsets == std::vector<std::int64_t>{0, 16, 32, 0});
  check_fields(nlohmann::json::parse(text), {{"planned_bytes", 48}, {"alignment", 16}});
  CHECK(parse_schedule(schedule_to_json(graph, kSchedule, "greedy"), "s.json", graph).offsets.empty());
  CHECK(contains(schedule_error(schedule_file(R"("steps":[0,1,2,3],"offsets":7)")), "\"offsets\""));
  CHECK(contains(schedule_error(schedule_file(R"("steps":[0,1,2,3],"offsets":["x"])")), "\"offsets\""));
}

TEST_CASE("a schedule file must be valid and made for the graph", "[formats]") {
  CHECK(schedule_error(schedule_file(R"("steps":[0,1,2,3])")).empty());
  CHECK(contains(schedule_error(""), "s.json: is empty"));
  CHECK(contains(schedule_error("{"), "s.json: line 1, column 2"));
  CHECK(contains(schedule_error("[]"), "not a cairn.schedule file"));
  CHECK(contains(schedule_error(plan_file(R"("bytes":1)")), "'cairn.plan'"));
  CHECK(contains(schedule_error(schedule_to_json(chain(5), kSchedule, "x")), "another graph"));
  CHECK(contains(schedule_error(schedule_file(R"("x":1)")), "\"steps\" is missing"));
  CHECK(contains(schedule_error(schedule_file(R"("steps":[0,"1"])")), "step 1"));
  CHECK(contains(schedule_error(schedule_file(R"("steps":[0,4])")), "step 1"));
  CHECK(contains(schedule_error(schedule_file(R"("steps":[-1])")), "step 0"));
  CHECK(contains(schedule_error(schedule_file(R"("steps":[0,2])")), "s.json: "));
  CHECK(contains(schedule_error(schedule_file(R"("steps":[0,1,2])")), "s.json: "));
  // A reader computes cost and peak from the graph, because the graph's costs may have changed since the file was
  // written.
  CHECK(parse_schedule(schedule_file(R"("steps":[0,1,2,3],"cost":1,"peak_bytes":1)"), "s", chain()).cost == 4000);
}

TEST_CASE("a plan survives its file", "[formats]") {
  const Graph graph = chain();
  const Plan plan = chain_plan();
  REQUIRE(check_plan(graph, kSchedule, plan).empty());
  const Plan read = parse_plan(plan_to_json(graph, plan), "p.json", graph);
  CHECK(read.bytes == plan.bytes);
  CHECK(read.lower_bound == plan.lower_bound);
  CHECK(read.alignment == plan.alignment);
  CHECK(read.buffers == plan.buffers);
}

TEST_CASE("a plan file's numbers are checked", "[formats]") {
  const auto with_buffer = [](const std::string& buffer) {
    return plan_file(R"("bytes":9,"buffers":[)" + buffer + "]");
  };
  CHECK(plan_error(with_buffer(R"({"node":0,"first":0,"last":1,"offset":0,"size":4})")).empty());
  CHECK(contains(plan_error(""), "is empty"));
  CHECK(contains(plan_error(plan_file(R"("bytes":9)")), "\"buffers\" is missing"));
  CHECK(contains(plan_error(plan_file(R"("bytes":-1,"buffers":[])")), "negative"));
  CHECK(contains(plan_error(plan_file(R"("bytes":1,"alignment":0,"buffers":[])")), "alignment"));
  CHECK(contains(plan_error(plan_to_json(chain(5), chain_plan())), "another graph"));
  CHECK(contains(plan_error(with_buffer("1")), "buffer 0"));
  CHECK(contains(plan_error(with_buffer(R"({"node":9,"first":0,"last":1,"offset":0,"size":4})")), "\"node\" names 9"));
  CHECK(contains(plan_error(with_buffer(R"({"node":0,"first":2,"last":1,"offset":0,"size":4})")),
                 "its steps 2 to 1 are not a valid lifetime"));
  CHECK(contains(plan_error(with_buffer(R"({"node":0,"first":0,"last":1,"offset":-1,"size":4})")), "offset -1"));
  CHECK(contains(plan_error(with_buffer(R"({"node":0,"first":0,"last":1,"offset":9e18,"size":4})")),
                 "its offset 9000000000000000000"));
  CHECK(contains(plan_error(with_buffer(R"({"node":0,"first":0,"last":1,"size":4})")), "\"offset\" is missing"));
}

TEST_CASE("MiniMalloc CSV is read by column names", "[formats]") {
  const auto specs = parse_minimalloc_csv(
      "\xEF\xBB\xBFsize, upper ,note,id,lower\r\n4,3,\"a, b\",\"x \"\"1\"\"\",0\r\n\r\n 5 , 9,,y,3", "b.csv");
  REQUIRE(specs.size() == 2);
  CHECK(specs[0].id == "x \"1\"");
  CHECK(specs[0].lower == 0);
  CHECK(specs[0].upper == 3);
  CHECK(specs[0].size == 4);
  CHECK(specs[1].id == "y");
  CHECK(specs[1].size == 5);
  CHECK(parse_minimalloc_csv("id,lower,upper,size\n", "b.csv").empty());
}

TEST_CASE("wrong CSV is refused with the line", "[formats]") {
  const std::string head = "id,lower,upper,size\n";
  CHECK(contains(csv_error(""), "b.csv: is empty"));
  CHECK(contains(csv_error("\n \n"), "is empty"));
  CHECK(contains(csv_error("id,lower,size\na,1,2\n"), "line 1: the column 'upper' is missing"));
  CHECK(contains(csv_error("id,lower,upper,size,id\n"), "the column 'id' occurs twice"));
  CHECK(contains(csv_error(head + "a,0,1,4\nb,0,x,4\n"), "line 3: upper must be a whole number, not 'x'"));
  CHECK(contains(csv_error(head + "a,0,1,4.5\n"), "line 2: size must be a whole number, not '4.5'"));
  CHECK(contains(csv_error(head + "a,,1,4\n"), "line 2: lower"));
  CHECK(contains(csv_error(head + "a,0,1,99999999999999999999\n"),
                 "line 2: size is 99999999999999999999, which does not fit"));
  CHECK(contains(csv_error(head + "\"a\nb\",0,1,4\nc,2,2,4\n"), "line 4: upper (2) must be above lower (2)"));
  CHECK(contains(csv_error(head + "a,-1,2,4\n"), "line 2: lower is -1"));
  CHECK(contains(csv_error(head + "a,0,2,-4\n"), "line 2: size is -4"));
  CHECK(contains(csv_error(head + "a,0,2,4\na,0,2,4\n"), "line 3: two buffers have the id 'a'"));
  CHECK(contains(csv_error(head + "a,0,2\n"), "line 2: has 3 columns"));
  CHECK(contains(csv_error(head + "a,0,2,4,5\n"), "line 2: has 5 columns"));
  CHECK(contains(csv_error(head + "\"a,0,2,4\n"), "line 2: a quote is opened"));
  CHECK(contains(csv_error(head + "\"a\"b,0,2,4\n"), "line 2: there is text after"));
  CHECK(contains(csv_error(head + "a,0,2,4611686018427387904\nb,0,2,1\n"), "line 3: the sizes"));
}

TEST_CASE("every column of MiniMalloc CSV", "[formats]") {
  const auto specs = parse_minimalloc_csv(
      "gaps,hint,offset,alignment,size,upper,lower,id\n 9-12  5-7 ,,64,32,8,20,0,a\n,40,,,4,9,3,b\n12-15 "
      "10-12,-1,,,1,30,0,c\n",
      "b.csv");
  REQUIRE(specs.size() == 3);
  CHECK(specs[0] == BufferSpec{"a", 0, 20, 8, 32, 64, std::nullopt, {{5, 7}, {9, 12}}});
  CHECK(specs[1] == BufferSpec{"b", 3, 9, 4, 1, std::nullopt, 40, {}});
  CHECK(specs[2] == BufferSpec{"c", 0, 30, 1, 1, std::nullopt, std::nullopt, {{10, 15}}});
}

TEST_CASE("MiniMalloc's older names of columns", "[formats]") {
  for (const std::string id : {"id", "buffer", "buffer_id"}) {
    for (const std::string lower : {"lower", "start", "begin"}) {
      const std::string head = id + "," + lower;
      // If a file has the column `end` instead of `upper`, the ends of lifetimes and of gaps are inclusive.
      const std::vector<BufferSpec> half_open = parse_minimalloc_csv(head + ",upper,size,gaps\na,0,9,4,2-5\n", "b.csv");
      CHECK(half_open == parse_minimalloc_csv(head + ",end,size,gaps\na,0,8,4,2-4\n", "b.csv"));
      CHECK(half_open == std::vector<BufferSpec>{{"a", 0, 9, 4, 1, std::nullopt, std::nullopt, {{2, 5}}}});
    }
  }
  CHECK(contains(csv_error("id,start,end,size\na,3,2,4\n"), "line 2: end (2) must not be below start (3)"));
  CHECK(contains(csv_error("id,start,end,size\na,3,9223372036854775807,4\n"), "line 2: the time"));
  CHECK(contains(csv_error("id,start,lower,upper,size\n"), "line 1: the columns 'start' and 'lower' are the same"));
  CHECK(contains(csv_error("id,start,size\n"), "line 1: the column 'upper' is missing"));
}

TEST_CASE("wrong optional columns of CSV are refused with the line", "[formats]") {
  const auto with = [](const std::string& column, const std::string& value) {
    return csv_error("id,lower,upper,size," + column + "\na,0,20,4,\nb,10,20,4," + value + "\n");
  };
  CHECK(contains(with("alignment", "0"), "b.csv: line 3: alignment is 0"));
  CHECK(contains(with("alignment", "-8"), "line 3: alignment is -8"));
  CHECK(contains(with("alignment", "1073741825"), "line 3: alignment"));
  CHECK(contains(with("alignment", "x"), "line 3: alignment must be a whole number"));
  CHECK(contains(with("offset", "-1"), "line 3: offset is -1"));
  CHECK(contains(with("offset", "4611686018427387904"), "line 3: offset"));
  CHECK(contains(with("offset", "1.5"), "line 3: offset must be a whole number"));
  CHECK(contains(csv_error("id,lower,upper,size,alignment,offset\na,0,20,4,8,12\n"),
                 "line 2: offset 12 is not a multiple of the alignment 8"));
  CHECK(contains(with("hint", "soon"), "line 3: hint must be a whole number"));
  for (const std::string gap : {"8-12", "10-12", "12-20", "12-21", "1-2"})
    CHECK(contains(with("gaps", gap), "line 3: gap '" + gap + "': must lie inside the lifetime 10-20"));
  CHECK(contains(with("gaps", "12-12"), "line 3: gap '12-12': upper (12) must be above lower (12)"));
  CHECK(contains(with("gaps", "14-12"), "line 3: gap '14-12'"));
  CHECK(contains(with("gaps", "12"), "line 3: gap '12': must be two times"));
  CHECK(contains(with("gaps", "12-x"), "line 3: gap '12-x': its end must be a whole number"));
  CHECK(
      contains(with("gaps", "12-14@0:16"), "line 3: gap '12-14@0:16': windows of addresses in gaps are not supported"));
}

TEST_CASE("an allocation with all of its columns survives its file", "[formats]") {
  std::vector<BufferSpec> specs{{"a", 0, 20, 8, 32, 64, std::nullopt, {{5, 7}, {9, 12}}}, {"b", 3, 9, 4}};
  Plan plan;
  plan.buffers = {{.node = 0, .last = 19, .size = 8, .offset = 64}, {.node = 1, .first = 3, .last = 8, .size = 4}};
  const std::string text = minimalloc_csv(specs, plan);
  CHECK(text == "id,lower,upper,size,alignment,gaps,offset\na,0,20,8,32,5-7 9-12,64\nb,3,9,4,1,,0\n");
  specs[1].offset = 0;
  CHECK(parse_minimalloc_csv(text, "b.csv") == specs);
  CHECK(minimalloc_csv(parse_minimalloc_csv(text, "b.csv"), plan) == text);
}

TEST_CASE("MiniMalloc CSV with offsets", "[formats]") {
  const std::vector<BufferSpec> specs{{"a", 0, 3, 4}, {"b, \"c\"", 3, 9, 5}};
  Plan plan;
  plan.buffers = {{.node = 1, .first = 3, .last = 8, .size = 8, .offset = 16},
                  {.node = 0, .first = 0, .last = 2, .size = 8, .offset = 32}};
  const std::string text = minimalloc_csv(specs, plan);
  CHECK(text == "id,lower,upper,size,offset\na,0,3,4,32\n\"b, \"\"c\"\"\",3,9,5,16\n");
  const auto read = parse_minimalloc_csv(text, "b.csv");
  REQUIRE(read.size() == 2);
  CHECK(read[1].id == specs[1].id);

  // Node 2 overwrites node 1 in place at step 2, so the lifetime of node 1 must end before that step.
  const std::string exported = plan_to_minimalloc_csv(chain(), chain_plan());
  CHECK(contains(exported, "\nb@1,1,2,8,0\nc@2,2,5,8,0\n"));
  CHECK(contains(exported, "\na@3,3,5,4,8\n"));
  CHECK(contains(exported, "@4/scratch\",4,5,1,14\n") != contains(exported, "@4/scratch,4,5,1,14\n"));
  CHECK(parse_minimalloc_csv(exported, "b.csv").size() == 6);
}

TEST_CASE("an in-place output that is smaller than its input follows it in MiniMalloc CSV", "[formats]") {
  GraphBuilder builder("smaller");
  builder.add({.name = "a", .size = 1000});
  builder.add({.name = "b", .size = 10, .scratch = 500, .inplace = 0, .inputs = {0}});
  builder.add({.name = "c", .size = 10, .scratch = -10, .keep = true, .inplace = 1, .inputs = {1}});
  const Graph graph = builder.build();
  const Plan plan{.bytes = 1536,
                  .alignment = 256,
                  .buffers = {{.node = 0, .first = 0, .last = 1, .size = 1024, .offset = 0},
                              {.node = 1, .first = 1, .last = 2, .size = 256, .offset = 0, .alias_of = 0},
                              {.node = 1, .first = 1, .last = 1, .size = 512, .offset = 1024, .scratch = true},
                              {.node = 2, .first = 2, .last = 3, .size = 256, .offset = 0, .alias_of = 1}}};
  // At step 1, `b` reads all of `a`, so another buffer may use none of its bytes before step 2.
  CHECK(plan_to_minimalloc_csv(graph, plan) ==
        "id,lower,upper,size,alignment,offset\na@0,0,2,1024,256,0\nb@1/scratch,1,2,512,256,1024\n"
        "c@2,2,4,256,256,0\n");
}

TEST_CASE("Graphviz shows sizes, kept, backward and in-place", "[formats]") {
  const std::string dot = graph_to_dot(chain());
  CHECK(contains(dot, "digraph \"chain\" {"));
  CHECK(contains(dot, "n0 [label=\"a\\n4 B\""));
  CHECK(contains(dot, "d<&\\\"'>"));
  CHECK(contains(dot, "n1 -> n2 [style=dashed];"));
  CHECK(contains(dot, "n0 -> n3;"));
  CHECK(count(dot, "peripheries=2") == 1);
  CHECK(count(dot, "#f6d5b8") == 1);
}

}  // namespace cairn::formats_files_test
