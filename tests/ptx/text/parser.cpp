#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <stdexcept>

#include "cairn/tests/ptx/text/module.h"

namespace cairn::tests::ptx {
namespace {

struct Token {
  enum class Kind : std::uint8_t { word, number, text, sign, end };
  Kind kind = Kind::end;
  std::string_view text;
  std::int32_t line = 0;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%'; }

/// Splits text into tokens. A dot belongs to the word around it, as in "ld.global.u64", ".reg" and "%tid.x".
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  const Token& peek() const { return next_; }
  Token take() {
    const Token token = next_;
    advance();
    return token;
  }
  /// Takes the rest of the line that contains the token taken last, and returns it.
  std::string_view rest_of_line() {
    // The lexer has already read one token ahead. This token may be on the same line, and then belongs to the result.
    const std::size_t begin = next_begin_;
    std::size_t end = text_.find('\n', begin);
    if (line_break_before_next_) return {};
    if (end == std::string_view::npos) end = text_.size();
    at_ = end;
    advance();
    return text_.substr(begin, end - begin);
  }

 private:
  void skip_blank() {
    line_break_before_next_ = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        line_break_before_next_ = true;
      }
      if (c == '/' && text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        ++at_;
      } else {
        return;
      }
    }
  }
  void advance() {
    skip_blank();
    next_begin_ = at_;
    next_.line = line_;
    if (at_ == text_.size()) {
      next_.kind = Token::Kind::end;
      next_.text = {};
      return;
    }
    const std::size_t begin = at_;
    const char c = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      next_.kind = Token::Kind::number;
      while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.')) ++at_;
    } else if (is_word(c) || c == '.') {
      next_.kind = Token::Kind::word;
      while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.' || text_.substr(at_, 2) == "::"))
        at_ += text_[at_] == ':' ? 2 : 1;
    } else if (c == '"') {
      next_.kind = Token::Kind::text;
      at_ = text_.find('"', at_ + 1) + 1;
    } else {
      next_.kind = Token::Kind::sign;
      ++at_;
    }
    next_.text = text_.substr(begin, at_ - begin);
  }

  std::string_view text_;
  std::size_t at_ = 0, next_begin_ = 0;
  std::int32_t line_ = 1;
  bool line_break_before_next_ = false;
  Token next_;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Module run() {
    while (lexer_.peek().kind != Token::Kind::end) directive();
    return std::move(module_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) {
    throw std::runtime_error("PTX line " + std::to_string(lexer_.peek().line) + ": " + what + " at '" +
                             std::string(lexer_.peek().text) + "'");
  }
  bool next_is(std::string_view text) const { return lexer_.peek().text == text; }
  bool take_if(std::string_view text) {
    if (!next_is(text)) return false;
    lexer_.take();
    return true;
  }
  void expect(std::string_view text) {
    if (!take_if(text)) fail("'" + std::string(text) + "' is missing");
  }
  std::string word() {
    if (lexer_.peek().kind != Token::Kind::word) fail("a name is missing");
    return std::string(lexer_.take().text);
  }
  std::uint64_t number() {
    const bool negative = take_if("-");
    if (lexer_.peek().kind != Token::Kind::number) fail("a number is missing");
    std::string_view text = lexer_.take().text;
    int base = 10;
    if (text.size() > 2 && text[0] == '0') {
      const char kind = text[1];
      if (kind == 'x' || kind == 'X' || kind == 'f' || kind == 'F' || kind == 'd' || kind == 'D') {
        base = 16;
        text.remove_prefix(2);
      }
    }
    if (base == 10 && (text.back() == 'U' || text.back() == 'u')) text.remove_suffix(1);
    std::uint64_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (result.ptr != text.data() + text.size()) fail("an unknown number");
    return negative ? std::uint64_t{0} - value : value;
  }

  void directive() {
    const std::string name = word();
    if (name == ".version" || name == ".target" || name == ".address_size") {
      lexer_.rest_of_line();
    } else if (name == ".file") {
      const auto index = static_cast<std::int32_t>(number());
      std::string_view path = lexer_.take().text;
      module_.files[index] = std::string(path.substr(1, path.size() - 2));
      lexer_.rest_of_line();
    } else if (name == ".section") {
      skip_section();
    } else if (name == ".visible" || name == ".weak" || name == ".extern" || name == ".common") {
      directive();
    } else if (name == ".entry") {
      function();
    } else if (name == ".global" || name == ".const" || name == ".shared") {
      module_.variables.push_back(variable(space_of(name)));
      expect(";");
    } else {
      fail("the directive '" + name + "' is unknown");
    }
  }
  void skip_section() {
    lexer_.take();
    expect("{");
    while (!take_if("}")) lexer_.take();
  }

  static Space space_of(const std::string& name) {
    if (name == ".shared") return Space::shared;
    if (name == ".local") return Space::local;
    if (name == ".const") return Space::constant;
    return name == ".param" ? Space::param : Space::global;
  }

  static std::size_t bytes_of(const std::string& type) {
    if (type == ".pred") return 0;
    std::size_t digits = type.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(type[digits - 1])) != 0) --digits;
    return digits == type.size() ? 0 : std::stoul(type.substr(digits)) / 8;
  }

  /// Parses the declaration of a variable whose space (e.g. .shared) was already taken. The remaining text is, for
  /// example, .align 8 .b8 name[16] = {..}.
  Variable variable(Space space) {
    Variable found;
    found.space = space;
    std::string type = word();
    if (type == ".align") {
      found.alignment = number();
      type = word();
    }
    if (type == ".attribute" || type == ".ptr") fail("an unknown attribute");
    const std::size_t element = bytes_of(type);
    if (element == 0) fail("the type '" + type + "' is unknown");
    found.alignment = std::max(found.alignment, element);
    found.name = word();
    std::size_t count = 1;
    while (take_if("[")) {
      count *= next_is("]") ? 0 : number();  // for [], the launch decides the size, so it counts as 0 here
      expect("]");
    }
    found.bytes = element * count;
    if (take_if("=")) {
      const bool list = take_if("{");
      do {
        const std::uint64_t value = number();
        for (std::size_t i = 0; i < element; ++i) found.initial.push_back(static_cast<std::byte>(value >> 8 * i));
      } while (take_if(","));
      if (list) expect("}");
    }
    return found;
  }

  void function() {
    function_ = {};
    function_.name = word();
    expect("(");
    while (!take_if(")")) {
      if (word() != ".param") fail("a parameter is missing");
      function_.params.push_back(variable(Space::param));
      take_if(",");
    }
    while (!next_is("{")) {  // skips directives such as .maxntid and .minnctapersm
      word();
      lexer_.rest_of_line();
    }
    scopes_.assign(1, {});
    source_ = {};
    locations_.clear();
    block();
    module_.functions.push_back(std::move(function_));
  }

  /// Parses a block { .. }. Registers that are declared in the block are known only inside it.
  void block() {
    expect("{");
    while (!take_if("}")) {
      if (next_is("{")) {
        scopes_.emplace_back();
        block();
        scopes_.pop_back();
      } else {
        line();
      }
    }
  }

  void line() {
    Statement statement;
    statement.line = lexer_.peek().line;
    statement.source = source_;
    if (take_if("@")) {
      statement.guard_negated = take_if("!");
      statement.guard = scoped(word());
    }
    const std::string name = word();
    if (name == ".reg") return registers();
    if (name == ".shared" || name == ".local") {
      function_.variables.push_back(variable(space_of(name)));
      return expect(";");
    }
    if (name == ".loc") return location();
    if (name == ".pragma") {
      lexer_.take();
      return expect(";");
    }
    if (take_if(":")) {
      if (!function_.labels.emplace(name, static_cast<std::int32_t>(function_.statements.size())).second)
        fail("the label '" + name + "' stands twice");
      return;
    }
    std::size_t dot = name.find('.');
    statement.opcode = name.substr(0, dot);
    while (dot != std::string::npos) {
      const std::size_t end = name.find('.', dot + 1);
      statement.modifiers.push_back(name.substr(dot + 1, end == std::string::npos ? end : end - dot - 1));
      dot = end;
    }
    while (!take_if(";")) {
      statement.operands.push_back(operand());
      if (!next_is(";")) expect(",");
    }
    function_.statements.push_back(std::move(statement));
  }

  /// Parses what follows the word .loc, for example 1 30 5, function_name f, inlined_at 2 40 7. Three numbers in a
  /// row are a file, a line and a column.
  void location() {
    constexpr std::string_view kInlined = "inlined_at ";
    Location own, call{};
    for (std::int32_t& one : own) one = static_cast<std::int32_t>(number());
    source_ = {own[0], own[1]};
    std::string_view rest = lexer_.rest_of_line();
    if (const std::size_t at = rest.find(kInlined); at != std::string_view::npos) {
      rest.remove_prefix(at + kInlined.size());
      for (std::int32_t& one : call) {
        const char* const end = std::from_chars(rest.data(), rest.data() + rest.size(), one).ptr;
        rest.remove_prefix(std::min<std::size_t>(static_cast<std::size_t>(end - rest.data()) + 1, rest.size()));
      }
      const auto known = locations_.find(call);
      module_.callers.push_back(known == locations_.end() ? Source{call[0], call[1]} : known->second);
      source_.caller = &module_.callers.back();
    }
    locations_[own] = source_;
  }

  void registers() {
    const std::string type = word();
    const std::size_t bytes = bytes_of(type);
    const Slot slot = type == ".pred" ? Slot::predicate : bytes == 8 ? Slot::pair : Slot::word;
    if (bytes > 8) fail("registers of type '" + type + "' are unknown");
    do {
      const std::string name = word();
      if (take_if("<")) {
        const auto count = static_cast<std::int32_t>(number());
        expect(">");
        for (std::int32_t i = 0; i < count; ++i) declare(name + std::to_string(i), slot);
      } else {
        declare(name, slot);
      }
    } while (take_if(","));
    expect(";");
  }
  void declare(const std::string& name, Slot slot) {
    std::string unique = name;
    if (scopes_.size() > 1) {  // in an inner scope, the same name may stand for another register outside of it
      unique += "@" + std::to_string(++scope_count_);
      scopes_.back()[name] = unique;
    }
    function_.registers[unique] = {slot, function_.slots[static_cast<int>(slot)]++};
  }
  std::string scoped(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    }
    return name;
  }

  Operand operand() {
    Operand found = simple();
    if (take_if("|")) {
      Operand pair;
      pair.kind = Operand::Kind::pair;
      pair.items.push_back(std::move(found));
      pair.items.push_back(simple());
      return pair;
    }
    return found;
  }
  Operand simple() {
    Operand found;
    if (take_if("[")) {
      found.kind = Operand::Kind::address;
      if (lexer_.peek().kind == Token::Kind::word) {
        found.name = scoped(word());
        if (take_if("+")) found.offset = static_cast<std::int64_t>(number());
      } else {
        found.offset = static_cast<std::int64_t>(number());
      }
      expect("]");
    } else if (take_if("{")) {
      found.kind = Operand::Kind::list;
      while (!take_if("}")) {
        found.items.push_back(simple());
        take_if(",");
      }
    } else if (lexer_.peek().kind == Token::Kind::number || next_is("-")) {
      found.kind = Operand::Kind::number;
      found.bits = number();
    } else {
      found.negated = take_if("!");
      found.name = scoped(word());
      if (found.name == "_") found.kind = Operand::Kind::sink;
      if (take_if("+")) found.offset = static_cast<std::int64_t>(number());
    }
    return found;
  }

  Lexer lexer_;
  Module module_;
  Function function_;
  Source source_;
  using Location = std::array<std::int32_t, 3>;  ///< file, line and column
  std::map<Location, Source> locations_;         ///< the latest Source for each location
  std::vector<std::map<std::string, std::string>> scopes_;
  int scope_count_ = 0;
};

}  // namespace

bool Statement::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::string Statement::text() const {
  std::string text = opcode;
  for (const std::string& modifier : modifiers) text += "." + modifier;
  return text;
}

Module parse(std::string_view text) { return Parser(text).run(); }

}  // namespace cairn::tests::ptx
