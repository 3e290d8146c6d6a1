#pragma once
// Arithmetic over named numbers as people write it: "12 * layers * hidden^2 / step_time". muParser reads it:
// precedence, functions and its errors are solved there. Its header is expression.cpp's own.

#include <functional>
#include <string>
#include <vector>

namespace railyard {

// Why a text is no expression.
struct ExpressionError {
    std::string message;
};

// Also comparisons, &&, ||, a ? b : c, and the functions abs, ceil, divisor, exp, floor, ln, log2, log10,
// max, min, round and sqrt. divisor(n, most, step) is the largest multiple of step up to most that divides
// n, step itself without one. A name is of letters, digits and underscores.
class Expression {
  public:
    explicit Expression(std::string text);  // throws ExpressionError
    const std::string& text() const { return text_; }
    const std::vector<std::string>& names() const { return names_; }  // that it uses, each once
    // With each name's value. A division by zero and the like give what is not finite.
    double value(const std::function<double(const std::string&)>& of) const;

  private:
    std::string text_;
    std::vector<std::string> names_;
};

}  // namespace railyard
