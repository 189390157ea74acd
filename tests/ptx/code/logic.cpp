#include <bit>
#include <cstdint>
#include <functional>

#include "cairn/tests/ptx/code/decoder.h"
#include "cairn/tests/ptx/code/integers.h"
#include "cairn/tests/ptx/code/lanes.h"

// This file implements operations on bits: and, or, xor, not, shl, shr, clz, popc, brev, bfind, bfe, bfi, bmsk, prmt,
// shf and lop3.
namespace cairn::tests::ptx {
namespace {

/// Shifts to the left. If the shift is at least the width of the type, the result is 0.
struct ShiftLeft {
  template <class T>
  T operator()(T a, U32 by) const {
    return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<U64>(a) << by);
  }
};
/// Shifts to the right. If the shift is at least the width of the type, the result is 0, or all ones for a negative
/// number.
struct ShiftRight {
  template <class T>
  T operator()(T a, U32 by) const {
    if (by >= 8 * sizeof(T)) return static_cast<T>(std::is_signed_v<T> && a < 0 ? -1 : 0);
    return static_cast<T>(a >> by);
  }
};
struct LeadingZeros {
  int operator()(auto a) const { return std::countl_zero(a); }
};
struct Ones {
  int operator()(auto a) const { return std::popcount(a); }
};
struct Reverse {
  template <class T>
  T operator()(T a) const {
    T reversed = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i) reversed = static_cast<T>(reversed << 1 | (a >> i & 1));
    return reversed;
  }
};
/// Returns the index of the highest bit that differs from the sign bit. For unsigned types, returns the index of the
/// highest bit that is 1. Returns -1 if there is no such bit.
struct FindBit {
  template <class T>
  int operator()(T a) const {
    const auto bits = static_cast<Whole<T>>(std::is_signed_v<T> && a < 0 ? ~a : a);
    return static_cast<int>(8 * sizeof(T)) - 1 - std::countl_zero(bits);
  }
};
/// Returns by how much to shift to the left so that the bit found by FindBit becomes the highest bit. Returns -1 if
/// there is no such bit.
struct FindShift {
  template <class T>
  int operator()(T a) const {
    const int place = FindBit{}(a);
    return place < 0 ? place : static_cast<int>(8 * sizeof(T)) - 1 - place;
  }
};
/// Returns a word in which `width` bits from bit `from` upwards are ones. Ones beyond the highest bit are lost.
struct MaskOfBits {
  U32 operator()(U32 from, U32 width) const {
    if (from >= 32) return 0;
    const U32 ones = width >= 32 ? ~U32{0} : (U32{1} << width) - 1;
    return ones << from;
  }
};
struct Extract {
  template <class T>
  T operator()(T a, U32 from, U32 width) const {
    constexpr U32 kBits = 8 * sizeof(T);
    from &= 255;
    width &= 255;
    if (width == 0) return 0;
    const U32 top = from + width - 1 < kBits ? from + width - 1 : kBits - 1;
    const auto bits = static_cast<Whole<T>>(a);
    const bool sign = std::is_signed_v<T> && (bits >> top & 1) != 0;
    Whole<T> value = 0;
    for (U32 i = 0; i < kBits; ++i) {
      const bool bit = i < width && from + i < kBits ? (bits >> (from + i) & 1) != 0 : sign;
      value |= static_cast<Whole<T>>(Whole<T>{bit} << i);
    }
    return static_cast<T>(value);
  }
};
template <class T>
void insert_bits(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<Bits<T>>(i.d);
  const auto* const a = warp.slots<Bits<T>>(i.a);
  const auto* const b = warp.slots<Bits<T>>(i.b);
  const auto* const from = warp.slots<U32>(i.c);
  const auto* const width = warp.slots<U32>(i.elements[0]);
  each_lane(lanes, [&](int l) {
    T result = static_cast<T>(b[l]);
    for (U32 k = 0; k < (width[l] & 255); ++k) {
      const U32 place = (from[l] & 255) + k;
      if (place >= 8 * sizeof(T)) break;
      result = static_cast<T>((result & ~(T{1} << place)) | (a[l] >> k & 1) << place);
    }
    d[l] = result;
  });
}
/// Returns four bytes chosen from the eight bytes of `a` (bytes 0 to 3) and `b` (bytes 4 to 7). Four bits of `choice`
/// select each byte: the lower three are the index of the byte. If the fourth bit is set, the result is the sign bit of
/// this byte, repeated eight times.
struct Permute {
  U32 operator()(U32 a, U32 b, U32 choice) const {
    const U64 bytes = U64{b} << 32 | a;
    U32 result = 0;
    for (int k = 0; k < 4; ++k) {
      const U32 pick = choice >> 4 * k & 15;
      U32 byte = static_cast<U32>(bytes >> 8 * (pick & 7)) & 255;
      if ((pick & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
      result |= byte << 8 * k;
    }
    return result;
  }
};
template <bool kLeft, bool kWrap>
struct Funnel {
  U32 operator()(U32 low, U32 high, U32 by) const {
    by = kWrap ? by & 31 : by > 32 ? 32 : by;
    const U64 both = U64{high} << 32 | low;
    return static_cast<U32>(kLeft ? both << by >> 32 : both >> by);
  }
};
void any_of_three(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<U32>(i.d);
  const auto* const a = warp.slots<U32>(i.a);
  const auto* const b = warp.slots<U32>(i.b);
  const auto* const c = warp.slots<U32>(i.c);
  each_lane(lanes, [&](int l) {
    U32 result = 0;
    for (unsigned k = 0; k < 8; ++k) {
      if ((i.operation >> k & 1) == 0) continue;
      result |= ((k & 4) != 0 ? a[l] : ~a[l]) & ((k & 2) != 0 ? b[l] : ~b[l]) & ((k & 1) != 0 ? c[l] : ~c[l]);
    }
    d[l] = result;
  });
}

template <class F>
void of_predicates(Warp& warp, const Instruction& i, Mask lanes) {
  const Mask a = warp.predicate(i.a) ^ (i.a_negated ? kAllLanes : 0),
             b = warp.predicate(i.b) ^ (i.b_negated ? kAllLanes : 0);
  warp.set_predicate(i.d, F{}(a, b), lanes);
}
void not_predicate(Warp& warp, const Instruction& i, Mask lanes) {
  warp.set_predicate(i.d, i.a_negated ? warp.predicate(i.a) : ~warp.predicate(i.a), lanes);
}

template <class F>
Instruction::Run of_bits(std::string_view type) {
  return choose(type, {{"b16", &binary<F, U16, U16, U16>},
                       {"b32", &binary<F, U32, U32, U32>},
                       {"b64", &binary<F, U64, U64, U64>},
                       {"pred", &of_predicates<F>}});
}
template <class F>
Instruction::Run count(std::string_view type) {
  return choose(type, {{"b32", &unary<F, U32, U32>}, {"b64", &unary<F, U32, U64>}});
}
template <class F>
Instruction::Run find(std::string_view type) {
  return choose(type, {{"u32", &unary<F, U32, U32>},
                       {"s32", &unary<F, U32, std::int32_t>},
                       {"u64", &unary<F, U32, U64>},
                       {"s64", &unary<F, U32, std::int64_t>}});
}

Instruction::Run two(const Statement& s) {
  const std::string_view type = type_of(s);
  if (s.opcode == "and") return of_bits<std::bit_and<>>(type);
  if (s.opcode == "or") return of_bits<std::bit_or<>>(type);
  if (s.opcode == "xor") return of_bits<std::bit_xor<>>(type);
  if (s.opcode == "shl") {
    return choose(type, {{"b16", &binary<ShiftLeft, U16, U16, U32>},
                         {"b32", &binary<ShiftLeft, U32, U32, U32>},
                         {"b64", &binary<ShiftLeft, U64, U64, U32>}});
  }
  if (s.opcode == "shr") {
    return choose(type, {{"b16", &binary<ShiftRight, U16, U16, U32>},
                         {"u16", &binary<ShiftRight, U16, U16, U32>},
                         {"s16", &binary<ShiftRight, std::int16_t, std::int16_t, U32>},
                         {"b32", &binary<ShiftRight, U32, U32, U32>},
                         {"u32", &binary<ShiftRight, U32, U32, U32>},
                         {"s32", &binary<ShiftRight, std::int32_t, std::int32_t, U32>},
                         {"b64", &binary<ShiftRight, U64, U64, U32>},
                         {"u64", &binary<ShiftRight, U64, U64, U32>},
                         {"s64", &binary<ShiftRight, std::int64_t, std::int64_t, U32>}});
  }
  if (s.opcode == "bmsk") return &binary<MaskOfBits, U32, U32, U32>;
  return nullptr;
}

Instruction::Run one(const Statement& s) {
  const std::string_view type = type_of(s);
  if (s.opcode == "not") {
    return choose(type, {{"b16", &unary<std::bit_not<>, U16, U16>},
                         {"b32", &unary<std::bit_not<>, U32, U32>},
                         {"b64", &unary<std::bit_not<>, U64, U64>},
                         {"pred", &not_predicate}});
  }
  if (s.opcode == "clz") return count<LeadingZeros>(type);
  if (s.opcode == "popc") return count<Ones>(type);
  if (s.opcode == "brev") return choose(type, {{"b32", &unary<Reverse, U32, U32>}, {"b64", &unary<Reverse, U64, U64>}});
  if (s.opcode == "bfind") return s.has("shiftamt") ? find<FindShift>(type) : find<FindBit>(type);
  return nullptr;
}

Instruction::Run three(const Statement& s) {
  const std::string_view type = type_of(s);
  if (s.opcode == "bfe") {
    return choose(type, {{"u32", &ternary<Extract, U32, U32, U32, U32>},
                         {"u64", &ternary<Extract, U64, U64, U32, U32>},
                         {"s32", &ternary<Extract, std::int32_t, std::int32_t, U32, U32>},
                         {"s64", &ternary<Extract, std::int64_t, std::int64_t, U32, U32>}});
  }
  if (s.opcode == "prmt") return &ternary<Permute, U32, U32, U32, U32>;
  if (s.opcode == "shf" && s.has("wrap"))
    return s.has("l") ? &ternary<Funnel<true, true>, U32, U32, U32, U32>
                      : &ternary<Funnel<false, true>, U32, U32, U32, U32>;
  if (s.opcode == "shf")
    return s.has("l") ? &ternary<Funnel<true, false>, U32, U32, U32, U32>
                      : &ternary<Funnel<false, false>, U32, U32, U32, U32>;
  return nullptr;
}

/// Returns the width of operand `number` in bits. Some operands have 32 bits even if the instruction's type has 64:
/// shift counts, positions and lengths of bit fields, and the results of clz, popc and bfind.
int operand_bits(const Statement& s, std::size_t number, int bits) {
  const bool counts = s.opcode == "clz" || s.opcode == "popc" || s.opcode == "bfind";
  if (number == 0) return counts ? 32 : bits;
  const bool place =
      (number == 2 && (s.opcode == "shl" || s.opcode == "shr" || s.opcode == "bmsk" || s.opcode == "bfe")) ||
      (number == 3 && s.opcode != "lop3") || number == 4;
  return place ? 32 : bits;
}

}  // namespace

bool decode_logic(const Statement& statement, Decoder& decoder, Instruction& into) {
  const std::string_view type = type_of(statement);
  const auto& operands = statement.operands;
  if (type == "pred") {
    if (operands.size() != 2 && operands.size() != 3) return false;
    into.run = operands.size() == 3 ? two(statement) : one(statement);
    if (into.run == nullptr) return false;
    into.kind = Class::compare;
    bool ignored = false;
    into.d = decoder.predicate(operands[0], ignored);
    into.a = decoder.predicate(operands[1], into.a_negated);
    if (operands.size() == 3) into.b = decoder.predicate(operands[2], into.b_negated);
    return true;
  }
  const int bits = bits_of(type);
  if (statement.opcode == "bfi" && operands.size() == 5) {
    into.run = bits == 64 ? &insert_bits<U64> : &insert_bits<U32>;
    into.elements[0] = decoder.place(operands[4], 32);
  } else if (statement.opcode == "lop3" && operands.size() == 5) {
    into.run = &any_of_three;
    into.operation = static_cast<std::uint8_t>(operands[4].bits);
  } else {
    into.run = operands.size() == 2   ? one(statement)
               : operands.size() == 3 ? two(statement)
               : operands.size() == 4 ? three(statement)
                                      : nullptr;
  }
  if (into.run == nullptr) return false;
  into.kind = Class::integer;
  into.d = decoder.place(operands[0], operand_bits(statement, 0, bits));
  into.a = decoder.place(operands[1], operand_bits(statement, 1, bits));
  if (operands.size() > 2) into.b = decoder.place(operands[2], operand_bits(statement, 2, bits));
  if (operands.size() > 3) into.c = decoder.place(operands[3], operand_bits(statement, 3, bits));
  return true;
}

}  // namespace cairn::tests::ptx
