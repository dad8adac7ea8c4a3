// Writes a sum as an expression that a person would write: terms in their order, something positive
// first, the constant last, common factors once: i*n + j*n + 1 -> (i + j)*n + 1. What is printed,
// and most of what is computed in loops, comes from here.
#include <algorithm>
#include <limits>

#include "compiler/analysis/linear.h"
#include "compiler/ir/build.h"

namespace kiln::analysis {
namespace {

using ir::Binary;
using ir::Expr;
using ir::Operator;

/// A piece of the sum to write: coefficient * expression.
struct Piece {
  int64_t coefficient;
  Expr expr;
};

class Writer {
 public:
  explicit Writer(const Atoms& atoms) : atoms_(atoms) {}

  Expr write(Linear linear) {
    std::vector<Piece> pieces;
    const std::optional<AtomId> common = common_factor(linear);
    bool grouped = false;
    for (const Term& term : linear.terms) {
      if (!common || !term.product.contains(*common)) {
        pieces.push_back({term.coefficient, product(term.product)});
      } else if (!grouped) {
        grouped = true;
        pieces.push_back(group(linear, *common));
      }
    }
    absorb_constant(pieces, linear.constant);
    return sum(std::move(pieces), linear.constant);
  }

 private:
  /// An atom in two or more terms, one of which has more factors: worth writing once.
  std::optional<AtomId> common_factor(const Linear& linear) const {
    std::optional<AtomId> best;
    int best_count = 1;
    for (const Term& term : linear.terms) {
      if (term.product.degree() < 2) continue;
      for (int i = 0; i < term.product.degree(); ++i) {
        const AtomId atom = term.product[i];
        const auto has = [&](const Term& other) { return other.product.contains(atom); };
        const int count =
            static_cast<int>(std::count_if(linear.terms.begin(), linear.terms.end(), has));
        if (count <= best_count) continue;
        best = atom;
        best_count = count;
      }
    }
    return best;
  }

  /// The terms with a common factor, as one product: i*n + j*n + n -> (i + j + 1)*n.
  Piece group(const Linear& linear, AtomId common) {
    Linear inner;
    bool all_negative = true;
    for (const Term& term : linear.terms) {
      const std::optional<Product> rest = term.product.without(Product(common));
      if (!rest) continue;
      all_negative = all_negative && term.coefficient < 0;
      if (rest->degree() == 0) {
        inner.constant = term.coefficient;
      } else {
        inner.terms.push_back({term.coefficient, *rest});
      }
    }
    if (all_negative) {
      if (const std::optional<Linear> positive = scaled(inner, -1)) {
        return {-1, write(*positive) * atoms_.expr(common)};
      }
    }
    return {1, write(inner) * atoms_.expr(common)};
  }

  Expr product(const Product& product) const {
    Expr result = atoms_.expr(product[0]);
    for (int i = 1; i < product.degree(); ++i)
      result = result * atoms_.expr(product[i]);
    return result;
  }

  /// floordiv(n + 31, 32) - 1 is floordiv(n - 1, 32).
  static void absorb_constant(std::vector<Piece>& pieces, int64_t& constant) {
    if (constant == 0 || constant == std::numeric_limits<int64_t>::min()) return;
    for (Piece& piece : pieces) {
      const Binary* binary = ir::as<Binary>(piece.expr);
      if (binary == nullptr || binary->op != Operator::FloorDiv) continue;
      const std::optional<int64_t> divisor = ir::as_const_int(binary->b);
      const Binary* dividend = ir::as<Binary>(binary->a);
      if (piece.coefficient != -constant || !divisor || dividend == nullptr ||
          dividend->op != Operator::Add) {
        continue;
      }
      const std::optional<int64_t> offset = ir::as_const_int(dividend->b);
      if (!offset || *offset <= 0 || *offset >= *divisor) continue;
      piece.expr = ir::floordiv(binary->a - *divisor, binary->b);
      constant = 0;
      return;
    }
  }

  static Expr scaled_expr(const Expr& expr, int64_t coefficient) {
    return coefficient == 1 ? expr : expr * coefficient;
  }

  /// A sum that starts with something positive, if there is any.
  static Expr sum(std::vector<Piece> pieces, int64_t constant) {
    if (pieces.empty()) return ir::index(constant);
    const auto positive = std::find_if(pieces.begin(), pieces.end(),
                                       [](const Piece& piece) { return piece.coefficient > 0; });
    Expr result;
    if (positive != pieces.end()) {
      std::rotate(pieces.begin(), positive, positive + 1);
      result = scaled_expr(pieces[0].expr, pieces[0].coefficient);
      pieces.erase(pieces.begin());
    } else if (constant > 0) {
      result = ir::index(constant);
      constant = 0;
    } else if (pieces[0].coefficient == -1) {
      result = ir::Call::make(Operator::Negative, {pieces[0].expr});
      pieces.erase(pieces.begin());
    } else {
      result = pieces[0].expr * pieces[0].coefficient;
      pieces.erase(pieces.begin());
    }
    for (const Piece& piece : pieces) {
      const bool subtract =
          piece.coefficient < 0 && piece.coefficient != std::numeric_limits<int64_t>::min();
      const Expr term = scaled_expr(piece.expr, subtract ? -piece.coefficient : piece.coefficient);
      result = Binary::make(subtract ? Operator::Sub : Operator::Add, result, term);
    }
    return constant == 0 ? result : result + constant;
  }

  const Atoms& atoms_;
};

}  // namespace

Expr Atoms::write(const Linear& linear) { return Writer(*this).write(linear); }

}  // namespace kiln::analysis
