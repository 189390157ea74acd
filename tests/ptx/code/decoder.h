#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/tests/ptx/code/program.h"

namespace cairn::tests::ptx {

/// Gives the operands of a function their places, for the opcodes' own decoding.
class Decoder {
 public:
  Decoder(const Module& module, const Function& function, const Symbols& globals);

  /// Place of an operand of so many bits: a register, a constant, a special register or a variable's address.
  Place place(const Operand& operand, int bits);
  /// The same for instructions that take registers wider, or narrower, than their type.
  Place place_of_any_width(const Operand& operand, int bits);
  /// Place of a predicate; sets `negated` for !p.
  Place predicate(const Operand& operand, bool& negated);
  /// Sets the address in `a` and the offset of an instruction; its space is known.
  void address(const Operand& operand, Instruction& into);
  std::int32_t label(const std::string& name) const;

  Program& program() { return program_; }
  std::unique_ptr<Program> finish();

 private:
  Place constant(std::uint64_t bits, Slot slot);
  bool variable(const std::string& name, std::uint64_t& address) const;
  void lay_out();

  const Function& function_;
  const Symbols& globals_;
  std::unique_ptr<Program> owned_;
  Program& program_;
  std::map<std::string, std::uint64_t> variables_;  ///< offsets of .param, .shared and .local variables
  std::map<std::pair<std::uint64_t, Slot>, Place> constants_;
  std::map<std::string, Place> registers_;
};

/// The last modifier, which names the type of most instructions: "u64".
std::string_view type_of(const Statement& statement);
int bits_of(std::string_view type);

/// Each decodes the instructions of one family. Returns false if the statement is of another.
bool decode_arithmetic(const Statement& statement, Decoder& decoder, Instruction& into);
bool decode_logic(const Statement& statement, Decoder& decoder, Instruction& into);
bool decode_moves(const Statement& statement, Decoder& decoder, Instruction& into);
bool decode_conversions(const Statement& statement, Decoder& decoder, Instruction& into);
bool decode_accesses(const Statement& statement, Decoder& decoder, Instruction& into);
bool decode_control(const Statement& statement, Decoder& decoder, Instruction& into);

}  // namespace cairn::tests::ptx
