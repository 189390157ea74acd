#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cairn::core {

/// Returns the candidate with the least edit distance to `word`. Returns an empty text if even this distance is above 2
/// and above a third of the word's length.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// Returns "; did you mean 'x'?" for the nearest candidate; empty if there is none.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

/// Returns the name of an option as the running front end spells it, for messages that say how to mend an error:
/// `--solver auto` in the command, `solver='auto'` in Python. Without a value, returns the option alone: `--budget`,
/// `budget=`.
std::string option(std::string_view name, std::string_view value = {});
/// A function that spells options for one front end. spell_options() makes option() call it, and each front end calls
/// spell_options() once at its start. Until then options are spelled as the command's.
using OptionSpelling = std::string (*)(std::string_view name, std::string_view value);
void spell_options(OptionSpelling spelling);

/// Formats a number of bytes: 1536 -> "1.50 KiB".
std::string format_bytes(std::int64_t bytes);
/// Formats a number of bytes like format_bytes(), but rounded up, so that the text read as a budget is `bytes` or more.
std::string format_bytes_up(std::int64_t bytes);

/// Returns the text in a form that can be shown anywhere. Control characters, invisible characters, characters that
/// change the direction of writing, and bytes that are not UTF-8 are escaped: `\n`, `\x1b`, `\u202e`. O(bytes).
std::string printable(std::string_view text);

/// Number of columns that UTF-8 text takes in a terminal. Wide characters (East Asian ones, emoji) take two columns;
/// combining characters and the sequences that set colours take none. O(bytes).
std::size_t display_width(std::string_view text);
/// Returns the longest beginning of the text that fits into `columns`, never half a character. If a colour is still set
/// at the cut, the sequence that resets it is appended.
std::string cut_to_width(std::string_view text, std::size_t columns);

/// Returns the text made printable, in at most `columns`. If it needs more, "..." stands for its middle.
std::string abridged(std::string_view text, std::size_t columns);

/// The reason why a text is not a whole number in [-2^63, 2^63).
enum class NumberFault : std::uint8_t { none, no_number, fraction, too_large };
/// Reads a number such as "4096", "-7", "+3", "4.0", "1e3" or "12.50e1" exactly, however many digits it has. Sets
/// `value` only if nothing is wrong. O(characters).
NumberFault parse_whole(std::string_view text, std::int64_t& value);

/// Parses a memory budget as people write it, and returns bytes: `1.5GiB`, `200MB`, `1e3MiB`, `12345` or `1e9` (bytes),
/// or `80%` of `baseline_peak`. Fractions of a byte are rounded up; a percentage of a peak of 0 is 0. Throws
/// InputError, which says what is accepted, on any other text and on a budget that is not positive.
std::int64_t parse_budget(std::string_view text, std::int64_t baseline_peak);
/// Reads a number of bytes; a percentage is not accepted. Returns what is wrong with the text, as "is too large".
/// Returns an empty text if nothing is wrong; `bytes` is then above 0.
std::string size_fault(std::string_view text, std::int64_t& bytes);

/// Parses a duration such as `10s`, `500ms`, `2m`, `1h` or a bare number of seconds, and returns seconds. Throws
/// InputError.
double parse_seconds(std::string_view text);

}  // namespace cairn::core
