#include "tools/trace/world_history.h"

namespace railyard {

WorldHistory::WorldHistory(const Scenario& s, const ReplicaResult& result)
    : spec_(s.world->spec),
      jobs_(draw_jobs(*s.world, s.seed, static_cast<std::uint64_t>(result.index),
                      s.duration > Duration{} ? s.duration : campaign_length_max)) {
    const Instant end(result.simulated);
    std::map<std::int64_t, State> states;  // by id
    for (const WorldJob& job : jobs_.jobs) states[job.id] = {&job, job.submit};
    for (const RefusedJob& refused : result.refused) states.erase(jobs_.jobs[refused.job].id);
    for (const auto& [id, state] : states) {
        if (state.since <= end) changes_[state.since].waiting += 1;
    }
    for (const CampaignEvent& e : result.log) {
        const auto found = states.find(e.job);
        if (found != states.end()) follow(found->second, e);
    }
    for (auto& [id, state] : states) {
        if (state.runs) close(state, end, "runs on");
    }
}

void WorldHistory::follow(State& state, const CampaignEvent& e) {
    const std::string_view kind = e.kind;
    const bool waits_again = kind == "requeued" || kind == "suspended";
    if (kind == "started") {
        // In a gang whose pods are retried one by one, the others kept their nodes.
        const bool again = state.runs;
        if (again) {
            close(state, e.at, "started again");
        } else {
            Counts& change = changes_[e.at];
            change.waiting -= 1;
            change.running += 1;
            change.parts += parts_of(*state.job);
        }
        state.waited = again ? Duration{} : e.at - state.since;
        state.since = e.at;
        state.runs = true;
        state.first_node = e.slot;
    } else if (waits_again || kind == "over") {
        Counts& change = changes_[e.at];
        change.waiting += (waits_again ? 1 : 0) - (state.runs ? 0 : 1);
        if (state.runs) {
            change.running -= 1;
            change.parts -= parts_of(*state.job);
            // "job 17: completed"
            const std::size_t colon = e.cause.find(": ");
            close(state, e.at, colon == std::string::npos ? e.kind : e.cause.substr(colon + 2));
        }
        state.since = e.at;
    }
}

void WorldHistory::close(State& state, Instant until, const std::string& how) {
    stints_.push_back(
        {state.job, state.since, until, state.waited, state.first_node, how, parts_of(*state.job)});
    state.runs = false;
}

}  // namespace railyard
