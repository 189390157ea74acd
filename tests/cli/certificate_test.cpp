// Tests that `solve --certificate` writes a file which agrees with the bound that `solve` prints.
// tests/reference/certificate_test.py tests whether such a file proves the bound.
#include "cairn/core/formats/files.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::certificate_test {

TEST_CASE("a certificate says what the answer's bound says") {
  const Folder folder;
  const std::string file = folder / "c.json";
  const Json json = run_json({"solve", "ffn", "--budget", "70%", "--certificate", file});
  const Json certificate = Json::parse(core::read_file(file));
  CHECK(json["status"] == "optimal");
  CHECK(json["certificate"]["proves_bound"] == true);
  CHECK(json["certificate"]["least_cost"] == json["cost"]);
  check_fields(certificate, {{"format", "cairn.certificate"},
                             {"version", 1},
                             {"fingerprint", json["fingerprint"]},
                             {"least_cost", json["cost"]},
                             {"alignment", json["alignment"]},
                             {"order", "free"}});
  CHECK(certificate["moments"].size() == json["certificate"]["moments"]);
  CHECK(certificate["steps"].size() == json["steps"]);
  check_says(run_command({"solve", "ffn", "--budget", "70%", "--certificate", file}).out,
             {"\ncertificate  proves all of the bound"});
}

TEST_CASE("a certificate that no schedule fits is written although the command fails") {
  const Folder folder;
  const std::string file = folder / "c.json";
  const auto result = run_command({"solve", "ffn", "--budget", "10%", "--certificate", file, "--json"});
  CHECK(result.code == 3);
  CHECK(Json::parse(result.out)["certificate"]["proves_bound"] == true);
  const Json certificate = Json::parse(core::read_file(file));
  CHECK(certificate["least_cost"].is_null());
  CHECK(certificate["steps"].is_null());
}

TEST_CASE("a certificate of the least peak within a cost is about the budget below that peak") {
  const Folder folder;
  const std::string file = folder / "c.json";
  const Json json = run_json({"solve", "ffn", "--max-cost", "0%", "--certificate", file});
  CHECK(json["certificate"]["budget_bytes"].get<std::int64_t>() < json["peak_bytes"].get<std::int64_t>());
  CHECK(Json::parse(core::read_file(file))["budget_bytes"] == json["certificate"]["budget_bytes"]);
}

TEST_CASE("a certificate needs a bound on costs") {
  const Folder folder;
  const std::string file = folder / "c.json";
  const auto refuses = [&](const Words& words, const std::string& text) {
    check_error(Words{"solve", "ffn", "--certificate", file} + words, 2, {text});
    CHECK_FALSE(std::filesystem::exists(file));
  };
  refuses({}, "--certificate is about the cost within a budget: give --budget (not min) or --max-cost");
  refuses({"--budget", "min"}, "--certificate is about the cost within a budget");
  refuses({"--budget", "70%", "--link", "pcie4"}, "--certificate does not go with --link");
  refuses({"--solver", "tw", "--sweep", folder / "s.csv"}, "--certificate does not go with --sweep");
  check_error({"solve", "ffn", "--budget", "70%", "--certificate", folder / "none/c.json"}, 2, {"none/c.json"});
}

}  // namespace cairn::tests::certificate_test
