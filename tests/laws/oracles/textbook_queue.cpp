#include "tests/laws/oracles/textbook_queue.h"

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string_view>

namespace railyard {

std::optional<Service> Service::named(const std::string& text) {
    struct Word {
        std::string_view begin;
        Kind kind;
        double parameter_min;
    };
    constexpr Word words[] = {{"deterministic 1", Kind::deterministic, 0},
                              {"exp mean 1", Kind::exponential, 0},
                              {"any", Kind::exponential, 0},
                              {"Erlang-", Kind::erlang, 1},
                              {"hyperexp cs2=", Kind::hyperexponential, 1},
                              {"lognormal cs2=", Kind::lognormal, 0}};
    for (const Word& word : words) {
        if (!text.starts_with(word.begin)) continue;
        const double parameter = std::strtod(text.c_str() + word.begin.size(), nullptr);
        if (!(parameter >= word.parameter_min)) return std::nullopt;
        return Service(word.kind, parameter);
    }
    return std::nullopt;
}

double Service::draw(RandomStream& random) const {
    switch (kind_) {
        case Kind::deterministic:
            return 1;
        case Kind::exponential:
            break;
        case Kind::erlang: {
            double sum = 0;
            for (int phase = 0; phase < parameter_; ++phase) sum += random.exponential();
            return sum / parameter_;
        }
        case Kind::hyperexponential: {
            // Two exponentials that have the same share of the work.
            const double p = (1 + std::sqrt((parameter_ - 1) / (parameter_ + 1))) / 2;
            const bool often = random.chance(p);
            return random.exponential() / (2 * (often ? p : 1 - p));
        }
        case Kind::lognormal:
            return lognormal(1, std::sqrt(portable_log(1 + parameter_)), random.normal());
    }
    return random.exponential();
}

double TextbookQueue::rho() const {
    return std::accumulate(loads.begin(), loads.end(), 0.0);
}

StreamRules TextbookQueue::rules() const {
    StreamRules rules;
    rules.policy = loads.size() > 1 ? "priority" : "fifo";
    rules.submitted_max = loses ? servers : 0;
    return rules;
}

}  // namespace railyard
