#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::formats_mutation_test {

using namespace cairn::core;
using cairn::tests::Random;

namespace {

const std::vector<std::string> kGraphFiles{
    R"({"format":"cairn.graph","version":1,"name":"g","resident_bytes":24,"order":[0,2,1,3],
"residents":[{"name":"w","role":"weight","type":"f32","shape":[2,1],"init":"normal","scale":0.5},
             {"name":"dw","role":"weight_grad","shape":[2,2],"gradient_of":0}],
"nodes":[{"name":"a","size":8,"cost":3,"op":{"kind":"relu","shape":[2,1],"args":["r0"]}},
{"name":"b","size":8,"cost":1,"scratch":-8,"inputs":[2],"inplace":2,"op":{"kind":"scale","shape":[2,1],"args":["n2"],"alpha":0.5}},
{"name":"c","size":8,"cost":1,"scratch":4,"inputs":[0],"op":{"kind":"relu","shape":[2],"args":["n0"]}},
{"name":"d","size":4,"cost":9,"keep":true,"inputs":[1],"backward":true,"forward":0}]})",
    R"({"directed":true,"graph":{"name":"n","order":[0,1]},"nodes":[{"id":0,"name":"x","cost_ram":5,"cost_cpu":1.5,
"backward":false},{"id":1,"cost_ram":7,"cost_cpu":2}],"links":[{"source":0,"target":1}]})",
    R"({"graph":{},"nodes":[{"name":3,"out_cost":5,"duration":1},{"name":1,"out_cost":7,"duration":2}],
"edges":[{"0":3,"1":1}]})",
    R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
{"INSTRUCTION":"CONSTANT","NAME":"w"}
{"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"5"}
{"INSTRUCTION":"CALL","NAME":"f","ARGS":["w"],"RESULT":["x","y"],"TIME":"12"}
{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"9"}
{"INSTRUCTION":"ALIAS","NAME":"x","ALIAS":"-1"}
{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"9"}
{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"0"}
{"INSTRUCTION":"MUTATE","NAME":"g_","ARGS":["x","y"],"MUTATE":[0],"TIME":"3"}
{"INSTRUCTION":"ANNOTATE","ANNOTATION":"BACKWARD"}
{"INSTRUCTION":"COPY","SRC":"x","DST":"z"}
{"INSTRUCTION":"CALL","NAME":"h","ARGS":["z"],"RESULT":["v"],"TIME":"1"}
{"INSTRUCTION":"MEMORY","NAME":"v","MEMORY":"2"}
{"INSTRUCTION":"ALIAS","NAME":"v","ALIAS":"-1"}
{"INSTRUCTION":"RELEASE","NAME":"x"}
{"INSTRUCTION":"RELEASE","NAME":"v"}
)",
    "c a cycle and a path\np tw 7 7\n1 2\n2 3\n4 1\nc between\n3 4\n4 5\n6 5\n4 3\n"};

const std::string kCsv = "id,lower,upper,size,note\na,0,3,4,\"x\"\r\n\"b\",2,9,5,\n";

/// CSV files with all columns. kFullCsv uses the current names of columns, and kOldCsv the older names.
const std::string kFullCsv =
    "id,lower,upper,size,alignment,offset,hint,gaps\na,0,30,4,2,8,,5-7 9-12\nb,2,9,5,,,-1,\nc,20,40,16,8,,16,25-30\n";
const std::string kOldCsv = "buffer_id,start,end,size,gaps\na,0,29,4,5-6 9-11\nb,2,8,5,\nc,20,39,16,25-29\n";

const std::vector<std::string> kTokens{"0",
                                       "1",
                                       "-1",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "1e30",
                                       "0.5",
                                       "null",
                                       "true",
                                       "[]",
                                       "{}",
                                       "\"\"",
                                       "\"x\"",
                                       "\"n9\"",
                                       ",",
                                       ":",
                                       "\n",
                                       "\xff",
                                       "[",
                                       "}",
                                       "\\",
                                       "\"",
                                       "4611686018427387904",
                                       "nan",
                                       "5-7",
                                       "5-7@0:4",
                                       " "};

/// Makes one to four random edits. Each edit changes a byte, replaces a run of bytes by a token, removes or repeats a
/// run, or cuts off the end of the text.
std::string mutated(std::string text, Random& random) {
  const auto position = [&] {
    return static_cast<std::size_t>(random.below(static_cast<std::int64_t>(text.size()) + 1));
  };
  for (std::int64_t edits = random.between(1, 4); edits > 0; --edits) {
    const std::size_t at = position();
    const auto run = static_cast<std::size_t>(random.between(0, 12));
    switch (random.below(5)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text.replace(at, run, random.pick(kTokens));
        break;
      case 2:
        text.erase(at, run);
        break;
      case 3:
        text.insert(position(), text.substr(at, run * 8));
        break;
      default:
        if (random.chance(20)) text.resize(at);
    }
  }
  return text;
}

/// Replaces one number of the text by a token. Texts with such an edit often pass the first checks of a parser.
std::string with_number_replaced(std::string text, Random& random) {
  const auto start = random.place(text);
  const std::size_t digit = text.find_first_of("0123456789", start);
  if (digit == std::string::npos) return text;
  return text.replace(digit, text.find_first_not_of("0123456789", digit) - digit, random.pick(kTokens));
}

/// Returns whether the parser accepts the text. If it does not, checks that it throws a one-line InputError that names
/// the file.
template <typename Parse>
bool accepts(const std::string& text, const Parse& parse) {
  try {
    parse(text);
    return true;
  } catch (const InputError& error) {
    const std::string_view message = error.what();
    INFO(text);
    INFO(message);
    CHECK(message.starts_with("file: "));
    CHECK(message.find('\n') == std::string_view::npos);
    return false;
  }
}

template <typename Parse>
void mutate_often(const std::string& valid, std::uint64_t seed, const Parse& parse) {
  Random random(seed);
  REQUIRE(accepts(valid, parse));
  int accepted = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = random.chance(40) ? with_number_replaced(valid, random) : mutated(valid, random);
    ++(accepts(text, parse) ? accepted : refused);
  }
  // The mutations are a useful test only if the parser has accepted some texts and refused many.
  CHECK(accepted > 10);
  CHECK(refused > 1000);
}

}  // namespace

TEST_CASE("every mutated graph file gives a graph or one clear line", "[formats][fuzz]") {
  for (std::size_t i = 0; i < kGraphFiles.size(); ++i) {
    mutate_often(kGraphFiles[i], i + 1, [](const std::string& text) {
      const Graph graph = parse_graph(text, "file");
      // A graph that was accepted must be the same after it is written and read again.
      if (parse_graph(graph_to_json(graph), "again").fingerprint() != graph.fingerprint()) FAIL("round trip: " << text);
    });
  }
}

TEST_CASE("every mutated schedule, plan and CSV file gives a result or one clear line", "[formats][fuzz]") {
  const Graph graph = parse_graph(kGraphFiles[0], "file");
  const Schedule schedule{.steps = {0, 2, 1, 3}};
  mutate_often(schedule_to_json(graph, schedule, "none"), 11,
               [&](const std::string& text) { parse_schedule(text, "file", graph); });
  Plan plan{.bytes = 24};
  plan.buffers = {{.node = 0, .first = 0, .last = 1, .size = 8},
                  {.node = 2, .first = 1, .last = 2, .size = 8, .offset = 8},
                  {.node = 1, .first = 2, .last = 3, .size = 8, .offset = 8, .alias_of = 2}};
  mutate_often(plan_to_json(graph, plan), 12, [&](const std::string& text) { parse_plan(text, "file", graph); });
  const auto parse_csv = [](const std::string& text) {
    const std::vector<BufferSpec> specs = parse_minimalloc_csv(text, "file");
    // Problems that were accepted must be the same after they are written and read again. The written file has offsets.
    Plan placed;
    for (std::size_t i = 0; i < specs.size(); ++i)
      placed.buffers.push_back({.node = static_cast<NodeId>(i), .offset = specs[i].offset.value_or(0)});
    std::vector<BufferSpec> again = parse_minimalloc_csv(minimalloc_csv(specs, placed), "again");
    REQUIRE(again.size() == specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i) {
      again[i].offset = specs[i].offset;
      again[i].hint = specs[i].hint;
      REQUIRE(again[i] == specs[i]);
    }
  };
  mutate_often(kCsv, 13, parse_csv);
  mutate_often(kFullCsv, 14, parse_csv);
  mutate_often(kOldCsv, 15, parse_csv);
}

}  // namespace cairn::formats_mutation_test
