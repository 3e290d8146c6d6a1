#include "models/campaign/world_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/integers.h"
#include "sim/text.h"

namespace railyard {

namespace {

// Work of a cluster whose clocks a power cap slows, as work of another cluster.
Duration work_on(const WorldJob& job, const WorldScenario& from, const WorldScenario& to) {
    const double ratio = to.power.work_factor / from.power.work_factor;
    return ratio == 1 || job.timed ? job.work : from_seconds(seconds(job.work) * ratio);
}

// These nodes' numbers in the next phase: by their place in their group. None if not all of them are there.
Allocation same_nodes(const Allocation& held, const WorldScenario& before,
                      const WorldScenario& now) {
    Allocation out;
    for (const NodeShare& share : held) {
        std::int64_t place = share.node;
        std::size_t group = 0;
        while (place >= before.spec.groups[group].nodes) place -= before.spec.groups[group++].nodes;
        std::int64_t first = 0;
        std::size_t same = 0;
        for (; same < now.spec.groups.size(); first += now.spec.groups[same++].nodes) {
            if (now.spec.groups[same].name == before.spec.groups[group].name) break;
        }
        if (same == now.spec.groups.size() || place >= now.spec.groups[same].nodes) return {};
        if (now.nodes[same].name != before.nodes[group].name) return {};  // others in their place
        out.insert(NodeShare{static_cast<NodeIndex>(first + place), share.gpus});
    }
    return out;
}

// How many GPUs a pod of the job has there.
std::int64_t pod_on(const WorldJob& job, const WorldSpec& spec) {
    return std::min(job.gpus_per_pod, spec.gpus_of_pool_node(spec.pool(job)));
}

// It asks for the same there: as many GPUs of a node, or the same slice.
bool same_shape(const WorldJob& job, const WorldSpec& a, const WorldSpec& b) {
    return pod_on(job, a) == pod_on(job, b) &&
           a.request_of_pool(a.pool(job)).slice == b.request_of_pool(b.pool(job)).slice;
}

}  // namespace

WorldPhases::WorldPhases(const Scenario& whole, std::int64_t index) : whole_(whole) {
    std::size_t groups = 0;
    SourcesSoFar sent;
    for (std::size_t k = 0; k < whole.phases.size(); ++k) {
        const ScenarioPhase& phase = whole.phases[k];
        const bool last = k + 1 == whole.phases.size();
        groups = std::max(groups, world(k).spec.groups.size());
        sent.since = k > 0 ? phase.from : Duration{};
        const Duration until = last ? whole.duration : phase.until - Duration(1);
        const WorldJobs all =
            draw_jobs(world(k), whole.seed, static_cast<std::uint64_t>(index), until, &sent);
        for (WorldJob job : all.jobs) {
            const Duration at = job.submit.time_since_epoch();
            if (k > 0 && at < phase.from) continue;
            if (at > until) break;
            job.work = work_on(job, world(k), world(0));
            job.id = std::ssize(jobs_.jobs) + 1;
            jobs_.jobs.push_back(job);
        }
        ends_.push_back(jobs_.jobs.size());
    }
    so_far_.resize(jobs_.jobs.size());
    for (std::size_t k = 0; k < whole.phases.size(); ++k) {
        const WorldSpec& spec = world(k).spec;
        moved_.emplace_back(spec.groups.size(), spec.kinds.size());
    }
    WorldOutcome& sum = sum_.outcome;
    sum.runs.resize(jobs_.jobs.size());
    sum.interruptions.resize(whole.causes.size());
    sum.contention_by = ContentionByKind(world(0).spec.kinds.size());
    sum_.ledgers = WorldLedger(groups, world(0).spec.kinds.size());
}

WorldJob WorldPhases::on(std::size_t k, std::size_t at) {
    const WorldSpec& spec = world(k).spec;
    WorldJob job = jobs_.jobs[at];
    job.submit -= begin(k);
    job.work = work_on(job, world(0), world(k));
    job.gpus_per_pod = pod_on(job, spec);
    Job& so_far = so_far_[at];
    const std::int64_t steps = spec.steps_of(job);
    const std::int64_t counted = std::exchange(so_far.steps, steps);
    if (counted > 0) so_far.done = in_proportion(so_far.done, counted, steps);
    job.done = std::min(so_far.done, steps - 1);
    if (whole_.phases[k].stop == Duration{}) job.goes_on = so_far.ran;
    if (so_far.left) {
        Allocation& held = so_far.left->held;
        held = same_shape(jobs_.jobs[at], world(k - 1).spec, spec)
                   ? same_nodes(held, world(k - 1), world(k))
                   : Allocation{};
        so_far.left->count_in(counted > 0 ? counted : steps, steps, job.done);
        job.carried = so_far.left;
    }
    return job;
}

WorldPart WorldPhases::part(std::size_t k) {
    WorldPart out;
    there_.clear();
    for (const bool going_on : {true, false}) {
        for (std::size_t at = 0; at < ends_[k]; ++at) {
            if (sum_.outcome.runs[at].over) continue;
            const bool goes_on = so_far_[at].ran.has_value() && whole_.phases[k].stop == Duration{};
            if (goes_on != going_on) continue;
            out.jobs.jobs.push_back(on(k, at));
            there_.push_back(at);
        }
    }
    out.off_at_end = k + 1 < whole_.phases.size() && whole_.phases[k + 1].stop > Duration{};
    return out;
}

// What it has lost of earlier phases moves in their books; what it can still lose goes on with it.
void WorldPhases::take_border(std::size_t k, std::size_t at, const WorldJobRun& run) {
    Job& so_far = so_far_[at];
    so_far.left.reset();
    if (!run.border) return;
    for (const BookedSteps& lost : run.border->lost) {
        const std::size_t kind = jobs_.jobs[at].kind;
        WorldLedger& moved = moved_[lost.campaign];
        for (std::size_t group = 0; group < lost.gpus.size(); ++group) {
            const std::int64_t parts = lost.gpus[group];
            for (const auto& [category, part] : step_parts) {
                moved.book(group, kind, category, -parts, lost.each.*part * lost.steps);
            }
            moved.book(group, kind, Category::lost_work, parts, lost.time());
        }
    }
    if (run.over) return;
    so_far.left = std::make_shared<CarriedJob>(std::move(run.border->left));
    const auto name = [k](std::vector<BookedSteps>& booked) {
        for (BookedSteps& each : booked) {
            if (each.campaign == BookedSteps::by_this_one) each.campaign = k;
        }
    };
    name(so_far.left->begun);
    for (CarriedSteps& each : so_far.left->open) name(each.booked);
}

// A job that nobody requeues ends with a phase after which everything is switched off.
void WorldPhases::add_run(std::size_t k, std::size_t at, const WorldJobRun& run, bool off) {
    WorldJobRun& sum = sum_.outcome.runs[at];
    Job& so_far = so_far_[at];
    if (run.started && !sum.started) sum.first_start = run.first_start + begin(k);
    sum.started |= run.started;
    sum.starts += run.starts;
    if (run.goes_on) --sum.starts;
    sum.interruptions += run.interruptions;
    sum.waits = run.waits;
    sum.held += run.held;
    sum.kept += run.kept;
    sum.contention += run.contention;
    sum.lost_steps += run.lost_steps;
    const std::int64_t replicas = world(k).spec.kinds[jobs_.jobs[at].kind].replicas;
    so_far.done += run.kept_steps - ceil_div(run.replica_steps_missing, replicas);
    sum.kept_steps =
        in_proportion(so_far.done, so_far.steps, world(0).spec.steps_of(jobs_.jobs[at]));
    take_border(k, at, run);
    const Instant end(whole_.phases[k].until);
    so_far.ran.reset();
    if (run.runs_since) so_far.ran = end - (*run.runs_since + begin(k));
    if (run.over) {
        sum.over = true;
        sum.how = run.how;
        sum.end = run.end + begin(k);
    } else if (off && run.runs_since && !world(k).spec.kinds[jobs_.jobs[at].kind].requeue) {
        sum.over = true;
        sum.how = JobEnd::cancelled;
        sum.end = end;
        ++sum_.outcome.ended;
    } else if (k + 1 < whole_.phases.size() && so_far.done >= so_far.steps) {  // in its epilog
        sum.over = true;
        sum.how = JobEnd::completed;
        sum.end = end;
        ++sum_.outcome.ended;
    }
}

void WorldPhases::take(std::size_t k, WorldPart part) {
    WorldOutcome& sum = sum_.outcome;
    WorldOutcome& ran = part.ran.outcome;
    for (std::size_t i = 0; i < ran.runs.size(); ++i) {
        add_run(k, there_[i], ran.runs[i], part.off_at_end);
    }
    sum.add(ran);
    sum.submitted = static_cast<std::int64_t>(ends_[k]);
    sum.ended += ran.ended;
    sum.running = ran.running;
    sum.waiting = ran.waiting;
    sum.own_failures += ran.own_failures;
    sum.preemptions += ran.preemptions;
    sum.strikes_on_idle += ran.strikes_on_idle;
    for (RefusedJob& refused : ran.refused) {
        sum.refused.push_back({there_[refused.job], std::move(refused.reason)});
    }
    for (std::size_t of = 0; of < world(k).spec.kinds.size(); ++of) {
        for (std::size_t by = 0; by < world(k).spec.kinds.size(); ++by) {
            sum.contention_by.at(of, by) += ran.contention_by.at(of, by);
        }
    }
    sum.network_stalls += ran.network_stalls;
    sum.corrupted_results += ran.corrupted_results;
    for (std::size_t store = 0; store < sum.in_stores.size(); ++store) {
        sum.in_stores[store]
            .bytes.safe = {};  // that stood there before stands there still, or is gone
        sum.in_stores[store] += ran.in_stores[store];
    }
    sum.store.add(ran.store);
    sum.held += ran.held;
    sum.node_busy += ran.node_busy;
    sum.stranded += ran.stranded;
    sum.sliced += ran.sliced;
    sum_.ledgers.add(part.ran.ledgers);
    const ScenarioPhase& phase = whole_.phases[k];
    sum_.ledgers.book(0, sum_.ledgers.no_kind(), Category::planned_maintenance,
                      phase.as->gpus() * world(k).spec.parts_per_gpu(), phase.stop);
    sum_.simulated = phase.until;
}

WorldRunResult WorldPhases::ran() {
    for (const WorldLedger& moved : moved_) sum_.ledgers.add(moved);
    sum_.ledger = sum_.ledgers.total();
    return std::move(sum_);
}

namespace {

std::string joined(const std::vector<std::string>& names) {
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void check_world_phases(const Scenario& whole, const std::vector<Diagnostic>& days) {
    const ScenarioPhase& first = whole.phases[0];
    for (std::size_t k = 1; k < whole.phases.size(); ++k) {
        const ScenarioPhase& phase = whole.phases[k];
        const auto wrong = [&](std::string text) {
            Diagnostic said = days[k];
            said.message = fmt::format("from {} on {}", phase.name, text);
            said.help = "jobs go from phase to phase by what they name";
            throw ScenarioError(std::vector<Diagnostic>{std::move(said)});
        };
        if (!phase.as->world != !first.as->world)
            wrong("there is one job, or there are many, and before it was the other way round");
        if (!phase.as->world) continue;
        const WorldSpec& a = first.as->world->spec;
        const WorldSpec& b = phase.as->world->spec;
        const auto same = [&](const char* what, const std::vector<std::string>& before,
                              const std::vector<std::string>& now) {
            if (before == now) return;
            wrong(fmt::format("the {} are {}, in the first phase they are {}", what, joined(now),
                              joined(before)));
        };
        same("kinds of jobs", names_of(a.kinds), names_of(b.kinds));
        same("partitions", names_of(a.partitions), names_of(b.partitions));
        same("accounts", a.accounts, b.accounts);
        same("qos", names_of(a.slurm.qos), names_of(b.slurm.qos));
        same("queues", names_of(a.kube.queues), names_of(b.kube.queues));
        if (a.parts_per_gpu() != b.parts_per_gpu()) {
            wrong(
                "GPUs are cut into slices, and in the first phase they are not, or the other way "
                "round");
        }
        for (std::size_t i = 0; i < first.as->world->models.size(); ++i) {
            const auto& before = first.as->world->models[i];
            const auto& now = phase.as->world->models[i];
            if (!before != !now || (now && before->job.gpus() != now->job.gpus())) {
                wrong(fmt::format(
                    "jobs of {} are of another size, or have a model in one phase alone",
                    a.kinds[i].name));
            }
        }
    }
}

}  // namespace railyard
