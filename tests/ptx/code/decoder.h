#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/tests/ptx/code/program.h"

namespace cairn::tests::ptx {

/// Finds the places of operands, i.e. where their values are stored. The decode functions below use it.
class Decoder {
 public:
  Decoder(const Module& module, const Function& function, const Symbols& globals);

  /// Returns the place of an operand whose type has `bits` bits. The operand may be a register, a number, a special
  /// register, or a variable, which stands for its address. Throws std::runtime_error if a register has a width other
  /// than `bits`.
  Place place(const Operand& operand, int bits);
  /// Works like place(), but accepts registers of any width. Some instructions permit registers that are wider or
  /// narrower than their type.
  Place place_of_any_width(const Operand& operand, int bits);
  /// Returns the place of a predicate register. `negated` becomes true if the operand is negated (!p).
  Place predicate(const Operand& operand, bool& negated);
  /// Sets the fields `a` and `offset` of an instruction to the address that the operand gives.
  void address(const Operand& operand, Instruction& into);
  std::int32_t label(const std::string& name) const;

  Program& program() { return program_; }
  std::unique_ptr<Program> finish();

 private:
  Place constant(std::uint64_t bits, Slot slot);
  std::uint64_t variable(const std::string& name) const;  ///< returns the address of the variable
  void lay_out();

  const Function& function_;
  const Symbols& globals_;
  std::unique_ptr<Program> owned_;
  Program& program_;
  std::map<std::string, std::uint64_t> variables_;  ///< offset of each .param, .shared and .local variable, by name
  std::map<std::pair<std::uint64_t, Slot>, Place> constants_;
  std::map<std::string, Place> registers_;
};

/// Returns the last modifier, such as "u64", or an empty text if there is none. In most instructions, it is the type.
std::string_view type_of(const Statement& statement);
int bits_of(std::string_view type);

/// Throws std::runtime_error if the interpreter implements the opcode, but not with these modifiers.
void require_known_modifiers(const Statement& statement);

/// Each of these functions decodes the instructions of one family. It returns false if the statement does not belong to
/// the family.
bool decode_arithmetic(const Statement& statement, Decoder& decoder, Instruction& into);
bool decode_logic(const Statement& statement, Decoder& decoder, Instruction& into);
bool decode_moves(const Statement& statement, Decoder& decoder, Instruction& into);
bool decode_conversions(const Statement& statement, Decoder& decoder, Instruction& into);
bool decode_accesses(const Statement& statement, Decoder& decoder, Instruction& into);
bool decode_control(const Statement& statement, Decoder& decoder, Instruction& into);

}  // namespace cairn::tests::ptx
