// Tests how unusual files are read: numbers in other spellings, fractional costs, unknown keys, compressed files, and
// files without an end.

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/folder.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::core::formats_input_test {
namespace {

using tests::contains;
using tests::error_of;
using tests::Folder;
using tests::Random;

std::string graph_file(const std::string& nodes) {
  return R"({"format":"cairn.graph","version":1,"nodes":[)" + nodes + "]}";
}

/// A graph that was read, and the warnings that the reader gave.
struct Noticed {
  Graph graph;
  std::vector<ReadWarning> warnings;
};
Noticed read(const std::string& text) {
  Noticed noticed;
  noticed.graph =
      parse_graph(text, "g.json", {.warn = [&](const ReadWarning& warning) { noticed.warnings.push_back(warning); }});
  return noticed;
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16, kMemory = 8;
  REQUIRE(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0'), input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// Sets the environment variable CAIRN_MAX_INPUT while the object lives.
class MaxInput {
 public:
  explicit MaxInput(const char* bytes) { setenv("CAIRN_MAX_INPUT", bytes, 1); }
  ~MaxInput() { unsetenv("CAIRN_MAX_INPUT"); }
  MaxInput(const MaxInput&) = delete;
  MaxInput& operator=(const MaxInput&) = delete;
};

}  // namespace

TEST_CASE("whole numbers may be written as fractions and with exponents", "[formats]") {
  const Graph graph = read(graph_file(R"({"name":"a","size":4.0,"cost":1e3},
                                         {"name":"b","size":1.5e3,"cost":-0.0,"inputs":[0.0],"scratch":-4e0}])"
                                      R"(,"order":[0e5,1.0)"))
                          .graph;
  CHECK(graph.size(0) == 4);
  CHECK(graph.cost(0) == 1000);
  CHECK(graph.size(1) == 1500);
  CHECK(graph.scratch(1) == -4);
  CHECK(graph.predecessors(1)[0] == 0);
  // A number with an exponent is read exactly, even if it is too large to be exact as a double.
  CHECK(read(graph_file(R"({"name":"a","size":9007199254740993.0e0})")).graph.size(0) == 9007199254740993);
  CHECK(parse_schedule(
            R"({"format":"cairn.schedule","version":1.0,"graph":")" + graph.fingerprint() + R"(","steps":[0.0,1e0]})",
            "s.json", graph)
            .schedule.steps == std::vector<NodeId>{0, 1});
  CHECK(parse_minimalloc_csv("id,lower,upper,size\na,0,1e1,4.0\n", "b.csv")[0].size == 4);
  const std::string steps =
      R"({"format":"cairn.schedule","version":1,"graph":")" + graph.fingerprint() + R"(","steps":)";
  CHECK(contains(error_of([&] { parse_schedule(steps + "[0,0.5]}", "s.json", graph); }),
                 "s.json: step 1: \"steps\" must be a whole number, not 0.5"));
}

TEST_CASE("fractional costs are scaled together, exactly where their sum allows it", "[formats]") {
  const auto costs = [](const std::vector<std::string>& given) {
    std::string nodes;
    for (std::size_t i = 0; i < given.size(); ++i)
      nodes += fmt::format(R"({}{{"name":"n{}","size":1,"cost":{}}})", i == 0 ? "" : ",", i, given[i]);
    return read(graph_file(nodes));
  };
  SECTION("worked examples") {
    const Noticed some = costs({"0.5", "2", "0.125", "3.0"});
    CHECK(some.graph.cost(0) == 500);
    CHECK(some.graph.cost(1) == 2000);
    CHECK(some.graph.cost(2) == 125);
    CHECK(some.graph.cost(3) == 3000);
    REQUIRE(some.warnings.size() == 1);
    CHECK(some.warnings[0].kind == ReadWarning::Kind::scaled_costs);
    CHECK(some.warnings[0].count == 2);
    CHECK(some.warnings[0].factor == 1000);
    CHECK(some.warnings[0].text ==
          "g.json: 2 of the costs are fractions; all costs were multiplied by 1000 to be whole numbers");
    CHECK(costs({"1", "2.0", "3e2"}).warnings.empty());
    CHECK(some.graph.cost_unit() == CostUnit{"", "costs of the file, multiplied by 1000"});
    const auto unit_of = [](const std::string& unit, const std::string& cost) {
      return read(R"({"format":"cairn.graph","version":1,"cost_unit":")" + unit +
                  R"(","cost_source":"x","nodes":[{"size":1,"cost":)" + cost + "}]}")
          .graph.cost_unit();
    };
    CHECK(unit_of("ms", "0.125") == CostUnit{"us", "x"});
    CHECK(unit_of("ms", "0.5") == CostUnit{"ms/10", "x, multiplied by 10"});
    CHECK(unit_of("ns", "0.125") == CostUnit{"ns/1000", "x, multiplied by 1000"});
    CHECK(unit_of("ns", "2.0") == CostUnit{"ns", "x"});
    // Costs that sum to almost 2^53 cannot be multiplied by a common factor. So fractions among them are rounded
    // instead.
    const Noticed large = costs({"9007199254740990", "0.5"});
    CHECK(large.graph.cost(0) == 9007199254740990);
    CHECK(large.graph.cost(1) == 1);
    CHECK(large.warnings.at(0).text == "g.json: 1 of the costs is a fraction; they were rounded to whole numbers");
    const Noticed thirds = costs({"0.3333333333333333", "1000"});
    CHECK(thirds.warnings.at(0).factor == 1'000'000'000'000);
    CHECK(thirds.graph.cost(0) == 333'333'333'333);
    CHECK(contains(thirds.warnings[0].text, "and rounded"));
    // A cost that is far smaller than the others becomes 0.
    const Noticed small = costs({"1e-20", "7"});
    CHECK(small.graph.cost(0) == 0);
    CHECK(small.graph.cost(1) == 7 * small.warnings.at(0).factor);
    CHECK(contains(small.warnings[0].text, "and rounded"));
    const Noticed alone = costs({"1e-20"});
    CHECK(alone.graph.cost(0) == 0);
    CHECK(alone.warnings.at(0).factor == 1'000'000'000'000'000'000);
  }
  SECTION("decimals of a few places keep their ratios to the digit") {
    Random random(7);
    for (int round = 0; round < 300; ++round) {
      const auto places = static_cast<std::size_t>(random.between(1, 6));
      std::vector<std::string> given;
      std::vector<std::int64_t> digits;
      for (std::int64_t n = random.between(1, 8); n > 0; --n) {
        digits.push_back(random.below(1'000'000'000));
        const std::string text = fmt::format("{:0{}}", digits.back(), places + 1);
        given.push_back(text.substr(0, text.size() - places) + "." + text.substr(text.size() - places));
      }
      const Noticed scaled = costs(given);
      const std::int64_t factor = scaled.warnings.empty() ? 1 : scaled.warnings[0].factor;
      std::int64_t unit = 1;
      for (std::size_t i = 0; i < places; ++i) unit *= 10;
      REQUIRE(unit % factor == 0);
      for (std::size_t i = 0; i < digits.size(); ++i)
        REQUIRE(scaled.graph.cost(static_cast<NodeId>(i)) * (unit / factor) == digits[i]);
    }
  }
  SECTION("refused") {
    const auto error = [](const std::string& cost) {
      return error_of([&] { read(graph_file(R"({"name":"a","size":1,"cost":)" + cost + "}")); });
    };
    CHECK(contains(error("-0.5"), "g.json: node 0 ('a'): \"cost\" is -0.5, but must not be negative"));
    CHECK(contains(error("1e30"), "\"cost\" is 1e+30, which does not fit into 64 bits"));
    CHECK(contains(error("\"fast\""), "\"cost\" must be a whole number"));
    // Costs are refused if their sum is too large, even if some of the costs are fractions.
    CHECK(contains(error_of([&] { costs({"4611686018427387904", "4611686018427387904", "0.5"}); }), "cost"));
  }
}

TEST_CASE("unknown keys are told once each, with the first place and a suggestion", "[formats]") {
  const auto warnings = read(R"({"format":"cairn.graph","version":2,"nmae":"g","nodes":[
      {"name":"a","size":1,"sise":1},{"name":"b","size":1,"sise":1,"inputs":[0]},
      {"name":"c","outputs":[{"size":1,"kept":true}],"zzzzzzzzz\u001b":1}]})")
                            .warnings;
  REQUIRE(warnings.size() == 4);
  for (const ReadWarning& warning : warnings) CHECK(warning.kind == ReadWarning::Kind::unknown_key);
  CHECK(warnings[0].text == "g.json: the key \"nmae\" is unknown and ignored; did you mean 'name'?");
  CHECK(warnings[1].text ==
        "g.json: node 0 ('a'): the key \"sise\" is unknown and ignored; did you mean 'size'? (in 2 places)");
  CHECK(warnings[1].count == 2);
  CHECK(warnings[2].text == "g.json: node 2 ('c'): the key \"zzzzzzzzz\\x1b\" is unknown and ignored");
  CHECK(warnings[3].text ==
        "g.json: node 2 ('c'): the key \"outputs.kept\" is unknown and ignored; did you mean 'keep'?");

  std::vector<std::string> csv;
  parse_minimalloc_csv("id,lower,upper,size,note\na,0,1,4,x\n", "b.csv",
                       {.warn = [&](const ReadWarning& warning) { csv.push_back(warning.text); }});
  CHECK(csv == std::vector<std::string>{"b.csv: line 1: the column 'note' is unknown and ignored"});

  // If many keys are unknown, only 20 are named. One more warning says how many were left out.
  std::string nodes;
  for (int i = 0; i < 100; ++i) nodes += fmt::format(R"({}{{"size":1,"k{}":0}})", i == 0 ? "" : ",", i);
  const auto many = read(graph_file(nodes)).warnings;
  CHECK(many.size() == 21);
  CHECK(contains(many.back().text, "80 more places"));
}

TEST_CASE("no key of the files that Cairn writes, or of published ones, is unknown", "[formats]") {
  Random random(3);
  for (int i = 0; i < 20; ++i) {
    const Graph graph = tests::random_graph(random, {.several_outputs = i % 2 == 0, .pinned = i % 3 == 0});
    CHECK(read(graph_to_json(graph)).warnings.empty());
  }
  const Noticed layered = read(R"({"directed":true,"multigraph":false,"graph":{"name":"x","order":[1,0],"pos":{}},
      "nodes":[{"name":1,"out_cost":1,"param_cost":0,"duration":2},{"name":0,"out_cost":1,"duration":1.5}],
      "links":[{"0":1,"1":0}]})");
  REQUIRE(layered.warnings.size() == 1);
  CHECK(layered.warnings[0].kind == ReadWarning::Kind::scaled_costs);
  CHECK(layered.graph.cost(0) == 20);
  CHECK(layered.graph.cost(1) == 15);
}

TEST_CASE("keys that stand twice are told by their path, and the last one counts", "[formats]") {
  const Noticed noticed = read(R"({"format":"cairn.graph","version":1,"name":"x","name":"y","nodes":[
      {"name":"a","size":1,"size":2},{"name":"b","size":1,"inputs":[0],"size":3,"size":4}]})");
  CHECK(noticed.graph.name() == "y");
  CHECK(noticed.graph.size(0) == 2);
  CHECK(noticed.graph.size(1) == 4);
  REQUIRE(noticed.warnings.size() == 2);
  CHECK(noticed.warnings[0].text == "g.json: name occurs twice in one object; the last value counts");
  CHECK(noticed.warnings[1].text ==
        "g.json: nodes[0].size occurs twice in one object; the last value counts (in 3 places)");
  CHECK(noticed.warnings[1].kind == ReadWarning::Kind::duplicate_key);
  // A trace has one JSON object per line, so a warning about a trace gives the number of the line.
  const auto trace = read(
      "{\"INSTRUCTION\":\"CONSTANT\",\"NAME\":\"w\"}\n"
      "{\"INSTRUCTION\":\"MEMORY\",\"NAME\":\"w\",\"MEMORY\":\"5\",\"MEMORY\":\"5.0\"}\n"
      "{\"INSTRUCTION\":\"CALL\",\"NAME\":\"f\",\"ARGS\":[\"w\"],\"RESULT\":[],\"TIME\":\"1e1\"}\n");
  CHECK(trace.graph.cost(0) == 10);
  REQUIRE(trace.warnings.size() == 1);
  CHECK(trace.warnings[0].text == "g.json: line 2: MEMORY occurs twice in one object; the last value counts");
}

TEST_CASE("control characters of names are escaped in DOT", "[formats]") {
  const Graph graph = read(graph_file(R"({"name":"a\u001b[31m\"\n\\","size":1})")).graph;
  const std::string dot = graph_to_dot(graph);
  CHECK(contains(dot, R"(label="a\\x1b[31m\"\\n\\\n1 B")"));
  for (const char c : dot) CHECK((c == '\n' || static_cast<unsigned char>(c) >= ' '));
}

TEST_CASE("compressed files are read by their content", "[formats]") {
  const Folder folder;
  std::string text;
  Random random(11);
  while (text.size() < (std::size_t{3} << 20)) text += fmt::format("{} ", random.below(1'000'000));
  CHECK(read_file(folder.write("named.json", gzip(text))) == text);
  CHECK(read_file(folder.write("plain.gz", text)) == text);
  // A file may have several gzip members in a row, as from `cat a.gz b.gz`, and zero bytes after them, as on tapes.
  CHECK(read_file(folder.write("two", gzip(text) + gzip("end") + std::string(1000, '\0'))) == text + "end");
  CHECK(read_file(folder.write("empty", gzip(""))).empty());
  const std::string graph = graph_file(R"({"name":"a","size":1})");
  CHECK(load_graph(folder.write("g", gzip(graph))).fingerprint() == parse_graph(graph, "g").fingerprint());

  const auto error = [&](const std::string& bytes) { return error_of([&] { read_file(folder.write("bad", bytes)); }); };
  const std::string packed = gzip(text);
  CHECK(contains(error(packed.substr(0, packed.size() / 2)), "bad: the compressed data ends too early"));
  CHECK(contains(error(packed.substr(0, 5)), "ends too early"));
  CHECK(contains(error(packed + "more"), "bad: there is data after the compressed data"));
  std::string damaged = packed;
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] + 1);
  CHECK(contains(error(damaged), "bad: the compressed data is damaged (incorrect data check)"));
  CHECK(contains(error(gzip(std::string("a\0b", 3))), "byte 1 is 0"));
}

TEST_CASE("every mutated compressed file gives its text or one clear line", "[formats][fuzz]") {
  const Folder folder;
  const std::string packed = gzip(graph_file(R"({"name":"a","size":1},{"name":"b","size":2,"inputs":[0]})"));
  Random random(5);
  int read_well = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = packed;
    for (std::int64_t edits = random.between(1, 3); edits > 0; --edits) {
      const auto at = random.place(bytes);
      switch (random.below(3)) {
        case 0:
          bytes[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          bytes.resize(at + 1);
          break;
        default:
          bytes.insert(at, packed, 0, static_cast<std::size_t>(random.below(20)));
      }
    }
    const std::string path = folder.write("file", bytes);
    const std::string error = error_of([&] { read_file(path); });
    ++(error.empty() ? read_well : refused);
    if (error.empty()) continue;
    REQUIRE(error.starts_with(path + ": "));
    REQUIRE(error.find('\n') == std::string::npos);
  }
  CHECK(read_well > 10);
  CHECK(refused > 1000);
}

TEST_CASE("reading stops at a limit of bytes, before or after they are expanded", "[formats]") {
  const Folder folder;
  const MaxInput limit("1MiB");
  const std::string text(std::size_t{1} << 20, ' ');
  CHECK(read_file(folder.write("fits", text)).size() == text.size());
  const auto error = [](const std::string& path) { return error_of([&] { read_file(path); }); };
  CHECK(contains(error(folder.write("large", text + ' ')), "large: has more than the 1048576 bytes (1.00 MiB)"));
  CHECK(contains(error(folder.write("bomb.gz", gzip(std::string(std::size_t{64} << 20, ' ')))),
                 "bomb.gz: has more than the 1048576 bytes"));
  // A sparse file of 100 GiB is refused because of its size, before it is read.
  const std::string sparse = folder.write("sparse", "{");
  std::filesystem::resize_file(sparse, std::uintmax_t{100} << 30);
  CHECK(contains(error(sparse), "sparse: has more than the 1048576 bytes"));
  CHECK(contains(error("/dev/zero"), "/dev/zero: byte 0 is 0"));
  CHECK(contains(error(folder / ""), "is a folder"));
  CHECK(contains(error(folder / "none"), "cannot be opened: No such file or directory"));
  if (::geteuid() != 0) {
    const std::string secret = folder.write("secret", "x");
    std::filesystem::permissions(secret, std::filesystem::perms::none);
    CHECK(contains(error(secret), "secret: cannot be opened: Permission denied"));
  }
  const MaxInput wrong("lots");
  CHECK(contains(error(sparse), "CAIRN_MAX_INPUT 'lots' is not a number of bytes"));
}

TEST_CASE("a pipe without an end stops at the limit, and a silent one when it is told to", "[formats]") {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  signal(SIGPIPE, SIG_IGN);
  SECTION("endless") {
    const MaxInput limit("3MiB");
    std::thread writer([&] {
      const int file = ::open(pipe.c_str(), O_WRONLY);
      const std::string piece(1 << 16, ' ');
      while (::write(file, piece.data(), piece.size()) > 0) {
      }
      ::close(file);
    });
    CHECK(contains(error_of([&] { read_file(pipe); }), "pipe: has more than the 3145728 bytes"));
    writer.join();
  }
  SECTION("silent: nobody ever opens it for writing") {
    const std::atomic<bool> stop = true;
    CHECK_THROWS_AS(read_file(pipe, {.limit = {.stop = &stop}}), InterruptedError);
    CHECK_THROWS_AS(read_file(pipe, {.limit = {.seconds = 0.05}}), InterruptedError);
  }
  SECTION("in small pieces, compressed") {
    const std::string text = "some text", packed = gzip(text);
    std::size_t written = 0;  // is checked after the thread has ended, because Catch's checks are for one thread
    std::thread writer([&] {
      const int file = ::open(pipe.c_str(), O_WRONLY);
      for (const char c : packed) {
        written += ::write(file, &c, 1) == 1 ? 1 : 0;
        std::this_thread::yield();
      }
      ::close(file);
    });
    CHECK(read_file(pipe) == text);
    writer.join();
    CHECK(written == packed.size());
  }
}

TEST_CASE("reading tells how far it is", "[formats]") {
  const Folder folder;
  const std::string text = graph_file(R"({"name":"a","size":1})") + std::string(std::size_t{2} << 20, ' ');
  std::int64_t most = 0, total = 0;
  load_graph(folder.write("g.json", text), {.progress = [&](std::int64_t done, std::int64_t all) {
               most = std::max(most, done);
               total = std::max(total, all);
             }});
  CHECK(most >= (std::int64_t{2} << 20));
  CHECK(total == static_cast<std::int64_t>(text.size()));
}

}  // namespace cairn::core::formats_input_test
