// No dead knob: every key of the language changes some result. schema_knobs.h has, for each key, a value to
// set and what must hold for it to matter; the test walks the schema and fails for a key without a row.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "tests/models/outcome.h"
#include "tests/models/schema_knobs.h"
#include "tests/models/schema_knobs_network.h"
#include "tests/models/schema_kube.h"
#include "tests/models/schema_many_jobs.h"
#include "tests/models/schema_quotes.h"
#include "tests/models/schema_stages.h"

using namespace railyard;

namespace {

// Most keys are compared with the same scenario.
const std::string& outcome(const std::string& text, const std::vector<std::string>& settings) {
    static std::map<std::pair<std::string, std::vector<std::string>>, std::string> known;
    const auto [found, is_new] = known.try_emplace({text, settings});
    if (is_new) found->second = outcome_of(text, settings);
    return found->second;
}

std::string in_section(std::string text, const std::string& section) {
    for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at)) {
        text.replace(at, 1, section);
    }
    return text;
}
std::vector<std::string> in_section(std::vector<std::string> settings, const std::string& section) {
    for (std::string& each : settings) each = in_section(each, section);
    return settings;
}

// The row of a key that packet windows tell, and its network's section.
const Knob* seen_in_windows(const std::string& key, std::string& section) {
    const auto own = window_knobs.find(key);
    if (own != window_knobs.end()) return &own->second;
    for (const char* each : {"fabric.compute", "fabric.storage"}) {
        section = each;
        if (!key.starts_with(section)) continue;
        const std::string shared = fmt::format("@{}", key.substr(section.size()));
        for (const auto* known : {&packet_knobs, &transport_knobs}) {
            const auto found = known->find(shared);
            if (found != known->end()) return &found->second;
        }
    }
    return nullptr;
}

}  // namespace

TEST_CASE("every key that packet windows feel changes what they print") {
    for (const SchemaRow& row : scenario_schema()) {
        CAPTURE(row.path);
        std::string section;
        const Knob* knob = seen_in_windows(row.path, section);
        if (knob == nullptr) continue;
        const std::string base_text =
            in_section(knob->base.empty() ? windows : knob->base, section);
        std::string changed = base_text;
        if (!knob->text.empty()) {
            const std::string text = in_section(knob->text, section);
            const std::size_t at = changed.find(text);
            REQUIRE(at != std::string::npos);
            changed.replace(at, text.size(), in_section(knob->by, section));
        }
        std::vector<std::string> settings = in_section(knob->given, section);
        const std::string& before = outcome(base_text, settings);
        for (const std::string& each : in_section(knob->settings(row.path), section))
            settings.push_back(each);
        CHECK(before != outcome(changed, settings));
    }
}

TEST_CASE("every key of many jobs, and of quotes and rent, changes a result, or is refused") {
    const auto outcome_or_error = [](const std::string& text) -> std::string {
        try {
            return outcome(text, {});
        } catch (const ScenarioError& error) {
            return error.what();
        }
    };
    for (const auto* rows : {&world_knobs, &kube_knobs, &quote_knobs}) {
        for (const auto& [key, knob] : *rows) {
            CAPTURE(key);
            std::string changed = knob.scenario;
            const std::size_t at = changed.find(knob.text);
            REQUIRE(at != std::string::npos);
            changed.replace(at, std::string(knob.text).size(), knob.by);
            CHECK_NOTHROW(outcome(knob.scenario, {}));
            CHECK(outcome_or_error(knob.scenario) != outcome_or_error(changed));
        }
    }
}

TEST_CASE("every key of the language changes some result") {
    for (const SchemaRow& row : scenario_schema()) {
        CAPTURE(row.path);
        std::string key = row.path;
        std::string section;
        if (seen_in_windows(key, section) != nullptr) continue;
        if (world_knobs.contains(key) || kube_knobs.contains(key)) continue;
        if (quote_knobs.contains(key)) continue;
        // One reader has both: under the scheduler dedicated a kind is the job.
        constexpr std::string_view kind = "jobs.kind.";
        if (key.starts_with(kind)) {
            const std::string same = "job." + key.substr(kind.size());
            if (knobs.contains(same) || stage_knobs.contains(same)) continue;
        }
        const auto& rows = network_knobs.contains(key) ? network_knobs
                           : stage_knobs.contains(key) ? stage_knobs
                                                       : knobs;
        const auto found = rows.find(key);
        REQUIRE_MESSAGE(found != rows.end(), "no row for this key");
        const Knob& knob = found->second;
        const bool tier = key.find("checkpoint.tier") != std::string::npos;
        const bool of_a_list = tier || key.find(".cause") != std::string::npos ||
                               key.find(".fault") != std::string::npos;
        if (of_a_list && knob.base.empty()) {
            const std::string before = tier ? std::string(base) + tiers : base;
            std::string changed = before;
            const std::size_t at = changed.find(knob.change[0]);
            REQUIRE(at != std::string::npos);
            changed.replace(at, knob.change[0].size(), knob.change[1]);
            CHECK(outcome(before, {}) != outcome(changed, {}));
            continue;
        }
        const std::string before = knob.base.empty() ? base : knob.base;
        std::string after = before;
        if (!knob.text.empty()) {
            const std::size_t at = after.find(knob.text);
            REQUIRE(at != std::string::npos);
            after.replace(at, knob.text.size(), knob.by);
        }
        std::vector<std::string> changed = knob.given;
        for (std::string& each : knob.settings(key)) changed.push_back(std::move(each));
        CHECK(outcome(before, knob.given) != outcome(after, changed));
    }
    CHECK(scenario_schema().size() >= knobs.size() + stage_knobs.size() + window_knobs.size() +
                                          2 * packet_knobs.size() + world_knobs.size() +
                                          kube_knobs.size() + quote_knobs.size() - 1);
}

TEST_CASE("every key says what it means and what holds without it") {
    for (const SchemaRow& row : scenario_schema()) {
        CAPTURE(row.path);
        CHECK_FALSE(row.doc.empty());
        CHECK_FALSE(row.type.empty());
        CHECK_FALSE(row.otherwise.empty());
    }
}
