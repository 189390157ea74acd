#pragma once

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

/// 1536 -> "1.50 KiB".
std::string format_bytes(std::int64_t bytes);

/// A memory budget as people write it: `1.5GiB`, `200MB`, `12345` (bytes), or `80%` of `baseline_peak`, rounded up (0
/// where that is 0). Throws InputError, saying what is accepted, on anything else and on what is not positive.
std::int64_t parse_budget(std::string_view text, std::int64_t baseline_peak);

/// A duration as `10s`, `500ms`, `2m`, `1h` or a bare number of seconds; in seconds. Throws InputError.
double parse_seconds(std::string_view text);

}  // namespace cairn::core
