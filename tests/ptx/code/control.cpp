#include <bit>
#include <cstdint>
#include <stdexcept>

#include "cairn/tests/ptx/code/decoder.h"
#include "cairn/tests/ptx/code/integers.h"
#include "cairn/tests/ptx/code/lanes.h"

// This file implements control flow, barriers and exchanges between lanes: bra, ret, exit, trap, bar, shfl, vote,
// activemask and nanosleep.
namespace cairn::tests::ptx {
namespace {

enum class Exchange : std::uint8_t { up, down, butterfly, index };

/// Lets each lane read a register of another lane, its source. The instruction divides the warp into segments. If the
/// source is in another segment, the lane reads its own register instead. Throws a Fault if the source takes no part in
/// the instruction.
void shuffle(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<U32>(i.d);
  const auto* const a = warp.slots<U32>(i.a);
  const auto* const b = warp.slots<U32>(i.b);
  const auto* const c = warp.slots<U32>(i.c);
  U32 result[kLanes];
  Mask inside = 0;
  each_lane(lanes, [&](int l) {
    const int by = static_cast<int>(b[l] & 31), clamp = static_cast<int>(c[l] & 31),
              segment = static_cast<int>(c[l] >> 8 & 31);
    const int most = (l & segment) | (clamp & ~segment), least = l & segment;
    int from = l;
    bool in = false;
    switch (static_cast<Exchange>(i.operation)) {
      case Exchange::up:
        from = l - by;
        in = from >= most;
        break;
      case Exchange::down:
        from = l + by;
        in = from <= most;
        break;
      case Exchange::butterfly:
        from = l ^ by;
        in = from <= most;
        break;
      case Exchange::index:
        from = least | (by & ~segment);
        in = from <= most;
        break;
    }
    if (!in) from = l;
    if ((lanes >> from & 1) == 0)
      warp.fault(i, l, "reads the register of lane " + std::to_string(from) + ", which takes no part");
    result[l] = a[from];
    if (in) inside |= Mask{1} << l;
  });
  if (i.d.given()) each_lane(lanes, [&](int l) { d[l] = result[l]; });
  if (i.second.given()) warp.set_predicate(i.second, inside, lanes);
}

enum class Vote : std::uint8_t { ballot, all, any, uniform };

void vote(Warp& warp, const Instruction& i, Mask lanes) {
  const Mask votes = (warp.predicate(i.a) ^ (i.a_negated ? kAllLanes : 0)) & lanes;
  if (static_cast<Vote>(i.operation) == Vote::ballot) {
    auto* const d = warp.slots<U32>(i.d);
    each_lane(lanes, [&](int l) { d[l] = votes; });
    return;
  }
  bool result = votes != 0;
  if (static_cast<Vote>(i.operation) == Vote::all) result = votes == lanes;
  if (static_cast<Vote>(i.operation) == Vote::uniform) result = votes == 0 || votes == lanes;
  warp.set_predicate(i.d, result ? kAllLanes : 0, lanes);
}

void wait_for_warp(Warp& warp, const Instruction&, Mask lanes) { warp.synchronise(lanes); }

void active_lanes(Warp& warp, const Instruction& i, Mask lanes) {
  auto* const d = warp.slots<U32>(i.d);
  each_lane(lanes, [&](int l) { d[l] = lanes; });
}
void nothing(Warp&, const Instruction&, Mask) {}
void trap(Warp& warp, const Instruction& i, Mask lanes) { warp.fault(i, std::countr_zero(lanes), "comes to a trap"); }

bool decode_shuffle(const Statement& s, Decoder& decoder, Instruction& into) {
  if (s.operands.size() != 5) return false;
  into.run = &shuffle;
  into.flow = Instruction::Flow::collective;
  into.kind = Class::exchange;
  into.operation = static_cast<std::uint8_t>(s.has("up")     ? Exchange::up
                                             : s.has("down") ? Exchange::down
                                             : s.has("bfly") ? Exchange::butterfly
                                                             : Exchange::index);
  bool ignored = false;
  const Operand& result = s.operands[0];
  if (result.kind == Operand::Kind::pair) {
    into.d = decoder.place(result.items[0], 32);
    into.second = decoder.predicate(result.items[1], ignored);
  } else {
    into.d = decoder.place(result, 32);
  }
  into.a = decoder.place(s.operands[1], 32);
  into.b = decoder.place(s.operands[2], 32);
  into.c = decoder.place(s.operands[3], 32);
  into.elements[0] = decoder.place(s.operands[4], 32);
  return true;
}

bool decode_vote(const Statement& s, Decoder& decoder, Instruction& into) {
  if (s.operands.size() != 3) return false;
  into.run = &vote;
  into.flow = Instruction::Flow::collective;
  into.kind = Class::exchange;
  into.operation = static_cast<std::uint8_t>(s.has("ballot") ? Vote::ballot
                                             : s.has("all")  ? Vote::all
                                             : s.has("any")  ? Vote::any
                                                             : Vote::uniform);
  bool ignored = false;
  into.d = s.has("ballot") ? decoder.place(s.operands[0], 32) : decoder.predicate(s.operands[0], ignored);
  into.a = decoder.predicate(s.operands[1], into.a_negated);
  into.elements[0] = decoder.place(s.operands[2], 32);
  return true;
}

bool decode_barrier(const Statement& s, Decoder& decoder, Instruction& into) {
  if (s.has("warp")) {  // the instruction bar.warp.sync, with a mask
    into.run = &wait_for_warp;
    into.flow = Instruction::Flow::collective;
    into.kind = Class::barrier;
    into.elements[0] = decoder.place(s.operands.at(0), 32);
    return true;
  }
  into.run = &nothing;
  into.flow = Instruction::Flow::barrier;
  into.kind = Class::barrier;
  if (s.has("sync")) {
    into.b = decoder.place(s.operands.at(0), 32);
    into.c = s.operands.size() > 1 ? decoder.place(s.operands[1], 32) : Place::none();
    return true;
  }
  if (!s.has("red")) return false;
  into.reduction = s.has("or") ? Reduction::any : s.has("and") ? Reduction::all : Reduction::count;
  bool ignored = false;
  into.d = s.has("popc") ? decoder.place(s.operands.at(0), 32) : decoder.predicate(s.operands.at(0), ignored);
  into.b = decoder.place(s.operands.at(1), 32);
  into.c = s.operands.size() > 3 ? decoder.place(s.operands[2], 32) : Place::none();
  into.a = decoder.predicate(s.operands.back(), into.a_negated);
  return true;
}

}  // namespace

bool decode_control(const Statement& statement, Decoder& decoder, Instruction& into) {
  const std::string& opcode = statement.opcode;
  into.kind = Class::control;
  if (opcode == "bra") {
    into.flow = Instruction::Flow::branch;
    into.target = decoder.label(statement.operands.at(0).name);
    return true;
  }
  if (opcode == "ret" || opcode == "exit") {
    into.flow = Instruction::Flow::exit;
    return true;
  }
  if (opcode == "shfl") return decode_shuffle(statement, decoder, into);
  if (opcode == "vote") return decode_vote(statement, decoder, into);
  if (opcode == "bar" || opcode == "barrier") return decode_barrier(statement, decoder, into);
  if (opcode == "activemask") {
    into.run = &active_lanes;
    into.d = decoder.place(statement.operands.at(0), 32);
    return true;
  }
  if (opcode == "trap" || opcode == "brkpt") into.run = &trap;
  if (opcode == "nanosleep") into.run = &nothing;
  return into.run != nullptr;
}

}  // namespace cairn::tests::ptx
