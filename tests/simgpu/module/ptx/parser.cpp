// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/ptx/parser.h"

#include <set>

#include "tests/simgpu/module/ptx/decoder.h"
#include "tests/simgpu/module/ptx/modifiers.h"

namespace simgpu::ptx {
namespace {

size_t align_up(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// The declaration of a variable: ".align 16 .b8 name[64]", what follows its state space.
struct Declaration {
  std::string name;
  size_t alignment = 1;
  size_t bytes = 0;
};

Declaration parse_declaration(Cursor& cursor) {
  Declaration declaration;
  size_t alignment = 0;
  size_t element = 0;
  bool pointee = false;  // behind ".ptr" an alignment is that of what the parameter points to
  while (cursor.peek().text.starts_with('.')) {
    const std::string_view word = cursor.word();
    if (word == ".align") {
      const auto value = static_cast<size_t>(cursor.integer());
      if (!pointee) alignment = value;
    } else if (word == ".ptr") {
      pointee = true;
    } else if (word == ".v2" || word == ".v4") {
      throw Unsupported{"a vector variable"};
    } else if (const auto type = parse_type(word.substr(1))) {
      element = bytes_of(*type);
    }  // else the pointee's state space
  }
  if (element == 0) cursor.fail("a variable without a known type");
  declaration.name = cursor.word();
  declaration.bytes = element;
  while (cursor.accept('[')) {
    declaration.bytes *= cursor.at_mark(']') ? 0 : static_cast<size_t>(cursor.integer());
    cursor.expect(']');
  }
  declaration.alignment = std::max(alignment, element);
  return declaration;
}

class EntryParser {
 public:
  EntryParser(Cursor* cursor, const std::map<std::string, Declaration>& module_shared,
              Program* program)
      : cursor_(*cursor), module_shared_(module_shared), program_(*program), names_(program) {}

  // Behind ".entry".
  void run() {
    program_.name = cursor_.word();
    if (cursor_.accept('(')) {
      while (!cursor_.accept(')')) {
        parse_parameter();
        cursor_.accept(',');
      }
    }
    while (!cursor_.at_mark('{') && !cursor_.at_mark(';')) cursor_.next();  // .maxntid 256, 1, 1
    if (cursor_.accept(';')) throw Unsupported{"an entry that is only declared"};
    place_module_shared();
    cursor_.expect('{');
    while (true) {
      if (cursor_.accept('}')) {
        if (names_.depth() == 1) break;
        names_.close();
      } else {
        parse_statement();
      }
    }
    Instruction exit;
    exit.op = Op::kExit;
    program_.code.push_back(exit);
    for (const auto& [position, label] : branches_) {
      const auto found = labels_.find(label);
      if (found == labels_.end()) throw SyntaxError{cursor_.peek().line, "no label " + label};
      program_.code[position].target = found->second;
    }
  }

 private:
  void parse_parameter() {
    const std::string_view space = cursor_.word();
    if (space != ".param") cursor_.fail("expected .param, found '" + std::string(space) + "'");
    const Declaration declaration = parse_declaration(cursor_);
    const size_t offset = align_up(program_.parameter_bytes, declaration.alignment);
    program_.parameters.push_back({offset, declaration.bytes});
    program_.parameter_bytes = offset + declaration.bytes;
    names_.declare_variable(declaration.name, {Space::kParameter, offset});
  }

  void place_module_shared() {
    for (const auto& [name, declaration] : module_shared_) {
      if (declaration.bytes > 0) {
        place(Space::kShared, declaration, &program_.shared_bytes);
      } else {
        names_.declare_variable(name, {Space::kShared, kDynamicShared});
      }
    }
  }

  void place(Space space, const Declaration& declaration, size_t* used) {
    const size_t offset = align_up(*used, declaration.alignment);
    names_.declare_variable(declaration.name, {space, offset});
    *used = offset + declaration.bytes;
  }

  void unsupported(const std::string& what) {
    if (program_.unsupported.empty()) program_.unsupported = what;
  }

  void parse_statement() {
    if (cursor_.accept('{')) return names_.open();
    if (cursor_.accept(';')) return;
    const bool word = cursor_.peek().kind == TokenKind::kWord;
    if (word && cursor_.at_mark(':', 1)) return parse_label();
    if (word && cursor_.peek().text.starts_with('.')) return parse_directive();
    parse_instruction();
  }

  void parse_label() {
    const std::string name(cursor_.word());
    cursor_.expect(':');
    if (!labels_.emplace(name, static_cast<uint32_t>(program_.code.size())).second) {
      unsupported("the label " + name + " in two scopes");
    }
  }

  void parse_directive() {
    const std::string_view directive = cursor_.peek().text;
    if (directive == ".loc" || directive == ".file") return cursor_.skip_line();
    if (directive == ".pragma") return cursor_.skip_statement();
    cursor_.next();
    if (directive == ".reg") return parse_registers();
    if (directive == ".shared" || directive == ".local") {
      const bool shared = directive == ".shared";
      place(shared ? Space::kShared : Space::kLocal, parse_declaration(cursor_),
            shared ? &program_.shared_bytes : &program_.local_bytes);
      return cursor_.expect(';');
    }
    unsupported(std::string(directive));
    cursor_.skip_statement();
  }

  void parse_registers() {
    const std::string_view type = cursor_.word().substr(1);
    if (!parse_type(type)) unsupported("registers of type ." + std::string(type));
    do {
      const std::string name(cursor_.word());
      if (cursor_.accept('<')) {
        const int64_t count = cursor_.integer();
        if (count < 0 || count > 1 << 20) cursor_.fail("too many registers");
        cursor_.expect('>');
        for (int64_t i = 0; i < count; ++i) names_.declare_register(name + std::to_string(i));
      } else {
        names_.declare_register(name);
      }
    } while (cursor_.accept(','));
    cursor_.expect(';');
  }

  void parse_instruction() {
    int32_t guard = kNoSlot;
    bool guard_negated = false;
    if (cursor_.accept('@')) {
      guard_negated = cursor_.accept('!');
      const std::string name(cursor_.word());
      const auto slot = names_.find_register(name);
      if (!slot) cursor_.fail("unknown predicate " + name);
      guard = *slot;
    }
    const std::string_view opcode = cursor_.word();
    if (!knows_opcode(opcode)) {
      unsupported(std::string(opcode));
      return cursor_.skip_statement();
    }
    std::vector<Operand> operands;
    while (!cursor_.accept(';')) {
      operands.push_back(parse_operand(cursor_, names_));
      if (!cursor_.at_mark(';')) cursor_.expect(',');
    }
    try {
      Instruction instruction = decode(opcode, operands, &names_);
      instruction.guard = guard;
      instruction.guard_negated = guard_negated;
      if (instruction.op == Op::kBranch) {
        branches_.emplace_back(program_.code.size(), operands[0].name);
      }
      program_.has_barrier |= instruction.op == Op::kBarrier;
      program_.code.push_back(instruction);
    } catch (const Unsupported& reason) {
      unsupported(reason.what);
    }
  }

  Cursor& cursor_;
  const std::map<std::string, Declaration>& module_shared_;
  Program& program_;
  Names names_;
  std::map<std::string, uint32_t> labels_;
  std::vector<std::pair<size_t, std::string>> branches_;
};

class ModuleParser {
 public:
  ModuleParser(Cursor cursor, std::vector<Program>* programs)
      : cursor_(cursor), programs_(*programs) {}

  void run() {
    if (!cursor_.at_word(".version")) cursor_.fail("the text does not begin with .version");
    while (cursor_.peek().kind != TokenKind::kEnd) parse_item();
  }

 private:
  void parse_item() {
    const std::string_view word = cursor_.word();
    static const std::set<std::string_view> kLinking = {".visible", ".extern", ".weak", ".common"};
    if (kLinking.contains(word)) return;
    if (word == ".file" || word == ".loc") return cursor_.skip_line();
    if (word == ".version" || word == ".target" || word == ".address_size") {
      do {
        cursor_.word();
      } while (cursor_.accept(','));
      return;
    }
    if (word == ".entry") return parse_entry();
    if (word == ".func") return skip_function();
    if (word == ".section") {
      while (!cursor_.at_mark('{')) cursor_.next();
      return cursor_.skip_braces();
    }
    if (word == ".shared") {
      const Declaration declaration = parse_declaration(cursor_);
      cursor_.expect(';');
      shared_[declaration.name] = declaration;
      return;
    }
    static const std::set<std::string_view> kSkipped = {".global", ".const", ".tex",      ".pragma",
                                                        ".alias",  ".local", ".attribute"};
    if (kSkipped.contains(word)) return cursor_.skip_statement();
    throw SyntaxError{cursor_.peek().line, "unexpected '" + std::string(word) + "'"};
  }

  void parse_entry() {
    Program program;
    EntryParser(&cursor_, shared_, &program).run();
    programs_.push_back(std::move(program));
  }

  void skip_function() {
    while (!cursor_.at_mark('{') && !cursor_.at_mark(';')) cursor_.next();
    if (cursor_.accept(';')) return;
    cursor_.skip_braces();
  }

  Cursor cursor_;
  std::map<std::string, Declaration> shared_;
  std::vector<Program>& programs_;
};

}  // namespace

bool parse_module(std::string_view text, std::vector<Program>* programs, std::string* error) {
  std::vector<Token> tokens;
  if (!tokenize(text, &tokens, error)) return false;
  try {
    ModuleParser(Cursor(tokens), programs).run();
    return true;
  } catch (const SyntaxError& problem) {
    *error = "PTX line " + std::to_string(problem.line) + ": " + problem.what;
  } catch (const Unsupported& reason) {
    *error = "PTX: " + reason.what + " is not supported";
  }
  return false;
}

}  // namespace simgpu::ptx
