#include "cairn/report/html/internal/buffers.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <map>
#include <string_view>

#include "cairn/core/support/text.h"

namespace cairn::report::html {
namespace {

constexpr std::size_t kMostClasses = 8;

std::string_view letters_of(std::string_view id) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  return id.substr(0, static_cast<std::size_t>(std::find_if_not(id.begin(), id.end(), is_letter) - id.begin()));
}

BufferClasses by_size(const core::Plan& plan) {
  std::uint64_t largest = 1;
  for (const core::Buffer& b : plan.buffers) largest = std::max(largest, static_cast<std::uint64_t>(b.size));
  const auto top = static_cast<std::int64_t>(std::bit_width(largest));
  BufferClasses classes;
  for (const core::Buffer& b : plan.buffers) {
    const auto width = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(b.size)));
    classes.of_buffer.push_back(std::min<std::int64_t>(top - width, kMostClasses - 1));
  }
  for (std::size_t k = 0; k < kMostClasses; ++k) {
    const std::int64_t least = std::int64_t{1} << std::max<std::int64_t>(0, top - 1 - static_cast<std::int64_t>(k));
    classes.names.push_back(k + 1 < kMostClasses ? core::format_bytes(least) + " or more" : "less");
  }
  return classes;
}

}  // namespace

BufferClasses classes_of(const std::vector<core::BufferSpec>& specs, const core::Plan& plan) {
  std::map<std::string, std::int64_t, std::less<>> prefixes;
  for (const core::BufferSpec& spec : specs) {
    prefixes.emplace(letters_of(spec.id), 0);
    if (prefixes.size() > kMostClasses) return by_size(plan);
  }
  if (prefixes.size() < 2) return by_size(plan);
  BufferClasses classes;
  for (auto& [prefix, index] : prefixes) {
    index = static_cast<std::int64_t>(classes.names.size());
    classes.names.push_back(prefix.empty() ? "others" : prefix);
  }
  for (const core::BufferSpec& spec : specs) classes.of_buffer.push_back(prefixes.find(letters_of(spec.id))->second);
  return classes;
}

}  // namespace cairn::report::html
