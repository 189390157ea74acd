#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#include "cairn/tests/ptx/machine/warp.h"

/// These functions apply an operation to all active lanes of a warp.
namespace cairn::tests::ptx {

/// The type in which a register stores a lane's value of type T: 64 bits if T has 64 bits, and 32 bits otherwise.
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

// Each of the following functions applies a function object of type F to the operands of each lane. A, B and C are the
// types of the operands, and R is the type of the result.
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

/// A type's name in PTX, and the code that executes an instruction for this type.
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
