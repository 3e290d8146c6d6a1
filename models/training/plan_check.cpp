#include "models/training/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace railyard {

namespace {

using Problems = std::vector<PlanProblem>;

constexpr std::int64_t choices_max = 64;  // larger ones help nobody

std::string valid_divisors(std::int64_t n) {
    std::vector<std::int64_t> out;
    for (std::int64_t d = 1; d <= std::min(n, choices_max); ++d) {
        if (n % d == 0) out.push_back(d);
    }
    return fmt::format("valid: {}", fmt::join(out, ", "));
}

void check_sequence(const ParallelPlan& p, Problems& out) {
    const std::int64_t chunks = p.context > 1 ? 2 * p.context : 1;  // two each: masked work is even
    if (p.sequence_length % chunks != 0) {
        out.push_back(
            {"context",
             fmt::format("{} tokens don't divide into {} chunks, two for each of {} ranks",
                         p.sequence_length, chunks, p.context),
             ""});
    } else if (p.sequence_parallel && p.sequence_length / p.context % p.tensor != 0) {
        out.push_back({"sequence_length",
                       fmt::format("{} tokens of a rank don't divide by tensor = {}",
                                   p.sequence_length / p.context, p.tensor),
                       "or sequence_parallel = false"});
    }
}

void check_experts(const TransformerModel& m, const ParallelPlan& p, Problems& out) {
    if (p.expert > 1 && m.experts == 0) {
        out.push_back({"expert", fmt::format("{} has no experts", m.name), "expert = 1"});
    } else if (m.experts % p.expert != 0) {
        out.push_back({"expert",
                       fmt::format("{} experts don't divide by expert = {}", m.experts, p.expert),
                       valid_divisors(m.experts)});
    } else if (p.expert_replica_ranks() % p.expert != 0) {
        out.push_back(
            {"expert",
             fmt::format("{}context x data = {} ranks don't divide by expert = {}: experts are "
                         "shared among them",
                         p.fold_experts ? "tensor x " : "", p.expert_replica_ranks(), p.expert),
             ""});
    }
    // In an order with the pipeline in the middle only tensor ranks, or only data ranks, are neighbours.
    const bool by_tensor = p.order == RankOrder::tensor_pipeline_data;
    const bool by_data = p.order == RankOrder::data_pipeline_tensor;
    const std::int64_t neighbours = by_tensor ? p.tensor : p.replica_ranks();
    if (p.fold_experts && p.pipeline > 1 && p.tensor > 1 && p.replica_ranks() > 1 &&
        (by_tensor || by_data) && neighbours % p.expert != 0) {
        out.push_back({"order",
                       "folded expert ranks are tensor and data ranks, and this order puts the "
                       "pipeline between them",
                       "tensor_data_pipeline, or fold_experts = false"});
    }
}

void check_shards(const ParallelPlan& p, Problems& out) {
    if (p.shard_ranks == 0) return;
    if (p.replica_ranks() % p.shard_ranks != 0) {
        out.push_back({"shard_ranks",
                       fmt::format("context x data = {} ranks don't divide into groups of {}",
                                   p.replica_ranks(), p.shard_ranks),
                       ""});
    } else if (!p.fold_experts && p.shard_ranks % p.expert != 0) {
        out.push_back(
            {"shard_ranks",
             fmt::format("expected a multiple of expert = {}, found {}", p.expert, p.shard_ranks),
             ""});
    }
}

// Ranks of a context take a state's heads instead of its tokens.
void check_states(const TransformerModel& m, const ParallelPlan& p, Problems& out) {
    const StateMixer& state = m.state;
    const std::int64_t ranks = p.tensor * p.context;
    if (state.heads == 0 || count_layers(m).with(Mixer::state) == 0) return;
    if (state.groups % p.tensor != 0) {
        out.push_back({"tensor",
                       fmt::format("{} groups of heads with a state don't divide by tensor = {}",
                                   state.groups, p.tensor),
                       valid_divisors(state.groups)});
        return;
    }
    if (state.heads % ranks == 0) return;
    out.push_back({p.context > 1 ? "context" : "tensor",
                   fmt::format("{} heads with a state don't divide by {}{}", state.heads,
                               p.context > 1 ? "tensor x context = " : "tensor = ", ranks),
                   valid_divisors(state.heads)});
}

void check_images(const TransformerModel& m, const ParallelPlan& p, Problems& out) {
    const VisionEncoder& vision = m.vision;
    if (vision.layers == 0) return;
    if (vision.heads % p.tensor != 0) {
        out.push_back({"tensor",
                       fmt::format("{} heads of the vision encoder don't divide by tensor = {}",
                                   vision.heads, p.tensor),
                       valid_divisors(vision.heads)});
    }
    const double tokens = p.images * vision.tokens();
    if (tokens <= real(p.sequence_length)) return;
    out.push_back({"images",
                   fmt::format("{:g} images of {:g} tokens each are more than a sequence's {}",
                               p.images, vision.tokens(), p.sequence_length),
                   "or a longer sequence_length"});
}

void check_split(const TransformerModel& m, const ParallelPlan& p, Problems& out) {
    if (p.pipeline == 1 || layers_split(m, p)) return;
    if (!p.stage_layers.empty()) {
        out.push_back(
            {"stage_layers",
             fmt::format(
                 "expected {} counts that sum to {} layers, found {} that sum to {}", p.pipeline,
                 m.layers, p.stage_layers.size(),
                 std::accumulate(p.stage_layers.begin(), p.stage_layers.end(), std::int64_t{0})),
             ""});
        return;
    }
    const std::int64_t given = p.first_stage_layers + p.last_stage_layers;
    if (given > 0) {
        const std::int64_t others =
            p.pipeline - (p.first_stage_layers > 0 ? 1 : 0) - (p.last_stage_layers > 0 ? 1 : 0);
        out.push_back({"pipeline",
                       fmt::format("{} layers less {} on the ends leave {} for the {} other "
                                   "stages, which don't divide",
                                   m.layers, given, m.layers - given, others),
                       ""});
        return;
    }
    // The ends take what the others leave, when those have as many as they can.
    std::string help;
    for (std::int64_t each = (m.layers + p.pipeline - 1) / p.pipeline; each > 0 && help.empty();
         --each) {
        const std::int64_t ends = m.layers - each * (p.pipeline - 2);
        if (ends < 2) continue;
        help = fmt::format(
            "stage_layers = [\"even\"]; or first_stage_layers = {} and last_stage_layers = {} "
            "leave {} each",
            (ends + 1) / 2, ends / 2, each);
    }
    out.push_back({"pipeline",
                   fmt::format("{} layers don't divide by pipeline = {}, nor with one layer less "
                               "on the first and last stage",
                               m.layers, p.pipeline),
                   help});
}

void check_interleave(const TransformerModel& m, const ParallelPlan& p, Problems& out) {
    for (const auto& [key, count] : {std::pair("first_stage_layers", p.first_stage_layers),
                                     std::pair("last_stage_layers", p.last_stage_layers)}) {
        if (count % p.interleave != 0) {
            out.push_back(
                {key, fmt::format("{} layers don't divide by interleave = {}", count, p.interleave),
                 ""});
        }
    }
    const std::int64_t stage_layers = layers_per_stage(m, p);
    if (!p.stage_layers.empty() && p.pipeline > 1)
        return;  // its parts are as unequal as the stages
    if (p.interleave > 1 && (p.pipeline == 1 || stage_layers % p.interleave != 0)) {
        out.push_back(
            {"interleave",
             fmt::format("a stage of {} layers on each of {} GPUs has no {} equal virtual stages",
                         stage_layers, p.pipeline, p.interleave),
             p.pipeline == 1 ? "interleaving needs pipeline > 1" : valid_divisors(stage_layers)});
    } else if (p.interleave > 1 && p.microbatches() % p.pipeline != 0) {
        out.push_back(
            {"interleave",
             fmt::format(
                 "interleaving needs microbatches in multiples of pipeline = {}; a replica has {}",
                 p.pipeline, p.microbatches()),
             fmt::format("global_batch in multiples of {}, or interleave = 1",
                         p.pipeline * p.data * p.microbatch)});
    }
}

void check_schedule(const TransformerModel& m, const ParallelPlan& p, Problems& out) {
    constexpr auto plain = PipelineSchedule::one_forward_one_backward;
    if (p.pipeline == 1 || p.schedule == plain) return;
    const std::string& name = pipeline_schedule_names[static_cast<std::size_t>(p.schedule)];
    const auto refuse = [&](const char* key, const std::string& why, const std::string& help) {
        out.push_back({key, fmt::format("schedule = \"{}\" {}", name, why), help});
    };
    if (p.schedule != PipelineSchedule::zero_bubble && p.interleave > 1) {
        refuse("interleave",
               in_two_parts(p.schedule) ? "cuts each stage in two itself" : "has no virtual stages",
               "interleave = 1");
    }
    if (p.schedule != PipelineSchedule::zero_bubble && m.vision.layers > 0) {
        refuse(
            "schedule",
            fmt::format("is not modelled with a vision encoder: {}'s and the output matrix would "
                        "be on the same rank",
                        m.name),
            "1f1b or zero_bubble");
    }
    if (weight_copies(p.schedule) == 1) return;
    if (p.pipeline % 2 != 0) {
        refuse("pipeline", fmt::format("pairs its stages: {} are an odd number", p.pipeline),
               "an even number of stages");
    }
    if (p.zero >= 3) {
        refuse("zero", "keeps two stages' weights whole on each rank", "zero = 1");
    }
    if (p.shard_ranks > 0) {
        refuse("shard_ranks", "shares ZeRO's states over both ends of the pipeline",
               "leave shard_ranks out");
    }
}

}  // namespace

std::int64_t nearest_interleave(const TransformerModel& m, const ParallelPlan& p) {
    std::int64_t nearest = p.interleave;
    double least = std::numeric_limits<double>::max();
    ParallelPlan each = p;
    for (each.interleave = 1; each.interleave <= std::min(m.layers, choices_max);
         ++each.interleave) {
        Problems wrong;
        check_interleave(m, each, wrong);
        const double away = std::abs(std::log(real(each.interleave) / real(p.interleave)));
        if (!wrong.empty() || away >= least) continue;
        least = away;
        nearest = each.interleave;
    }
    return nearest;
}

std::vector<PlanProblem> plan_problems(const TransformerModel& m, const ParallelPlan& p) {
    Problems out;
    if (m.heads % p.tensor != 0) {
        out.push_back(
            {"tensor",
             fmt::format("{} attention heads don't divide by tensor = {}", m.heads, p.tensor),
             valid_divisors(m.heads)});
    }
    check_images(m, p, out);
    check_states(m, p, out);
    check_split(m, p, out);
    check_sequence(p, out);
    check_experts(m, p, out);
    check_shards(p, out);
    if (p.global_batch % (p.data * p.microbatch) != 0) {
        out.push_back({"global_batch",
                       fmt::format("{} sequences don't divide by data {} x microbatch {}",
                                   p.global_batch, p.data, p.microbatch),
                       ""});
    }
    check_interleave(m, p, out);
    check_schedule(m, p, out);
    return out;
}

}  // namespace railyard
