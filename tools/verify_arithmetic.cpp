#include "tools/verify_arithmetic.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "sim/statistics.h"

namespace railyard {

namespace {

// The numbers in a text, in order: "p=4 m=8 v=6" gives 4, 8, 6.
std::vector<double> numbers_in(const std::string& text) {
    std::vector<double> out;
    const char* at = text.c_str();
    while (*at != 0) {
        char* end = nullptr;
        const bool starts = std::isdigit(static_cast<unsigned char>(*at)) != 0;
        const double value = starts ? std::strtod(at, &end) : 0;
        if (starts) out.push_back(value);
        at = starts ? end : at + 1;
    }
    return out;
}

// 74: training arithmetic, exact.
RowResult training_arithmetic(Bench& bench, const Fields& f) {
    const std::string& oracle = f.text("oracle");
    const std::string& config = f.text("config");
    const std::vector<double> n = numbers_in(config);
    const auto is = [&](const char* word) { return oracle.find(word) != std::string::npos; };
    const auto row = [&](double simulated) {
        return VerifiedRow{fmt::format("{}, {}", oracle, config), "", f.figure("value"), simulated};
    };
    if (is("pipeline bubble") && n.size() == 3) {
        // A model of equal stages, whose logits cost nothing, over a network that costs nothing.
        ParallelPlan p;
        p.pipeline = std::llround(n[0]);
        p.global_batch = std::llround(n[1]);
        p.interleave = std::llround(n[2]);
        p.sequence_length = 2048;
        TransformerModel m = gpt(p.pipeline * 6, 8192, 64, 0, 2048);
        Node node = bench.node("dgx_h100");
        node.gpu.kernel_gap = {};
        node.gpu.step_overhead = {};
        Communicators groups = bench.groups(node);
        const StepTime step = model_step(m, p, groups, bench.bytes(), 0);
        return row(seconds(step.bubble) / seconds(step.compute));
    }
    if (is("FLOPs/iteration") || is("parameter count")) {
        struct Dimensions {
            const char* name;
            std::int64_t layers, hidden, heads;
        };
        const Dimensions models[] = {{"22B", 48, 6144, 64},
                                     {"175B", 96, 12288, 96},
                                     {"530B", 105, 20480, 128},
                                     {"1T", 128, 25600, 160}};
        for (const Dimensions& d : models) {
            if (config.find(d.name) == std::string::npos) continue;
            const TransformerModel m = gpt(d.layers, d.hidden, d.heads, 51200, 2048);
            if (is("parameter count")) return row(m.params);
            const std::size_t batch = config.find("B=");
            if (batch == std::string::npos) return std::nullopt;
            ParallelPlan p;
            p.sequence_length = 2048;
            p.global_batch = std::atoll(config.c_str() + batch + 2);
            return row(is("no recompute") ? model_flops(m, p) : hardware_flops(m, p));
        }
    }
    if (is("E[max of n iid N(0,1)]") && n.size() == 1) {
        return row(expected_max_normal(std::llround(n[0])));
    }
    if (is("E[max of n iid exp(1)") && n.size() == 1) {
        double sum = 0;
        for (double i = 1; i <= n[0]; ++i) sum += 1 / i;
        return row(sum);
    }
    if (is("k-of-n availability") && n.size() == 3) {
        // P(at most n - need down), each down with probability n[2].
        double probability = std::pow(1 - n[2], n[0]);
        double sum = probability;
        for (double down = 1; down <= n[0] - n[1]; ++down) {
            probability *= (n[0] - down + 1) / down * n[2] / (1 - n[2]);
            sum += probability;
        }
        return row(sum);
    }
    if (is("MTTF of gang") && n.size() == 3) return row(24 / (n[0] * n[1] / n[2]));
    if (is("Weibull mean") && n.size() == 1) return row(1 / std::tgamma(1 + 1 / n[0]));
    return std::nullopt;
}

// 70: expected time under exponential failures. Simulated, so the error is a sample's.
RowResult renewal(Bench&, const Fields& f) {
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
RowResult queueing(Bench& bench, const Fields& f) {
    const std::optional<Summary> simulated = bench.queues().simulate(f);
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
RowResult alpha_beta(Bench&, const Fields& f) {
    const RingLink link{f.number("alpha_s"), f.number("bandwidth_Bps")};
    const std::int64_t n = f.integer("n");
    const double bytes = f.number("bytes");
    const std::string& name = f.text("collective");
    double time = 0;
    if (name == "ring all_reduce") {
        time = ring_all_reduce_seconds(n, bytes, link);
    } else if (name == "ring all_gather / reduce_scatter") {
        time = ring_all_gather_seconds(n, bytes, link);
    } else if (name == "recursive halving-doubling all_reduce") {
        time = halving_doubling_all_reduce_seconds(n, bytes, link);
    } else if (name == "pairwise alltoall") {
        time = pairwise_all_to_all_seconds(n, bytes, link);
    } else {
        return std::nullopt;
    }
    return VerifiedRow{fmt::format("{} n {} {} B", name, n, f.text("bytes")), "s",
                       f.figure("time_s"), time};
}

constexpr TableFormat formats[] = {
    {"70", "checkpoint and restart, renewal formula", renewal},
    {"71", "queues, as streams of jobs of one GPU", queueing},
    {"72", "collectives by alpha-beta", alpha_beta},
    {"74", "training arithmetic", training_arithmetic},
};

}  // namespace

std::span<const TableFormat> arithmetic_tables() {
    return formats;
}

}  // namespace railyard
