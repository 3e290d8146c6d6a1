#include "tools/cli/verdict_table.h"

#include <fmt/format.h>

#include "tools/cli/metric_text.h"
#include "tools/cli/terminal.h"
#include "tools/program/json_text.h"

namespace railyard {

namespace {

// Whose design is better at a difference of the second less the first.
const std::string& better_at(const Judgement& judged, double difference, const std::string& first,
                             const std::string& second) {
    return (difference > 0) == (judged.better == Better::higher) ? second : first;
}

std::string end_text(const Judgement& judged, const std::optional<double>& end) {
    return end ? difference_text(judged.metric, *end) : "impossible";
}

void print_table(const VerdictEstimates& found, const char* title, const std::string& difference) {
    constexpr std::size_t shown_at_least = 3;
    Table table({title, "value", "tried", difference, ""});
    for (std::size_t i = 0; i < found.moving.size(); ++i) {
        const EstimateEnds& e = found.moving[i];
        const bool turns = e.turns(found.judged.difference);
        const bool may_turn = e.may_turn(found.judged.difference);
        if (i >= shown_at_least && !turns && !may_turn) continue;
        table.add(
            {e.input.name(), e.input.value(),
             fmt::format("{} to {}{}", e.input.at(0), e.input.at(1),
                         e.input.range_given() ? "" : " *"),
             fmt::format("{} to {}", end_text(found.judged, e.low), end_text(found.judged, e.high)),
             turns      ? coloured("turns it", Colour::yellow)
             : may_turn ? "undecided there"
                        : ""});
    }
    fmt::print("\n{}", table.text());
}

}  // namespace

void print_default_range() {
    fmt::print("  * no range is printed for it: tried at {:g} and {:g} times its value\n",
               estimate_spread_low, estimate_spread_high);
}

void print_verdict_estimates(const VerdictEstimates& found, const std::string& first,
                             const std::string& second) {
    const Judgement& judged = found.judged;
    if (found.moving.empty()) {
        fmt::print("\n  the verdict hangs on none of the {} estimates that were read\n",
                   found.read);
        return;
    }
    print_table(found, "the estimates that this verdict hangs on",
                fmt::format("{} {} - {}", judged.metric, second, first));
    const std::string& winner = better_at(judged, judged.difference, first, second);
    const std::string& loser = &winner == &first ? second : first;
    const std::size_t turns = found.turning().size();
    const std::string read = fmt::format("{} estimates were read, {} of them move the difference",
                                         found.read, found.moving.size());
    if (turns > 0) {
        fmt::print("  {}; {}: at an end of {} {} is better than {}\n", read,
                   coloured("the verdict does not survive them", Colour::yellow),
                   turns == 1 ? "one of them" : fmt::format("each of {} of them", turns), loser,
                   winner);
    } else if (const std::size_t open = found.may_turn(); open > 0) {
        fmt::print(
            "  {}; {} is worse at no end, but at an end of {} too few replicas tell the "
            "two apart\n",
            read, winner, open == 1 ? "one of them" : fmt::format("{} of them", open));
    } else {
        fmt::print("  {}; {} stays better at both ends of each{}\n", read, winner,
                   judged.decided ? "" : ", by a mean that is not settled");
    }
}

void print_answer_estimates(const VerdictEstimates& found) {
    if (!found.moving.empty()) {
        print_table(found, "the estimates that this answer hangs on",
                    "change of " + found.judged.metric);
    }
    fmt::print("  {} estimates were read, {} of them move {}\n", found.read, found.moving.size(),
               found.judged.metric);
}

Json verdict_estimates_json(const VerdictEstimates& found, const std::string& first,
                            const std::string& second) {
    const Json moving = json_array(found.moving, [&](const EstimateEnds& e) -> Json {
        return {{"name", e.input.name()},
                {"value", e.input.value()},
                {"low", e.input.at(0)},
                {"high", e.input.at(1)},
                {"range_given", e.input.range_given()},
                {"difference_at_low", json_number(e.low)},
                {"difference_at_high", json_number(e.high)},
                {"turns", e.turns(found.judged.difference)},
                {"undecided", e.may_turn(found.judged.difference)}};
    });
    return {{"a", first},
            {"b", second},
            {"metric", found.judged.metric},
            {"difference", json_number(found.judged.difference)},
            {"estimates_read", found.read},
            {"decided", found.judged.decided},
            {"survives", found.survives()},
            {"default_range", {estimate_spread_low, estimate_spread_high}},
            {"moving", moving}};
}

}  // namespace railyard
