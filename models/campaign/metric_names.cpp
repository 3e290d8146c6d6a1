#include "models/campaign/metric_names.h"

#include <algorithm>
#include <map>

namespace railyard {

namespace {

const std::vector<MetricName> known_metrics = {
    {"goodput", "1", "productive time of all GPUs over all GPU time of the cluster", Better::higher,
     true},
    {"ettr", "1", "time in steps that were kept over the time of the job", Better::higher, true},
    {"mfu", "bf16 peak", "model FLOPs of kept steps over the peak of the job's GPUs, all its time",
     Better::higher, true},
    {"mfu_step", "bf16 peak", "the same while it steps", Better::higher, true},
    {"step_time", "s", "one step without what slows or interrupts it"},
    {"steps", "steps", "steps that were kept", Better::higher},
    {"steps_lost", "steps", "steps done again after an interruption"},
    {"tokens", "tokens", "tokens of kept steps", Better::higher},
    {"steps_per_day", "steps/day", "kept steps over the time simulated", Better::higher},
    {"tokens_per_day", "tokens/day", "tokens of kept steps over the time simulated",
     Better::higher},
    {"training_time", "s", "time in kept steps", Better::higher},
    {"wall_time", "s", "from the job's first start to its end"},
    {"job_finished", "1", "1: the job is done", Better::higher, true},
    {"checkpoints", "1", "checkpoints that became safe", Better::higher},
    {"checkpoints_lost", "1", "checkpoints that were lost before they were safe"},
    {"checkpoints_passed_over", "1",
     "checkpoints that a newer one overtook before they were uploaded"},
    {"checkpoint_stall_time", "s", "the job stands still for checkpoints"},
    {"checkpoint_time_to_stall_end", "s",
     "from a checkpoint's begin until the job goes on, in the mean"},
    {"checkpoint_time_to_safe", "s",
     "from a checkpoint's begin until it survives the loss of any node, in the mean"},
    {"checkpoint_stall_kind_*", "1",
     "share of the GPU time of this kind of jobs that checkpoints stall"},
    {"checkpoint_stall_*", "s", "stalls that this wall held up"},
    {"checkpoint_upload_*", "s", "uploads that this wall held up"},
    {"interruptions", "1", "failures that stopped the job, or jobs"},
    {"planned_interruptions", "1", "maintenance that stopped the job"},
    {"storms", "1", "pause storms"},
    {"storm_stall_time", "s", "the job stands still in pause storms"},
    {"failures_while_down", "1", "failures that found the job down already"},
    {"mean_time_between_interruptions", "s", "the job's time over its interruptions",
     Better::higher},
    {"*_per_interruption", "s", "time that this takes for each interruption"},
    {"pauses", "1", "pauses that the scenario asks for"},
    {"pause_time", "s", "how long they took"},
    {"phase_*_goodput", "1", "as goodput, of the cluster's phase", Better::higher, true},
    {"phase_*_tokens_per_day", "tokens/day", "as tokens_per_day, of the phase", Better::higher},
    {"phase_*_utilisation", "1", "as utilisation, of the phase", Better::higher, true},
    {"phase_*_work_done", "1", "as work_done, of the phase", Better::higher},
    {"phase_*_jobs_completed", "1", "jobs that were done in the phase", Better::higher},
    {"phase_*_step_time", "s", "as step_time, of the phase"},
    {"phase_*_mfu_step", "bf16 peak", "as mfu_step, of the phase", Better::higher, true},
    {"phase_*_power_mean", "W", "as power_mean, of the phase"},
    {"phase_*_power_peak", "W", "as power_peak, of the phase"},
    {"phase_*_interruptions", "1", "failures that stopped the job, or jobs, in the phase"},
    {"phase_*_energy", "J", "as energy, of the phase"},
    {"phase_*_repair_visits", "1", "nodes that went to repair in the phase"},
    {"phase_*_replaced", "1", "parts that were replaced in the phase"},
    {"phase_*_paid_by_use", "USD", "as paid_by_use, of the phase"},
    {"stage_*_wall_time", "s", "from the stage's begin to its end"},
    {"stage_*_steps", "steps", "steps that the stage kept", Better::higher},
    {"stage_*_tokens", "tokens", "tokens of the stage's kept steps", Better::higher},
    {"stage_*_step_time", "s", "one step of the stage, in the mean"},
    {"stage_*_mfu_step", "bf16 peak", "as mfu_step, of the stage", Better::higher, true},
    {"shrinks", "1", "times that the job, or a job, went on with fewer replicas"},
    {"steps_missing", "steps", "whole steps' worth of batches that smaller jobs left out"},
    {"nodes_changed", "1", "nodes that the job got in place of others"},
    {"slow_parts", "1", "parts that became slow"},
    {"slow_parts_found", "1", "of these, the ones that somebody found", Better::higher},
    {"slow_parts_time", "s", "the job ran with a slow part"},
    {"nodes_blamed", "1", "sound nodes that were taken for broken ones"},
    {"corruptions_found", "1", "silent corruptions that somebody found", Better::higher},
    {"corrupted_results", "1", "jobs that ended with wrong numbers"},
    {"nodes_quarantined", "1", "nodes that failed too often and were locked out"},
    {"domain_failures", "1", "failures of several nodes at once"},
    {"network_outages", "1", "parts of the network that died or became slow"},
    {"network_stalls", "1", "times that a job lost its way through the network"},
    {"repairs", "1", "repairs that were finished"},
    {"repairs_found_bad", "1", "repairs whose fault burn-in found"},
    {"repairs_let_out_bad", "1", "repaired nodes that still had their fault"},
    {"repair_wait", "s", "wait for a crew and a part, in the mean"},
    {"repair_wait_part", "s", "wait for a part, in the mean"},
    {"repair_queue_max", "1", "most nodes that waited for repair at once"},
    {"restore_*", "s", "reading checkpoints back, as far as this wall held it up"},
    {"*_bytes_written", "B", "checkpoints written to this tier"},
    {"*_bytes_kept", "B", "of these, what is there at the end"},
    {"*_bytes_expired", "B", "of these, what newer ones have replaced"},
    {"*_bytes_lost", "B", "of these, what failures have destroyed"},
    {"*_bytes_in_flight", "B", "of these, what is on its way at the end"},
    {"*_restores", "1", "restores from this tier"},
    {"object_store_requests_cost", "USD", "requests to stores that are paid by use"},
    {"object_store_egress_cost", "USD", "bytes read from these"},
    {"object_store_kept_cost", "USD", "what they have kept, for as long as it was there"},
    {"object_store_kept_cost_per_month", "USD", "what is there at the end, for a month"},
    {"storage_drives_lost", "1", "drives of the store that failed"},
    {"storage_servers_lost", "1", "servers of the store that failed"},
    {"storage_boxes_lost", "1", "boxes of drives that failed"},
    {"storage_rebuilds", "1", "rebuilds of lost parts"},
    {"storage_data_losses", "1", "failures that lost data for good"},
    {"storage_data_lost", "1", "share of the store's data that is lost for good"},
    {"storage_outages", "1", "times that the store did not serve"},
    {"storage_outage_time", "s", "how long it did not"},
    {"neighbour_*_checkpoints_left_out", "1",
     "checkpoints that came due before the last was written"},
    {"neighbour_*_checkpoint_time", "s", "writing one of its checkpoints, in the mean"},
    {"neighbour_*_checkpoints", "1", "checkpoints that it wrote", Better::higher},
    {"neighbour_*_reads_got", "1", "share of the reads that it asked for and got", Better::higher},
    {"power_mean", "W", "at the meter, in the mean"},
    {"power_peak", "W", "at the meter, at the highest instant"},
    {"power_design", "W", "at the meter, with all nodes at their rating"},
    {"power_swing", "W", "difference between the levels of a step, of all the job's GPUs"},
    {"power_swing_rate", "W/s", "how fast it goes from one level to the other"},
    {"energy", "J", "at the meter"},
    {"energy_it", "J", "of nodes, network and storage"},
    {"energy_per_token", "J", "at the meter"},
    {"carbon", "gCO2", "of the electricity"},
    {"power_budget_load", "1", "highest power over the site's budget"},
    {"power_budget_clock", "1", "clocks that keep to the budget, over full ones", Better::higher},
    {"power_supplies_load", "1",
     "a node's rating over what its supplies deliver without the redundant ones"},
    {"rack_power_peak", "W", "of one rack"},
    {"gpu_temperature", "degC", "of the GPUs, while they compute"},
    {"hbm_temperature", "degC", "of their memory"},
    {"gpu_clock", "1", "clocks that heat leaves, over full ones", Better::higher},
    {"pump_losses", "1", "losses of a coolant pump"},
    {"pump_losses_ridden_through", "1", "of these, the ones that stopped nothing"},
    {"breaker_trips", "1", "breakers that tripped"},
    {"breaker_load_peak", "1", "load of a breaker over its rating, at the highest instant"},
    {"data_wait_time", "s", "steps wait for data"},
    {"data_first_batch_time", "s", "wait for the first batch after each start"},
    {"data_starved_time", "s", "loaders were given less than steps need"},
    {"data_utilisation", "1", "computing over the time of an epoch after its first batch (AU)",
     Better::higher, true},
    {"data_fetched", "B", "read from beyond the nodes"},
    {"data_egress_cost", "USD", "bytes of data that leave the store they are read from"},
    {"data_requests_cost", "USD", "requests for data to stores that are paid by use"},
    {"repair_visits", "1", "nodes that went to repair"},
    {"gpus_replaced", "1", "GPUs replaced in them"},
    {"nics_replaced", "1", "NICs replaced in them"},
    {"other_parts_replaced", "1", "other parts replaced in them"},
    {"paid_by_use", "USD", "requests, egress and what is kept in stores that are paid by use"},
    {"cost_capital", "USD", "what is paid once"},
    {"cost_per_year", "USD", "a year with capital's share of it"},
    {"cost_per_goodput_gpu_hour", "USD", "a year's cost over its productive GPU hours"},
    {"cost_per_1e12_tokens", "USD", "a year's cost over its tokens"},
    {"cost_per_work", "USD", "a year's cost over what its work counts"},
    {"utilisation", "1", "share of all GPU time that jobs hold", Better::higher, true},
    {"occupancy", "1", "share of all node time in which a job is on the node", Better::higher,
     true},
    {"mig_stranded", "1", "share of cut GPUs' time that no slice could have had"},
    {"jobs", "1", "jobs that were submitted"},
    {"jobs_kind_*", "1", "jobs of this kind that were submitted"},
    {"jobs_completed", "1", "jobs that are done", Better::higher},
    {"jobs_ended", "1", "jobs that are over, whatever became of them", Better::higher},
    {"jobs_running", "1", "jobs that run at the end, or hold GPUs"},
    {"jobs_waiting", "1", "jobs that wait at the end"},
    {"jobs_never_started", "1", "jobs that had no start"},
    {"jobs_failed", "1", "jobs that ended by a failure of their own"},
    {"jobs_node_fail", "1", "jobs that ended by a node's failure"},
    {"jobs_timeout", "1", "jobs that their time limit ended"},
    {"jobs_preempted", "1", "jobs that ended for others"},
    {"jobs_cancelled", "1", "jobs that were ended from outside"},
    {"jobs_refused", "1", "jobs that could never run"},
    {"own_failures", "1", "failures that no node is to blame for"},
    {"preemptions", "1", "jobs that were stopped for others"},
    {"failures_on_idle_nodes", "1", "failures of nodes without a job"},
    {"work_done", "1", "what the jobs' kept work counts: jobs.kind.worth", Better::higher},
    {"work_per_day", "1/day", "the same over the time simulated", Better::higher},
    {"work_done_kind_*", "1", "what the kept work of this kind of jobs counts", Better::higher},
    {"wait_mean_kind_*", "s", "wait of this kind of jobs, in the mean"},
    {"jct_mean_kind_*", "s", "from submission to end of this kind of jobs, in the mean"},
    {"bounded_slowdown_mean_kind_*", "1", "bounded slowdown of this kind of jobs, in the mean"},
    {"goodput_kind_*", "1", "productive share of the GPU time of this kind of jobs", Better::higher,
     true},
    {"lost_work_kind_*", "1", "share of it that was done again"},
    {"contention_kind_*", "1",
     "share of it that waited for other jobs on the network; `_by_`: whose"},
    {"degraded_kind_*", "1", "share of it that slow or dead parts took"},
    {"storm_stall_kind_*", "1", "share of it that stood still for the network"},
    {"wait_mean", "s", "from submission to the first start, in the mean"},
    {"wait_median", "s", "from submission to the first start, half of them below"},
    {"wait_p95", "s", "from submission to the first start, 19 of 20 below"},
    {"jct_mean", "s", "from submission to the end, in the mean"},
    {"jct_median", "s", "from submission to the end, half of them below"},
    {"jct_p95", "s", "from submission to the end, 19 of 20 below"},
    {"bounded_slowdown_mean", "1",
     "time from submission to end over that alone, at least 10 s, in the mean"},
    {"bounded_slowdown_median", "1",
     "time from submission to end over that alone, at least 10 s, half of them below"},
    {"bounded_slowdown_p95", "1",
     "time from submission to end over that alone, at least 10 s, 19 of 20 below"},
    {"mttf_gpus_*", "s", "time to failure of jobs of up to so many GPUs", Better::higher},
    {"ettr_gpus_*", "1", "ettr of jobs of up to so many GPUs", Better::higher, true},
};

// `*` stands for one character or more.
bool matches(std::string_view name, std::string_view pattern) {
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) return name == pattern;
    const std::string_view front = pattern.substr(0, star);
    const std::string_view back = pattern.substr(star + 1);
    return name.size() > front.size() + back.size() && name.starts_with(front) &&
           name.ends_with(back);
}

}  // namespace

const std::vector<MetricName>& metric_names() {
    return known_metrics;
}

const MetricName* find_metric_name(std::string_view metric) {
    static const auto by_name = [] {
        std::map<std::string_view, const MetricName*> out;
        for (const MetricName& each : known_metrics) out.emplace(each.pattern, &each);
        return out;
    }();
    if (const auto own = by_name.find(metric); own != by_name.end()) return own->second;
    const auto found = std::ranges::find_if(
        known_metrics, [&](const MetricName& each) { return matches(metric, each.pattern); });
    return found == known_metrics.end() ? nullptr : &*found;
}

std::string_view unit_of(std::string_view metric) {
    const MetricName* name = find_metric_name(metric);
    return name != nullptr ? name->unit : "1";
}

Better better_of(std::string_view metric) {
    const MetricName* name = find_metric_name(metric);
    return name != nullptr ? name->better : Better::lower;
}

bool is_share(std::string_view metric) {
    const MetricName* name = find_metric_name(metric);
    return name != nullptr && name->share;
}

}  // namespace railyard
