#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#include "cairn/tests/ptx/machine/warp.h"

/// Applies an operation to the lanes of a warp.
namespace cairn::tests::ptx {

/// The type of a lane's value in a register, for values of type T. It has 64 bits if T has, else 32.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// The unsigned integer type that is as wide as T.
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

// Each of these functions applies a function object of type F to the operands of each lane. A, B and C are the types of
// the operands, and R is that of the result.
template <class F, class R, class A>
void unary(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<Bits<R>>(i.d);
  const auto* const a = warp.slots<Bits<A>>(i.a);
  each_lane(lanes, [&](int l) { d[l] = to_bits<R>(static_cast<R>(F{}(from_bits<A>(a[l])))); });
}
template <class F, class R, class A, class B>
void binary(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<Bits<R>>(i.d);
  const auto* const a = warp.slots<Bits<A>>(i.a);
  const auto* const b = warp.slots<Bits<B>>(i.b);
  each_lane(lanes, [&](int l) { d[l] = to_bits<R>(static_cast<R>(F{}(from_bits<A>(a[l]), from_bits<B>(b[l])))); });
}
template <class F, class R, class A, class B, class C>
void ternary(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<Bits<R>>(i.d);
  const auto* const a = warp.slots<Bits<A>>(i.a);
  const auto* const b = warp.slots<Bits<B>>(i.b);
  const auto* const c = warp.slots<Bits<C>>(i.c);
  each_lane(lanes, [&](int l) {
    d[l] = to_bits<R>(static_cast<R>(F{}(from_bits<A>(a[l]), from_bits<B>(b[l]), from_bits<C>(c[l]))));
  });
}

/// The name of a type in PTX, and the code of an instruction for this type.
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
