#include "tools/program/expression.h"

#include <muParser.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace railyard {

namespace {

double divisor(double n, double most, double step) {
    constexpr double tries_max = 1e5;
    if (!(step > 0) || !(most <= tries_max * step)) return std::nan("");
    for (double d = std::floor(most / step) * step; d > step; d -= step) {
        if (std::fmod(n, d) == 0) return d;
    }
    return step;
}

// A text that has been parsed, and the places where its names' values go.
struct Parsed {
    explicit Parsed(const std::string& text) {
        parser.DefineFun("ceil", [](double x) { return std::ceil(x); });
        parser.DefineFun("floor", [](double x) { return std::floor(x); });
        parser.DefineFun("round", [](double x) { return std::round(x); });
        parser.DefineFun("divisor", divisor);
        parser.SetExpr(text);
        for (const auto& [name, unused] : parser.GetUsedVar()) names.push_back(name);
        values.assign(names.size(), 1);
        for (std::size_t i = 0; i < names.size(); ++i) parser.DefineVar(names[i], &values[i]);
        parser.Eval();
    }

    mu::Parser parser;
    std::vector<std::string> names;
    std::vector<double> values;
};

// Made once for a text: parsing takes a hundred times as long as computing. Throws mu::ParserError.
Parsed& parsed(const std::string& text) {
    constexpr std::size_t kept_max = 256;
    thread_local std::map<std::string, std::unique_ptr<Parsed>> kept;
    const auto at = kept.find(text);
    if (at != kept.end()) return *at->second;
    auto made = std::make_unique<Parsed>(text);
    if (kept.size() == kept_max) kept.clear();
    return *kept.emplace(text, std::move(made)).first->second;
}

}  // namespace

Expression::Expression(std::string text) : text_(std::move(text)) {
    try {
        names_ = parsed(text_).names;
    } catch (const mu::ParserError& error) {
        throw ExpressionError{error.GetMsg()};
    }
}

double Expression::value(const std::function<double(const std::string&)>& of) const {
    std::vector<double> values;
    for (const std::string& name : names_) values.push_back(of(name));
    Parsed& at = parsed(text_);
    std::ranges::copy(values, at.values.begin());  // the parser has their places
    return at.parser.Eval();
}

}  // namespace railyard
