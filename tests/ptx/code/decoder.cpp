#include "cairn/tests/ptx/code/decoder.h"

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>

namespace cairn::tests::ptx {
namespace {

constexpr std::size_t align(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

/// Names of the special registers, in the order of the enumeration Special.
constexpr std::array<std::string_view, static_cast<std::size_t>(Special::count)> kSpecials{
    "%tid.x",          "%tid.y",       "%tid.z",       "%ntid.x",      "%ntid.y",   "%ntid.z",
    "%ctaid.x",        "%ctaid.y",     "%ctaid.z",     "%nctaid.x",    "%nctaid.y", "%nctaid.z",
    "%laneid",         "%warpid",      "%nwarpid",     "%smid",        "%nsmid",    "%lanemask_eq",
    "%lanemask_le",    "%lanemask_lt", "%lanemask_ge", "%lanemask_gt", "%clock",    "%dynamic_smem_size",
    "%total_smem_size"};

}  // namespace

std::string_view type_of(const Statement& statement) {
  return statement.modifiers.empty() ? std::string_view() : std::string_view(statement.modifiers.back());
}

int bits_of(std::string_view type) {
  if (type == "pred") return 1;
  const std::size_t digits = type.find_first_of("0123456789");
  if (digits == std::string_view::npos) return 0;
  if (type.ends_with("x2")) return 32;
  return std::stoi(std::string(type.substr(digits)));
}

Decoder::Decoder(const Module& module, const Function& function, const Symbols& globals)
    : function_(function), globals_(globals), owned_(std::make_unique<Program>()), program_(*owned_) {
  program_.name = function.name;
  program_.module = &module;
  std::set<std::string> used;
  for (const Statement& statement : function.statements) {
    for (const Operand& operand : statement.operands) used.insert(operand.name);
  }
  for (const Variable& shared : module.variables) {
    if (shared.space != Space::shared || !used.contains(shared.name)) continue;
    program_.shared_bytes = align(program_.shared_bytes, shared.alignment);
    // Later, lay_out() moves dynamic shared memory behind all other shared variables.
    variables_[shared.name] = program_.shared_bytes;
    program_.shared_bytes += shared.bytes;
  }
  lay_out();
}

void Decoder::lay_out() {
  for (const Variable& param : function_.params) {
    program_.param_bytes = align(program_.param_bytes, param.alignment);
    program_.param_offsets.push_back(program_.param_bytes);
    program_.param_sizes.push_back(param.bytes);
    variables_[param.name] = program_.param_bytes;
    program_.param_bytes += param.bytes;
  }
  // A variable without a size stands for the launch's dynamic shared memory, which lies behind all other variables. So
  // the variables with a size come first.
  for (const bool sized : {true, false}) {
    for (const Variable& variable : function_.variables) {
      if ((variable.bytes > 0) != sized) continue;
      std::size_t& bytes = variable.space == Space::shared ? program_.shared_bytes : program_.local_bytes;
      bytes = align(bytes, variable.alignment);
      variables_[variable.name] = bytes;
      bytes += variable.bytes;
    }
  }
  for (const Variable& shared : program_.module->variables) {
    if (shared.space == Space::shared && shared.bytes == 0 && variables_.contains(shared.name))
      variables_[shared.name] = program_.shared_bytes = align(program_.shared_bytes, 16);
  }
  program_.predicates = static_cast<std::uint32_t>(function_.slots[static_cast<int>(Slot::predicate)]);
  const auto words = static_cast<std::uint32_t>(function_.slots[static_cast<int>(Slot::word)]);
  const auto pairs = static_cast<std::uint32_t>(function_.slots[static_cast<int>(Slot::pair)]);
  constexpr std::uint32_t kWords = kLanes * 4, kPairs = kLanes * 8;
  for (const auto& [name, reg] : function_.registers) {
    const auto index = static_cast<std::uint32_t>(reg.index);
    const std::uint32_t offset = reg.slot == Slot::predicate ? index
                                 : reg.slot == Slot::word    ? pairs * kPairs + index * kWords
                                                             : index * kPairs;
    registers_[name] = {Place::Bank::registers, reg.slot, offset};
  }
  program_.register_bytes = std::size_t{pairs} * kPairs + std::size_t{words} * kWords;
}

std::uint64_t Decoder::variable(const std::string& name) const {
  if (const auto own = variables_.find(name); own != variables_.end()) return own->second;
  if (const auto global = globals_.find(name); global != globals_.end()) return global->second;
  throw std::runtime_error("the name '" + name + "' is unknown");
}

Place Decoder::constant(std::uint64_t bits, Slot slot) {
  const auto [known, is_new] = constants_.try_emplace({bits, slot});
  if (is_new) {
    known->second = {Place::Bank::constants, slot, static_cast<std::uint32_t>(program_.constants.size())};
    const std::size_t bytes = slot == Slot::pair ? 8 : 4;
    for (int lane = 0; lane < kLanes; ++lane) {
      for (std::size_t i = 0; i < bytes; ++i) program_.constants.push_back(static_cast<std::byte>(bits >> 8 * i));
    }
  }
  return known->second;
}

Place Decoder::place(const Operand& operand, int bits) {
  const Slot slot = bits == 64 ? Slot::pair : Slot::word;
  if (operand.kind == Operand::Kind::sink) return Place::none();
  if (operand.kind == Operand::Kind::number) {
    // Removes bits beyond the type's width. Negative numbers have them, because all numbers are stored with 64 bits
    // here.
    return constant(bits < 64 ? operand.bits & ((std::uint64_t{1} << bits) - 1) : operand.bits, slot);
  }
  if (operand.kind != Operand::Kind::name) throw std::runtime_error("an operand of a kind that is not known here");
  if (const auto found = registers_.find(operand.name); found != registers_.end()) {
    if (found->second.slot != slot)
      throw std::runtime_error("register " + operand.name + " is not as wide as the instruction's type");
    return found->second;
  }
  const auto special = std::find(kSpecials.begin(), kSpecials.end(), operand.name);
  if (special != kSpecials.end())
    return {Place::Bank::specials, Slot::word, static_cast<std::uint32_t>(special - kSpecials.begin()) * kLanes * 4};
  if (operand.name == "WARP_SZ") return constant(kLanes, slot);
  return constant(variable(operand.name) + static_cast<std::uint64_t>(operand.offset), slot);
}

Place Decoder::place_of_any_width(const Operand& operand, int bits) {
  const auto found = registers_.find(operand.name);
  const bool given = operand.kind == Operand::Kind::name && found != registers_.end();
  return given && found->second.slot != Slot::predicate ? found->second : place(operand, bits);
}

Place Decoder::predicate(const Operand& operand, bool& negated) {
  negated = operand.negated;
  if (operand.kind == Operand::Kind::sink) return Place::none();
  const auto found = registers_.find(operand.name);
  if (found == registers_.end() || found->second.slot != Slot::predicate)
    throw std::runtime_error("'" + operand.name + "' is no predicate");
  return found->second;
}

void Decoder::address(const Operand& operand, Instruction& into) {
  if (operand.kind != Operand::Kind::address) throw std::runtime_error("an address is missing");
  into.offset = operand.offset;
  if (operand.name.empty()) {
    into.a = constant(0, Slot::pair);
  } else if (const auto found = registers_.find(operand.name); found != registers_.end()) {
    into.a = found->second;
  } else {
    into.a = constant(variable(operand.name), Slot::pair);
  }
}

std::int32_t Decoder::label(const std::string& name) const {
  const auto found = function_.labels.find(name);
  if (found == function_.labels.end()) throw std::runtime_error("the label '" + name + "' is unknown");
  return found->second;
}

std::unique_ptr<Program> Decoder::finish() { return std::move(owned_); }

std::string Program::where(const Instruction& instruction) const {
  constexpr int kMostCalls = 4;
  std::string text = "PTX line " + std::to_string(instruction.line);
  std::int32_t latest = -1;
  int calls = 0;
  for (const Source* at = &instruction.source; at != nullptr && calls <= kMostCalls; at = at->caller) {
    const auto file = module->files.find(at->file);
    if (file == module->files.end() || at->file == latest) continue;
    text += latest < 0 ? ", " : ", called at ";
    text += file->second.substr(file->second.rfind('/') + 1) + ":" + std::to_string(at->line);
    latest = at->file;
    ++calls;
  }
  return text;
}

std::unique_ptr<Program> decode(const Module& module, const Function& function, const Symbols& globals) {
  Decoder decoder(module, function, globals);
  for (const Statement& statement : function.statements) {
    Instruction instruction;
    instruction.line = statement.line;
    instruction.source = statement.source;
    try {
      if (!statement.guard.empty()) {
        bool negated = false;
        instruction.guard = decoder.predicate({.name = statement.guard}, negated).offset;
        instruction.guarded = true;
        instruction.guard_negated = statement.guard_negated;
      }
      require_known_modifiers(statement);
      const bool known =
          decode_moves(statement, decoder, instruction) || decode_arithmetic(statement, decoder, instruction) ||
          decode_logic(statement, decoder, instruction) || decode_accesses(statement, decoder, instruction) ||
          decode_control(statement, decoder, instruction) || decode_conversions(statement, decoder, instruction);
      if (!known) throw std::runtime_error("the instruction is unknown");
    } catch (const std::exception& error) {
      throw std::runtime_error(function.name + ", PTX line " + std::to_string(statement.line) + ", " +
                               statement.text() + ": " + error.what());
    }
    decoder.program().code.push_back(instruction);
  }
  // Appends an exit, because the last statement need not be a `ret`, and a label may follow the last statement.
  Instruction end;
  end.flow = Instruction::Flow::exit;
  end.kind = Class::control;
  decoder.program().code.push_back(end);
  return decoder.finish();
}

}  // namespace cairn::tests::ptx
