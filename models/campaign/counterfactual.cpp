#include "models/campaign/counterfactual.h"

#include <array>
#include <optional>
#include <vector>

#include "models/campaign/scenario.h"

namespace railyard {

namespace {

struct CauseText {
    std::string_view name;
    std::string_view doc;
};
constexpr std::array<CauseText, loss_cause_count> texts = {{
    {"failures", "nothing breaks in the nodes"},
    {"recovery", "failures are noticed, nodes replaced and the job restarted in no time"},
    {"storage", "states and batches move in no time, stores never break"},
    {"network", "an ideal network: no contention, dead links or pause storms"},
    {"stragglers", "all ranks are as fast as the mean"},
    {"degraded_parts", "no part is slower than it should be"},
    {"throttling", "no heat that slows clocks or memory"},
    {"feeds", "breakers hold and pumps run"},
    {"maintenance", "no planned interruptions"},
}};

// What takes a cause of failures away.
LossCause loss_of(const Scenario& s, std::size_t cause) {
    const bool breaker = s.power.breaker && s.power.breaker->cause == cause;
    const bool pump = s.power.pump && s.power.pump->cause == cause;
    if (breaker || pump) return LossCause::feeds;
    return s.causes[cause].storm ? LossCause::network : LossCause::failures;
}

// Takes causes away with what points at them: injected strikes, breakers and pumps.
void remove_causes(Scenario& s, const LossCauses& without) {
    std::vector<std::optional<std::size_t>> place;
    std::vector<FailureCause> kept;
    for (std::size_t i = 0; i < s.causes.size(); ++i) {
        const bool stays = !has(without, loss_of(s, i));
        place.push_back(stays ? std::optional(kept.size()) : std::nullopt);
        if (stays) kept.push_back(std::move(s.causes[i]));
    }
    s.causes = std::move(kept);
    const auto renumber = [&](std::vector<InjectedStrike>& strikes) {
        std::erase_if(strikes, [&](const InjectedStrike& strike) { return !place[strike.cause]; });
        for (InjectedStrike& strike : strikes) strike.cause = *place[strike.cause];
    };
    const auto renumber_feed = [&](auto& feed) {
        if (!feed) return;
        if (const auto found = place[feed->cause]) {
            feed->cause = *found;
        } else {
            feed.reset();
        }
    };
    renumber(s.nodes.injected);
    renumber(s.power.injected_pump_losses);
    renumber_feed(s.power.breaker);
    renumber_feed(s.power.pump);
}

void make_recovery_instant(Scenario& s) {
    for (FailureCause& cause : s.causes) {
        cause.detection = cause.reset_time = cause.repair_time = Duration{};
    }
    const auto at_once = [](std::vector<InjectedStrike>& strikes) {
        for (InjectedStrike& strike : strikes) {
            if (strike.duration) strike.duration = Duration{};
        }
    };
    at_once(s.nodes.injected);
    at_once(s.power.injected_pump_losses);
    s.nodes.repair.lead_time = s.nodes.repair.burn_in = Duration{};
    if (s.nodes.quarantine.inspection) s.nodes.quarantine.inspection = Duration{};
    s.job.recovery.replacement = s.job.recovery.restart = Duration{};
    s.job.recovery.restore = Duration{};
}

void make_storage_free(Scenario& s) {
    const auto empty = [](TransferSpec& transfer) {
        transfer.bytes = Bytes{};
        transfer.files = 0;
    };
    CheckpointSpec& c = s.job.checkpoint;
    c.size = Bytes{};
    c.snapshot = c.stall_alone = c.upload_step_penalty = Duration{};
    empty(c.read_at_start);
    for (TierSpec& tier : c.tiers) {
        tier.write_time = tier.read_time = Duration{};
        empty(tier.write);
        empty(tier.read);
    }
    for (StoreSetup& store : s.stores) store.failures.reset();
    s.neighbours.clear();
}

}  // namespace

std::string_view loss_cause_name(LossCause cause) {
    return texts[static_cast<std::size_t>(cause)].name;
}

std::string_view loss_cause_doc(LossCause cause) {
    return texts[static_cast<std::size_t>(cause)].doc;
}

LossCauses loss_causes(const Scenario& s) {
    LossCauses fails;
    for (std::size_t i = 0; i < s.causes.size(); ++i) {
        fails.set(static_cast<std::size_t>(loss_of(s, i)));
    }
    const bool planned = s.job.maintenance.every > Duration{} || !s.job.pauses.empty();
    LossCauses out;
    const auto set = [&](LossCause cause, bool there) {
        out[static_cast<std::size_t>(cause)] = there;
    };
    set(LossCause::failures, has(fails, LossCause::failures) || s.network_faults.any());
    set(LossCause::recovery, fails.any() || planned);
    set(LossCause::storage, s.job.checkpoint.mode != CheckpointMode::none || s.data.has_value());
    set(LossCause::network, s.fidelity != Fidelity::analytic || has(fails, LossCause::network));
    set(LossCause::stragglers, s.job.step.straggler_wait > Duration{});
    set(LossCause::degraded_parts, !s.faults.empty());
    set(LossCause::throttling, s.job.step.throttled > Duration{});
    set(LossCause::feeds, has(fails, LossCause::feeds));
    set(LossCause::maintenance, planned);
    return out;
}

void remove_from_step(StepTime& step, const LossCauses& without) {
    if (has(without, LossCause::stragglers)) step.straggler_wait = Duration{};
    if (has(without, LossCause::throttling)) step.throttled = Duration{};
}

void remove_from_step(Scenario& s, const LossCauses& without) {
    std::vector<StepTime*> steps = {&s.job.step};
    for (NetworkDraw& draw : s.draws) steps.push_back(&draw.step);
    for (StepTime* step : steps) remove_from_step(*step, without);
    if (has(without, LossCause::throttling)) {
        s.power.heat.speed = s.power.heat.hbm_speed = s.power.budget_speed = 1;
    }
}

void remove_from_data(Scenario& s, const LossCauses& without) {
    if (!has(without, LossCause::storage) || !s.data) return;
    s.data->supply = DataSupply{};
    s.data->flow = s.data->loader->flow(s.data->supply);
}

void remove_from_campaign(Scenario& s, const LossCauses& without) {
    remove_causes(s, without);
    if (has(without, LossCause::failures)) s.network_faults = {};
    if (has(without, LossCause::recovery)) make_recovery_instant(s);
    if (has(without, LossCause::storage)) make_storage_free(s);
    if (has(without, LossCause::maintenance)) {
        s.job.maintenance = {};
        s.job.pauses.clear();
    }
}

}  // namespace railyard
