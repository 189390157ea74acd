#include "cairn/core/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cairn/core/formats/files.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/solvers/plan/plan_cases.h"
#include "cairn/tests/support/report_data.h"

namespace cairn::tests::plan_test {
namespace {

const std::string kExample = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

Json json_of(const Words& words, int code = 0) { return run_json(Words{"plan"} + words, code); }

Json report_data(const std::string& path) { return data_of_page(read_text(path)); }

/// Returns a plan of the buffers `specs`, which were read from a CSV file. Every buffer must have an offset.
core::Plan plan_in(const std::vector<core::BufferSpec>& specs) {
  core::Plan plan;
  for (const core::BufferSpec& spec : specs) {
    const auto place = static_cast<core::NodeId>(plan.buffers.size());
    plan.buffers.push_back(
        {.node = place, .first = spec.lower, .last = spec.upper - 1, .size = spec.size, .offset = spec.offset.value()});
    plan.bytes = std::max(plan.bytes, *spec.offset + spec.size);
  }
  return plan;
}

/// Checks the plan in the file `output` for the buffers in the file `csv`. Returns the faults as text, or an empty
/// string if there are none.
std::string plan_faults(const std::string& csv, const std::string& output,
                        const std::vector<core::AddressRange>& forbidden = {}) {
  return core::check_specs(core::load_minimalloc_csv(csv), forbidden, plan_in(core::load_minimalloc_csv(output)));
}

/// The least height, in bytes, of any plan for the buffers of hard_problem().
constexpr std::int64_t kHardHeight = 1 << 20;
/// Returns about 4,000 buffers as CSV. They fill a rectangle of time and addresses without gaps, so the least height of
/// a plan is known. But with so many buffers, a test has not enough time to find a plan of that height.
std::string hard_problem() {
  Random random(7);
  std::string csv = "id,lower,upper,size\n";
  int id = 0;
  for (const auto& b : full_problem(random, FullKind::partition, kHardHeight, 4000))
    csv += fmt::format("{},{},{},{}\n", id++, b.first, b.end, b.upper - b.lower);
  return csv;
}

}  // namespace

TEST_CASE("plan says how good a plan is") {
  const Folder folder;
  const std::string csv = folder.write("b.csv", kExample);
  const Json json = json_of({"--buffers", csv, "--capacity", "12"});
  check_fields(json, {{"status", "optimal"},
                      {"planned_bytes", 12},
                      {"proved_bytes", 12},
                      {"lower_bound_bytes", 12},
                      {"gap_pct", 0},
                      {"timed_out", false}});
  CHECK(json["seconds"].get<double>() >= 0);
  check_fields(json, {{"capacity_bytes", 12}, {"fits", true}});
  const Outcome table = run_command({"plan", "--buffers", csv});
  CHECK(contains(table.out, "12 bytes: proved least"));

  for (const Words& words : {Words{"--minimize"},
                             {"--minimize", "--capacity", "20"},
                             {"--bank", "12"},
                             {"--minimize", "--capacity", "12B", "--time-limit", "10s"}})
    CHECK(json_of(Words{"--buffers", csv} + words)["planned_bytes"] == 12);
}

TEST_CASE("a capacity that is proved too small is exit code 3 with the buffers that conflict") {
  const Folder folder;
  const std::string csv = folder.write("b.csv", kExample + "b6,30,31,1\n"), report = folder / "r.html";
  for (const bool minimize : {false, true}) {
    Words words{"--buffers", csv, "--capacity", "11", "--report", report, "-o", folder / "no.csv"};
    if (minimize) words.push_back("--minimize");
    const Json json = json_of(words, 3);
    check_fields(json, {{"status", "infeasible"},
                        {"fits", false},
                        {"planned_bytes", 12},
                        {"proved_bytes", 12},
                        {"conflict_irreducible", true}});
    // The conflict consists of three buffers that are live at once: b3, b5, and either b1 or its successor b2.
    const auto ids = json["conflict"].get<std::set<std::string>>();
    CHECK((ids == std::set<std::string>{"b1", "b3", "b5"} || ids == std::set<std::string>{"b2", "b3", "b5"}));
    CHECK(report_data(report)["tracks"][0]["conflict"].size() == 3);
    CHECK_FALSE(std::filesystem::exists(folder / "no.csv"));
  }
  check_error(
      {"plan", "--buffers", csv, "--capacity", "11"}, 3,
      {"fits into 11 bytes\n  12 bytes are live at once\n", "  3 buffers alone do not fit: b", "12 bytes are known"});
}

TEST_CASE("a plan that is neither found nor excluded is exit code 4") {
  const Folder folder;
  const std::string csv = folder.write("hard.csv", hard_problem()), capacity = std::to_string(kHardHeight);
  const Json json = json_of({"--buffers", csv, "--capacity", capacity, "--time-limit", "50ms"}, 4);
  check_fields(json, {{"status", "not_found"}, {"fits", false}, {"timed_out", true}, {"proved_bytes", kHardHeight}});
  CHECK(json["planned_bytes"].get<std::int64_t>() > kHardHeight);
  check_error({"plan", "--buffers", csv, "--capacity", capacity, "-t", "50ms"}, 4,
              {"found no plan", "within 1.00 MiB", "; not proved impossible"});
  const Outcome table = run_command({"plan", "--buffers", csv, "-t", "50ms"});
  CHECK(table.code == 0);
  CHECK(contains(table.out, "above the least, which is 1.00 MiB (1048576 bytes) or more"));
}

TEST_CASE("Ctrl-C in plan writes the best plan and exits with 130") {
  const Folder folder;
  const std::string csv = folder.write("hard.csv", hard_problem()), output = folder / "out.csv";
  for (const Words& more : {Words{"--minimize"}, Words{"--capacity", std::to_string(kHardHeight)}}) {
    const Outcome outcome =
        interrupted(Words{"plan", "--buffers", csv, "--time-limit", "10m", "-o", output, "--json"} + more);
    CHECK(contains(outcome.err, "interrupted; the best plan so far needs"));
    const core::Plan plan = plan_in(core::load_minimalloc_csv(output));
    CHECK(core::check_specs(core::load_minimalloc_csv(csv), {}, plan) == "");
    CHECK(outcome.json()["planned_bytes"] == plan.bytes);
    std::filesystem::remove(output);
  }
}

TEST_CASE("plan honours every column, and its output is a problem again") {
  const Folder folder;
  const std::string csv = folder.write(
      "b.csv",
      "id,start,end,size,alignment,offset,hint,gaps\n"
      "a,0,29,4096,256,0,,5-11 16-19\nb,5,11,4096,256,,,\nc,2,27,2048,64,8192,-1,\nd,10,39,1000,64,,4096,22-29\n");
  const std::string output = folder / "out.csv", again = folder / "again.csv";
  const Json json = json_of({"--buffers", csv, "-o", output});
  check_fields(json, {{"planned_bytes", 10240}, {"status", "optimal"}});
  const auto specs = core::load_minimalloc_csv(csv), placed = core::load_minimalloc_csv(output);
  REQUIRE(placed.size() == 4);
  CHECK(core::check_specs(specs, {}, plan_in(placed)) == "");
  CHECK(placed[0].gaps == specs[0].gaps);
  CHECK(placed[1].offset == 0);
  CHECK(placed[1].alignment == 256);
  json_of({"--buffers", output, "-o", again});
  CHECK(read_text(again) == read_text(output));
}

TEST_CASE("plan keeps off forbidden addresses and out of the seams between banks") {
  const Folder folder;
  const std::string csv = folder.write("b.csv", "id,lower,upper,size\na,0,9,6\nb,0,9,6\nc,0,9,3\n");
  const std::string output = folder / "out.csv";
  json_of({"--buffers", csv, "--bank", "8", "--bank", "10", "-o", output});
  CHECK(plan_faults(csv, output, {{8, 8}}) == "");
  // 20 contiguous bytes of addresses suffice. Four banks of 5 bytes do not suffice, because no buffer may cross from
  // one bank into the next.
  CHECK(json_of({"--buffers", csv, "--capacity", "20"})["fits"] == true);
  const auto pieces =
      run_command({"plan", "--buffers", csv, "--bank", "5", "--bank", "5", "--bank", "5", "--bank", "5"});
  CHECK(pieces.code == 3);

  const Json json = json_of({"--buffers", csv, "--forbid", "0:6", "--forbid", "12:14", "-o", output});
  CHECK(json["planned_bytes"] == 23);
  CHECK(plan_faults(csv, output, {{0, 6}, {12, 14}}) == "");
}

TEST_CASE("a fixed offset beyond the capacity proves that no plan fits") {
  const Folder folder;
  const std::string fixed = "id,lower,upper,size,offset\n";
  const std::string csv = folder.write("high.csv", fixed + "a,0,5,8,0\nhigh,0,5,8,12\nhigher,6,7,8,19\nfree,0,7,9,\n");
  const std::string top = folder.write("top.csv", fixed + "none,0,5,0,99\n"), page = folder / "p.html";
  for (const Words& words : {Words{"--capacity", "16"}, {"--capacity", "16", "--minimize"}, {"--bank", "16"}}) {
    const Words command = Words{"plan", "--buffers", csv, "-o", folder / "o.csv", "--report", page} + words;
    check_error(command, 3, {"high.csv' fits into 16", "'high'", "beyond the capacity of 16", "are known to suffice"});
    CHECK(!std::filesystem::exists(folder / "o.csv"));
    CHECK(std::filesystem::exists(page));
    const auto json = run_json(command, 3);
    check_fields(json, {{"status", "infeasible"},
                        {"fits", false},
                        {"capacity_bytes", 16},
                        {"exit_code", 3},
                        {"conflict", Json({"high"})},
                        {"conflict_irreducible", true}});
    const std::int64_t suffices = json["planned_bytes"];
    CHECK(suffices >= 27);
    CHECK(run_command({"plan", "--buffers", csv, "--capacity", std::to_string(suffices)}).code == 0);
    check_error(Words{"plan", "--buffers", top} + words, 3, {"99"});
  }
}

TEST_CASE("hints are the offsets of an earlier plan, by id") {
  const Folder folder;
  const std::string csv = folder.write("b.csv", "id,lower,upper,size\na,0,9,6\nb,0,9,6\nnew,0,9,3\n");
  const std::string earlier = folder.write("p.csv", "offset,id,lower,upper,size\n3,b,0,9,6\n9,a,0,9,6\n0,old,0,9,3\n");
  const std::string output = folder / "out.csv";
  CHECK(json_of({"--buffers", csv, "--hints", earlier, "-o", output})["planned_bytes"] == 15);
  CHECK(plan_faults(csv, output) == "");
  check_error({"plan", "--buffers", csv, "--hints", csv}, 2, {"b.csv", "no buffer has an offset"});
  check_error({"plan", "--buffers", csv, "--hints", folder / "none.csv"}, 2, {"none.csv"});
  check_error({"plan", "--buffers", csv, "--hints", earlier, "-o", earlier}, 2, {"-o", "--hints"});
}

TEST_CASE("bad input of plan is one line and exit code 2") {
  const Folder folder;
  const std::string csv = folder.write("b.csv", kExample);
  const auto check_option = [&](const Words& words, const Words& fragments) {
    check_error(Words{"plan", "--buffers", csv} + words, 2, fragments);
  };
  const auto check_rows = [&](const std::string& text, const Words& fragments, const Words& words = {}) {
    const std::string bad = folder.write("bad.csv", text);
    check_error(Words{"plan", "--buffers", bad} + words, 2, fragments + Words{"bad.csv"});
  };
  const std::string head = "id,lower,upper,size", fixed = head + ",offset\n";
  for (const std::string capacity : {"0", "-1", "0MiB", "much", "99999999999GiB"})
    check_option({"--capacity", capacity}, {"--capacity '" + capacity + "'", "above 0"});
  check_option({"--bank", "0"}, {"--bank '0'"});
  check_option({"--bank", "8", "--capacity", "16"}, {"--capacity", "sum of the banks"});
  check_option({"--bank", "4000000000GiB", "--bank", "4000000000GiB"}, {"2^62"});
  for (const std::string range : {"4096", "8:4", "8:8", "-4:8", "a:b", ":", "1:", "1:2:3", "5%:7", "10:7EiB"})
    check_option({"--forbid=" + range}, {"--forbid '" + range + "' is not a range of addresses", "4096:8192"});
  check_option({"--time-limit", "soon"}, {"soon"});
  check_rows(head + "\na,0,2,1\nb,3,3,1\n", {"line 3", "upper (3) must be above lower (3)"});
  check_rows(head + "\na,0,2,-1\n", {"line 2", "size is -1"});
  check_rows("id,lower,size\na,0,2\n", {"line 1", "'upper' is missing"});
  check_rows(head + "\na,0,2,4611686018427387000\nb,5,6,4611686018427387000\n", {"line 3", "2^62"});
  check_rows(head + ",alignment\na,0,2,8,0\n", {"line 2", "alignment is 0"});
  check_rows(fixed + "a,0,2,8,-8\n", {"line 2", "offset is -8"});
  check_rows(head + ",gaps\na,0,9,8,7-12\n", {"line 2", "'7-12'", "lifetime 0-9"});
  check_rows(head + ",gaps\na,0,9,8,5-7@0:16\n", {"line 2", "windows", "not supported"});
  check_rows(fixed + "first,0,5,8,0\nfree,0,9,8,\nsecond,4,9,8,7\n", {"'first'", "'second'", "overlap"});
  check_rows(fixed + "a,0,5,8,12\n", {"'a'", "wall at 16"}, {"--bank", "16", "--bank", "16"});
  check_rows(fixed + "a,0,5,8,12\n", {"'a'", "forbidden bytes [16, 32)"}, {"--forbid", "16:32"});
  check_rows(fixed + "a,0,5,8,12\n", {"'a'", "not aligned to 8"}, {"--alignment", "8"});
  const std::string graph = folder.write("g.json", diamond_graph());
  for (const Words& words :
       {Words{"--capacity", "9"}, {"--bank", "9"}, {"--forbid", "0:9"}, {"--hints", csv}, {"--minimize"}})
    check_error(Words{"plan", graph, "s.json"} + words, 2, {words[0], "--buffers"});
}

TEST_CASE("the page of a plan") {
  const Folder folder;
  const std::string page = folder / "p.html";
  SECTION("of buffers, a rectangle each and between gaps") {
    const std::string csv =
        folder.write("b.csv", "id,lower,upper,size,gaps\n<a>,0,20,64,5-7\nact_1,0,9,32,\nw,5,7,64,\n");
    const Json json = json_of({"--buffers", csv, "--capacity", "150", "--forbid", "100:120", "--report", page});
    const Json data = report_data(page), track = data["tracks"][0];
    check_fields(track["lives"],
                 {{"tensor", Json({0, 0, 1, 2})}, {"first", Json({0, 7, 0, 5})}, {"last", Json({4, 19, 8, 6})}});
    CHECK(data["tensors"]["name"] == Json({"<a>", "act_1", "w"}));
    check_fields(track, {{"at", Json({0, 5, 7, 9})}, {"bytes", Json({96, 96, 96, 64})}});
    CHECK(track["peak"]["bytes"] == json["lower_bound_bytes"]);
    CHECK(data["forbidden"] == Json::parse(R"([{"lower":100,"upper":120}])"));
    check_fields(data["levels"].back(), {{"name", "capacity"}, {"bytes", 150}});
  }
  SECTION("of a schedule") {
    const std::string graph = folder.write("g.json", diamond_graph()), schedule = folder / "s.json";
    REQUIRE(run_command({"solve", graph, "--solver", "none", "-q", "-o", schedule}).code == 0);
    const Json json = json_of({graph, schedule, "--report", page, "--time-limit", "1s"});
    check_fields(json, {{"status", "optimal"}, {"proved_bytes", 60}});
    const Json data = report_data(page);
    CHECK(data["tracks"][1]["lives"]["offset"].size() == 4);
    CHECK(data["tracks"][1]["arena_bytes"] == 60);
    CHECK(data["facts"][0]["note"] == "proved least");
  }
  SECTION("whose peak is the evaluator's, in-place buffers counted once") {
    const Words model{"resnet18", "--batch", "1", "--image", "32"};
    const std::string schedule = folder / "s.json";
    REQUIRE(run_command(Words{"solve", "--solver", "none", "-q", "-o", schedule} + model).code == 0);
    const Json json = json_of(Words{"--report", page, "--alignment", "16"} + model + Words{schedule});
    const Json track = report_data(page)["tracks"][1];
    CHECK(track["peak"]["bytes"] == json["peak_bytes"]);
    CHECK(track["arena_bytes"] == json["planned_bytes"]);
  }
  SECTION("of buffers at the end of time, of none, and of some without bytes") {
    for (const std::string rows :
         {"", "a,4611686018427387904,9223372036854775807,9\nb,4611686018427387904,4611686018427387905,9\n",
          "a,0,1,0\n"}) {
      json_of({"--buffers", folder.write("b.csv", "id,lower,upper,size\n" + rows), "--report", page});
      CHECK(report_data(page)["tracks"].size() == 1);
    }
  }
  SECTION("of very many buffers stays small") {
    std::string csv = "id,lower,upper,size\n";
    for (int i = 0; i < 50'000; ++i) csv += fmt::format("{},{},{},{}\n", i, i, i + 1 + i % 40, 1 + i % 97);
    const Json json = json_of({"--buffers", folder.write("b.csv", csv), "--report", page, "--capacity", "1GiB"});
    CHECK(std::filesystem::file_size(page) < 2'000'000);
    const Json track = report_data(page)["tracks"][0];
    CHECK(track["lives_of"] == 50'000);
    CHECK(track["lives_share"] > 0.4);
    CHECK(track["peak"]["bytes"] == json["lower_bound_bytes"]);
  }
}

}  // namespace cairn::tests::plan_test
