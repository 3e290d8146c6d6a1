#include "tools/cli/design_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "models/campaign/campaign.h"
#include "tools/cli/terminal.h"
#include "tools/program/json_text.h"
#include "tools/study/design_limits.h"
#include "tools/study/design_order.h"

namespace railyard {

namespace {

std::string rank_text(std::size_t i) {
    return fmt::format("{}", i + 1);
}

std::string whole_percent(double share) {
    return fmt::format("{:.0f} %", 100 * share);
}

std::string figure_range(const DesignObjective& objective, const Interval& interval) {
    return fmt::format("{} to {}", figure_text(objective, interval.low),
                       figure_text(objective, interval.high));
}

std::string signed_money(double usd) {
    return (usd < 0 ? "-" : "+") + money_text(std::abs(usd));
}

// Designs that differ by a thousandth are told apart.
std::string fine_money(double usd) {
    constexpr double million = 1e6;
    return std::abs(usd) >= million ? fmt::format("{:.4g} MUSD", usd / million)
                                    : fmt::format("{:.4g} kUSD", usd * 1e-3);
}

std::string front_text(const std::string& figure, double value) {
    if (figure.starts_with("cost")) return fine_money(value);
    if (figure == "days") return fmt::format("{:.4g}", value);
    if (figure == "power") return fmt::format("{:.4g} MW", value * 1e-6);
    return fmt::format("{:.5g}", std::abs(value));
}

struct Teller {
    const DesignQuestion& q;
    const DesignSearch& search;
    const DesignAnswer& answer;

    const SearchedDesign& design(std::size_t i) const {
        return search.designs[answer.designs[i].design];
    }
    std::string figure(double value) const { return figure_text(q.objective, value); }

    // Designs by why they are impossible; the commonest reason first.
    std::vector<std::pair<std::string, std::vector<std::string>>> impossible_designs() const;
    std::string verdict() const;
    std::string than_next() const;
    std::string cheaper() const;
    std::string indifference() const { return fmt::format("{:.3g} %", 100 * q.indifference); }
    DecisionSection best() const;
    DecisionSection next() const;
    DecisionSection front() const;
    DecisionSection regret() const;
    DecisionSection change() const;
    DecisionSection phases(const std::vector<Scenario>& winners) const;
    DecisionSection order(const std::vector<Scenario>& winners) const;
    DecisionSection seen() const;
};

// "job.parallel.expert: what is wrong", of "file:1:2: error: job.parallel.expert: what is wrong\n...".
std::string reason_of(const std::string& problem) {
    std::string out = problem.substr(0, problem.find('\n'));
    constexpr std::string_view mark = ": error: ";
    const std::size_t at = out.find(mark);
    return at == std::string::npos ? out : out.substr(at + mark.size());
}

std::vector<std::pair<std::string, std::vector<std::string>>> Teller::impossible_designs() const {
    std::map<std::string, std::vector<std::string>> by_reason;
    for (const SearchedDesign& d : search.designs) {
        const std::string& problem = d.facts.problem.empty() ? d.problem : d.facts.problem;
        if (!problem.empty()) by_reason[reason_of(problem)].push_back(d.label);
    }
    std::vector<std::pair<std::string, std::vector<std::string>>> out(by_reason.begin(),
                                                                      by_reason.end());
    std::ranges::stable_sort(out, std::greater<>(), [](const auto& r) { return r.second.size(); });
    return out;
}

std::string Teller::verdict() const {
    const SearchedDesign& first = design(0);
    std::string out =
        fmt::format("{}: the {} is {}", first.label.empty() ? "the only design" : first.label,
                    q.objective.name, figure(first.mean()));
    if (answer.worlds > 0) {
        out += fmt::format(", nine in ten times {}",
                           figure_range(q.objective, answer.designs[0].nine_tenths));
    }
    if (answer.designs.size() < 2) return out + ".";
    out += fmt::format(". The next, {}, is {}", design(1).label, than_next());
    if (answer.designs[0].next->by_price) {
        out += fmt::format(": the first is the cheaper one, by {} of {}",
                           fine_money(design(1).spent[0] - first.spent[0]), search.figures[0]);
    }
    return out + "." + cheaper();
}

std::string Teller::than_next() const {
    const NextDesign& next = *answer.designs[0].next;
    if (next.pairs.verdict == Verdict::equal) {
        return fmt::format("the same in each of {} replicas", next.pairs.pairs);
    }
    const std::string change = change_text(q.objective, next.pairs.difference);
    if (next.by_price) return fmt::format("{}, {} at most", change, indifference());
    if (next.pairs.verdict == Verdict::first) return change;
    return change + " and not told from it by luck alone";
}

std::string Teller::cheaper() const {
    if (!search.cheaper) return "";
    const SearchedDesign& d = search.designs[*search.cheaper];
    if (*search.cheaper == answer.designs[1].design) {
        return fmt::format(" It is cheaper, by {} of {}.",
                           fine_money(design(0).spent[0] - d.spent[0]), search.figures[0]);
    }
    return fmt::format(" {} is cheaper, by {} of {}, and not told from the first by luck alone.",
                       d.label, fine_money(design(0).spent[0] - d.spent[0]), search.figures[0]);
}

DecisionSection Teller::best() const {
    DecisionSection out{"The best designs", {}, {}, {}};
    out.table.columns = {"",
                         "design",
                         ">" + q.objective.name,
                         "95 % interval of the mean",
                         "nine in ten such",
                         ">replicas"};
    for (std::size_t i = 0; i < answer.designs.size(); ++i) {
        const SearchedDesign& d = design(i);
        const Summary s = summarise(d.values, dealt_over(d.values.size(), d.facts.draws));
        out.table.rows.push_back(
            {rank_text(i), d.label, figure(s.mean), figure_range(q.objective, s.ci95),
             answer.worlds > 0 ? figure_range(q.objective, answer.designs[i].nine_tenths) : "-",
             fmt::format("{}", d.values.size())});
    }
    if (answer.worlds > 0) {
        out.notes.push_back(fmt::format(
            "nine in ten: {} worlds, each a draw of {} estimates and prices and of luck, with the "
            "error that the models make of published steps (+- {:.0f} %)",
            q.worlds, answer.inputs, 100 * answer.designs[0].model_error));
        if (answer.worlds < static_cast<std::size_t>(q.worlds)) {
            out.notes.push_back(fmt::format(
                "in {} of these worlds all of the designs are possible: regret is over these",
                answer.worlds));
        }
    }
    return out;
}

DecisionSection Teller::next() const {
    DecisionSection out{"Why each differs from the next", {}, {}, {}};
    out.table.columns = {">from", ">to", ">a year", ">work a year", "most of it"};
    constexpr std::size_t lines_max = 4;
    for (std::size_t i = 0; i + 1 < answer.designs.size(); ++i) {
        const NextDesign& next = *answer.designs[i].next;
        std::vector<std::string> most;
        for (const CostStep& line : next.lines) {
            if (most.size() < lines_max) {
                most.push_back(fmt::format("{} {}", line.what, signed_money(line.usd)));
            }
        }
        out.table.rows.push_back(
            {rank_text(i), rank_text(i + 1), q.priced ? signed_money(next.cost_per_year) : "-",
             fmt::format("x {:.4g}", next.work), fmt::format("{}", fmt::join(most, "; "))});
    }
    return out;
}

DecisionSection Teller::front() const {
    DecisionSection out{
        fmt::format("The front: {}", fmt::join(search.figures, " against ")), {}, {}, {}};
    out.table.columns = {"design"};
    for (const std::string& figure : search.figures) out.table.columns.push_back(">" + figure);
    std::vector<std::size_t> rows = search.front;
    std::ranges::stable_sort(rows, [&](std::size_t a, std::size_t b) {
        return search.designs[a].spent < search.designs[b].spent;
    });
    out.notes.emplace_back("means over the replicas that each design has");
    constexpr std::size_t rows_max = 12;
    for (const std::size_t i : rows) {
        if (out.table.rows.size() == rows_max) break;
        std::vector<std::string> row = {search.designs[i].label};
        for (std::size_t k = 0; k < search.figures.size(); ++k) {
            row.push_back(front_text(search.figures[k], search.designs[i].spent[k]));
        }
        out.table.rows.push_back(std::move(row));
    }
    if (rows.size() > rows_max) {
        out.notes.push_back(
            fmt::format("and {} more: --json has all of them", rows.size() - rows_max));
    }
    return out;
}

DecisionSection Teller::regret() const {
    DecisionSection out{"What each would be regretted by", {}, {}, {}};
    out.table.columns = {">", ">best in", ">mean regret", ">19 in 20 worlds at most"};
    for (std::size_t i = 0; i < answer.designs.size(); ++i) {
        out.table.columns.push_back(fmt::format(">where {} is best", i + 1));
    }
    for (std::size_t i = 0; i < answer.designs.size(); ++i) {
        const Regret& r = answer.designs[i].regret;
        std::vector<std::string> row = {rank_text(i), whole_percent(r.best_share), figure(r.mean),
                                        figure(r.high)};
        for (const double part : answer.regret[i]) row.push_back(part > 0 ? figure(part) : "-");
        out.table.rows.push_back(std::move(row));
    }
    out.notes.emplace_back(
        "regret: how much worse than the best of these in the same world. The last columns are "
        "parts of the mean");
    return out;
}

DecisionSection Teller::change() const {
    DecisionSection out{"What would change the decision", {}, {}, {}};
    const bool by_price = answer.designs.size() > 1 && answer.designs[0].next->by_price;
    out.table.columns = {"estimate or price", "value", "tried",
                         by_price ? fmt::format("the next is better by {} beyond", indifference())
                                  : "the next is better beyond"};
    for (const Turning& t : answer.turning) {
        out.table.rows.push_back({t.input, t.value.empty() ? "-" : t.value,
                                  fmt::format("{} to {}", t.low, t.high),
                                  t.breakeven.value_or("-")});
    }
    if (answer.designs.size() < 2) {
        out.sentences.emplace_back("There is one design: nothing can change it.");
        return out;
    }
    const PairedComparison& pairs = answer.designs[0].next->pairs;
    if (pairs.verdict == Verdict::equal) {
        out.sentences.push_back(fmt::format(
            "The second is exactly as good as the first in each of {} replicas{}: no estimate was "
            "tried.",
            pairs.pairs, by_price ? ", and dearer" : ""));
    } else if (answer.turning.empty() && by_price) {
        out.sentences.push_back(fmt::format(
            "No estimate or price alone: at no end of any is the second better by more than {}.",
            indifference()));
    } else if (answer.turning.empty()) {
        out.sentences.emplace_back(
            "No estimate or price alone: at both ends of each the first design stays better than "
            "the second.");
    }
    out.notes.push_back(fmt::format("luck alone: the second is better in {} of the replicas",
                                    whole_percent(answer.luck_share)));
    const auto quote =
        std::ranges::find_if(answer.worth, [](const InputWorth& w) { return is_price(w.input); });
    const auto measured =
        std::ranges::find_if(answer.worth, [](const InputWorth& w) { return !is_price(w.input); });
    if (quote != answer.worth.end()) {
        out.notes.push_back(
            fmt::format("cheapest to settle: a written quote for {} costs nothing and is worth {} "
                        "before ordering",
                        quote->input, figure(quote->worth)));
    }
    if (measured != answer.worth.end()) {
        out.notes.push_back(
            fmt::format("measure {}: worth {} before ordering, so a pilot may cost that",
                        measured->input, figure(measured->worth)));
    }
    if (answer.worth.empty()) {
        out.notes.push_back(fmt::format(
            "in {} worlds no single quote or measurement is worth more than chance makes of it",
            answer.worlds));
    }
    return out;
}

DecisionSection Teller::phases(const std::vector<Scenario>& winners) const {
    DecisionSection out{"What is there when", {}, {}, {}};
    out.table.columns = {"", "from", "nodes", ">bought that day", ">kept, a year"};
    for (std::size_t i = 0; i < winners.size(); ++i) {
        for (const PhaseLine& line : phase_lines(winners[i])) {
            out.table.rows.push_back({rank_text(i), line.from, line.nodes,
                                      q.priced ? money_text(line.bought) : "-",
                                      q.priced ? money_text(line.a_year) : "-"});
        }
    }
    if (q.priced) {
        out.notes.emplace_back(
            "at typical prices; kept: support, place and what else is paid by the year, without "
            "energy");
    }
    return out;
}

DecisionSection Teller::order(const std::vector<Scenario>& winners) const {
    const Scenario& winner = winners[0];
    DecisionSection out{"Bill of materials of the first", {}, {}, {}};
    out.table.columns = {"what", ">quantity", "per", ">USD"};
    double sum = 0;
    for (const OrderLine& line : order_of(winner)) {
        out.table.rows.push_back({line.what, fmt::format("{:.6g}", line.quantity), line.per,
                                  line.usd ? money_text(*line.usd) : "-"});
        sum += line.usd.value_or(0);
    }
    if (q.priced) {
        out.table.rows.push_back({"capital", "", "", money_text(sum)});
        const auto& left_out = winner.cost->plan.left_out;
        if (!left_out.empty()) {
            out.notes.push_back(fmt::format("not in it: {}", fmt::join(left_out, ", ")));
        }
        for (std::size_t i = 1; i < winners.size(); ++i) {
            const std::vector<std::string> missing = prices_missing(winner, winners[i]);
            if (missing.empty()) continue;
            out.notes.push_back(fmt::format(
                "{} has a price for {}, and the first has none: it looks cheaper than it is",
                rank_text(i), fmt::join(missing, ", ")));
            break;
        }
    }
    return out;
}

DecisionSection Teller::seen() const {
    DecisionSection out{"How much of the space was seen", {}, {}, {}};
    std::size_t impossible = 0;
    std::size_t limited = 0;
    std::size_t fates[6] = {};
    for (const SearchedDesign& d : search.designs) {
        if (!d.facts.problem.empty()) {
            ++impossible;
        } else if (!d.limit.empty()) {
            ++limited;
        } else {
            ++fates[static_cast<std::size_t>(d.fate)];
        }
    }
    const auto of = [&](Fate fate) { return fates[static_cast<std::size_t>(fate)]; };
    out.sentences.push_back(fmt::format(
        "{} designs: {} impossible, {} beyond a limit, {} ruled out by their best case, {} dropped "
        "in the race, {} miss a limit, {} do not run to their end, {} left.",
        search.designs.size(), impossible, limited, of(Fate::bounded), of(Fate::dropped),
        of(Fate::misses), of(Fate::out), of(Fate::racing)));
    out.sentences.push_back(
        fmt::format("{} replicas, {:.1f} % of what all possible designs take with as many as the "
                    "last ones had; the best one was dropped with a chance of {:.3g} % at most "
                    "(Student's t at {:.2g}, {} looks).",
                    search.replicas,
                    100 * static_cast<double>(search.replicas) /
                        static_cast<double>(std::max<std::int64_t>(1, search.exhaustive)),
                    100 * q.chance, search.level, search.looks));
    constexpr std::size_t named_most = 3;
    for (const auto& [reason, which] : impossible_designs()) {
        const std::size_t named = std::min(named_most, which.size());
        std::string names = fmt::format(
            "{}",
            fmt::join(which.begin(), which.begin() + static_cast<std::ptrdiff_t>(named), "; "));
        if (named < which.size()) names += fmt::format(" and {} more", which.size() - named);
        out.notes.push_back(fmt::format("{} impossible: {}: {}", which.size(), names, reason));
    }
    if (search.finalists > 0) {
        out.sentences.push_back(
            fmt::format("All were raced on an ideal network, the best {} again on their own{}: the "
                        "chance holds within each race, not across them.",
                        search.finalists,
                        search.on_packets > 0
                            ? fmt::format(", and of these {} packet by packet", search.on_packets)
                            : ""));
    }
    if (q.plans != DesignQuestion::Plans::given && search.plans_tried > 0) {
        out.sentences.push_back(fmt::format(
            "Parallel plans were found on an ideal network{}, out of {}.",
            q.plans == DesignQuestion::Plans::flow ? ", those of the last on their own" : "",
            search.plans_tried));
    }
    if (search.tuned > 0) {
        out.sentences.push_back(fmt::format(
            "{} settings of free axes were tried before, with random seeds of their own.",
            search.tuned));
    }
    return out;
}

Json next_json(const NextDesign& next) {
    Json lines = json_array(next.lines, [&](const CostStep& line) -> Json {
        return {{"what", line.what}, {"usd_per_year", line.usd}};
    });
    return {{"cost_per_year_usd", next.cost_per_year},
            {"work_factor", json_number(next.work)},
            {"difference", json_number(next.pairs.difference)},
            {"ci95", ends_json(next.pairs.interval)},
            {"verdict", verdict_name(next.pairs.verdict)},
            {"lines", lines}};
}

Json order_json(const Scenario& winner) {
    Json order = Json::array();
    for (const OrderLine& line : order_of(winner)) {
        order.push_back({{"what", line.what}, {"quantity", line.quantity}, {"per", line.per}});
        if (line.usd) order.back()["usd"] = *line.usd;
    }
    return order;
}

Json design_json(const DesignQuestion& q, const DesignSearch& search, const AnsweredDesign& a,
                 const Scenario& winner) {
    const SearchedDesign& d = search.designs[a.design];
    const Summary s = summarise(d.values, dealt_over(d.values.size(), d.facts.draws));
    Json one = {{"design", d.label},
                {"settings", own_settings(q, d)},
                {"figure", json_number(s.mean)},
                {"ci95", ends_json(s.ci95)},
                {"nine_tenths_within", ends_json(a.nine_tenths)},
                {"half_within", ends_json(a.half)},
                {"replicas", d.values.size()},
                {"capital_usd", d.facts.capital},
                {"power_w", d.facts.power},
                {"racks", d.facts.racks},
                {"gpus", d.facts.gpus},
                {"regret",
                 {{"mean", a.regret.mean},
                  {"high95", a.regret.high},
                  {"best_share", a.regret.best_share}}}};
    if (a.next) one["next"] = next_json(*a.next);
    one["bill_of_materials"] = order_json(winner);
    return one;
}

}  // namespace

std::string figure_text(const DesignObjective& objective, double value) {
    if (objective.unit == "USD") return fine_money(value);
    if (objective.unit == "days") return fmt::format("{:.4g} days", value);
    if (objective.unit == "tokens") return fmt::format("{:.4g} tokens", value);
    return fmt::format("{:.5g}", value);
}

std::string change_text(const DesignObjective& objective, double change) {
    return fmt::format("{} {}", figure_text(objective, std::abs(change)),
                       change < 0 ? "less" : "more");
}

Decision tell_decision(const DesignQuestion& question, const DesignSearch& search,
                       const DesignAnswer& answer, const std::vector<Scenario>& winners) {
    const Teller teller{question, search, answer};
    Decision out{question.title, teller.verdict(), {}, {}};
    out.sections.push_back(teller.best());
    const double ran_s = seconds(winners[0].duration);
    const double deadline_s = question.limits.deadline_s.value_or(ran_s);
    constexpr double alike = 1.25;
    if (ran_s > 0 && std::max(ran_s / deadline_s, deadline_s / ran_s) > alike) {
        out.sections.back().notes.push_back(
            fmt::format("the deadline is judged by what each replica does in {}, as if it went on "
                        "so: run.duration = \"{:g} day\" simulates that long",
                        time_text(ran_s), deadline_s / seconds_per_day));
    }
    const bool idles = std::ranges::any_of(answer.designs, [&](const AnsweredDesign& d) {
        return search.designs[d.design].facts.utilisation < 1;
    });
    if (idles && (question.objective.in_use || question.job())) {
        out.sections.back().notes.push_back(
            "days and what is done in them are the calendar's: a design is in use for its "
            "cost.utilisation of them");
    }
    if (answer.designs.size() > 1) out.sections.push_back(teller.next());
    out.sections.push_back(teller.front());
    if (answer.worlds > 0 && answer.designs.size() > 1) out.sections.push_back(teller.regret());
    out.sections.push_back(teller.change());
    if (question.phased) out.sections.push_back(teller.phases(winners));
    out.sections.push_back(teller.order(winners));
    out.sections.push_back(teller.seen());
    return out;
}

void print_decision(const Decision& decision) {
    fmt::print("{}\n  {}\n", coloured(visible(decision.title), Colour::bold),
               visible(decision.verdict));
    for (const DecisionSection& section : decision.sections) {
        fmt::print("\n{}\n", coloured(visible(section.title), Colour::bold));
        for (const std::string& text : section.sentences) fmt::print("  {}\n", visible(text));
        std::vector<Table::Column> columns;
        for (const std::string& title : section.table.columns) {
            columns.emplace_back(visible(title).c_str());
        }
        Table table(std::move(columns));
        for (std::vector<std::string> row : section.table.rows) {
            for (std::string& cell : row) cell = visible(cell);
            table.add(std::move(row));
        }
        if (!table.empty()) fmt::print("{}", table.text());
        for (const std::string& text : section.notes) fmt::print("  {}\n", visible(text));
    }
}

Json decision_json(const DesignQuestion& q, const DesignSearch& search, const DesignAnswer& answer,
                   const std::vector<Scenario>& winners) {
    Json best = Json::array();
    for (std::size_t i = 0; i < answer.designs.size(); ++i) {
        best.push_back(design_json(q, search, answer.designs[i], winners[i]));
    }
    Json front = Json::array();
    for (const std::size_t i : search.front) {
        Json row = {{"design", search.designs[i].label}};
        for (std::size_t k = 0; k < search.figures.size(); ++k) {
            row[search.figures[k]] = json_number(search.designs[i].spent[k]);
        }
        front.push_back(std::move(row));
    }
    Json turning = Json::array();
    for (const Turning& t : answer.turning) {
        turning.push_back({{"input", t.input}, {"low", t.low}, {"high", t.high}});
        if (t.breakeven) turning.back()["breakeven"] = *t.breakeven;
    }
    Json cheaper = nullptr;
    if (search.cheaper) {
        const SearchedDesign& d = search.designs[*search.cheaper];
        const double less = search.designs[search.best[0]].spent[0] - d.spent[0];
        cheaper = {{"design", d.label}, {"less_usd", less}};
    }
    const Json worth = json_array(answer.worth, [](const InputWorth& w) -> Json {
        return {{"input", w.input}, {"worth", w.worth}, {"quote", is_price(w.input)}};
    });
    Json impossible = Json::array();
    for (const auto& [reason, which] : Teller{q, search, answer}.impossible_designs()) {
        impossible.push_back({{"reason", reason}, {"designs", which}});
    }
    return {{"question", q.file},
            {"objective", q.objective.name},
            {"designs", search.designs.size()},
            {"replicas", search.replicas},
            {"exhaustive_replicas", search.exhaustive},
            {"chance_of_dropping_the_best", q.chance},
            {"best", best},
            {"cheaper_not_told_from_the_first", cheaper},
            {"front", front},
            {"regret", answer.regret},
            {"worlds", answer.worlds},
            {"turning", turning},
            {"worth", worth},
            {"impossible", impossible}};
}

}  // namespace railyard
