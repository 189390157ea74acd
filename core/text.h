#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cairn::core {

/// The candidate with the least edit distance to `word`, or empty when none is within a third of its length (at
/// least 2 edits).
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// "; did you mean 'x'?" for the nearest candidate, or empty.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

/// An option in the words of the front end that the text is for, so that whoever reads an error finds what mends it:
/// `--solver auto` for the command, `solver='auto'` for Python. No value: the option alone, `--budget` or `budget=`.
std::string option(std::string_view name, std::string_view value = {});
/// How option() spells from now on, as the front end sets it once at its start; the command's way until then.
using OptionSpelling = std::string (*)(std::string_view name, std::string_view value);
void spell_options(OptionSpelling spelling);

/// 1536 -> "1.50 KiB".
std::string format_bytes(std::int64_t bytes);
/// The same rounded up: read as a budget it is `bytes` or more.
std::string format_bytes_up(std::int64_t bytes);

/// The text as it can be shown anywhere: control characters, those that steer the direction of writing or take no room,
/// and bytes that are no UTF-8 become `\n`, `\x1b`, `\u202e`. O(bytes).
std::string printable(std::string_view text);

/// Columns that UTF-8 text takes in a terminal: wide characters (East Asian ones, emoji) two, combining ones none, the
/// sequences that set colours none. O(bytes).
std::size_t display_width(std::string_view text);
/// As much of its beginning as fits into `columns`, never half a character; colours that are cut off end.
std::string cut_to_width(std::string_view text, std::size_t columns);

/// Printable text of at most `columns`: where that is less than it needs, "..." stands for its middle.
std::string abridged(std::string_view text, std::size_t columns);

/// What keeps a text from being a whole number in [-2^63, 2^63).
enum class NumberFault : std::uint8_t { none, no_number, fraction, too_large };
/// Reads "4096", "-7", "+3", "4.0", "1e3" or "12.50e1" exactly, whatever its digits; `value` is set where nothing is
/// wrong. O(characters).
NumberFault parse_whole(std::string_view text, std::int64_t& value);

/// A memory budget as people write it: `1.5GiB`, `200MB`, `1e3MiB`, `12345` or `1e9` (bytes), or `80%` of
/// `baseline_peak`, rounded up (0 where that is 0). Throws InputError, saying what is accepted, on anything else and on
/// what is not positive.
std::int64_t parse_budget(std::string_view text, std::int64_t baseline_peak);
/// Reads a size that is no share: what is wrong with it, as "is too large", or nothing; then `bytes` is above 0.
std::string size_fault(std::string_view text, std::int64_t& bytes);

/// A duration as `10s`, `500ms`, `2m`, `1h` or a bare number of seconds; in seconds. Throws InputError.
double parse_seconds(std::string_view text);

}  // namespace cairn::core
