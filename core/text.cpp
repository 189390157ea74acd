#include "cairn/core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/error.h"

namespace cairn::core {
namespace {

// With at most 19 digits, a number times the largest unit, or times a peak below 2^63, fits into 128 bits.
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

/// The exact value of a decimal number, which is digits / denominator, and the text that follows the number.
struct Decimal {
  Wide digits = 0;
  Wide denominator = 1;
  bool whole_exponent = false;  ///< whether the number has an exponent and no text follows it
  std::string_view rest;
};

/// Removes a power of ten, such as "e9" or "E-3", from the beginning of the text and returns its exponent. Returns none
/// if the text does not begin with a power of ten.
std::optional<int> take_exponent(std::string_view& text) {
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  std::string_view rest = text.substr(1);
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (end == 0) return std::nullopt;
  constexpr int kFar = 1000;
  int exponent = kFar;
  if (std::from_chars(rest.data(), rest.data() + end, exponent).ec != std::errc()) exponent = kFar;
  text = rest.substr(end);
  return negative ? -std::min(exponent, kFar) : std::min(exponent, kFar);
}

/// Reads the decimal number with which `text` begins. Returns what is wrong with the number, or an empty text.
std::string_view parse_decimal(std::string_view text, Decimal& value) {
  constexpr std::string_view kNone = "is not a number of bytes", kLarge = "is too large", kLong = "has too many digits";
  const std::size_t number_end = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view number = text.substr(0, number_end);
  const std::size_t point = number.find('.');
  if (point != std::string_view::npos) {
    if (number.find('.', point + 1) != std::string_view::npos || number.size() == 1) return kNone;
    while (number.back() == '0') number.remove_suffix(1);
  }
  if (number.empty()) return kNone;

  value.rest = text.substr(number_end);
  const std::optional<int> exponent = take_exponent(value.rest);
  value.rest = trim(value.rest);
  value.whole_exponent = exponent && value.rest.empty();
  std::size_t significant = 0;
  bool behind_point = false;
  for (const char c : number) {
    if (!is_digit(c)) {
      behind_point = true;
      continue;
    }
    value.digits = value.digits * 10 + static_cast<unsigned>(c - '0');
    if (value.digits != 0 || behind_point) ++significant;
    if (significant > kMaxDigits) return behind_point ? kLong : kLarge;
    if (behind_point) value.denominator *= 10;
  }
  if (value.digits == 0) return {};
  int power = exponent.value_or(0);
  for (; power > 0 && value.denominator > 1; --power) value.denominator /= 10;
  Wide& side = power < 0 ? value.denominator : value.digits;
  for (; power != 0; power += power < 0 ? 1 : -1) {
    if (++significant > kMaxDigits) return power < 0 ? kLong : kLarge;
    side *= 10;
  }
  return {};
}

std::optional<std::int64_t> unit_bytes(std::string_view unit) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 19> kUnits{{
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
      {"p", 1000'000'000'000'000},
      {"pb", 1000'000'000'000'000},
      {"eb", 1000'000'000'000'000'000},
      {"kib", std::int64_t{1} << 10},
      {"mib", std::int64_t{1} << 20},
      {"gib", std::int64_t{1} << 30},
      {"tib", std::int64_t{1} << 40},
      {"pib", std::int64_t{1} << 50},
      {"eib", std::int64_t{1} << 60},
  }};
  for (const auto& [name, bytes] : kUnits) {
    if (unit == name) return bytes;
  }
  return std::nullopt;
}

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;  ///< false: `code` is one byte that does not begin a UTF-8 sequence
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes > text.size()) return {first, 1, false};
  char32_t code = first & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {first, 1, false};
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[bytes] || code > 0x10FFFF || surrogate) return {first, 1, false};
  return {code, bytes, true};
}

struct CodeRange {
  char32_t first, last;
};

bool contains(std::span<const CodeRange> ranges, char32_t code) {
  const auto after = std::ranges::upper_bound(ranges, code, {}, &CodeRange::first);
  return after != ranges.begin() && code <= std::prev(after)->last;
}

/// Characters that take two columns: those whose Unicode East Asian Width is wide or full-width. If only a few
/// characters of a Unicode block are not wide, the whole block is listed.
constexpr std::array<CodeRange, 29> kWide{
    {{0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},  {0x23F0, 0x23F0},
     {0x23F3, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},   {0x2648, 0x2653},  {0x26A1, 0x26A1},
     {0x2705, 0x2705},   {0x2728, 0x2728},   {0x274C, 0x274C},   {0x2753, 0x2757},  {0x2B50, 0x2B55},
     {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},
     {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},  {0x16FE0, 0x1B2FF},
     {0x1F004, 0x1F0CF}, {0x1F18E, 0x1F265}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}}};
constexpr std::array<CodeRange, 11> kCombining{{{0x0300, 0x036F},
                                                {0x0483, 0x0489},
                                                {0x0591, 0x05BD},
                                                {0x0610, 0x061A},
                                                {0x064B, 0x065F},
                                                {0x1AB0, 0x1AFF},
                                                {0x1DC0, 0x1DFF},
                                                {0x200B, 0x200F},
                                                {0x20D0, 0x20FF},
                                                {0xFE00, 0xFE0F},
                                                {0xE0100, 0xE01EF}}};
/// Characters that printable() escapes: control characters, and characters that change how the text around them is
/// shown.
constexpr std::array<CodeRange, 8> kUnseen{{{0x00, 0x1F},
                                            {0x7F, 0x9F},
                                            {0x200B, 0x200B},
                                            {0x200E, 0x200F},
                                            {0x2028, 0x202E},
                                            {0x2060, 0x2069},
                                            {0xFEFF, 0xFEFF},
                                            {0xFFF9, 0xFFFB}}};

/// Returns the number of columns of a character that printable() does not escape.
std::size_t columns_of(const Character& character) {
  if (character.code < 0x300) return 1;
  if (contains(kCombining, character.code)) return 0;
  return contains(kWide, character.code) ? 2 : 1;
}

constexpr std::array<std::string_view, 6> kBinaryUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

/// Returns the length of the sequence `ESC [ ... m`, which sets a colour, at the beginning of the text. Returns 0 if
/// the text does not begin with one.
std::size_t colour_bytes(std::string_view text) {
  if (!text.starts_with("\033[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

/// Reads a number of bytes, or a percentage of `whole` if that is given. Returns what is wrong with the text, for
/// example "is too large", or an empty text.
std::string read_size(std::string_view text, std::optional<std::int64_t> whole, std::int64_t& bytes) {
  if (text.starts_with('-')) return "is negative";
  Decimal value;
  const std::string_view fault = parse_decimal(text, value);
  if (value.whole_exponent) {
    const NumberFault of_whole = parse_whole(text, bytes);
    if (of_whole == NumberFault::fraction) return "is not a whole number of bytes";
    if (of_whole == NumberFault::too_large) return "is too large";
    return bytes == 0 && !whole ? "is not positive" : "";
  }
  if (!fault.empty()) return std::string(fault);

  Wide numerator = value.digits;
  Wide denominator = value.denominator;
  if (value.rest == "%" && whole) {
    numerator *= static_cast<Wide>(std::max<std::int64_t>(*whole, 0));
    denominator *= 100;
  } else if (value.rest == "%") {
    return "is a share";
  } else if (const auto unit = unit_bytes(lower_case(value.rest))) {
    numerator *= static_cast<Wide>(*unit);
  } else {
    return fmt::format("has the unknown unit '{}'", value.rest);
  }
  const Wide rounded_up = (numerator + denominator - 1) / denominator;
  if (rounded_up == 0 && !whole) return "is not positive";
  if (rounded_up > static_cast<Wide>(std::numeric_limits<std::int64_t>::max())) return "is too large";
  bytes = static_cast<std::int64_t>(rounded_up);
  return "";
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

namespace {

std::string spell_for_the_command(std::string_view name, std::string_view value) {
  return fmt::format("--{}{}{}", name, value.empty() ? "" : " ", value);
}
std::atomic<OptionSpelling> spelling{spell_for_the_command};

}  // namespace

std::string option(std::string_view name, std::string_view value) { return spelling.load()(name, value); }

void spell_options(OptionSpelling chosen) { spelling = chosen; }

std::string format_bytes(std::int64_t bytes) {
  if (std::abs(static_cast<double>(bytes)) < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // A value of 1023.995 or more would be printed as 1024.00.
  while (std::abs(value) >= 1023.995 && unit + 1 < kBinaryUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, kBinaryUnits[unit]);
}

std::string format_bytes_up(std::int64_t bytes) {
  if (bytes < 1024) return format_bytes(bytes);
  Wide unit_bytes = 1024, hundredths = 0;
  std::size_t unit = 0;
  for (;; ++unit, unit_bytes *= 1024) {
    hundredths = (Wide{100} * static_cast<Wide>(bytes) + unit_bytes - 1) / unit_bytes;
    if (hundredths < Wide{100} * 1024 || unit + 1 == kBinaryUnits.size()) break;
  }
  return fmt::format("{:.2f} {}", static_cast<double>(hundredths) / 100, kBinaryUnits[unit]);
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::string_view bytes = text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
    if (character.valid && !contains(kUnseen, character.code)) {
      shown += bytes;
    } else if (bytes == "\n" || bytes == "\t" || bytes == "\r") {
      shown += bytes == "\n" ? "\\n" : bytes == "\t" ? "\\t" : "\\r";
    } else {
      const auto code = static_cast<std::uint32_t>(character.code);
      shown += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    }
  }
  return shown;
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const std::size_t colour = colour_bytes(text);
    const Character character = first_character(text);
    if (colour == 0) columns += columns_of(character);
    text.remove_prefix(colour > 0 ? colour : character.bytes);
  }
  return columns;
}

std::string cut_to_width(std::string_view text, std::size_t columns) {
  constexpr std::string_view kPlain = "\033[0m";
  std::string cut;
  bool coloured = false;
  while (!text.empty()) {
    if (const std::size_t colour = colour_bytes(text); colour > 0) {
      coloured = text.substr(0, colour) != kPlain;
      cut += text.substr(0, colour);
      text.remove_prefix(colour);
      continue;
    }
    const Character character = first_character(text);
    const std::size_t needed = columns_of(character);
    if (needed > columns) break;
    columns -= needed;
    cut += text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
  }
  if (coloured) cut += kPlain;
  return cut;
}

std::string abridged(std::string_view text, std::size_t columns) {
  constexpr std::string_view kGap = "...";
  std::string shown = printable(text);
  std::size_t width = display_width(shown);
  if (width <= columns) return shown;
  const std::size_t kept = std::max(columns, kGap.size()) - kGap.size();
  std::string_view end = shown;
  while (width > kept / 2) {
    const Character character = first_character(end);
    width -= columns_of(character);
    end.remove_prefix(character.bytes);
  }
  return fmt::format("{}{}{}", cut_to_width(shown, kept - kept / 2), kGap, end);
}

NumberFault parse_whole(std::string_view text, std::int64_t& value) {
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value) == std::from_chars_result{end, {}}) return NumberFault::none;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t mantissa_end = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view digits = text.substr(0, mantissa_end), rest = text.substr(mantissa_end);
  const std::size_t point = digits.find('.');
  if (digits.find_first_of("0123456789") == std::string_view::npos ||
      (point != std::string_view::npos && digits.find('.', point + 1) != std::string_view::npos))
    return NumberFault::no_number;
  // The value is the digits, without the decimal point, times ten to this power.
  std::int64_t power = point == std::string_view::npos ? 0 : -static_cast<std::int64_t>(digits.size() - point - 1);
  if (!rest.empty()) {
    if (rest.front() != 'e' && rest.front() != 'E') return NumberFault::no_number;
    rest.remove_prefix(1);
    const bool plus = rest.starts_with('+');
    if (plus) rest.remove_prefix(1);
    const std::string_view figures = rest.substr(rest.starts_with('-') && !plus ? 1 : 0);
    if (figures.empty() || figures.find_first_not_of("0123456789") != std::string_view::npos)
      return NumberFault::no_number;
    constexpr std::int64_t kFarAway = std::numeric_limits<std::int32_t>::max();
    std::int64_t exponent = 0;
    const bool near = std::from_chars(rest.data(), rest.data() + rest.size(), exponent).ec == std::errc();
    exponent = near ? std::clamp(exponent, -kFarAway, kFarAway) : rest.front() == '-' ? -kFarAway : kFarAway;
    power += exponent;
  }
  std::string figures;
  for (const char c : digits) {
    if (c != '.' && (c != '0' || !figures.empty())) figures += c;
  }
  while (!figures.empty() && figures.back() == '0') {
    figures.pop_back();
    ++power;
  }
  value = 0;
  if (figures.empty()) return NumberFault::none;
  if (power < 0) return NumberFault::fraction;
  if (static_cast<std::int64_t>(figures.size()) + power > static_cast<std::int64_t>(kMaxDigits))
    return NumberFault::too_large;
  figures.append(static_cast<std::size_t>(power), '0');
  if (negative) figures.insert(0, 1, '-');
  const char* const last = figures.data() + figures.size();
  const bool fits = std::from_chars(figures.data(), last, value) == std::from_chars_result{last, {}};
  return fits ? NumberFault::none : NumberFault::too_large;
}

std::int64_t parse_budget(std::string_view text, std::int64_t baseline_peak) {
  std::int64_t budget = 0;
  const std::string fault = read_size(trim(text), baseline_peak, budget);
  if (fault.empty()) return budget;
  throw InputError(fmt::format(
      "budget '{}' {}; accepted are bytes (12345), a size (1.5GiB, 200MB) or a share of the baseline peak (80%)",
      trim(text), fault));
}

std::string size_fault(std::string_view text, std::int64_t& bytes) {
  return read_size(trim(text), std::nullopt, bytes);
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
