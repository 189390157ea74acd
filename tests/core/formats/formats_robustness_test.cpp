// Tests inputs and outputs that earlier versions of Cairn handled wrongly.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <string>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/folder.h"
#include "cairn/tests/support/parse_error.h"

namespace cairn::core::formats_robustness_test {
namespace {

using tests::contains;
using tests::error_of;

std::string error_of_graph(const std::string& text) { return tests::parse_error(text, "g.json"); }

TEST_CASE("deeply nested JSON is one error, and brackets inside strings do not count", "[formats]") {
  const std::string deep(100'000, '[');
  CHECK(error_of_graph(deep + std::string(deep.size(), ']')).find("nested") != std::string::npos);
  const std::string named = R"({"format":"cairn.graph","version":1,"nodes":[{"name":")" + deep + R"(\"[","size":1}]})";
  CHECK(error_of_graph(named).empty());
  // The same limit of nesting applies to each line of a trace.
  const std::string start = R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"})";
  CHECK(
      error_of_graph(start + "\n" + deep + std::string(deep.size(), ']')).find("g.json: line 2: the JSON is nested") ==
      0);
}

TEST_CASE("a trace without operations is truncated", "[formats]") {
  CHECK(error_of_graph("{\"ANNOTATION\":\"START\",\"INSTRUCTION\":\"ANNOTATE\"}\n"
                       "{\"INSTRUCTION\":\"CONSTANT\",\"NAME\":\"x\"}\n"
                       "{\"INSTRUCTION\":\"MEMORY\",\"MEMORY\":\"8\",\"NAME\":\"x\"}\n")
            .find("truncated") != std::string::npos);
  CHECK(error_of_graph(R"({"ANNOTATION":"START","INSTRUCTION":"ANNOTATE"})").find("truncated") != std::string::npos);
  CHECK(error_of_graph("{\"INSTRUCTION\":\"CONSTANT\",\"NAME\":\"x\"}\n"
                       "{\"INSTRUCTION\":\"MEMORY\",\"MEMORY\":\"8\",\"NAME\":\"x\"}\n")
            .find("truncated") != std::string::npos);
}

TEST_CASE("invalid JSON is reported with the parser's reason on one line", "[formats]") {
  const auto check = [](const std::string& text, const std::string& end) {
    const std::string message = error_of_graph(text);
    INFO(message);
    CHECK(message.ends_with(end));
    CHECK(message.find('\n') == std::string::npos);
  };
  check(R"({"a":tru})", "line 1, column 9: this is not valid JSON (invalid literal)");
  check(R"({"a":1,})", "this is not valid JSON (unexpected '}'; expected string literal)");
  check("{\"a\":\"b\nc\"}", "must be escaped to \\u000A or \\n)");
  check(R"({"a":)", "the JSON ends too early; is the file truncated?");
}

TEST_CASE("columns that change a placement are honoured or refused, not ignored", "[formats]") {
  const auto specs = parse_minimalloc_csv(
      "id,lower,upper,size,alignment,gaps,hint\na,0,1,4,1,,7\nb,0,1,4,,,\nc,0,9,4,8,2-3,-1\n", "f");
  REQUIRE(specs.size() == 3);
  CHECK(specs[0].hint == 7);
  CHECK(specs[1].alignment == 1);
  CHECK_FALSE(specs[1].hint);
  CHECK(specs[2].alignment == 8);
  CHECK(specs[2].gaps == std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 3}});
  CHECK_FALSE(specs[2].hint);
  CHECK_THROWS_AS(parse_minimalloc_csv("id,lower,upper,size,gaps\na,0,9,4,2-3@0:2\n", "f"), InputError);
}

TEST_CASE("a schedule without the graph's fingerprint says so", "[formats]") {
  GraphBuilder builder;
  builder.add({.size = 1});
  const Graph graph = builder.build();
  CHECK(contains(
      error_of([&] { parse_schedule(R"({"format":"cairn.schedule","version":1,"steps":[0]})", "s.json", graph); }),
      "\"graph\" is missing"));
  // This graph has no name, so the message must not contain an empty name in quotes.
  const std::string other = error_of(
      [&] { parse_schedule(R"({"format":"cairn.schedule","version":1,"graph":"0","steps":[0]})", "s.json", graph); });
  CHECK(contains(other, "this graph has " + graph.fingerprint()));
  CHECK_FALSE(contains(other, "''"));
}

TEST_CASE("writing follows a link and keeps permissions", "[formats]") {
  const tests::Folder folder;
  const std::string file = folder / "file", link = folder / "link";
  write_file(file, "old");
  std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::create_symlink(file, link);
  write_file(link, "new");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read_file(file) == "new");
  CHECK((std::filesystem::status(file).permissions() ==
         (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)));
  CHECK(folder.entries() == 2);

  // A link may point to a file that does not exist yet. The path in the link is relative to the link's folder. Writing
  // to the link must make the file there.
  std::filesystem::create_symlink("later", folder / "dangling");
  write_file(folder / "dangling", "made");
  CHECK(std::filesystem::is_symlink(folder / "dangling"));
  CHECK(read_file(folder / "later") == "made");
  std::filesystem::create_symlink("circle", folder / "circle");
  CHECK_THROWS_AS(write_file(folder / "circle", "x"), InputError);
}

TEST_CASE("devices, pipes and open descriptors are written to, not replaced", "[formats]") {
  namespace fs = std::filesystem;
  const tests::Folder folder;

  write_file("/dev/null", "x");
  CHECK(fs::is_character_file("/dev/null"));

  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_file(pipe, "piped");
  std::array<char, 16> read{};
  CHECK(::read(reader, read.data(), read.size()) == 5);
  CHECK(std::string(read.data()) == "piped");
  ::close(reader);
  CHECK(fs::is_fifo(pipe));

  // If /dev/stdout is redirected to a file, a descriptor of the file that was opened earlier must see what is written.
  // In this test, /dev/fd/N takes the place of /dev/stdout.
  const std::string file = folder / "file";
  const int held = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND, 0600);
  REQUIRE(::write(held, "a", 1) == 1);
  write_file(fmt::format("/dev/fd/{}", held), "b");
  REQUIRE(::write(held, "c", 1) == 1);
  ::close(held);
  CHECK(read_file(file) == "abc");
}

TEST_CASE("long reads end when they are told to, with the file's name", "[formats]") {
  const std::string filler(1 << 18, ' ');
  std::string csv = "id,lower,upper,size\n", trace;
  for (int i = 0; i < 20'000; ++i) {
    csv += fmt::format("b{},0,1,4\n", i);
    trace += fmt::format(R"({{"INSTRUCTION":"CONSTANT","NAME":"x{}"}})", i) + "\n";
  }
  const std::string json = R"({"format":"cairn.graph","version":1,)" + filler + R"("nodes":[]})";
  const std::atomic<bool> stop = true;
  for (const Limit& limit : {Limit{.stop = &stop}, Limit{.work = 10'000}, Limit{.seconds = -1}}) {
    for (const std::string& text : {json, trace}) {
      try {
        parse_graph(text, "long.file", {.limit = limit});
        FAIL("was read to its end");
      } catch (const InterruptedError& error) {
        CHECK(std::string(error.what()).starts_with("long.file: "));
      }
    }
    CHECK_THROWS_AS(parse_minimalloc_csv(csv, "b.csv", {.limit = limit}), InterruptedError);
  }
  CHECK(parse_graph(json, "long.file", {.limit = {.work = 1 << 20}}).node_count() == 0);
  CHECK(parse_minimalloc_csv(csv, "b.csv").size() == 20'000);
}

}  // namespace
}  // namespace cairn::core::formats_robustness_test
