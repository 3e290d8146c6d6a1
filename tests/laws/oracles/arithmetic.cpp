#include "tests/laws/oracles/arithmetic.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "sim/statistics.h"
#include "tests/laws/oracles/alpha_beta.h"
#include "tests/laws/oracles/bench.h"
#include "tests/laws/oracles/queueing.h"

namespace railyard {

namespace {

// A GPT by its dimensions; parameters as Megatron's formula counts them (arXiv:2104.04473, eq. 2).
TransformerModel gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                     std::int64_t vocab, std::int64_t sequence) {
    TransformerModel m;
    m.layers = layers;
    m.hidden = hidden;
    m.ffn = 4 * hidden;
    m.heads = heads;
    m.kv_heads = heads;
    m.head_dim = heads > 0 ? hidden / heads : 0;
    m.value_dim = m.head_dim;
    m.vocab = vocab;
    m.sequence_length = sequence;
    m.tied_embedding = m.linear_bias = m.norm_bias = true;
    m.learned_positions = sequence;
    return m;
}

// Megatron counts the recomputed forward pass as work too: its "96 B s l h^2".
double hardware_flops(const TransformerModel& m, const ParallelPlan& p) {
    const double logits = 2.0 * static_cast<double>(m.hidden) * static_cast<double>(m.vocab) *
                          static_cast<double>(p.global_batch * p.sequence_length);
    return (model_flops(m, p) - 3 * logits) * 4 / 3 + 3 * logits;
}

using Groups =
    std::vector<std::string>;  // of a row's config, as its oracle's pattern leaves them open

double bubble(Bench& bench, const Groups& g) {
    // A model of equal stages, whose logits cost nothing, over a network that costs nothing.
    ParallelPlan p;
    p.pipeline = std::stoll(g[0]);
    p.global_batch = std::stoll(g[1]);
    p.interleave = std::stoll(g[2]);
    p.sequence_length = 2048;
    TransformerModel m = gpt(p.pipeline * 6, 8192, 64, 0, 2048);
    Node node = bench.node("dgx_h100");
    node.gpu.kernel_gap = {};
    node.gpu.step_overhead = {};
    Communicators groups = bench.groups(node);
    const StepTime step = model_step(m, p, groups, bench.bytes(), 0);
    return seconds(step.bubble) / seconds(step.compute);
}

struct Dimensions {
    const char* name;
    std::int64_t layers, hidden, heads;
};
constexpr Dimensions megatron_models[] = {{"22B", 48, 6144, 64},
                                          {"175B", 96, 12288, 96},
                                          {"530B", 105, 20480, 128},
                                          {"1T", 128, 25600, 160}};

TransformerModel megatron(const std::string& name) {
    for (const Dimensions& d : megatron_models) {
        if (name == d.name) return gpt(d.layers, d.hidden, d.heads, 51200, 2048);
    }
    throw RowError{"config", fmt::format("no model {}", name)};
}

ParallelPlan batch_of(const Groups& g) {
    ParallelPlan p;
    p.sequence_length = 2048;
    p.global_batch = std::stoll(g[1]);
    return p;
}

double flops_with_recompute(Bench&, const Groups& g) {
    return hardware_flops(megatron(g[0]), batch_of(g));
}

double flops(Bench&, const Groups& g) {
    return model_flops(megatron(g[0]), batch_of(g));
}

double parameters(Bench&, const Groups& g) {
    return parameter_count(
        gpt(std::stoll(g[0]), std::stoll(g[1]), 64, std::stoll(g[2]), std::stoll(g[3])));
}

// P(at most n - need down), each down with the same probability.
double availability(Bench&, const Groups& g) {
    const double n = std::stod(g[0]);
    const double need = std::stod(g[1]);
    const double down_share = std::stod(g[2]);
    double probability = std::pow(1 - down_share, n);
    double sum = probability;
    for (double down = 1; down <= n - need; ++down) {
        probability *= (n - down + 1) / down * down_share / (1 - down_share);
        sum += probability;
    }
    return sum;
}

double gang_mttf_h(Bench&, const Groups& g) {
    return 24 / (std::stod(g[0]) * std::stod(g[1]) / 1000);
}

double weibull_scale(Bench&, const Groups& g) {
    return 1 / std::tgamma(1 + 1 / std::stod(g[0]));
}

double slowest_exponential(Bench&, const Groups& g) {
    double sum = 0;
    for (double i = 1; i <= std::stod(g[0]); ++i) sum += 1 / i;
    return sum;
}

double slowest_normal(Bench&, const Groups& g) {
    return expected_max_normal(std::stoll(g[0]));
}

struct Arithmetic {
    const char* oracle;
    const char* config;  // all of it
    const char* like;
    double (*simulated)(Bench&, const Groups&);
};
constexpr Arithmetic arithmetic[] = {
    {"pipeline bubble", "p=([1-9][0-9]{0,3}) m=([1-9][0-9]{0,3}) v=([1-9][0-9]{0,2})",
     "p=4 m=8 v=6", bubble},
    {"Megatron FLOPs/iteration (with activation recompute)",
     "(?:GPT-3 |MT )?(22B|175B|530B|1T) B=([0-9]{1,9})", "GPT-3 175B B=1536", flops_with_recompute},
    {"model FLOPs/iteration (no recompute)", "(?:GPT-3 |MT )?(22B|175B|530B|1T) B=([0-9]{1,9})",
     "GPT-3 175B B=1536", flops},
    {"Megatron parameter count",
     "(?:MT 1T|22B) l=([0-9]{1,6}) h=([0-9]{1,6}) V=([0-9]{1,9}) s=([0-9]{1,9})",
     "22B l=48 h=6144 V=51200 s=2048", parameters},
    {"k-of-n availability",
     "([0-9]{1,6}) nodes installed, ([0-9]{1,6}) needed, unavailability (0\\.[0-9]+)",
     "76 nodes installed, 72 needed, unavailability 0.007", availability},
    {"MTTF of gang", "([0-9]{1,9}) nodes, ([0-9.]+) per 1000 node-days",
     "128 nodes, 6.5 per 1000 node-days", gang_mttf_h},
    {"Weibull mean 1 scale", "shape ([0-9.]+)", "shape 1.5", weibull_scale},
    {"straggler: E[max of n iid exp(1) delays]", "n=([0-9]{1,6})", "n=8", slowest_exponential},
    {"straggler: E[max of n iid N(0,1)]", "n=([0-9]{1,6})", "n=512", slowest_normal},
};

// 74: training arithmetic, exact.
RowResult training_arithmetic(Bench& bench, QueueRuns&, const Fields& f) {
    for (const Arithmetic& each : arithmetic) {
        if (f.text("oracle") != each.oracle) continue;
        const Groups groups = f.groups("config", each.config, each.like);
        return VerifiedRow{fmt::format("{}, {}", each.oracle, f.text("config")), "",
                           f.figure("value"), each.simulated(bench, groups)};
    }
    return std::nullopt;
}

// 70: expected time under exponential failures. Simulated, so the error is a sample's.
RowResult renewal(Bench&, QueueRuns&, const Fields& f) {
    constexpr int segments = 2000;
    const std::string text = fmt::format(
        "[run]\nreplicas = 100\n[cluster]\nnodes = 1\n[storage]\nserver_write_bandwidth = \"1 "
        "GB/s\"\n"
        "[job]\nlength = \"{:.6f} s\"\n[job.step]\ntime = \"{} s\"\n[job.checkpoint]\nsize = \"{} "
        "GB\"\n"
        "interval = \"1 step\"\n[job.recovery]\nrestart = \"0 s\"\nrestore = \"{} s\"\n"
        "[[failures.cause]]\nname = \"any\"\nmtbf_job = \"{} s\"\ndetection = \"{} s\"\n",
        f.number("W_opt_s") * segments, f.number("W_opt_s"), f.number("C_s"), f.number("R_s"),
        f.number("M_s"), f.number("D_s"));
    const CampaignResult result = run_campaign(load_scenario(text, "oracle row"), {});
    // The last segment's checkpoint is not written: the job is done.
    const double wall = result.metric("wall_time").summary.mean + f.number("C_s");
    return VerifiedRow{fmt::format("M {} C {} D {} R {}", f.text("M_s"), f.text("C_s"),
                                   f.text("D_s"), f.text("R_s")),
                       "s per segment", f.figure("e_segment_at_opt_s"), wall / segments};
}

// 71: queues, as streams of jobs of one GPU. Simulated, so the error is a sample's.
RowResult queueing(Bench&, QueueRuns& queues, const Fields& f) {
    const std::optional<Summary> simulated = queues.simulate(f);
    if (!simulated) return std::nullopt;
    return VerifiedRow{fmt::format("{} c {} rho {} {}, {}", f.text("system"), f.text("servers"),
                                   f.text("rho"), f.text("service"), f.text("quantity")),
                       "",
                       f.figure("value"),
                       simulated->mean,
                       Published::figure,
                       simulated->ci95};
}

// 72: collectives by alpha-beta.
RowResult alpha_beta(Bench&, QueueRuns&, const Fields& f) {
    const RingLink link{f.number("alpha_s"), f.number("bandwidth_Bps")};
    const std::int64_t n = f.integer("n");
    const double bytes = f.number("bytes");
    const std::string& name = f.text("collective");
    double time = 0;
    if (name == "ring all_reduce") {
        time = ring_all_reduce_seconds(n, bytes, link);
    } else if (name == "ring all_gather / reduce_scatter") {
        time = one_pass_seconds(n, bytes, link);
    } else if (name == "recursive halving-doubling all_reduce") {
        time = halving_doubling_all_reduce_seconds(n, bytes, link);
    } else if (name == "pairwise alltoall") {
        time = one_pass_seconds(n, bytes, link);
    } else {
        return std::nullopt;
    }
    return VerifiedRow{fmt::format("{} n {} {} B", name, n, f.text("bytes")), "s",
                       f.figure("time_s"), time};
}

struct Format {
    const char* number;  // the first two digits of the table's name
    const char* what;    // one line
    RowResult (*row)(Bench&, QueueRuns&, const Fields&);
};

constexpr Format formats[] = {
    {"70", "checkpoint and restart, renewal formula", renewal},
    {"71", "queues, as streams of jobs of one GPU", queueing},
    {"72", "collectives by alpha-beta", alpha_beta},
    {"74", "training arithmetic", training_arithmetic},
};

}  // namespace

std::optional<VerifiedTable> verify_arithmetic(const CsvTable& table) {
    for (const Format& format : formats) {
        if (!table.name.starts_with(format.number)) continue;
        VerifiedTable out{table.name, format.what, table.rows.size()};
        Bench bench;
        QueueRuns queues;
        each_row(table, out.unused, [&](const Fields& f) {
            if (const RowResult result = format.row(bench, queues, f)) {
                out.expressed.push_back(*result);
            }
        });
        bench.check();
        return out;
    }
    return std::nullopt;
}

}  // namespace railyard
