#include "cairn/core/support/text.h"

#include <array>
#include <limits>
#include <string>

#include "cairn/core/error.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::text_test {

using namespace cairn::core;

namespace {
constexpr std::array<std::string_view, 4> kNames{"none", "greedy", "chen", "tw"};

std::string message_of(std::string_view budget, std::int64_t baseline_peak) {
  return cairn::tests::error_of([&] { parse_budget(budget, baseline_peak); });
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

TEST_CASE("format_bytes_up gives a size that, read as a budget, is no less", "[text]") {
  CHECK(format_bytes_up(0) == "0 B");
  CHECK(format_bytes_up(1023) == "1023 B");
  CHECK(format_bytes_up(1024) == "1.00 KiB");
  CHECK(format_bytes_up(1025) == "1.01 KiB");
  CHECK(format_bytes_up(4592640) == "4.38 MiB");
  CHECK(format_bytes_up(1024 * 1024 - 1) == "1.00 MiB");
  cairn::tests::Random random(7);
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t bytes = 1 + random.below(std::int64_t{1} << random.between(1, 60));
    INFO(bytes);
    const std::int64_t read = parse_budget(format_bytes_up(bytes), 0);
    CHECK(read >= bytes);
    CHECK(read - bytes <= bytes / 100 + 1);
  }
}

TEST_CASE("abridged text keeps its beginning and its end", "[text]") {
  CHECK(abridged("resnet50", 8) == "resnet50");
  CHECK(abridged("a/long/path/to/graph.json", 15) == "a/long...h.json");
  CHECK(abridged("a\nb", 10) == "a\\nb");
  CHECK(abridged("", 0).empty());
  CHECK(abridged("abcdef", 2) == "...");
  const std::string wide = "\u8a08\u7b97\u8a08\u7b97\u8a08\u7b97";
  CHECK(display_width(wide) == 12);
  CHECK(display_width(abridged(wide, 9)) <= 9);
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
  CHECK(parse_budget("1e9", 0) == 1'000'000'000);
  CHECK(parse_budget("1.5E3", 0) == 1500);
  CHECK(parse_budget("1PiB", 0) == std::int64_t{1} << 50);
  CHECK(parse_budget("1eb", 0) == 1'000'000'000'000'000'000);
  CHECK(parse_budget("7.5EiB", 0) == std::int64_t{15} << 59);
  CHECK(parse_budget("1e3MiB", 0) == 1000 << 20);
  CHECK(parse_budget("2.5e-1 KiB", 0) == 256);
  CHECK(parse_budget("12.345e2kB", 0) == 1'234'500);
  CHECK(parse_budget("8e1%", 100) == 80);
}

TEST_CASE("a budget may be 0, which graphs without any bytes meet, and a size may not", "[text]") {
  for (const std::string_view none : {"0", "00", "0B", "0.0GiB", "0e3", "0%", "0.0%"}) {
    INFO(none);
    CHECK(parse_budget(none, 0) == 0);
    CHECK(parse_budget(none, 1000) == 0);
    std::int64_t bytes = 0;
    CHECK(!size_fault(none, bytes).empty());
  }
  CHECK(parse_budget("80%", 0) == 0);
}

TEST_CASE("parse_budget rounds a share of the baseline up, without floating point", "[text]") {
  CHECK(parse_budget("80%", 100) == 80);
  CHECK(parse_budget("80%", 46320) == 37056);
  CHECK(parse_budget("90%", 46319) == 41688);  // rounded up from 41687.1
  CHECK(parse_budget("0.1%", 1000) == 1);
  CHECK(parse_budget("33.3333333%", 3) == 1);
  CHECK(parse_budget("150%", 100) == 150);
  // A double cannot hold this peak exactly, but 100% of it must be exactly this peak.
  const std::int64_t odd = (std::int64_t{1} << 62) - 1;
  CHECK(parse_budget("100%", odd) == odd);
  CHECK(parse_budget("50 %", odd) == std::int64_t{1} << 61);
}

TEST_CASE("parse_budget refuses everything else and says what is accepted", "[text]") {
  for (const std::string_view bad : {"",
                                     "abc",
                                     "-1",
                                     "-5GiB",
                                     "101x",
                                     "5 quux",
                                     "1..5",
                                     "1.2.3",
                                     ".",
                                     "%",
                                     "1e-1",
                                     "1e19",
                                     "1e",
                                     "1e10GiB",
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
  CHECK(message_of("1000%", std::int64_t{1} << 62).find("too large") != std::string::npos);
  for (const std::string_view large : {"1e30%", "1e30", "1e30MiB", "8EiB",
                                       "1"
                                       "00000000000000000000000000000000"}) {
    INFO(large);
    CHECK(message_of(large, 1000).find("is too large") != std::string::npos);
  }
  CHECK(message_of("0.00000000000000000000001GiB", 1000).find("has too many digits") != std::string::npos);
  CHECK(message_of("1e-3", 1000).find("is not a whole number of bytes") != std::string::npos);
  CHECK(message_of("1e3quux", 1000).find("has the unknown unit 'quux'") != std::string::npos);
}

TEST_CASE("size_fault says what keeps a text from being a size", "[text]") {
  std::int64_t bytes = 0;
  CHECK(size_fault(" 1PiB ", bytes) == "");
  CHECK(bytes == std::int64_t{1} << 50);
  CHECK(size_fault("80%", bytes) == "is a share");
  CHECK(size_fault("-1GiB", bytes) == "is negative");
  CHECK(size_fault("0", bytes) == "is not positive");
  CHECK(size_fault("0e5", bytes) == "is not positive");
  CHECK(size_fault("9EiB", bytes) == "is too large");
  CHECK(size_fault("3 apples", bytes) == "has the unknown unit 'apples'");
  CHECK(size_fault("lots", bytes) == "is not a number of bytes");
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

TEST_CASE("parse_whole reads whole numbers in any spelling, exactly", "[text]") {
  const auto whole = [](std::string_view text) {
    std::int64_t value = -1;
    INFO(text);
    REQUIRE(parse_whole(text, value) == NumberFault::none);
    return value;
  };
  CHECK(whole("4096") == 4096);
  CHECK(whole("-7") == -7);
  CHECK(whole("+3") == 3);
  CHECK(whole("4.0") == 4);
  CHECK(whole("1e3") == 1000);
  CHECK(whole("12.50e1") == 125);
  CHECK(whole("1200e-2") == 12);
  CHECK(whole("-0.0") == 0);
  CHECK(whole("0e99999999999999999999") == 0);
  CHECK(whole("9007199254740993.0") == 9007199254740993);  // a double cannot hold this number
  CHECK(whole("9223372036854775807.000") == std::numeric_limits<std::int64_t>::max());
  CHECK(whole("-9.223372036854775808e18") == std::numeric_limits<std::int64_t>::min());

  const auto fault = [](std::string_view text) {
    std::int64_t value = 0;
    return parse_whole(text, value);
  };
  for (const std::string_view text : {"4.5", "1e-1", "-0.1", "15e-1", "1e-99999999999999999999"})
    CHECK(fault(text) == NumberFault::fraction);
  for (const std::string_view text : {"9223372036854775808", "1e19", "-9223372036854775809", "99999999999999999999",
                                      "9223372036854775807.0e1", "1e99999999999999999999"})
    CHECK(fault(text) == NumberFault::too_large);
  for (const std::string_view text :
       {"", "-", ".", "x", "1x", "1e", "1e+", "1e+-2", "1..2", "1.2.3", "0x10", "nan", "inf", " 1", "1 ", "--1", "e3"})
    CHECK(fault(text) == NumberFault::no_number);
}

TEST_CASE("printable shows control characters and nothing but them differently", "[text]") {
  CHECK(printable("conv1 (3x3), größer 网络 🙂") == "conv1 (3x3), größer 网络 🙂");
  CHECK(printable("a\nb\tc\rd") == "a\\nb\\tc\\rd");
  CHECK(printable("\x1b[31mred\x7f") == "\\x1b[31mred\\x7f");
  CHECK(printable(std::string_view("\0x", 2)) == "\\x00x");
  // The next text is the control sequence introducer (CSI) as one character, U+009B.
  CHECK(printable("\xc2\x9b") == "\\x9b");
  CHECK(printable("a\u202eb\u2028") == "a\\u202eb\\u2028");  // right-to-left override; line separator
  CHECK(printable("\xff\xc3") == "\\xff\\xc3");              // bytes that are not UTF-8
  // The next text has an overlong encoding, and one half of a surrogate pair.
  CHECK(printable("\xc0\x8a\xed\xa0\x80") == "\\xc0\\x8a\\xed\\xa0\\x80");
  cairn::tests::Random random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::int64_t n = random.between(0, 12); n > 0; --n) text += static_cast<char>(random.below(256));
    const std::string shown = printable(text);
    for (const char c : shown) CHECK((static_cast<unsigned char>(c) >= ' ' && c != '\x7f'));
    CHECK(printable(shown) == shown);
  }
}

TEST_CASE("display_width counts columns, and cut_to_width cuts whole characters", "[text]") {
  CHECK(display_width("conv1") == 5);
  CHECK(display_width("größe") == 5);
  CHECK(display_width("网络") == 4);
  CHECK(display_width("e\u0301") == 1);
  CHECK(display_width("🙂") == 2);
  CHECK(display_width("\033[32m##\033[0m") == 2);
  CHECK(cut_to_width("网络", 3) == "网");
  CHECK(cut_to_width("网络", 4) == "网络");
  CHECK(cut_to_width("größe", 3) == "grö");
  CHECK(cut_to_width("\033[32m####\033[0m", 2) == "\033[32m##\033[0m");
  CHECK(cut_to_width("abc", 0).empty());
  cairn::tests::Random random(2);
  constexpr std::array<std::string_view, 6> kPieces{"a", "网", "e\u0301", "🙂", "\033[1m", "\033[0m"};
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (std::int64_t n = random.between(0, 20); n > 0; --n)
      text += kPieces[static_cast<std::size_t>(random.below(kPieces.size()))];
    for (std::size_t columns = 0; columns < 24; ++columns) {
      const std::size_t width = display_width(cut_to_width(text, columns));
      CHECK(width <= columns);
      // If the next character is two columns wide, the result may be one column narrower than allowed. It must not be
      // narrower than that.
      if (display_width(text) > columns) CHECK(width + 1 >= columns);
      if (display_width(text) <= columns) CHECK(width == display_width(text));
    }
  }
}

}  // namespace cairn::text_test
