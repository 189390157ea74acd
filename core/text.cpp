#include "cairn/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/error.h"

namespace cairn::core {
namespace {

// 19 digits times the largest unit, or times a peak below 2^63, still fit into 128 bits.
using Wide = unsigned __int128;
constexpr std::size_t kMaxDigits = 19;

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

/// The exact value of a decimal number: digits / denominator, and the text behind it.
struct Decimal {
  Wide digits = 0;
  Wide denominator = 1;
  std::string_view rest;
};

/// Empty where `text` does not begin with a plain decimal number, or where it has too many digits.
std::optional<Decimal> parse_decimal(std::string_view text) {
  const std::size_t number_end = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view number = text.substr(0, number_end);
  const std::size_t point = number.find('.');
  if (point != std::string_view::npos) {
    if (number.find('.', point + 1) != std::string_view::npos || number.size() == 1) return std::nullopt;
    while (number.back() == '0') number.remove_suffix(1);
  }
  if (number.empty()) return std::nullopt;

  Decimal value{.rest = trim(text.substr(number_end))};
  std::size_t significant = 0;
  bool behind_point = false;
  for (const char c : number) {
    if (!is_digit(c)) {
      behind_point = true;
      continue;
    }
    value.digits = value.digits * 10 + static_cast<unsigned>(c - '0');
    if (value.digits != 0 || behind_point) ++significant;
    if (significant > kMaxDigits) return std::nullopt;
    if (behind_point) value.denominator *= 10;
  }
  return value;
}

std::optional<std::int64_t> unit_bytes(std::string_view unit) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 14> kUnits{{
      {"", 1},
      {"b", 1},
      {"k", 1000},
      {"kb", 1000},
      {"m", 1000'000},
      {"mb", 1000'000},
      {"g", 1000'000'000},
      {"gb", 1000'000'000},
      {"t", 1000'000'000'000},
      {"tb", 1000'000'000'000},
      {"kib", std::int64_t{1} << 10},
      {"mib", std::int64_t{1} << 20},
      {"gib", std::int64_t{1} << 30},
      {"tib", std::int64_t{1} << 40},
  }};
  for (const auto& [name, bytes] : kUnits) {
    if (unit == name) return bytes;
  }
  return std::nullopt;
}

[[noreturn]] void bad_budget(std::string_view text, std::string_view why) {
  throw InputError(fmt::format(
      "budget '{}' {}; accepted are bytes (12345), a size (1.5GiB, 200MB) or a share of the baseline peak (80%)", text,
      why));
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view best = nearest(word, candidates);
  return best.empty() ? std::string() : fmt::format("; did you mean '{}'?", best);
}

std::string format_bytes(std::int64_t bytes) {
  static constexpr std::array<std::string_view, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (std::abs(static_cast<double>(bytes)) < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.995 would be printed as 1024.00.
  while (std::abs(value) >= 1023.995 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::int64_t parse_budget(std::string_view text, std::int64_t baseline_peak) {
  const std::string_view trimmed = trim(text);
  if (!trimmed.empty() && trimmed.front() == '-') bad_budget(trimmed, "is negative");
  const std::optional<Decimal> value = parse_decimal(trimmed);
  if (!value) bad_budget(trimmed, "is not a number of bytes");

  Wide numerator = value->digits;
  Wide denominator = value->denominator;
  if (value->rest == "%") {
    if (value->digits != 0 && baseline_peak <= 0) return 0;  // any schedule of such a graph fits
    numerator *= static_cast<Wide>(std::max<std::int64_t>(baseline_peak, 0));
    denominator *= 100;
  } else if (const auto bytes = unit_bytes(lower_case(value->rest))) {
    numerator *= static_cast<Wide>(*bytes);
  } else {
    bad_budget(trimmed, fmt::format("has the unknown unit '{}'", value->rest));
  }
  const Wide budget = (numerator + denominator - 1) / denominator;
  if (budget == 0) bad_budget(trimmed, "is not positive");
  if (budget > static_cast<Wide>(std::numeric_limits<std::int64_t>::max())) bad_budget(trimmed, "is too large");
  return static_cast<std::int64_t>(budget);
}

double parse_seconds(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
      {{"", 1.0}, {"s", 1.0}, {"ms", 1e-3}, {"m", 60.0}, {"h", 3600.0}}};
  const std::string_view trimmed = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), value);
  if (error == std::errc() && std::isfinite(value) && value >= 0) {
    const std::string_view unit = trim({end, static_cast<std::size_t>(trimmed.data() + trimmed.size() - end)});
    for (const auto& [name, seconds] : kUnits) {
      if (unit == name && std::isfinite(value * seconds)) return value * seconds;
    }
  }
  throw InputError(
      fmt::format("duration '{}' is not understood; accepted are 500ms, 10s, 2m, 1h or seconds (10)", trimmed));
}

}  // namespace cairn::core
