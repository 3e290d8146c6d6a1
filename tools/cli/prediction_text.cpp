#include "tools/cli/prediction_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/text.h"
#include "tools/cli/terminal.h"
#include "tools/study/trials.h"

namespace railyard {

namespace {

constexpr const char* doubt_names[] = {"luck", "estimates", "model_error"};

std::string measure_text(const Predicted& answer) {
    switch (answer.widest) {
        case Doubt::luck:
            return "nothing measured beforehand makes it narrower";
        case Doubt::estimates:
            return answer.measure.empty() ? "no single one of them decides"
                                          : fmt::format("measure {}", answer.measure);
        case Doubt::model:
            return fmt::format("in its place: {}", answer.measure);
    }
    return "";
}

constexpr const char* doubt_words[] = {"luck", "the estimates", "the models' error"};

}  // namespace

void print_prediction(const Prediction& prediction, const std::vector<ShowNumber>& show) {
    if (prediction.answers.empty()) return;
    const auto width = [](double share) {
        return share > 0 ? fmt::format("+- {:.1f} %", 100 * share) : std::string("-");
    };
    Table table(
        {"prediction", "half of such", "nine in ten", ">luck", ">estimates", ">model error"});
    for (std::size_t i = 0; i < prediction.answers.size(); ++i) {
        const Predicted& a = prediction.answers[i];
        const auto between = [&](const Interval& interval) {
            return fmt::format("{} to {}", show[i](interval.low), show[i](interval.high));
        };
        table.add({coloured(a.name, Colour::bold), between(a.half), between(a.nine_tenths),
                   width(a.width[0]), width(a.width[1]), width(a.width[2])});
    }
    fmt::print("\n{}", table.text());
    // Answers for which the same is to be said are named together.
    std::vector<std::pair<std::string, std::string>> said;  // what, of which
    for (const Predicted& a : prediction.answers) {
        const auto widest = static_cast<std::size_t>(a.widest);
        if (a.width[widest] <= 0) continue;
        const std::string what =
            fmt::format("widest is {}; {}", doubt_words[widest], measure_text(a));
        const auto same =
            std::ranges::find_if(said, [&](const auto& each) { return each.first == what; });
        if (same == said.end()) {
            said.emplace_back(what, a.name);
        } else {
            same->second += ", " + a.name;
        }
    }
    for (const auto& [what, names] : said) fmt::print("  {}: {}\n", names, what);
    if (prediction.draws > 0) {
        fmt::print(
            "  {} estimates drawn together; {} of {} draws make a design. Fitted ones are in "
            "the model error\n",
            prediction.estimates, prediction.draws, prediction.tried);
    }
}

nlohmann::ordered_json prediction_json(const Prediction& prediction) {
    nlohmann::ordered_json out = {{"estimates", prediction.estimates},
                                  {"draws", prediction.tried},
                                  {"possible", prediction.draws}};
    for (const Predicted& a : prediction.answers) {
        nlohmann::ordered_json& each = out["answers"][a.name];
        each = {{"value", a.value},
                {"half_within", {a.half.low, a.half.high}},
                {"nine_tenths_within", {a.nine_tenths.low, a.nine_tenths.high}}};
        for (std::size_t d = 0; d < doubts; ++d) each["width"][doubt_names[d]] = a.width[d];
        each["widest"] = word_of(doubt_names, a.widest);
        if (!a.measure.empty()) each["measure"] = a.measure;
    }
    return out;
}

std::size_t draws_of(const Scenario& scenario) {
    constexpr std::size_t in_closed_form = 128;
    constexpr std::size_t on_flows = 16;
    switch (scenario.fidelity) {
        case Fidelity::analytic:
            return in_closed_form;
        case Fidelity::flow:
            return on_flows;
        case Fidelity::packet:
            return 0;
    }
    return 0;
}

Answers read_again(const std::string& path, const ScenarioChanges& changes,
                   std::function<std::vector<double>(const Scenario&)> answer) {
    return [path, changes, answer = std::move(answer)](const std::vector<Perturbations>& variants) {
        std::vector<std::vector<double>> out;
        for (const Perturbations& variant : variants) {
            ScenarioChanges changed = changes;
            changed.perturbations = variant;
            changed.one_draw = true;
            try {
                const Scenario s = load_scenario_file(path, changed);
                out.push_back(s.no_path.empty() ? answer(s) : std::vector<double>{});
            } catch (const Interrupted&) {
                break;
            } catch (const ScenarioError&) {
                out.emplace_back();  // the numbers make no possible design
            }
        }
        return out;
    };
}

std::string ends_text(const DrawRange& range) {
    return fmt::format("{} to {}", to_text(from_seconds(range.low)),
                       to_text(from_seconds(range.high)));
}

std::string draws_text(const Scenario& s) {
    if (!s.draws.empty()) {
        const DrawRange range = range_of_steps(s);
        return fmt::format("luck of the network, {} draws: a step takes {}, {} in the middle",
                           range.draws, ends_text(range), to_text(from_seconds(range.median)));
    }
    const bool one = s.networks[0].hash_given || s.network_draws == 1;
    if (!one || !hashes(s.networks[0].flow_routing().policy)) return "";
    return fmt::format("one draw of the network's hashes (seed {}): others give other steps",
                       s.networks[0].routing.hash_seed);
}

nlohmann::ordered_json range_json(const DrawRange& range) {
    return {
        {"draws", range.draws}, {"median", range.median}, {"low", range.low}, {"high", range.high}};
}

nlohmann::ordered_json draws_json(const Scenario& s) {
    if (s.world) return {{"draws", s.draws.size()}};
    return range_json(range_of_steps(s));
}

}  // namespace railyard
