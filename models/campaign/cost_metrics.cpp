#include "models/campaign/cost_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/campaign/campaign.h"
#include "models/campaign/phases.h"
#include "sim/check.h"
#include "sim/text.h"

namespace railyard {

namespace {

constexpr std::array cost_metrics = {
    CostMetric{"cost_capital", [](const YearlyCost& c) { return c.capital; }, false},
    CostMetric{"cost_per_year", [](const YearlyCost& c) { return c.total(); }},
    CostMetric{"cost_per_goodput_gpu_hour",
               [](const YearlyCost& c) { return c.per_goodput_gpu_hour(); }},
    CostMetric{"cost_per_1e12_tokens", [](const YearlyCost& c) { return c.per_1e12_tokens(); }},
    CostMetric{"cost_per_work", [](const YearlyCost& c) { return c.per_work(); }}};

// 0: the campaign has nothing of the kind.
double value_of(std::span<const Metric> metrics, std::string_view name) {
    const Metric* found = find_named(metrics, name);
    return found == nullptr ? 0 : found->value;
}

// What is paid by use, as metrics, in the order of UsedLine.
constexpr std::array<const char*, used_line_count> used_metrics = {
    "energy",        "repair_visits",        "gpus_replaced",
    "nics_replaced", "other_parts_replaced", "paid_by_use"};

UsedLine line_of(SparePart part) {
    constexpr UsedLine lines[] = {UsedLine::other_parts, UsedLine::gpu_parts, UsedLine::nic_parts};
    return lines[static_cast<std::size_t>(part)];
}

// What the campaign's metrics say was paid for objects and their way out.
double paid_by_use(std::span<const Metric> metrics) {
    return value_of(metrics, "object_store_requests_cost") +
           value_of(metrics, "object_store_egress_cost") +
           value_of(metrics, "object_store_kept_cost") + value_of(metrics, "data_egress_cost") +
           value_of(metrics, "data_requests_cost");
}

// All but the energy, which is a metric already.
void add_used_metrics(const Scenario& s, ReplicaResult& r) {
    std::array<double, used_line_count> used{};
    const auto count = [&](UsedLine line) -> double& {
        return used[static_cast<std::size_t>(line)];
    };
    for (std::size_t cause = 0; cause < r.repairs.size(); ++cause) {
        const auto repairs = real(r.repairs[cause]);
        count(UsedLine::repair_visits) += repairs;
        if (!s.cost->parts_covered) count(line_of(s.causes[cause].spare_part)) += repairs;
    }
    count(UsedLine::paid) = paid_by_use(r.metrics);
    for (std::size_t line = 1; line < used_line_count; ++line) {
        r.metrics.add(used_metrics[line], used[line]);
    }
}

}  // namespace

bool pays_by_use(const Scenario& s) {
    for (std::size_t store = 0; store < s.stores.size(); ++store) {
        const auto& system = s.stores[store].system;
        if (system && (store == object_store_index || system->prices().any())) return true;
    }
    return false;
}

void add_object_store_costs(const Scenario& s, const UseByStore& uses, MetricList& out) {
    if (!pays_by_use(s)) return;
    const auto parts = [](Bytes moved, Bytes part) {
        return part > Bytes{} ? real(moved.count()) / real(part.count()) : 0;
    };
    double requests = 0;
    double egress = 0;
    double kept = 0;
    double at_end = 0;
    constexpr double month_ns = seconds_per_year / 12 * 1e9;
    for (std::size_t store = 0; store < s.stores.size(); ++store) {
        if (!s.stores[store].system) continue;
        const StorePrices prices = s.stores[store].system->prices();
        const PlaceUse& use = uses[store];
        requests += parts(use.bytes.written, prices.write_part) * prices.per_write_request +
                    parts(use.read, prices.read_part) * prices.per_read_request;
        egress += real(use.read.count()) * prices.per_egress_byte;
        kept += real(use.kept) / month_ns * prices.per_byte_month;
        at_end += real(use.bytes.safe.count()) * prices.per_byte_month;
    }
    out.add("object_store_requests_cost", requests);
    out.add("object_store_egress_cost", egress);
    out.add("object_store_kept_cost", kept);
    out.add("object_store_kept_cost_per_month", at_end);
}

std::vector<std::string> prices_missing(const Scenario& of, const Scenario& beside) {
    std::vector<std::string> out;
    if (!of.cost || !beside.cost) return out;
    const std::vector<std::string>& priced_in_neither = beside.cost->plan.left_out;
    for (const std::string& what : of.cost->plan.left_out) {
        if (std::ranges::find(priced_in_neither, what) == priced_in_neither.end()) {
            out.push_back(what);
        }
    }
    return out;
}

const CostMetric* cost_metric(std::string_view name) {
    return find_named(cost_metrics, name);
}

CampaignUse campaign_use(const Scenario& s, std::span<const Metric> metrics, Duration simulated) {
    CampaignUse usage;
    // A replica that ended at once took no time: there is nothing to divide by.
    usage.years = std::max(seconds(simulated), 1e-9) / seconds_per_year;
    usage.goodput_gpu_hours = value_of(metrics, "goodput") * s.gpu_seconds(simulated) / 3600;
    usage.tokens = value_of(metrics, "tokens");
    usage.work = value_of(metrics, "work_done");
    const CostPlan& plan = s.cost->plan;
    for (std::size_t k = 0; k < s.phases.size(); ++k) {
        const CostPhase& phase = plan.phases[k];
        const double lasts = phase.until - phase.from;
        const double worth = share_of_years(plan, phase.from, phase.until) / lasts * plan.horizon;
        for (const char* used : used_metrics) {
            usage.used.push_back(worth * value_of(metrics, phase_metric(k, used)));
        }
        double& energy = *(usage.used.end() - used_line_count);
        energy = energy / joules_per_kilowatt_hour * s.phases[k].as->cost->tariff;
    }
    if (!s.phases.empty()) return usage;
    for (const char* used : used_metrics) usage.used.push_back(value_of(metrics, used));
    double& energy = usage.used[static_cast<std::size_t>(UsedLine::energy)];
    energy = energy / joules_per_kilowatt_hour * s.cost->tariff;
    return usage;
}

CampaignUse usage_of(const Scenario& s, const ReplicaResult& r) {
    return campaign_use(s, r.metrics, r.simulated);
}

void add_cost_metrics(const Scenario& s, ReplicaResult& r) {
    if (s.phases.empty()) add_used_metrics(s, r);
    const CostPlan& plan = s.cost->plan;
    const YearlyCost cost = yearly_cost(plan, typical_prices(plan.prices), usage_of(s, r));
    for (const CostMetric& metric : cost_metrics) {
        if (metric.name == "cost_per_1e12_tokens" && s.tokens_per_step == 0) continue;
        if (metric.name == "cost_per_work" && !s.counts_work()) continue;
        const double value = metric.of(cost);
        r.metrics.add(std::string(metric.name), std::isfinite(value) ? value : NAN);
    }
}

void carry_prices(const CostStudy& study, std::vector<MetricSummary>& metrics) {
    for (MetricSummary& m : metrics) {
        const CostMetric* metric = cost_metric(m.name);
        if (metric == nullptr) continue;
        const CostRange range = study.range(metric->of);
        m.summary.mean = range.typical;
        m.summary.ci95 = {range.low, range.high};
    }
}

double open_by_luck(const CostedReplicas& a, const CostedReplicas& b, double confidence) {
    const std::size_t pairs = std::min(a.values.size(), b.values.size());
    const PairedComparison p = compare_paired(
        std::span(a.values).first(pairs), std::span(b.values).first(pairs), Better::lower,
        confidence, dealt_over(pairs, draws_of_pairs(a.draws, b.draws)));
    return p.verdict == Verdict::equal ? 0 : p.interval.half_width();
}

PairedComparison compare_money(const CostedReplicas& of_a, const CostedReplicas& of_b,
                               const CostMetric& metric, double confidence) {
    const CostStudy& a = of_a.study;
    const CostStudy& b = of_b.study;
    const std::size_t draws = std::min(a.draws.size(), b.draws.size());
    std::vector<double> first;
    std::vector<double> second;
    std::vector<double> differences;
    for (std::size_t d = 0; d < draws; ++d) {
        first.push_back(metric.of(a.draws[d]));
        second.push_back(metric.of(b.draws[d]));
        differences.push_back(first.back() == second.back() ? 0 : second.back() - first.back());
    }
    PairedComparison out = compare_paired(first, second, Better::lower, confidence);
    out.pairs = std::min(of_a.values.size(), of_b.values.size());
    out.mean_a = metric.of(a.typical);
    out.mean_b = metric.of(b.typical);
    out.difference = out.mean_b - out.mean_a;
    out.pairs_to_settle.reset();  // more replicas do not make a price more certain
    std::ranges::sort(differences);
    out.interval =
        widened({sorted_quantile(differences, (1 - confidence) / 2),
                 sorted_quantile(differences, (1 + confidence) / 2)},
                out.difference, metric.has_luck ? open_by_luck(of_a, of_b, confidence) : 0);
    if (out.verdict == Verdict::equal) return out;
    out.verdict = out.interval.high < 0  ? Verdict::second
                  : out.interval.low > 0 ? Verdict::first
                                         : Verdict::undecided;
    return out;
}

}  // namespace railyard
