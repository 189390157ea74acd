#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cairn::core {

/// Returns the candidate with the least edit distance to `word`. If this distance is above 2 and above a third of the
/// word's length, returns an empty text.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// Returns "; did you mean 'x'?" for the nearest candidate, or an empty text if no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

/// Returns an option as the user of the running front end writes it, for messages that say how to fix an error:
/// `--solver auto` for the command, `solver='auto'` for Python. Without a value, returns the option alone: `--budget`
/// or `budget=`.
std::string option(std::string_view name, std::string_view value = {});
/// A function that spells options for one front end (the command or the Python module). Each front end passes its
/// function to spell_options() once when it starts, and option() then calls that function. Until then, options are
/// spelled as for the command.
using OptionSpelling = std::string (*)(std::string_view name, std::string_view value);
void spell_options(OptionSpelling spelling);

/// Formats a number of bytes: 1536 -> "1.50 KiB".
std::string format_bytes(std::int64_t bytes);
/// Formats a number of bytes like format_bytes(), but rounds up. A budget that is read from this text is therefore
/// never below `bytes`.
std::string format_bytes_up(std::int64_t bytes);

/// Returns the text in a form that is safe to show. Control characters, invisible characters, characters that change
/// the direction of writing, and bytes that are not UTF-8 are escaped, for example as `\n`, `\x1b` or `\u202e`.
/// O(bytes).
std::string printable(std::string_view text);

/// Returns the number of columns that UTF-8 text takes in a terminal. Wide characters (East Asian characters, emoji)
/// take two columns. Combining characters and escape sequences that set colours take none. O(bytes).
std::size_t display_width(std::string_view text);
/// Returns the longest prefix of the text that fits into `columns`, without splitting a character. If a colour is still
/// set at the end of the prefix, the sequence that resets colours is appended.
std::string cut_to_width(std::string_view text, std::size_t columns);

/// Returns the text made printable, in at most `columns`. If the text is longer, "..." replaces its middle part.
std::string abridged(std::string_view text, std::size_t columns);

/// The reason why a text is not an integer in [-2^63, 2^63).
enum class NumberFault : std::uint8_t { none, no_number, fraction, too_large };
/// Reads an integer such as "4096", "-7", "+3", "4.0", "1e3" or "12.50e1" exactly, with any number of digits. Sets
/// `value` only if the result is NumberFault::none. O(characters).
NumberFault parse_whole(std::string_view text, std::int64_t& value);

/// Parses a memory budget and returns its bytes. Accepts sizes such as `1.5GiB`, `200MB` and `1e3MiB`, plain bytes such
/// as `12345` and `1e9`, and a percentage of `baseline_peak` such as `80%`. Fractions of a byte are rounded up. A
/// budget of 0 is accepted, because a graph whose values all have no bytes fits into it. Throws InputError on any other
/// text and on a negative budget. The message says what is accepted.
std::int64_t parse_budget(std::string_view text, std::int64_t baseline_peak);
/// Reads a number of bytes into `bytes`; percentages are not accepted. Returns what is wrong with the text, for example
/// "is too large". If nothing is wrong, returns an empty text, and `bytes` is above 0.
std::string size_fault(std::string_view text, std::int64_t& bytes);

/// Parses a duration such as `10s`, `500ms`, `2m`, `1h` or a bare number of seconds. Returns seconds. Throws
/// InputError.
double parse_seconds(std::string_view text);

}  // namespace cairn::core
