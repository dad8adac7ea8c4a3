#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "compiler/language/evaluate/scalar.h"
#include "tests/analysis/scene.h"
#include "tests/support/random.h"

namespace kiln::testing {
namespace {

using language::Scalar;
using Values = std::map<const ir::Node*, int64_t>;

/// Memory that holds the same number at the same index, now and then an extreme one.
int64_t element(DType type, int64_t index) {
  const uint64_t mixed = (static_cast<uint64_t>(index) + 7) * 0x9E3779B97F4A7C15u;
  if (type != DType::Int64) return static_cast<int64_t>(mixed >> 20);
  switch (mixed >> 61) {
    case 0: return std::numeric_limits<int64_t>::min();
    case 1: return std::numeric_limits<int64_t>::max();
    default: return static_cast<int64_t>(mixed >> 59) - 16;
  }
}

Scalar value_of(const ir::Expr& expr, const Values& values) {
  if (const auto* imm = ir::as<ir::IntImm>(expr)) {
    return Scalar::of_int(imm->type.element, imm->value);
  }
  if (ir::as<ir::Var>(expr)) return Scalar::of_int(DType::Int64, values.at(expr.get()));
  if (const auto* node = ir::as<ir::Binary>(expr)) {
    const Scalar operands[] = {value_of(node->a, values), value_of(node->b, values)};
    return language::apply_operator(node->op, operands);
  }
  if (const auto* node = ir::as<ir::Call>(expr)) {
    std::vector<Scalar> operands;
    for (const ir::Expr& arg : node->args)
      operands.push_back(value_of(arg, values));
    return language::apply_operator(node->op, operands);
  }
  if (const auto* node = ir::as<ir::Cast>(expr)) {
    return language::convert(node->type.element, value_of(node->value, values));
  }
  const auto* load = ir::as<ir::Load>(expr);
  const DType type = load->type.element;
  return Scalar::of_int(type, element(type, value_of(load->indices[0], values).integer));
}

/// Writes random expressions over the variables of a scene.
class RandomText {
 public:
  explicit RandomText(Random& random) : random_(random) {}

  std::vector<std::string> loops;

  std::string around() {
    std::string text;
    const int count = random_.between(1, 4);
    for (int i = 0; i < count; ++i) {
      if (random_.chance(0.25)) {
        text += "if " + condition(2) + "; ";
        continue;
      }
      const std::string extent = loop_extent();
      loops.push_back("i" + std::to_string(loops.size()));
      text += loops.back() + " < " + extent + "; ";
    }
    return text;
  }

  std::string number(int depth) {
    if (depth == 0 || random_.chance(0.15)) return leaf();
    const std::string a = "(" + number(depth - 1) + ")";
    const std::string b = "(" + number(depth - 1) + ")";
    switch (random_.below(12)) {
      case 0:
      case 1: return a + " + " + b;
      case 2: return a + " - " + b;
      case 3: return a + "*" + b;
      case 4: return a + "*" + constant();
      case 5: return "floordiv(" + a + ", " + divisor() + ")";
      case 6: return "floormod(" + a + ", " + divisor() + ")";
      case 7: return "min(" + a + ", " + b + ")";
      case 8: return "max(" + a + ", " + b + ")";
      case 9: return "select(" + condition(depth - 1) + ", " + a + ", " + b + ")";
      case 10:
        return (random_.chance(0.5) ? "truncdiv(" : "truncmod(") + a + ", " + divisor() + ")";
      default: return tile();
    }
  }

  std::string condition(int depth) {
    if (depth > 0 && random_.chance(0.3)) {
      const char* joint = random_.chance(0.5) ? " && " : " || ";
      return "(" + condition(depth - 1) + joint + condition(depth - 1) + ")";
    }
    if (depth > 0 && random_.chance(0.1)) return "!" + ("(" + condition(depth - 1) + ")");
    static const std::vector<std::string> kSigns = {
        " < ", " <= ", " > ", " >= ", " == ", " != ", " < "};
    return "(" + number(std::min(depth, 2)) + random_.pick(kSigns) + number(1) + ")";
  }

 private:
  std::string constant() { return std::to_string(random_.between(-4, 8)); }

  std::string size() {
    static const std::vector<std::string> kSizes = {"m", "n", "l"};
    return random_.pick(kSizes);
  }

  std::string leaf() {
    if (!loops.empty() && random_.chance(0.55)) return random_.pick(loops);
    switch (random_.below(8)) {
      case 0: return "A[" + size() + "]";
      case 1: return "int64(D[" + size() + "])";
      case 2: return "a";
      case 3:
      case 4: return constant();
      default: return size();
    }
  }

  std::string divisor() {
    switch (random_.below(5)) {
      case 0: return size();
      case 1: return constant();
      case 2: return size() + "*" + size();
      default: return std::to_string(random_.between(1, 8));
    }
  }

  std::string loop_extent() {
    const std::string c = std::to_string(random_.between(1, 5));
    switch (random_.below(8)) {
      case 0: return c;
      case 1: return "floordiv(" + size() + " + " + c + " - 1, " + c + ")";
      case 2: return "floordiv(" + size() + ", " + c + ")";
      case 3: return size() + "*" + size();
      case 4: return "min(" + c + ", " + number(1) + ")";
      case 5: return number(2);
      default: return size();
    }
  }

  /// The shapes that splits and fusions make.
  std::string tile() {
    if (loops.empty()) return size();
    const std::string i = random_.pick(loops);
    const std::string j = random_.pick(loops);
    const std::string s = random_.chance(0.5) ? size() : std::to_string(random_.between(1, 5));
    switch (random_.below(4)) {
      case 0: return i + "*" + s + " + " + j;
      case 1: return "floordiv(" + i + "*" + s + " + " + j + ", " + s + ")";
      case 2: return "floormod(" + i + "*" + s + " + " + j + ", " + s + ")";
      default: return "floordiv(" + i + ", " + s + ")*" + s + " + floormod(" + i + ", " + s + ")";
    }
  }

  Random& random_;
};

/// Values of all variables that satisfy the facts, or nothing when a few tries find none.
std::optional<Values> draw(const Scene& scene, Random& random) {
  for (int tries = 0; tries < 8; ++tries) {
    Values values;
    for (const ir::VarRef& size : scene.kernel.sizes)
      values[size.get()] = random.between(0, 7);
    values[scene.kernel.sizes[3].get()] = random.between(-9, 9);
    bool holds = true;
    for (const analysis::Facts::Entry& entry : scene.facts.entries()) {
      if (entry.range && entry.range->upper) {
        const int64_t extent = value_of(entry.range->upper, values).integer;
        holds = extent > 0 && extent < (int64_t{1} << 40);  // indices do not overflow
        if (!holds) break;
        const int bound = static_cast<int>(std::min<int64_t>(extent, 1000));
        const int64_t i = random.chance(0.3) ? extent - 1 : random.below(bound);
        values[entry.range->var.get()] = i;
      } else if (entry.condition) {
        holds = value_of(entry.condition, values).integer != 0;
        if (!holds) break;
      }
    }
    if (holds) return values;
  }
  return std::nullopt;
}

struct Findings {
  int drawn = 0;
  int proved = 0;
  int simplified = 0;
  int bounded = 0;
  int taken_back = 0;
};

std::string shown(const Scene& scene, const Values& values) {
  std::string text;
  for (const auto& [var, value] : values) {
    text += static_cast<const ir::Var*>(var)->name + "=" + std::to_string(value) + " ";
  }
  return ir::print(scene.kernel) + text;
}

void check_number(const Scene& scene, Random& random, Findings& findings) {
  const ir::Expr simple = analysis::simplify(scene.expr, scene.facts);
  if (simple != scene.expr) ++findings.simplified;

  const int inner_count = random.below(static_cast<int>(scene.ranges.size()) + 1);
  const std::vector<analysis::Facts::Range> inner(scene.ranges.end() - inner_count,
                                                  scene.ranges.end());
  analysis::Facts sizes;
  for (int i = 0; i < 3; ++i)
    sizes.push_range(scene.kernel.sizes[i], ir::index(0), nullptr);
  const analysis::Interval bounds = analysis::bounds_of(scene.expr, inner, sizes);
  for (int i = 0; i < 12; ++i) {
    const std::optional<Values> values = draw(scene, random);
    if (!values) continue;
    ++findings.drawn;
    const int64_t value = value_of(scene.expr, *values).integer;
    ASSERT_EQ(value_of(simple, *values).integer, value)
        << "simplified: " << ir::print(simple) << "\n"
        << shown(scene, *values);
    if (bounds.min) {
      ++findings.bounded;
      ASSERT_LE(value_of(bounds.min, *values).integer, value)
          << "min: " << ir::print(bounds.min) << " of the last " << inner_count << "\n"
          << shown(scene, *values);
    }
    if (bounds.max) {
      ASSERT_GE(value_of(bounds.max, *values).integer, value)
          << "max: " << ir::print(bounds.max) << " of the last " << inner_count << "\n"
          << shown(scene, *values);
    }
  }
}

void check_condition(const Scene& scene, Random& random, Findings& findings) {
  const bool always = analysis::can_prove(scene.expr, scene.facts);
  const bool never = analysis::can_prove(ir::logical_not(scene.expr), scene.facts);
  const ir::Expr simple = analysis::simplify(scene.expr, scene.facts);
  if (always || never) ++findings.proved;
  for (int i = 0; i < 12; ++i) {
    const std::optional<Values> values = draw(scene, random);
    if (!values) continue;
    ++findings.drawn;
    const bool holds = value_of(scene.expr, *values).integer != 0;
    ASSERT_TRUE(!always || holds) << "proved\n" << shown(scene, *values);
    ASSERT_TRUE(!never || !holds) << "disproved\n" << shown(scene, *values);
    ASSERT_EQ(value_of(simple, *values).integer != 0, holds)
        << "simplified: " << ir::print(simple) << "\n"
        << shown(scene, *values);
  }
}

/// Takes back the conditions around the expression: what they proved is open again.
void check_taking_back(Scene scene, Random& random, Findings& findings) {
  while (!scene.facts.entries().empty() && scene.facts.entries().back().condition) {
    const ir::Expr condition = scene.facts.entries().back().condition;
    analysis::can_prove(ir::logical_and(condition, scene.expr), scene.facts);
    scene.facts.pop();
    const bool always = analysis::can_prove(condition, scene.facts);
    for (int i = 0; i < 12; ++i) {
      const std::optional<Values> values = draw(scene, random);
      if (!values) continue;
      ++findings.taken_back;
      ASSERT_TRUE(!always || value_of(condition, *values).integer != 0)
          << "still proved: " << ir::print(condition) << "\n"
          << shown(scene, *values);
    }
  }
}

TEST(AnalysisFuzz, AgreesWithTheNumbers) {
  const uint64_t first = fuzz_seed();
  const int rounds = fuzz_rounds(3000);
  Findings findings;
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    SCOPED_TRACE("to repeat: KILN_FUZZ_ROUNDS=1 KILN_FUZZ_SEED=" + std::to_string(seed));
    Random random(seed);
    RandomText text(random);
    const std::string around = text.around();
    if (random.chance(0.5)) {
      check_number(Scene(around, text.number(3)), random, findings);
    } else {
      const Scene scene(around, text.condition(2), "bool");
      check_condition(scene, random, findings);
      check_taking_back(scene, random, findings);
    }
  }
  if (rounds < 1000) return;
  // The rounds say something only when many scenes have values and many claims are made.
  EXPECT_GT(findings.drawn, rounds * 3);
  EXPECT_GT(findings.proved, rounds / 40);
  EXPECT_GT(findings.simplified, rounds / 10);
  EXPECT_GT(findings.bounded, rounds / 2);
  EXPECT_GT(findings.taken_back, rounds / 4);
}

}  // namespace
}  // namespace kiln::testing
