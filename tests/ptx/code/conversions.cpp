#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "cairn/tests/ptx/code/decoder.h"
#include "cairn/tests/ptx/code/lanes.h"
#include "cairn/tests/ptx/code/reals.h"

// This file implements conversions (cvt) between integers, real numbers and bf16.
namespace cairn::tests::ptx {
namespace {

enum class Rounding : std::uint8_t { none, nearest, zero, down, up };

template <class T>
T rounded(T value, Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest:
      return std::nearbyint(value);
    case Rounding::zero:
      return std::trunc(value);
    case Rounding::down:
      return std::floor(value);
    case Rounding::up:
      return std::ceil(value);
    case Rounding::none:
      break;
  }
  return value;
}

/// Converts a real number to an integer. A value out of range becomes the nearest integer in range. NaN becomes 0 or,
/// if one of the two types has 64 bits, a number of which only the highest bit is set.
template <class R, class A>
R to_whole(A value, Rounding rounding) {
  if (std::isnan(value))
    return sizeof(A) == 8 || sizeof(R) == 8 ? static_cast<R>(Whole<R>{1} << (8 * sizeof(R) - 1)) : R{0};
  const A whole = rounded(value, rounding);
  const long double exact = static_cast<long double>(whole);
  if (exact <= static_cast<long double>(std::numeric_limits<R>::min())) return std::numeric_limits<R>::min();
  if (exact >= static_cast<long double>(std::numeric_limits<R>::max())) return std::numeric_limits<R>::max();
  return static_cast<R>(whole);
}

/// Converts a number to a real number with the given rounding. The cast rounds to the nearest number. For another
/// rounding, the function then moves the result to the neighbouring number if necessary.
template <class R, class A>
R to_real(A value, Rounding rounding) {
  R result = static_cast<R>(value);
  if (rounding == Rounding::none || rounding == Rounding::nearest) return result;
  const long double exact = static_cast<long double>(value), found = static_cast<long double>(result);
  constexpr R kInfinity = std::numeric_limits<R>::infinity();
  if (rounding == Rounding::zero && std::fabs(found) > std::fabs(exact)) result = std::nextafter(result, R{0});
  if (rounding == Rounding::down && found > exact) result = std::nextafter(result, -kInfinity);
  if (rounding == Rounding::up && found < exact) result = std::nextafter(result, kInfinity);
  return result;
}

/// Runs the instruction cvt. The field `operation` of its Instruction is the rounding.
template <class R, class A>
void convert(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<Bits<R>>(i.d);
  const auto rounding = static_cast<Rounding>(i.operation);
  each_lane(lanes, [&](int l) {
    A value = from_bits<A>(static_cast<Bits<A>>(warp.value(i.a, l)));
    if constexpr (std::is_floating_point_v<A>) {
      if (i.flushes) value = flushed(value);
    }
    R result;
    if constexpr (std::is_floating_point_v<A> && !std::is_floating_point_v<R>) {
      result = to_whole<R, A>(value, rounding);
    } else if constexpr (std::is_floating_point_v<R>) {
      if constexpr (std::is_same_v<R, A>) {
        result = rounded(value, rounding);
      } else {
        result = to_real<R, A>(value, rounding);
      }
      if (i.flushes) result = flushed(result);
      if (i.saturates) result = std::isnan(result) ? R{0} : std::fmin(std::fmax(result, R{0}), R{1});
    } else {
      result = static_cast<R>(value);
      if (i.saturates && std::cmp_less(value, std::numeric_limits<R>::min())) result = std::numeric_limits<R>::min();
      if (i.saturates && std::cmp_greater(value, std::numeric_limits<R>::max())) result = std::numeric_limits<R>::max();
    }
    // A signed result of fewer than 32 bits is sign-extended to the 32 bits of the register.
    if constexpr (std::is_signed_v<R> && !std::is_floating_point_v<R> && sizeof(R) < 4) {
      d[l] = static_cast<std::uint32_t>(static_cast<std::int32_t>(result));
    } else {
      d[l] = to_bits<R>(result);
    }
  });
}

template <class R>
Instruction::Run from(std::string_view type) {
  return choose(type, {{"u8", &convert<R, std::uint8_t>},
                       {"s8", &convert<R, std::int8_t>},
                       {"u16", &convert<R, std::uint16_t>},
                       {"s16", &convert<R, std::int16_t>},
                       {"u32", &convert<R, std::uint32_t>},
                       {"s32", &convert<R, std::int32_t>},
                       {"u64", &convert<R, std::uint64_t>},
                       {"s64", &convert<R, std::int64_t>},
                       {"f32", &convert<R, float>},
                       {"f64", &convert<R, double>}});
}

Instruction::Run between(std::string_view to, std::string_view type) {
  if (to == "u8") return from<std::uint8_t>(type);
  if (to == "s8") return from<std::int8_t>(type);
  if (to == "u16") return from<std::uint16_t>(type);
  if (to == "s16") return from<std::int16_t>(type);
  if (to == "u32") return from<std::uint32_t>(type);
  if (to == "s32") return from<std::int32_t>(type);
  if (to == "u64") return from<std::uint64_t>(type);
  if (to == "s64") return from<std::int64_t>(type);
  if (to == "f32") return from<float>(type);
  return to == "f64" ? from<double>(type) : nullptr;
}

void to_bf16_lanes(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<std::uint32_t>(i.d);
  const auto* const a = warp.slots<std::uint32_t>(i.a);
  each_lane(lanes, [&](int l) { d[l] = to_bf16(from_bits<float>(a[l])); });
}
/// Converts two real numbers to bf16 and stores both in one register: the first operand in the upper half, the second
/// in the lower half.
void to_bf16_pairs(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<std::uint32_t>(i.d);
  const auto* const a = warp.slots<std::uint32_t>(i.a);
  const auto* const b = warp.slots<std::uint32_t>(i.b);
  each_lane(lanes, [&](int l) {
    d[l] = std::uint32_t{to_bf16(from_bits<float>(a[l]))} << 16 | to_bf16(from_bits<float>(b[l]));
  });
}
void from_bf16_lanes(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<std::uint32_t>(i.d);
  const auto* const a = warp.slots<std::uint32_t>(i.a);
  each_lane(lanes, [&](int l) { d[l] = to_bits<float>(from_bf16(static_cast<std::uint16_t>(a[l]))); });
}

Rounding rounding_of(const Statement& s) {
  if (s.has("rni") || s.has("rn")) return Rounding::nearest;
  if (s.has("rzi") || s.has("rz")) return Rounding::zero;
  if (s.has("rmi") || s.has("rm")) return Rounding::down;
  return s.has("rpi") || s.has("rp") ? Rounding::up : Rounding::none;
}

}  // namespace

bool decode_conversions(const Statement& statement, Decoder& decoder, Instruction& into) {
  if (statement.opcode != "cvt" || statement.modifiers.size() < 2) return false;
  const std::string_view from = type_of(statement), to = statement.modifiers[statement.modifiers.size() - 2];
  into.kind = Class::conversion;
  if (to == "bf16x2" && from == "f32") {
    into.run = &to_bf16_pairs;
    into.b = decoder.place(statement.operands.at(2), 32);
  } else if (to == "bf16" && from == "f32") {
    into.run = &to_bf16_lanes;
  } else if (to == "f32" && from == "bf16") {
    into.run = &from_bf16_lanes;
  } else {
    into.run = between(to, from);
  }
  if (into.run == nullptr) return false;
  into.operation = static_cast<std::uint8_t>(rounding_of(statement));
  into.saturates = statement.has("sat");
  into.flushes = statement.has("ftz");
  into.d = decoder.place(statement.operands[0], bits_of(to));
  // The register may be wider than the type. Its upper bits are then ignored.
  into.a = decoder.place_of_any_width(statement.operands[1], bits_of(from));
  return true;
}

}  // namespace cairn::tests::ptx
