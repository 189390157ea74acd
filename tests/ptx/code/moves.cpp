#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "cairn/tests/ptx/code/decoder.h"
#include "cairn/tests/ptx/code/integers.h"
#include "cairn/tests/ptx/code/lanes.h"

// This file implements copies, selections and comparisons: mov, selp, setp and cvta.
namespace cairn::tests::ptx {
namespace {

template <class T>
void copy(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<Bits<T>>(i.d);
  const auto* const a = warp.slots<Bits<T>>(i.a);
  each_lane(lanes, [&](int l) { d[l] = a[l]; });
}
void copy_predicate(Warp& warp, const Instruction& i, Mask lanes) {
  const Mask value = i.a.bank == Place::Bank::constants ? 0 - (*warp.slots<U32>(i.a) & 1) : warp.predicate(i.a);
  warp.set_predicate(i.d, value ^ (i.a_negated ? kAllLanes : 0), lanes);
}

/// Joins `count` parts of equal size into one value. The first part becomes the lowest bits of the value.
void join(Warp& warp, const Instruction& i, Mask lanes) {
  const int bits = 8 * i.bytes / i.count;  // number of bits of one part
  each_lane(lanes, [&](int l) {
    U64 value = 0;
    for (int k = 0; k < i.count; ++k) {
      const U64 own = warp.value(i.elements[static_cast<std::size_t>(k)], l);
      value |= (bits == 64 ? own : own & ((U64{1} << bits) - 1)) << bits * k;
    }
    warp.set_value(i.d, l, value);
  });
}
void split(Warp& warp, const Instruction& i, Mask lanes) {
  const int bits = 8 * i.bytes / i.count;
  each_lane(lanes, [&](int l) {
    const U64 value = warp.value(i.a, l);
    for (int k = 0; k < i.count; ++k) {
      const Place& part = i.elements[static_cast<std::size_t>(k)];
      if (part.given()) warp.set_value(part, l, value >> bits * k & ((U64{1} << bits) - 1));
    }
  });
}

template <class T>
void select(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<Bits<T>>(i.d);
  const auto* const a = warp.slots<Bits<T>>(i.a);
  const auto* const b = warp.slots<Bits<T>>(i.b);
  const Mask chosen = warp.predicate(i.c) ^ (i.c_negated ? kAllLanes : 0);
  each_lane(lanes, [&](int l) { d[l] = (chosen >> l & 1) != 0 ? a[l] : b[l]; });
}

enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
constexpr std::array<std::string_view, 14> kComparisons{"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                                        "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

template <Comparison kIs, class T>
bool holds(T a, T b) {
  bool unordered = false;
  if constexpr (std::is_floating_point_v<T>) unordered = std::isnan(a) || std::isnan(b);
  switch (kIs) {
    case Comparison::eq:
      return a == b;
    case Comparison::ne:
      return !unordered && a != b;
    case Comparison::lt:
      return a < b;
    case Comparison::le:
      return a <= b;
    case Comparison::gt:
      return a > b;
    case Comparison::ge:
      return a >= b;
    case Comparison::equ:
      return unordered || a == b;
    case Comparison::neu:
      return unordered || a != b;
    case Comparison::ltu:
      return unordered || a < b;
    case Comparison::leu:
      return unordered || a <= b;
    case Comparison::gtu:
      return unordered || a > b;
    case Comparison::geu:
      return unordered || a >= b;
    case Comparison::num:
      return !unordered;
    case Comparison::nan:
      return unordered;
  }
  return false;
}

enum class Combination : std::uint8_t { none, and_, or_, xor_ };

template <Comparison kIs, class T>
void compare(Warp& warp, const Instruction& i, Mask lanes) {
  const auto* const a = warp.slots<Bits<T>>(i.a);
  const auto* const b = warp.slots<Bits<T>>(i.b);
  Mask result = 0;
  for (int l = 0; l < kLanes; ++l) result |= Mask{holds<kIs, T>(from_bits<T>(a[l]), from_bits<T>(b[l]))} << l;
  Mask opposite = ~result;
  if (i.operation != 0) {
    const Mask c = warp.predicate(i.c) ^ (i.c_negated ? kAllLanes : 0);
    const auto combined = [&](Mask value) {
      return i.operation == static_cast<int>(Combination::and_)  ? value & c
             : i.operation == static_cast<int>(Combination::or_) ? value | c
                                                                 : value ^ c;
    };
    result = combined(result);
    opposite = combined(opposite);
  }
  if (i.d.given()) warp.set_predicate(i.d, result, lanes);
  if (i.second.given()) warp.set_predicate(i.second, opposite, lanes);
}

template <Comparison kIs>
Instruction::Run compare_as(std::string_view type) {
  return choose(type, {{"b16", &compare<kIs, std::uint16_t>},
                       {"u16", &compare<kIs, std::uint16_t>},
                       {"s16", &compare<kIs, std::int16_t>},
                       {"b32", &compare<kIs, U32>},
                       {"u32", &compare<kIs, U32>},
                       {"s32", &compare<kIs, std::int32_t>},
                       {"b64", &compare<kIs, U64>},
                       {"u64", &compare<kIs, U64>},
                       {"s64", &compare<kIs, std::int64_t>},
                       {"f32", &compare<kIs, float>},
                       {"f64", &compare<kIs, double>}});
}

template <std::size_t... kEach>
Instruction::Run comparison(std::string_view name, std::string_view type, std::index_sequence<kEach...>) {
  Instruction::Run found = nullptr;
  ((name == kComparisons[kEach] ? (found = compare_as<static_cast<Comparison>(kEach)>(type), 0) : 0), ...);
  return found;
}

bool decode_comparison(const Statement& s, Decoder& decoder, Instruction& into) {
  // For unsigned numbers, PTX has other names of some comparisons, such as `lo` for less-than.
  std::string_view name = s.modifiers.front();
  if (name == "lo") name = "lt";
  if (name == "ls") name = "le";
  if (name == "hi") name = "gt";
  if (name == "hs") name = "ge";
  into.run = comparison(name, type_of(s), std::make_index_sequence<kComparisons.size()>());
  if (into.run == nullptr) return false;
  into.kind = Class::compare;
  bool ignored = false;
  const Operand& result = s.operands[0];
  if (result.kind == Operand::Kind::pair) {
    into.d = decoder.predicate(result.items[0], ignored);
    into.second = decoder.predicate(result.items[1], ignored);
  } else {
    into.d = decoder.predicate(result, ignored);
  }
  const int bits = bits_of(type_of(s));
  into.a = decoder.place(s.operands[1], bits);
  into.b = decoder.place(s.operands[2], bits);
  if (s.operands.size() < 4) return true;
  into.c = decoder.predicate(s.operands[3], into.c_negated);
  into.operation = static_cast<std::uint8_t>(s.has("and")   ? Combination::and_
                                             : s.has("or")  ? Combination::or_
                                             : s.has("xor") ? Combination::xor_
                                                            : throw std::runtime_error("an unknown combination"));
  return true;
}

bool decode_move(const Statement& s, Decoder& decoder, Instruction& into) {
  const std::string_view type = type_of(s);
  const Operand &to = s.operands[0], &from = s.operands[1];
  into.kind = Class::move;
  if (type == "pred") {
    bool ignored = false;
    into.run = &copy_predicate;
    into.d = decoder.predicate(to, ignored);
    into.a = from.kind == Operand::Kind::number ? decoder.place(from, 32) : decoder.predicate(from, into.a_negated);
    return true;
  }
  const int bits = bits_of(type);
  into.bytes = static_cast<std::uint8_t>(bits / 8);
  if (to.kind == Operand::Kind::list || from.kind == Operand::Kind::list) {
    const Operand& parts = to.kind == Operand::Kind::list ? to : from;
    into.count = static_cast<std::uint8_t>(parts.items.size());
    for (std::size_t k = 0; k < parts.items.size(); ++k)
      into.elements.at(k) = decoder.place(parts.items[k], bits / static_cast<int>(parts.items.size()));
    into.run = &parts == &to ? &split : &join;
    if (&parts == &to) {
      into.a = decoder.place(from, bits);
    } else {
      into.d = decoder.place(to, bits);
    }
    return true;
  }
  into.run = bits == 64 ? &copy<U64> : &copy<U32>;
  into.d = decoder.place(to, bits);
  into.a = decoder.place(from, bits);
  return true;
}

template <std::uint64_t kWindow, bool kTo>
void convert_address(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<U64>(i.d);
  const auto* const a = warp.slots<U64>(i.a);
  each_lane(lanes, [&](int l) {
    if (kTo && (a[l] & ~kWindowMask) != kWindow)
      warp.fault(i, l, "a generic address is converted to a space that it is not in");
    d[l] = kTo ? a[l] & kWindowMask : a[l] | kWindow;
  });
}

bool decode_address(const Statement& s, Decoder& decoder, Instruction& into) {
  into.kind = Class::move;
  into.d = decoder.place(s.operands[0], 64);
  into.a = decoder.place(s.operands[1], 64);
  const bool to = s.has("to");
  if (s.has("global") || s.has("const")) {
    into.run = &copy<U64>;
  } else if (s.has("shared")) {
    into.run = to ? &convert_address<kSharedWindow, true> : &convert_address<kSharedWindow, false>;
  } else if (s.has("local")) {
    into.run = to ? &convert_address<kLocalWindow, true> : &convert_address<kLocalWindow, false>;
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool decode_moves(const Statement& statement, Decoder& decoder, Instruction& into) {
  if (statement.opcode == "mov") return decode_move(statement, decoder, into);
  if (statement.opcode == "setp") return decode_comparison(statement, decoder, into);
  if (statement.opcode == "cvta") return decode_address(statement, decoder, into);
  if (statement.opcode != "selp") return false;
  const int bits = bits_of(type_of(statement));
  into.run = bits == 64 ? &select<U64> : &select<U32>;
  into.kind = Class::move;
  into.d = decoder.place(statement.operands[0], bits);
  into.a = decoder.place(statement.operands[1], bits);
  into.b = decoder.place(statement.operands[2], bits);
  into.c = decoder.predicate(statement.operands[3], into.c_negated);
  return true;
}

}  // namespace cairn::tests::ptx
