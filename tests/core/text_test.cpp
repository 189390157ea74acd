#include "cairn/core/text.h"

#include <array>
#include <limits>

#include "cairn/core/error.h"
#include "cairn/tests/catch.h"

using namespace cairn::core;

namespace {
constexpr std::array<std::string_view, 4> kNames{"none", "greedy", "chen", "tw"};

std::string message_of(std::string_view budget, std::int64_t baseline_peak) {
  try {
    parse_budget(budget, baseline_peak);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("nearest finds the name with the fewest edits within a third of the word", "[text]") {
  CHECK(nearest("greedy", kNames) == "greedy");
  CHECK(nearest("gredy", kNames) == "greedy");
  CHECK(nearest("chenn", kNames) == "chen");
  CHECK(nearest("checkmate", kNames).empty());
  CHECK(nearest("wt", {}).empty());
  CHECK(did_you_mean("graedy", kNames) == "; did you mean 'greedy'?");
  CHECK(did_you_mean("somethingelse", kNames).empty());
}

TEST_CASE("format_bytes uses binary units with two decimals", "[text]") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1024) == "1.00 KiB");
  CHECK(format_bytes(1536) == "1.50 KiB");
  CHECK(format_bytes(-1536) == "-1.50 KiB");
  CHECK(format_bytes(1024 * 1024 - 1) == "1.00 MiB");
  CHECK(format_bytes(std::int64_t{3} << 30) == "3.00 GiB");
  CHECK(format_bytes(std::numeric_limits<std::int64_t>::max()) == "8.00 EiB");
}

TEST_CASE("parse_budget reads bytes, sizes and shares exactly", "[text]") {
  CHECK(parse_budget("12345", 0) == 12345);
  CHECK(parse_budget(" 7 B ", 0) == 7);
  CHECK(parse_budget("9223372036854775807", 0) == std::numeric_limits<std::int64_t>::max());
  CHECK(parse_budget("1.5GiB", 0) == std::int64_t{3} << 29);
  CHECK(parse_budget("1.5 gib", 0) == std::int64_t{3} << 29);
  CHECK(parse_budget("200MB", 0) == 200'000'000);
  CHECK(parse_budget("3kB", 0) == 3000);
  CHECK(parse_budget("3KB", 0) == 3000);
  CHECK(parse_budget("2TiB", 0) == std::int64_t{2} << 40);
  CHECK(parse_budget("2TB", 0) == 2'000'000'000'000);
  CHECK(parse_budget(".5KiB", 0) == 512);
  CHECK(parse_budget("5.KiB", 0) == 5120);
  CHECK(parse_budget("0.0001KiB", 0) == 1);
  CHECK(parse_budget("1.00000000000000000000000KiB", 0) == 1024);
}

TEST_CASE("parse_budget rounds a share of the baseline up, without floating point", "[text]") {
  CHECK(parse_budget("80%", 100) == 80);
  CHECK(parse_budget("80%", 46320) == 37056);
  CHECK(parse_budget("90%", 46319) == 41688);  // 41687.1
  CHECK(parse_budget("0.1%", 1000) == 1);
  CHECK(parse_budget("33.3333333%", 3) == 1);
  CHECK(parse_budget("150%", 100) == 150);
  // A double cannot hold this peak: 100% must give it back.
  const std::int64_t odd = (std::int64_t{1} << 62) - 1;
  CHECK(parse_budget("100%", odd) == odd);
  CHECK(parse_budget("50 %", odd) == std::int64_t{1} << 61);
}

TEST_CASE("parse_budget refuses everything else and says what is accepted", "[text]") {
  for (const std::string_view bad : {"",
                                     "abc",
                                     "-1",
                                     "-5GiB",
                                     "0",
                                     "0%",
                                     "0.0GiB",
                                     "101x",
                                     "5 quux",
                                     "1..5",
                                     "1.2.3",
                                     ".",
                                     "%",
                                     "1e9",
                                     "+5",
                                     "nan",
                                     "inf",
                                     "0x10",
                                     "9223372036854775808",
                                     "99999999999999999999999",
                                     "99999999TiB",
                                     "1%%",
                                     "1 000"}) {
    INFO(bad);
    const std::string message = message_of(bad, 1000);
    CHECK(message.find("accepted are") != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
  CHECK(parse_budget("80%", 0) == 0);  // any schedule of such a graph fits
  CHECK(message_of("1000%", std::int64_t{1} << 62).find("too large") != std::string::npos);
}

TEST_CASE("parse_seconds reads durations", "[text]") {
  CHECK(parse_seconds("10s") == 10.0);
  CHECK(parse_seconds("10") == 10.0);
  CHECK(parse_seconds("500ms") == Approx(0.5));
  CHECK(parse_seconds("2m") == 120.0);
  CHECK(parse_seconds("1.5 h") == 5400.0);
  CHECK(parse_seconds("0") == 0.0);
  for (const std::string_view bad : {"", "s", "-1s", "ten", "10x", "nan", "inf", "1e999", "10s20", "0x5"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_seconds(bad), InputError);
  }
}
