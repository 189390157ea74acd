#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/core/op.h"
#include "cairn/core/support/bf16.h"
#include "cairn/runtime/device/call.h"

namespace cairn::runtime::device {

/// Converts fp32 elements to bf16, or bf16 elements to fp32. Accesses single elements, because a tensor of the caller
/// may begin at any multiple of an element's size.
template <class From, class To>
struct Convert {
  static constexpr int kThreads = 256;
  static constexpr std::int64_t kPart = 4096;  ///< number of elements that one team converts
  const From* from;
  To* to;
  std::int64_t elements;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const std::int64_t begin = index * kPart;
    const std::int64_t end = begin + kPart < elements ? begin + kPart : elements;
    for (std::int64_t i = begin + team.rank(); i < end; i += team.size()) to[i] = To(static_cast<float>(from[i]));
  }
};

/// Converts `elements` elements to `to_type`: from bf16 if `to_type` is f32, from f32 if it is bf16. `elements` must be
/// at least 1.
template <class Machine>
void convert(const Machine& machine, const void* from, void* to, core::ElementType to_type, std::int64_t elements) {
  using Round = Convert<float, core::Bf16>;
  using Widen = Convert<core::Bf16, float>;
  const std::int64_t teams = blocks_of(elements, Round::kPart);
  if (to_type == core::ElementType::bf16) {
    machine.launch(Round{static_cast<const float*>(from), static_cast<core::Bf16*>(to), elements}, teams);
  } else {
    machine.launch(Widen{static_cast<const core::Bf16*>(from), static_cast<float*>(to), elements}, teams);
  }
}

}  // namespace cairn::runtime::device
