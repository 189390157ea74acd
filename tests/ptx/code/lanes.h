#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cairn/tests/ptx/machine/warp.h"

/// One operation on 32 lanes. A loop over all lanes without branches is what the compiler makes vector code of.
namespace cairn::tests::ptx {

/// What a slot holds for values of a type: 32 bits, or 64.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// An unsigned number as wide as the type.
template <class T>
using Whole = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

template <class T>
T from_bits(Bits<T> slot) {
  return std::bit_cast<T>(static_cast<Whole<T>>(slot));
}
template <class T>
Bits<T> to_bits(T value) {
  return std::bit_cast<Whole<T>>(value);
}

/// Calls body(lane) for each lane of the mask.
template <class Body>
void each_lane(Mask lanes, const Body& body) {
  if (lanes == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
  } else {
    for (Mask rest = lanes; rest != 0; rest &= rest - 1) body(std::countr_zero(rest));
  }
}

template <class F, class R, class A>
void unary(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<Bits<R>>(i.d);
  const auto* const a = warp.slots<Bits<A>>(i.a);
  each_lane(lanes, [&](int l) { d[l] = to_bits<R>(F::template of<R, A>(from_bits<A>(a[l]))); });
}
template <class F, class R, class A, class B>
void binary(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<Bits<R>>(i.d);
  const auto* const a = warp.slots<Bits<A>>(i.a);
  const auto* const b = warp.slots<Bits<B>>(i.b);
  each_lane(lanes, [&](int l) { d[l] = to_bits<R>(F::template of<R, A>(from_bits<A>(a[l]), from_bits<B>(b[l]))); });
}
template <class F, class R, class A, class B, class C>
void ternary(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<Bits<R>>(i.d);
  const auto* const a = warp.slots<Bits<A>>(i.a);
  const auto* const b = warp.slots<Bits<B>>(i.b);
  const auto* const c = warp.slots<Bits<C>>(i.c);
  each_lane(lanes, [&](int l) {
    d[l] = to_bits<R>(F::template of<R, A>(from_bits<A>(a[l]), from_bits<B>(b[l]), from_bits<C>(c[l])));
  });
}

/// A type by its name in PTX, and the code for it.
struct Choice {
  std::string_view type;
  Instruction::Run run;
};
inline Instruction::Run choose(std::string_view type, std::initializer_list<Choice> choices) {
  for (const Choice& one : choices) {
    if (one.type == type) return one.run;
  }
  return nullptr;
}

}  // namespace cairn::tests::ptx
