#include "tests/laws/oracles/packets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "sim/statistics.h"
#include "tests/laws/oracles/dcqcn_runs.h"
#include "tests/laws/oracles/ns3_runs.h"
#include "tests/laws/oracles/uet_runs.h"
#include "tools/program/pattern.h"

namespace railyard {

namespace {

// Who marks at random is run so often, and the median is shown: the published figures are one draw each.
constexpr int draws = 9;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// ---- 44: ns-3 ----

// Every number of "48.047 / 48.289", "~ 7-10", "size 0-10000": a sign is one that no digit comes before.
std::vector<double> numbers_in(const std::string& text) {
    std::vector<double> out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) continue;
        const bool negative =
            at > 0 && text[at - 1] == '-' &&
            (at < 2 || std::isalnum(static_cast<unsigned char>(text[at - 2])) == 0);
        std::size_t length = 0;
        const double value = std::stod(text.substr(at), &length);
        out.push_back(negative ? -value : value);
        at += length;
    }
    return out;
}

class Ns3Table {
  public:
    explicit Ns3Table(std::string folder) : folder_(std::move(folder)) {}
    void add(const Fields& f, std::vector<VerifiedRow>& out);

  private:
    const Metrics& metrics(const std::string& experiment, const std::string& cc,
                           const std::string& parameter);
    Metrics one_draw(const std::string& experiment, const Ns3Control& control,
                     const std::string& parameter, std::uint64_t seed) const;
    Metrics star(const std::string& experiment, const std::string& cc, const Ns3Control& control,
                 const std::string& sizes);

    std::string folder_;
    std::map<std::string, Metrics> known_;                 // by experiment, control, parameter
    std::map<std::string, std::vector<SizedFlow>> stars_;  // by experiment and control
};

// "websearch_star16_25G_load0.5", "size 10000-100000": the trace is of load 0.5.
Metrics Ns3Table::star(const std::string& experiment, const std::string& cc,
                       const Ns3Control& control, const std::string& sizes) {
    const Found found = match_pattern(experiment, "websearch_star(\\d+)_(\\d+)G_load0\\.5");
    const std::vector<double> bounds = numbers_in(sizes);
    if (found.empty() || bounds.size() != 2) return {};
    const auto [at, is_new] = stars_.try_emplace(experiment + " " + cc);
    if (is_new) {
        at->second = star_slowdowns(control, std::stoi(found[1]), std::stoi(found[2]),
                                    folder_ + "/traces/ns3_websearch_flows.csv");
    }
    std::vector<double> slowdowns;
    for (const SizedFlow& flow : at->second) {
        if (flow.bytes >= bounds[0] && flow.bytes < bounds[1]) {
            slowdowns.push_back(flow.slowdown);
        }
    }
    if (slowdowns.empty()) return {};
    std::sort(slowdowns.begin(), slowdowns.end());
    Metrics out = {{"count", static_cast<double>(slowdowns.size())},
                   {"slowdown_mean", mean(slowdowns)}};
    for (const double percent : {1, 5, 10, 25, 50, 75, 90, 95, 99}) {
        out[fmt::format("p{}", percent)] = sorted_quantile(slowdowns, percent / 100);
    }
    return out;
}

Metrics Ns3Table::one_draw(const std::string& experiment, const Ns3Control& control,
                           const std::string& parameter, std::uint64_t seed) const {
    const std::vector<double> given = numbers_in(parameter);
    constexpr double most = 256;  // of senders, or hops
    if (given.size() != 1 || given[0] < 0 || given[0] > most) return {};
    const int n = static_cast<int>(given[0]);
    if (experiment == "pfc_victim") return pfc_victim(control, n, seed);
    if (n == 0) return {};
    if (experiment == "incast") return incast(control, n, seed);
    if (experiment == "dumbbell") return dumbbell(control, n, seed);
    if (experiment == "parking_lot") return parking_lot(control, n, seed);
    return {};
}

const Metrics& Ns3Table::metrics(const std::string& experiment, const std::string& cc,
                                 const std::string& parameter) {
    const auto [at, is_new] = known_.try_emplace(experiment + " " + cc + " " + parameter);
    Metrics& out = at->second;
    const auto control = Ns3Control::of(cc);
    if (!is_new || !control) return out;
    if (experiment.starts_with("websearch")) {
        return out = star(experiment, cc, *control, parameter);
    }
    std::map<std::string, std::vector<double>> all;
    const int runs = control->draws() ? draws : 1;
    for (int seed = 1; seed <= runs; ++seed) {
        const Metrics one =
            one_draw(experiment, *control, parameter, static_cast<std::uint64_t>(seed));
        if (one.empty()) return out;
        for (const auto& [metric, value] : one) all[metric].push_back(value);
    }
    for (auto& [metric, values] : all) out[metric] = median(std::move(values));
    return out;
}

// Unlike things are told apart: rates, completion times, queues; and what has no congestion control is exact.
std::string quantity_44(const std::string& metric, const std::string& cc) {
    const char* control = cc.starts_with("pfc_only") ? "PFC only"
                          : cc.starts_with("hpcc")   ? "HPCC"
                                                     : "DCQCN";
    const auto kind = [&]() -> std::string {
        if (metric.find("gbps") != std::string::npos) return "Gbit/s";
        if (metric.starts_with("fct") || metric.starts_with("ideal")) return "completion, us";
        if (metric.starts_with("q_")) return "queue, kB";
        if (metric.starts_with("pfc")) return "pauses";
        if (metric == "count") return "flows";
        if (metric == "jain") return "fairness";
        return "slowdown";
    };
    return fmt::format("{}, {}", control, kind());
}

void Ns3Table::add(const Fields& f, std::vector<VerifiedRow>& out) {
    const std::string& metric = f.text("metric");
    const std::string& cc = f.text("cc");
    const Metrics& ran = metrics(f.text("experiment"), cc, f.text("parameter"));
    const std::string name =
        fmt::format("{} {} {} {}", f.text("experiment"), cc, f.text("parameter"), metric);
    const auto put = [&](const std::string& row, const std::string& key, double published) {
        const auto found = ran.find(key);
        if (found == ran.end()) return;
        out.push_back({row, quantity_44(metric, cc), published, found->second});
    };
    if (metric == "cross_gbps") {  // one for each hop
        const std::vector<double> published = numbers_in(f.text("value"));
        for (std::size_t i = 0; i < published.size(); ++i) {
            put(fmt::format("{} {}", name, i + 1), fmt::format("cross_gbps {}", i + 1),
                published[i]);
        }
        return;
    }
    put(name, metric.starts_with("ideal_us") ? "ideal_us" : metric, f.figure("value"));
}

// ---- 45: the Ultra Ethernet Consortium's simulator ----

class UetTable {
  public:
    explicit UetTable(std::string folder) : folder_(std::move(folder)) {}
    void add(const Fields& f, std::vector<VerifiedRow>& out);

  private:
    std::string folder_;
    std::map<std::string, Metrics> known_;
};

// All draw: of entropy values, marks and what is trimmed.
void UetTable::add(const Fields& f, std::vector<VerifiedRow>& out) {
    constexpr int uet_draws = 3;
    const UetCase given = {f.text("case"), f.text("cc"), f.text("path"), f.text("trimming")};
    const std::string name =
        fmt::format("{} {} {} {}", given.traffic, given.control, given.path, given.trimming);
    const auto [at, is_new] = known_.try_emplace(name);
    if (is_new) {
        std::map<std::string, std::vector<double>> all;
        for (int seed = 1; seed <= uet_draws; ++seed) {
            for (const auto& [metric, value] :
                 uet_run(given, folder_, static_cast<std::uint64_t>(seed))) {
                all[metric].push_back(value);
            }
        }
        for (auto& [metric, values] : all) at->second[metric] = median(std::move(values));
    }
    const std::string& metric = f.text("metric");
    const auto found = at->second.find(metric);
    if (found == at->second.end()) return;
    const char* quantity = metric == "retransmitted" ? "sent again, packets" : "completion, us";
    out.push_back({name + " " + metric, quantity, f.figure("value"), found->second});
}

// ---- 43: DCQCN's own figures, links of 40 Gbit/s ----

std::string text_after(const std::string& text, std::string_view word) {
    const std::size_t at = text.find(word);
    return at == std::string::npos ? "" : text.substr(at + word.size());
}

void add_near_and_far(const std::string& item, const std::string& value, bool controlled,
                      std::vector<VerifiedRow>& out) {
    const std::vector<double> rates = near_and_far_rates(controlled, 3);
    const double far = mean({rates.begin() + 1, rates.end()});
    const std::vector<double> of_near = numbers_in(text_after(value, "H4"));
    const std::vector<double> of_far = numbers_in(text_after(value, "H3"));
    if (mentions(value, "H4") && mentions(value, "H1-H3") && of_far.size() >= 2) {
        out.push_back({item + ", H4", "Gbit/s", of_near[0], rates[0]});
        out.push_back({item + ", H1-H3", "Gbit/s", of_far[0], far, Published::at_least});
        out.push_back({item + ", H1-H3", "Gbit/s", of_far[1], far, Published::at_most});
        return;
    }
    const std::vector<double> each = numbers_in(value);
    if (each.empty()) return;
    for (std::size_t i = 0; i < rates.size(); ++i) {
        const std::size_t host = i == 0 ? rates.size() : i;
        out.push_back({fmt::format("{}, H{}", item, host), "Gbit/s", each[0], rates[i]});
    }
}

// Figures 4 and 9: "0 extra senders".
void add_victim(const std::string& item, const std::string& value, bool controlled,
                std::vector<VerifiedRow>& out) {
    const Found extra = find_pattern(item, "(\\d+) extra");
    const std::vector<double> published = numbers_in(value);
    if (published.empty()) return;
    const int senders = extra.empty() ? 0 : std::stoi(extra[1]);
    out.push_back({item, "Gbit/s", published[0], victim_rate(controlled, senders)});
}

// "5 KB / 200 KB / 1% / 1/256 / 55 us / 10 MB": what the catalogue has for the same names.
void add_parameters(const std::string& item, const std::string& value,
                    std::vector<VerifiedRow>& out) {
    const Found found = find_pattern(
        value,
        "([\\d.]+) KB / ([\\d.]+) KB / ([\\d.]+) ?% / 1/(\\d+) / ([\\d.]+) us / ([\\d.]+) MB");
    if (found.empty()) return;
    DcqcnTestbed testbed;
    const DcqcnSpec d = testbed.dcqcn_spec();
    const std::pair<const char*, double> ours[] = {
        {"Kmin, KB", static_cast<double>(testbed.ecn.kmin_bytes) * 1e-3},
        {"Kmax, KB", static_cast<double>(testbed.ecn.kmax_bytes) * 1e-3},
        {"Pmax, %", testbed.ecn.pmax * 100},
        {"1/g", 1 / d.g},
        {"timer, us", static_cast<double>(d.increase_timer.count()) / us},
        {"byte counter, MB", static_cast<double>(d.byte_counter) * 1e-6}};
    for (std::size_t i = 0; i < std::size(ours); ++i) {
        out.push_back({fmt::format("{}, {}", item, ours[i].first), "parameter",
                       std::stod(found[i + 1]), ours[i].second});
    }
}

void add_published_figure(const Fields& f, std::vector<VerifiedRow>& out) {
    const std::string item = f.text("source_item") + ", " + f.text("setup");
    const std::string& value = f.text("published_value");
    if (!item.starts_with("DCQCN")) return;
    const auto figure = [&](const char* number) {
        return mentions(item, std::string("fig ") + number + " ");
    };
    const bool controlled = !mentions(item, "PFC only");
    if (figure("3") || figure("8")) add_near_and_far(item, value, controlled, out);
    if (figure("4") || figure("9")) add_victim(item, value, controlled, out);
    if (mentions(item, "DCQCN params (40G)")) add_parameters(item, value, out);
}

// ---- 42: a burst past a bystander ----

void add_burst(const Fields& f, std::vector<VerifiedRow>& out) {
    static const std::vector<BurstRun> runs = [] {
        std::vector<BurstRun> all;
        for (int seed = 1; seed <= draws; ++seed) {
            all.push_back(burst_past_bystander(static_cast<std::uint64_t>(seed)));
        }
        return all;
    }();
    const std::string& what = f.text("quantity");
    const std::vector<double> value = numbers_in(f.text("value"));
    if (value.empty()) return;
    const auto put = [&](double BurstRun::*figure) {
        std::vector<double> ran;
        for (const BurstRun& run : runs) ran.push_back(run.*figure);
        out.push_back({what, f.text("unit"), mean(value), median(std::move(ran))});
    };
    if (what.starts_with("F1 mean rate before")) put(&BurstRun::bystander_before);
    if (what.starts_with("F2 mean rate before")) put(&BurstRun::other_before);
    if (what.starts_with("F1 CC-rate drop")) put(&BurstRun::bystander_least);
    if (what.starts_with("link under-utilised")) put(&BurstRun::underused_ms);
    if (what.starts_with("PFC-dominated phase")) put(&BurstRun::paused_ms);
}

}  // namespace

std::optional<VerifiedTable> verify_packets(const CsvTable& table) {
    VerifiedTable out{table.name, "", table.rows.size()};
    if (table.name.starts_with("42")) {
        out.what = "PFC and DCQCN in OMNeT++, a burst";
        each_row(table, out.unused, [&](const Fields& f) { add_burst(f, out.expressed); });
    } else if (table.name.starts_with("43")) {
        out.what = "DCQCN's paper, figures";
        each_row(table, out.unused,
                 [&](const Fields& f) { add_published_figure(f, out.expressed); });
    } else if (table.name.starts_with("44")) {
        out.what = "ns-3: PFC, DCQCN, HPCC";
        Ns3Table runs(table.folder);
        each_row(table, out.unused, [&](const Fields& f) { runs.add(f, out.expressed); });
    } else if (table.name.starts_with("45")) {
        out.what = "Ultra Ethernet's public simulator";
        UetTable runs(table.folder);
        each_row(table, out.unused, [&](const Fields& f) { runs.add(f, out.expressed); });
    } else {
        return std::nullopt;
    }
    return out;
}

}  // namespace railyard
