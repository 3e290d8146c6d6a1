#pragma once
// Runs many jobs in phases, or without, and compares the two.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "models/campaign/campaign.h"
#include "models/campaign/phases.h"
#include "models/campaign/world_phases.h"

namespace railyard {

inline Scenario load_phases_of(const std::string& text) {
    ScenarioChanges changes;
    changes.phases = true;
    return load_scenario(text, "phases", changes);
}

// `traces`: one of each phase, where it is given.
inline WorldRunResult run_all(const Scenario& s, std::vector<ReplicaTrace>* traces = nullptr) {
    const auto record = [&]() -> ReplicaTrace* {
        return traces == nullptr ? nullptr : &traces->emplace_back();
    };
    if (s.phases.size() > 1) {
        WorldPhases phases(s, 0);
        for (std::size_t k = 0; k < s.phases.size(); ++k) {
            WorldPart part = phases.part(k);
            run_world_replica(*s.phases[k].as, 0, false, record(), &part);
            phases.take(k, std::move(part));
        }
        return phases.ran();
    }
    WorldPart part;
    part.jobs = draw_jobs(*s.world, s.seed, 0, s.duration);
    run_world_replica(s, 0, false, record(), &part);
    return std::move(part.ran);
}

// As [run] goes on: the same nodes from these days on.
inline std::string phases(std::initializer_list<const char*> days) {
    std::string out = "start = \"2026-06-01\"\n";
    for (const char* day : days) out += fmt::format("[[phase]]\nat = \"{}\"\n", day);
    return out;
}

inline void check_ledgers(const WorldRunResult& twice, const WorldRunResult& once) {
    for (std::size_t kind = 0; kind <= once.ledgers.kinds(); ++kind) {
        for (std::size_t c = 0; c < category_count; ++c) {
            const auto category = static_cast<Category>(c);
            INFO(kind << " " << std::string(category_name(category)));
            CHECK(twice.ledgers.of(0, kind).booked(category) ==
                  once.ledgers.of(0, kind).booked(category));
        }
    }
}

inline void check_same(const WorldRunResult& twice, const WorldRunResult& once) {
    REQUIRE(twice.outcome.runs.size() == once.outcome.runs.size());
    for (std::size_t i = 0; i < once.outcome.runs.size(); ++i) {
        INFO("job " << i);
        const WorldJobRun& a = twice.outcome.runs[i];
        const WorldJobRun& b = once.outcome.runs[i];
        CHECK(a.over == b.over);
        CHECK(a.end == b.end);
        CHECK(a.starts == b.starts);
        CHECK(a.interruptions == b.interruptions);
        CHECK(a.held == b.held);
        CHECK(a.kept == b.kept);
        CHECK(a.kept_steps == b.kept_steps);
        CHECK(a.lost_steps == b.lost_steps);
    }
    check_ledgers(twice, once);
    CHECK(twice.ledger.total() == once.ledger.total());
}

}  // namespace railyard
