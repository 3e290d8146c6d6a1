#pragma once
// What a benchmark found, what its program was asked for, and how it prints both.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace railyard {

struct Result {
    std::string name;
    double value = 0;
    std::string unit;
    std::string rival;       // what the ratio is against
    double rival_value = 0;  // in the same unit
    double ratio = 0;        // how many times better than the rival
    std::string digest;
};

struct BenchOptions {
    bool json = false;
    bool smoke = false;
    std::string only;  // names that begin so
};

// None: it has printed what it was asked for, or what is wrong, and the program ends with this code.
inline std::optional<BenchOptions> parse_bench(int argc, char** argv, int& code) {
    BenchOptions out;
    code = 2;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--json") {
            out.json = true;
        } else if (argument == "--smoke") {
            out.smoke = true;
        } else if (argument == "--help" || argument == "-h") {
            fmt::print(
                "usage: railyard bench [--json] [--smoke] [NAME]\n\n"
                "Measures speed against rivals in the same run. --smoke runs everything once, "
                "small.\n"
                "NAME runs the benchmarks whose name begins so.\n");
            code = 0;
            return {};
        } else if (argument.starts_with("-")) {
            fmt::print(stderr, "bench: unknown option {}\n", argument);
            return {};
        } else {
            out.only = argument;
        }
    }
    return out;
}

inline void print_json(const std::vector<Result>& results) {
    nlohmann::ordered_json out = {{"benches", nlohmann::ordered_json::object()}};
    for (const Result& r : results) {
        out["benches"][r.name] = {{"value", r.value},
                                  {"unit", r.unit},
                                  {"rival", r.rival},
                                  {"ratio", r.ratio},
                                  {"digest", r.digest}};
    }
    fmt::print("{}\n", out.dump());
}

inline void print_table(const std::vector<Result>& results) {
    for (const Result& r : results) {
        fmt::print("{:34} {:>10.3f} {:18} {:>6.2f} x {} ({:.3f})  digest {}\n", r.name, r.value,
                   r.unit, r.ratio, r.rival, r.rival_value, r.digest);
    }
}

}  // namespace railyard
