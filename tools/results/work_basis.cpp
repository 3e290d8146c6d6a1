#include "tools/results/work_basis.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/program/json_text.h"

namespace railyard {

WorkBasis work_of(const Scenario& s) {
    WorkBasis out;
    out.many_jobs = s.world != nullptr;
    out.gpu_cap = s.power.node.gpu.cap.value;
    out.gpu_count = s.gpus();
    out.tokens = s.tokens_per_step > 0;
    out.priced = s.cost.has_value();
    if (s.world) {
        for (const Node& node : s.world->nodes) out.gpus.push_back(node.gpu.id);
        out.modelled = std::ranges::any_of(s.world->models,
                                           [](const auto& model) { return model != nullptr; });
        out.counted = s.counts_work();
        out.alone = gpu_seconds_alone(s);
        out.load = ratio(out.alone, s.gpu_seconds(s.duration));
        return out;
    }
    out.gpus = {s.node.gpu.id};
    out.computing = seconds(s.job.step.compute) * static_cast<double>(s.job.gpus());
    if (out.tokens) out.computing /= static_cast<double>(s.tokens_per_step);
    return out;
}

std::string text_of(const WorkBasis& w) {
    return one_line(nlohmann::ordered_json{{"many_jobs", w.many_jobs},
                                           {"gpus", w.gpus},
                                           {"gpu_cap_w", w.gpu_cap},
                                           {"gpu_count", w.gpu_count},
                                           {"computing_gpu_s", w.computing},
                                           {"tokens", w.tokens},
                                           {"priced", w.priced},
                                           {"modelled", w.modelled},
                                           {"counted", w.counted},
                                           {"alone_gpu_s", w.alone},
                                           {"load", w.load}});
}

WorkBasis read_work(const std::string& text) {
    const nlohmann::json in = nlohmann::json::parse(text);
    WorkBasis out;
    in.at("many_jobs").get_to(out.many_jobs);
    in.at("gpus").get_to(out.gpus);
    in.at("gpu_cap_w").get_to(out.gpu_cap);
    in.at("gpu_count").get_to(out.gpu_count);
    in.at("computing_gpu_s").get_to(out.computing);
    in.at("tokens").get_to(out.tokens);
    in.at("priced").get_to(out.priced);
    in.at("modelled").get_to(out.modelled);
    in.at("counted").get_to(out.counted);
    in.at("alone_gpu_s").get_to(out.alone);
    in.at("load").get_to(out.load);
    return out;
}

}  // namespace railyard
