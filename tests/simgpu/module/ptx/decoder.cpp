// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/ptx/decoder.h"

#include "tests/simgpu/module/ptx/modifiers.h"

namespace simgpu::ptx {
namespace {

class Decoder {
 public:
  Decoder(std::string_view opcode, const std::vector<Operand>& operands, Names* names)
      : modifiers_(opcode), operands_(operands), names_(*names) {}

  Instruction run(void (Decoder::*form)(), Op op, size_t sources) {
    result_.op = op;
    sources_ = sources;
    (this->*form)();
    modifiers_.finish();
    return result_;
  }

  void load() {
    memory_access();
    want(2);
    lanes(operands_[0], &result_.destination, Type::kNone);
    address(operands_[1]);
  }

  void store() {
    memory_access();
    want(2);
    address(operands_[0]);
    lanes(operands_[1], &result_.source, result_.type);
  }

  void move() {
    result_.type = modifiers_.take_type();
    want(2);
    const bool packs = operands_[1].kind == Operand::Kind::kVector;
    const bool unpacks = operands_[0].kind == Operand::Kind::kVector;
    if (packs == unpacks && packs) modifiers_.refuse();
    if (packs) {
      result_.op = Op::kPack;
      lanes(operands_[1], &result_.source, result_.type);
      destination(0);
    } else if (unpacks) {
      result_.op = Op::kUnpack;
      lanes(operands_[0], &result_.destination, Type::kNone);
      source(0, operands_[1], result_.type);
    } else {
      destination(0);
      source(0, operands_[1], result_.type);
    }
  }

  void convert_address() {
    result_.to_space = modifiers_.take("to");
    result_.space = take_space();
    if (result_.space == Space::kGeneric || result_.space == Space::kParameter) {
      modifiers_.refuse();
    }
    result_.type = modifiers_.take_type();
    want(2);
    destination(0);
    source(0, operands_[1], result_.type);
  }

  void convert() {
    take_rounding();
    result_.saturate = modifiers_.take("sat");
    modifiers_.take("ftz");
    result_.source_type = modifiers_.take_type();
    result_.type = modifiers_.take_type();
    want(2);
    destination(0);
    source(0, operands_[1], result_.source_type);
  }

  // add, sub, div, rem, abs, neg, min, max, sqrt and the like: one type, plain operands.
  void arithmetic() {
    for (const auto word : {"rn", "ftz", "approx", "full"}) modifiers_.take(word);
    result_.saturate = modifiers_.take("sat");
    result_.type = modifiers_.take_type();
    if (result_.saturate && result_.type != Type::kF32) modifiers_.refuse();
    plain_operands();
  }

  void product() {
    if (modifiers_.base() != "fma") {
      result_.part =
          modifiers_
              .take_one<Part>({{"lo", Part::kLow}, {"hi", Part::kHigh}, {"wide", Part::kWide}})
              .value_or(Part::kLow);
    }
    arithmetic();
  }

  void logic() {
    result_.type = modifiers_.take_type();
    plain_operands();
  }

  void shift() {
    result_.type = modifiers_.take_type();
    want(3);
    destination(0);
    source(0, operands_[1], result_.type);
    source(1, operands_[2], Type::kU32);
  }

  void compare() {
    modifiers_.take("ftz");
    const auto comparison = modifiers_.take_one<Comparison>({{"eq", Comparison::kEqual},
                                                             {"ne", Comparison::kNotEqual},
                                                             {"lt", Comparison::kLess},
                                                             {"le", Comparison::kLessEqual},
                                                             {"gt", Comparison::kGreater},
                                                             {"ge", Comparison::kGreaterEqual},
                                                             {"lo", Comparison::kLess},
                                                             {"ls", Comparison::kLessEqual},
                                                             {"hi", Comparison::kGreater},
                                                             {"hs", Comparison::kGreaterEqual},
                                                             {"equ", Comparison::kEqualU},
                                                             {"neu", Comparison::kNotEqualU},
                                                             {"ltu", Comparison::kLessU},
                                                             {"leu", Comparison::kLessEqualU},
                                                             {"gtu", Comparison::kGreaterU},
                                                             {"geu", Comparison::kGreaterEqualU},
                                                             {"num", Comparison::kNumbers},
                                                             {"nan", Comparison::kNotNumbers}});
    if (!comparison) modifiers_.refuse();
    result_.comparison = *comparison;
    result_.combine =
        modifiers_
            .take_one<Combine>(
                {{"and", Combine::kAnd}, {"or", Combine::kOr}, {"xor", Combine::kXor}})
            .value_or(Combine::kNone);
    result_.type = modifiers_.take_type();
    want(result_.combine == Combine::kNone ? 3 : 4);
    destination(0);
    result_.destination_complement = operands_[0].complement;
    source(0, operands_[1], result_.type);
    source(1, operands_[2], result_.type);
    if (result_.combine != Combine::kNone) {
      source(2, operands_[3], Type::kPred);
      result_.combine_negated = operands_[3].negated;
    }
  }

  void branch() {
    modifiers_.take("uni");
    want(1);
    if (operands_[0].kind != Operand::Kind::kName) modifiers_.refuse();
  }

  void leave() {
    modifiers_.take("uni");
    want(0);
  }

  void barrier() {
    modifiers_.take("cta");
    modifiers_.take("sync");
    modifiers_.take("aligned");
    want(1);  // a second operand would let part of the block pass
  }

  void fence() {
    modifiers_.drop_memory_hints();
    modifiers_.take("gl");
    modifiers_.take("sc");
    want(0);
  }

  void atomic() {
    const bool returns = modifiers_.base() == "atom";
    modifiers_.drop_memory_hints();
    result_.space = take_space();
    const auto op = modifiers_.take_one<AtomicOp>({{"add", AtomicOp::kAdd},
                                                   {"min", AtomicOp::kMinimum},
                                                   {"max", AtomicOp::kMaximum},
                                                   {"and", AtomicOp::kAnd},
                                                   {"or", AtomicOp::kOr},
                                                   {"xor", AtomicOp::kXor},
                                                   {"exch", AtomicOp::kExchange},
                                                   {"cas", AtomicOp::kCompareAndSwap},
                                                   {"inc", AtomicOp::kIncrement},
                                                   {"dec", AtomicOp::kDecrement}});
    if (!op) modifiers_.refuse();
    result_.atomic = *op;
    result_.type = modifiers_.take_type();
    const size_t first = returns ? 1 : 0;
    const size_t values = *op == AtomicOp::kCompareAndSwap ? 2 : 1;
    want(first + 1 + values);
    if (returns) destination(0);
    address(operands_[first]);
    for (size_t i = 0; i < values; ++i) source(i, operands_[first + 1 + i], result_.type);
  }

 private:
  void want(size_t count) const {
    if (operands_.size() != count) modifiers_.refuse();
  }

  void memory_access() {
    modifiers_.drop_memory_hints();
    result_.space = take_space();
    result_.lanes =
        modifiers_.take_one<uint8_t>({{"v2", uint8_t{2}}, {"v4", uint8_t{4}}}).value_or(1);
    result_.type = modifiers_.take_type();
  }

  Space take_space() {
    return modifiers_
        .take_one<Space>({{"global", Space::kGlobal},
                          {"param", Space::kParameter},
                          {"param::entry", Space::kParameter},
                          {"shared", Space::kShared},
                          {"shared::cta", Space::kShared},
                          {"local", Space::kLocal}})
        .value_or(Space::kGeneric);
  }

  void take_rounding() {
    result_.rounding = modifiers_
                           .take_one<Rounding>({{"rni", Rounding::kNearest},
                                                {"rzi", Rounding::kZero},
                                                {"rmi", Rounding::kDown},
                                                {"rpi", Rounding::kUp},
                                                {"rn", Rounding::kNone}})
                           .value_or(Rounding::kNone);
  }

  void plain_operands() {
    want(1 + sources_);
    destination(0);
    for (size_t i = 1; i < operands_.size(); ++i) source(i - 1, operands_[i], result_.type);
  }

  void destination(size_t index) {
    if (operands_[index].kind != Operand::Kind::kRegister || operands_[index].negated) {
      modifiers_.refuse();
    }
    result_.destination[0] = operands_[index].slot;
  }

  int32_t value(const Operand& operand, Type type) {
    switch (operand.kind) {
      case Operand::Kind::kRegister:
        return operand.slot;
      case Operand::Kind::kLiteral:
        return names_.constant(operand.literal, type);
      case Operand::Kind::kVariable:
        return names_.constant(operand.variable.offset);
      case Operand::Kind::kName:
        throw Unsupported{"the name " + std::string(operand.name)};
      default:
        modifiers_.refuse();
    }
  }

  void source(size_t index, const Operand& operand, Type type) {
    if (index >= result_.source.size()) modifiers_.refuse();
    if (operand.negated && type != Type::kPred) modifiers_.refuse();
    result_.source[index] = value(operand, type);
  }

  // One value or a vector of as many as the opcode says (any number for mov, which does not).
  void lanes(const Operand& operand, std::array<int32_t, 4>* slots, Type type) {
    const bool vector = operand.kind == Operand::Kind::kVector;
    const size_t count = vector ? operand.elements.size() : 1;
    const bool moves = result_.op == Op::kPack || result_.op == Op::kUnpack;
    if (count > 4 || (!moves && count != result_.lanes)) modifiers_.refuse();
    result_.lanes = static_cast<uint8_t>(count);
    for (size_t i = 0; i < count; ++i) {
      const Operand& element = vector ? operand.elements[i] : operand;
      const bool target = slots == &result_.destination;
      if (target && element.kind == Operand::Kind::kName && element.name == "_") continue;
      if (target && element.kind != Operand::Kind::kRegister) modifiers_.refuse();
      (*slots)[i] = value(element, type);
    }
  }

  void address(const Operand& operand) {
    if (operand.kind != Operand::Kind::kAddress) modifiers_.refuse();
    if (!operand.name.empty()) throw Unsupported{"the variable " + std::string(operand.name)};
    result_.base = operand.slot;
    result_.offset = operand.offset;
    if (!operand.has_variable) return;
    if (operand.variable.space != result_.space) modifiers_.refuse();
    result_.offset += static_cast<int64_t>(operand.variable.offset);
  }

  Modifiers modifiers_;
  const std::vector<Operand>& operands_;
  Names& names_;
  Instruction result_;
  size_t sources_ = 0;
};

struct Form {
  std::string_view base;
  Op op;
  void (Decoder::*decode)();
  size_t sources = 0;  // where all operands but the first are read alike
};

constexpr Form kForms[] = {
    {"ld", Op::kLoad, &Decoder::load},
    {"ldu", Op::kLoad, &Decoder::load},
    {"st", Op::kStore, &Decoder::store},
    {"mov", Op::kMove, &Decoder::move},
    {"cvta", Op::kConvertAddress, &Decoder::convert_address},
    {"cvt", Op::kConvert, &Decoder::convert},
    {"add", Op::kAdd, &Decoder::arithmetic, 2},
    {"sub", Op::kSubtract, &Decoder::arithmetic, 2},
    {"mul", Op::kMultiply, &Decoder::product, 2},
    {"mad", Op::kMultiplyAdd, &Decoder::product, 3},
    {"fma", Op::kMultiplyAdd, &Decoder::product, 3},
    {"div", Op::kDivide, &Decoder::arithmetic, 2},
    {"rem", Op::kRemainder, &Decoder::arithmetic, 2},
    {"abs", Op::kAbsolute, &Decoder::arithmetic, 1},
    {"neg", Op::kNegate, &Decoder::arithmetic, 1},
    {"min", Op::kMinimum, &Decoder::arithmetic, 2},
    {"max", Op::kMaximum, &Decoder::arithmetic, 2},
    {"and", Op::kAnd, &Decoder::logic, 2},
    {"or", Op::kOr, &Decoder::logic, 2},
    {"xor", Op::kXor, &Decoder::logic, 2},
    {"not", Op::kNot, &Decoder::logic, 1},
    {"cnot", Op::kLogicalNot, &Decoder::logic, 1},
    {"shl", Op::kShiftLeft, &Decoder::shift},
    {"shr", Op::kShiftRight, &Decoder::shift},
    {"popc", Op::kPopulation, &Decoder::logic, 1},
    {"clz", Op::kLeadingZeros, &Decoder::logic, 1},
    {"brev", Op::kReverse, &Decoder::logic, 1},
    {"bfe", Op::kExtractField, &Decoder::logic, 3},
    {"bfi", Op::kInsertField, &Decoder::logic, 4},
    {"prmt", Op::kPermute, &Decoder::logic, 3},
    {"sqrt", Op::kSquareRoot, &Decoder::arithmetic, 1},
    {"rsqrt", Op::kReciprocalRoot, &Decoder::arithmetic, 1},
    {"rcp", Op::kReciprocal, &Decoder::arithmetic, 1},
    {"ex2", Op::kExponential, &Decoder::arithmetic, 1},
    {"lg2", Op::kLogarithm, &Decoder::arithmetic, 1},
    {"sin", Op::kSine, &Decoder::arithmetic, 1},
    {"cos", Op::kCosine, &Decoder::arithmetic, 1},
    {"tanh", Op::kTangent, &Decoder::arithmetic, 1},
    {"copysign", Op::kCopySign, &Decoder::arithmetic, 2},
    {"setp", Op::kCompare, &Decoder::compare},
    {"selp", Op::kSelect, &Decoder::logic, 3},
    {"bra", Op::kBranch, &Decoder::branch},
    {"ret", Op::kExit, &Decoder::leave},
    {"exit", Op::kExit, &Decoder::leave},
    {"trap", Op::kTrap, &Decoder::leave},
    {"bar", Op::kBarrier, &Decoder::barrier},
    {"barrier", Op::kBarrier, &Decoder::barrier},
    {"membar", Op::kFence, &Decoder::fence},
    {"fence", Op::kFence, &Decoder::fence},
    {"atom", Op::kAtomic, &Decoder::atomic},
    {"red", Op::kAtomic, &Decoder::atomic},
};

const Form* find_form(std::string_view opcode) {
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  for (const Form& form : kForms) {
    if (form.base == base) return &form;
  }
  return nullptr;
}

}  // namespace

bool knows_opcode(std::string_view opcode) {
  return find_form(opcode) != nullptr;
}

Instruction decode(std::string_view opcode, const std::vector<Operand>& operands, Names* names) {
  const Form* form = find_form(opcode);
  if (form == nullptr) throw Unsupported{std::string(opcode)};
  return Decoder(opcode, operands, names).run(form->decode, form->op, form->sources);
}

}  // namespace simgpu::ptx
