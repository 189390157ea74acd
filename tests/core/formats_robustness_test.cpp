// Inputs and outputs that once went wrong.
#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/formats/files.h"
#include "core/plan.h"
#include "tests/catch.h"

namespace cairn::core {
namespace {

std::string error_of_graph(const std::string& text) {
  try {
    parse_graph(text, "g.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("deeply nested JSON is one error, and brackets inside strings do not count") {
  const std::string deep(100'000, '[');
  CHECK(error_of_graph(deep + std::string(deep.size(), ']')).find("nested") != std::string::npos);
  const std::string named = R"({"format":"cairn.graph","version":1,"nodes":[{"name":")" + deep + R"(\"[","size":1}]})";
  CHECK(error_of_graph(named).empty());
}

TEST_CASE("a trace without operations is truncated") {
  CHECK(error_of_graph("{\"ANNOTATION\":\"START\",\"INSTRUCTION\":\"ANNOTATE\"}\n"
                       "{\"INSTRUCTION\":\"CONSTANT\",\"NAME\":\"x\"}\n"
                       "{\"INSTRUCTION\":\"MEMORY\",\"MEMORY\":\"8\",\"NAME\":\"x\"}\n")
            .find("truncated") != std::string::npos);
}

TEST_CASE("columns that would change a placement are refused, not ignored") {
  CHECK(parse_minimalloc_csv("id,lower,upper,size,alignment,gaps,hint\na,0,1,4,1,,7\nb,0,1,4,,,\n", "f").size() == 2);
  CHECK_THROWS_AS(parse_minimalloc_csv("id,lower,upper,size,alignment\na,0,1,4,8\n", "f"), InputError);
  CHECK_THROWS_AS(parse_minimalloc_csv("id,lower,upper,size,gaps\na,0,9,4,2-3\n", "f"), InputError);
}

TEST_CASE("a schedule without the graph's fingerprint says so") {
  GraphBuilder builder;
  builder.add({.size = 1});
  const Graph graph = builder.build();
  try {
    parse_schedule(R"({"format":"cairn.schedule","version":1,"steps":[0]})", "s.json", graph);
    FAIL("accepted");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("\"graph\" is missing") != std::string::npos);
  }
}

TEST_CASE("writing follows a link and keeps permissions") {
  const auto folder = std::filesystem::temp_directory_path() / "cairn_formats_robustness_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string file = folder / "file", link = folder / "link";
  write_file(file, "old");
  std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::create_symlink(file, link);
  write_file(link, "new");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read_file(file) == "new");
  CHECK((std::filesystem::status(file).permissions() ==
         (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)));
  CHECK(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()) == 2);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cairn::core
