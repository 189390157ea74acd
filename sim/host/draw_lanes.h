#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cairn/sim/device/random_order.h"
#include "cairn/sim/host/lockstep.h"
#include "cairn/sim/host/vectors.h"

// One file per processor family includes this header, as lockstep_lanes.h describes.
namespace cairn::sim {
namespace {

template <class Id, int kVectorBytes>
class DrawLanes final : public DrawKeys {
 public:
  static constexpr int kLanes = kVectorBytes / 4;

  explicit DrawLanes(const device::TablesView<Id>& graph) : graph_(graph) {
    keys_.resize((static_cast<std::size_t>(graph.node_count) + 4) * kLanes);
    row_.resize(static_cast<std::size_t>(graph.node_count));
  }

  int lanes() const override { return kLanes; }

  void draw(std::uint64_t seed, std::int64_t first) override {
    for (std::int32_t i = 0; i < graph_.node_count; i += 4) wait(seed, first, i);
    for (std::int32_t i = graph_.level_count > 0 ? graph_.level_begin[1] : 0; i < graph_.node_count; ++i) {
      const std::int32_t v = graph_.by_level[i];
      Words ready{};
      for (std::int32_t e = graph_.predecessor_begin[v]; e < graph_.predecessor_begin[v + 1]; ++e) {
        const Words ran = at(graph_.predecessors[e]);
        ready = ran > ready ? ran : ready;
      }
      at(v) += ready;
    }
  }

  const std::uint32_t* keys(int lane) override {
    const std::uint32_t* from = keys_.data() + lane;
    std::uint32_t* row = row_.data();
    for (std::int32_t v = 0; v < graph_.node_count; ++v) row[v] = from[static_cast<std::size_t>(v) * kLanes];
    return row;
  }

 private:
  using Words = typename VectorOf<std::uint32_t, kLanes>::Type;
  using Ints = typename VectorOf<std::int32_t, kLanes>::Type;
  using Floats = typename VectorOf<float, kLanes>::Type;
  /// The words of every second lane, widened to 64 bits, so that products of 32-bit words fit.
  using Halves = typename VectorOf<std::uint64_t, kLanes / 2>::Type;
  static constexpr int kHalf = kLanes / 2;

  Words& at(std::int32_t v) const {
    return *reinterpret_cast<Words*>(keys_.data() + static_cast<std::size_t>(v) * kLanes);
  }

  /// Computes philox() for the even lanes (odd = 0) or the odd lanes (odd = 1).
  static void philox_of(std::uint64_t seed, std::int64_t first, std::uint32_t group, int odd, Halves (&word)[4]) {
    const Halves low = Halves{} + 0xFFFFFFFFU;
    Halves number;
    for (int i = 0; i < kHalf; ++i)
      number[i] = static_cast<std::uint64_t>(first) + static_cast<std::uint64_t>(2 * i + odd);
    Halves a = number & low, b = number >> 32, c = Halves{} + group, d = Halves{} + device::kWaitingTimes;
    auto key_low = static_cast<std::uint32_t>(seed), key_high = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const Halves left = a * std::uint64_t{0xD2511F53U}, right = c * std::uint64_t{0xCD9E8D57U};
      a = (right >> 32) ^ b ^ std::uint64_t{key_low};
      b = right & low;
      c = (left >> 32) ^ d ^ std::uint64_t{key_high};
      d = left & low;
      key_low += 0x9E3779B9U;
      key_high += 0xBB67AE85U;
    }
    word[0] = a;
    word[1] = b;
    word[2] = c;
    word[3] = d;
  }

  Words wait_of(Words word) const {
    const Floats uniform = __builtin_convertvector(reinterpret_cast<Ints>((word >> 8) + 1U), Floats);
    const Words bits = reinterpret_cast<Words>(uniform);
    const Words exponent = (bits >> 23) - 127U, f = bits >> 7 & 0xFFFFU;
    const Words c = 29013U - (f * 16194U >> 16) + ((f * f >> 16) * 5446U >> 16);
    const Words bend = (f * (0x10000U - f) >> 16) * c >> 16;
    return ((device::kLongestWait - (exponent << 16) - f - bend) >> graph_.wait_shift) + 1U;
  }

  /// Sets the waiting times of the nodes at the places i .. i + 3 of TablesView::by_level, in every lane.
  void wait(std::uint64_t seed, std::int64_t first, std::int32_t i) {
    Halves even[4], odd[4];
    philox_of(seed, first, static_cast<std::uint32_t>(i) / 4, 0, even);
    philox_of(seed, first, static_cast<std::uint32_t>(i) / 4, 1, odd);
    for (int k = 0; k < 4 && i + k < graph_.node_count; ++k) {
      at(graph_.by_level[i + k]) = wait_of(reinterpret_cast<Words>(even[k] | odd[k] << 32));
    }
  }

  device::TablesView<Id> graph_;
  Aligned<std::uint32_t> keys_;  ///< keys of the nodes (DrawKeys), indexed [node][lane]
  Aligned<std::uint32_t> row_;   ///< keys of one lane
};

}  // namespace
}  // namespace cairn::sim
