#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace cairn::sim {

/// Sorts up to 65,536 nodes by (key, number) into `order`, as sort_by_key() does, without a branch that cannot be
/// foreseen: two passes over the keys' 16 highest bits by eight of them, then what those leave is put right. Expects
/// keys that spread, such as random ones.
class NodeSorter {
 public:
  void sort(const std::uint32_t* key, std::int32_t count, std::uint16_t* order) {
    marked_.resize(static_cast<std::size_t>(count));
    passed_.resize(static_cast<std::size_t>(count));
    std::uint32_t highest = 1;
    for (std::int32_t v = 0; v < count; ++v) highest = key[v] > highest ? key[v] : highest;
    const int shift = std::countl_zero(highest);

    // A node's number and the highest bits of its key.
    std::uint32_t* marked = marked_.data();
    std::uint32_t* passed = passed_.data();
    std::uint32_t low[kDigits] = {}, high[kDigits] = {};
    for (std::int32_t v = 0; v < count; ++v) {
      const std::uint32_t word = (key[v] << shift & 0xFFFF0000U) | static_cast<std::uint32_t>(v);
      marked[v] = word;
      ++low[word >> 16 & 0xFFU];
      ++high[word >> 24];
    }
    std::uint32_t low_sum = 0, high_sum = 0;
    for (int digit = 0; digit < kDigits; ++digit) {
      const std::uint32_t low_count = low[digit], high_count = high[digit];
      low[digit] = low_sum;
      high[digit] = high_sum;
      low_sum += low_count;
      high_sum += high_count;
    }
    for (std::int32_t i = 0; i < count; ++i) passed[low[marked[i] >> 16 & 0xFFU]++] = marked[i];
    for (std::int32_t i = 0; i < count; ++i) order[high[passed[i] >> 24]++] = static_cast<std::uint16_t>(passed[i]);

    for (std::int32_t i = 1; i < count; ++i) {
      const std::uint16_t v = order[i];
      std::int32_t j = i;
      for (; j > 0 && key[order[j - 1]] > key[v]; --j) order[j] = order[j - 1];  // equal ones are in order already
      order[j] = v;
    }
  }

 private:
  static constexpr int kDigits = 256;
  std::vector<std::uint32_t> marked_, passed_;
};

}  // namespace cairn::sim
