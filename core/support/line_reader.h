#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/limit.h"

namespace cairn::core {

/// Returns a word of a file in a form for messages: long words are shortened, and unprintable characters are replaced.
inline std::string shown_word(std::string_view word) {
  constexpr std::size_t kMost = 24;
  std::string shown;
  for (const char c : word.substr(0, kMost)) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown + (word.size() > kMost ? "..." : "");
}

/// Reads the files of PACE (https://pacechallenge.org/2017/treewidth): lines of words separated by blanks. Skips blank
/// lines and comment lines, whose first word begins with `c`. The limit counts bytes as work.
class LineReader {
 public:
  LineReader(std::string_view text, std::string_view origin, const Limit& limit)
      : text_(text), origin_(origin), watch_(limit) {}

  /// Goes to the next line. Returns false at the end of the text. Throws InterruptedError at the limit.
  bool next() {
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view rest = text_.substr(at_, end - at_);
      if (watch_.charge(static_cast<std::int64_t>(end + 1 - at_)).expired())
        throw InterruptedError(watch_.interrupted()
                                   ? fmt::format("{}: reading it was interrupted", origin_)
                                   : fmt::format("{}: not read within the time limit; raise it", origin_));
      at_ = end + 1;
      ++line_;
      words_.clear();
      for (std::size_t begin; (begin = rest.find_first_not_of(kBlanks)) != std::string_view::npos;) {
        rest.remove_prefix(begin);
        words_.push_back(rest.substr(0, rest.find_first_of(kBlanks)));
        rest.remove_prefix(words_.back().size());
        if (words_.front().front() == 'c') break;
      }
      if (!words_.empty() && words_.front().front() != 'c') return true;
    }
    return false;
  }

  const std::vector<std::string_view>& words() const { return words_; }

  /// Returns word i as an integer. Throws InputError if the word is not an integer from `low` to `high`; the message
  /// calls the word `what`.
  std::int64_t number(std::size_t i, std::string_view what, std::int64_t low, std::int64_t high) const {
    std::int64_t value = 0;
    const char* const end = words_[i].data() + words_[i].size();
    const auto [rest, error] = std::from_chars(words_[i].data(), end, value);
    if (rest != end || (error != std::errc() && error != std::errc::result_out_of_range))
      fail(fmt::format("{} must be a whole number, not '{}'", what, shown_word(words_[i])));
    if (error == std::errc::result_out_of_range || value < low || value > high)
      fail(high < low ? fmt::format("{} is {}, but there are none", what, shown_word(words_[i]))
                      : fmt::format("{} is {}, but must be from {} to {}", what, shown_word(words_[i]), low, high));
    return value;
  }

  [[noreturn]] void fail(std::string_view message) const {
    throw InputError(fmt::format("{}: line {}: {}", origin_, line_, message));
  }

 private:
  static constexpr std::string_view kBlanks = " \t\r\v\f";

  std::string_view text_, origin_;
  Stopwatch watch_;
  std::size_t at_ = 0;
  std::int64_t line_ = 0;
  std::vector<std::string_view> words_;
};

}  // namespace cairn::core
