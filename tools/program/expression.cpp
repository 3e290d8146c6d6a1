#include "tools/program/expression.h"

#include <muParser.h>

#include <cmath>

namespace railyard {

namespace {

mu::Parser parser_of(const std::string& text) {
    mu::Parser parser;
    parser.DefineFun("ceil", [](double x) { return std::ceil(x); });
    parser.DefineFun("floor", [](double x) { return std::floor(x); });
    parser.DefineFun("round", [](double x) { return std::round(x); });
    parser.SetExpr(text);
    return parser;
}

}  // namespace

Expression::Expression(std::string text) : text_(std::move(text)) {
    try {
        mu::Parser parser = parser_of(text_);
        for (const auto& [name, unused] : parser.GetUsedVar()) names_.push_back(name);
        std::vector<double> values(names_.size(), 1);
        for (std::size_t i = 0; i < names_.size(); ++i) parser.DefineVar(names_[i], &values[i]);
        parser.Eval();
    } catch (const mu::ParserError& error) {
        throw ExpressionError{error.GetMsg()};
    }
}

double Expression::value(const std::function<double(const std::string&)>& of) const {
    mu::Parser parser = parser_of(text_);
    std::vector<double> values;
    for (const std::string& name : names_) values.push_back(of(name));
    for (std::size_t i = 0; i < names_.size(); ++i) parser.DefineVar(names_[i], &values[i]);
    return parser.Eval();
}

}  // namespace railyard
