#include "tools/verify/published_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/program/pattern.h"

namespace railyard {

namespace {

// ---- the words of a row ------------------------------------------------------------------------------

std::string lower_text(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

// The count that the pattern's only group finds; 0 without one.
std::int64_t count_in(const std::string& text, const char* pattern) {
    const Found found = find_pattern(text, pattern);
    return found.empty() ? 0 : std::stoll(found[1]);
}

// The letters and digits of a name, apart by what is between them: "H100-SXM5-80GB" is h100, sxm5, 80gb.
std::set<std::string> tokens_of(const std::string& name) {
    std::set<std::string> out;
    std::string token;
    for (const char c : lower_text(name) + " ") {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
            token += c;
        } else if (!token.empty()) {
            out.insert(token);
            token.clear();
        }
    }
    return out;
}

// ---- machine -----------------------------------------------------------------------------------------

// The node with a GPU of this name: of those whose words fit best, the first of the catalogue.
std::optional<std::string> node_with(const std::string& gpu) {
    std::set<std::string> wanted = tokens_of(gpu);
    std::optional<std::string> best;
    double most = 0;
    for (const std::string& node : Catalogue::names("node")) {
        const Value* entry = Catalogue::entry("node", node);
        const std::string id = entry->find("gpu")->text;
        const Value* own = Catalogue::entry("gpu", id);
        const std::set<std::string> has = tokens_of(id + " " + own->find("name")->text);
        const std::string family = id.substr(0, id.find('_'));
        if (!wanted.contains(family)) continue;
        double points = 1;
        for (const std::string& word : wanted) points += has.contains(word) ? 1 : 0;
        if (points > most) {
            most = points;
            best = node;
        }
    }
    return best;
}

// GPUs of a rack that a job's replicas fill evenly, by whole trays.
std::int64_t even_domain(std::int64_t gpus, std::int64_t domain, std::int64_t tray) {
    if (gpus <= domain) return gpus;
    for (std::int64_t size = domain; size > tray; --size) {
        if (size % tray == 0 && gpus % size == 0) return size;
    }
    return tray;
}

Node node_of(Bench& bench, const Fields& f) {
    const std::optional<std::string> name = node_with(f.text("gpu"));
    if (!name) {
        throw RowError{"gpu",
                       fmt::format("no node of the catalogue has a GPU '{}'", f.text("gpu"))};
    }
    Node node = bench.node(name->c_str());
    const double nics_per_gpu = static_cast<double>(node.nics) / static_cast<double>(node.gpus);
    const std::int64_t tray = std::max<std::int64_t>(1, f.integer("gpus_per_node"));
    const std::int64_t gpus = f.integer("gpus");
    const std::int64_t domain = std::max<std::int64_t>(1, f.integer("nvlink_domain"));
    node.gpus = domain > tray ? even_domain(gpus, domain, tray) : std::min(tray, gpus);
    node.nvlink_domain = std::min(node.gpus, domain);
    node.trays = std::max<std::int64_t>(1, node.gpus / tray);
    node.nics =
        std::max<std::int64_t>(1, std::llround(nics_per_gpu * static_cast<double>(node.gpus)));
    if (const double gbit = f.number("nic_gbit_per_gpu"); gbit > 0) {
        const double share = static_cast<double>(node.gpus) / static_cast<double>(node.nics);
        node.nic_line_rate = Bandwidth::bits_per_second(std::llround(1e9 * gbit * share));
        node.nic_bandwidth = node.nic_line_rate * node.wire_share;
    }
    if (node.nvlink_domain == 1 && node.gpus > 1) {
        node.nvlink_domain = node.gpus;
        remove_nvlink(node);
    }
    return node;
}

// ---- model -------------------------------------------------------------------------------------------

TransformerModel model_of(const Fields& f) {
    const std::string notes = lower_text(f.text("notes"));
    const std::string name = lower_text(f.text("case") + " " + f.text("model"));
    TransformerModel m;
    m.name = f.text("model");
    m.layers = f.integer("layers");
    m.hidden = f.integer("hidden");
    m.heads = f.integer("heads");
    const auto or_else = [&](const char* column, std::int64_t otherwise) {
        return f.text(column).empty() ? otherwise : f.integer(column);
    };
    m.glu = f.integer("gated_mlp") == 1;
    m.ffn = or_else("ffn_hidden", 4 * m.hidden);
    m.kv_heads = or_else("kv_heads", m.heads);
    m.head_dim = or_else("head_dim", m.heads > 0 ? m.hidden / m.heads : 0);
    m.value_dim = m.head_dim;
    m.vocab = f.integer("vocab");
    m.sequence_length = f.integer("seq");
    m.tied_embedding = m.linear_bias = m.norm_bias = !m.glu && m.kv_heads == m.heads;
    m.experts = f.integer("experts");
    m.topk = f.integer("top_k");
    m.expert_ffn = or_else("moe_ffn", m.ffn);
    m.shared_experts = f.integer("shared_experts");
    if (mentions(notes, "mla (")) {
        m.query_rank = count_in(notes, "q_lora ([0-9]+)");
        m.kv_rank = count_in(notes, "kv_lora ([0-9]+)");
        m.rotary_dim = count_in(notes, "qk [0-9]+\\+([0-9]+)");
        m.head_dim = count_in(notes, "qk ([0-9]+)\\+") + m.rotary_dim;
        m.value_dim = count_in(notes, "[^a-z]v ([0-9]+)");
    }
    // DeepSeek's routers are the ones that are limited so.
    if (m.kv_rank > 0 && m.experts == 256) m.nodes_per_token = 4;
    if (m.experts > 0) m.dense_layers = count_in(notes, "first ([0-9]+) layers dense");
    if (mentions(notes, "alternating sliding window")) {
        m.window = count_in(notes, "sliding window ([0-9]+)");
        m.full_attention_every = 2;
    }
    const bool without = mentions(name, "womtp") || mentions(notes, "no mtp");
    const bool with = mentions(name, "wmtp") || mentions(notes, "with mtp");
    m.mtp_layers = with || (m.kv_rank > 0 && !without && mentions(name, "deepseek-v3")) ? 1 : 0;
    return m;
}

// ---- plan --------------------------------------------------------------------------------------------

int zero_stage(const std::string& sharding) {
    if (mentions(sharding, "zero3")) return 3;
    if (mentions(sharding, "zero2")) return 2;
    return mentions(sharding, "none") ? 0 : 1;
}

void read_recompute(const std::string& words, const TransformerModel& m, std::int64_t stage,
                    ParallelPlan& p) {
    p.recompute = Recompute::selective;  // what fused attention does anyway
    if (words.starts_with("full")) {
        p.recompute = Recompute::full;
        p.recompute_layers = count_in(words, "full:([0-9]+)");
    } else if (words == "selective (op)") {
        p.recompute = Recompute::alternate;
    } else if (words == "selective (layer)") {
        p.recompute = Recompute::full;
        p.recompute_layers = std::max<std::int64_t>(1, stage / 2);
    } else if (mentions(words, "save_qkv_proj")) {
        // All but attention's first products.
        p.recompute_parts =
            recompute_norms | recompute_activation | recompute_attention | recompute_feed_forward;
    } else if (words.starts_with("modules:")) {
        const std::pair<const char*, unsigned> parts[] = {
            {"layernorm", recompute_norms},
            {"moe_act", recompute_activation},
            {"mla_up_proj", recompute_latent_up},
            {"mlp", m.experts > 0 ? 0U : recompute_feed_forward}};
        for (const auto& [word, part] : parts) {
            if (mentions(words, word)) p.recompute_parts |= part;
        }
        if (!find_pattern(words, "moe(\\+|$)").empty()) {
            p.recompute_parts |= recompute_experts;
        }
    }
}

void read_overlap(const std::string& words, ParallelPlan& p) {
    if (words.empty()) return;
    const auto has = [&](const char* pattern) { return !find_pattern(words, pattern).empty(); };
    p.overlap_tensor = has("(^|\\+)tp(\\+|$)");
    p.overlap_data = has("(^|\\+)(dp|fsdp)");
    p.overlap_pipeline = has("pp_p2p");
    p.overlap_expert = has("(moe_a2a|ep_a2a)");
}

// Layers by stage where they don't divide: as even as can be, fewer where the embedding and the losses are.
void split_layers(const TransformerModel& m, ParallelPlan& p) {
    if (p.pipeline == 1 || (layers_split(m, p) && m.mtp_layers == 0)) return;
    if (p.pipeline > m.layers) {
        throw RowError{"pp", fmt::format("{} layers on {} stages", m.layers, p.pipeline)};
    }
    // In layers: what the last stage has besides.
    const double layer =
        forward_flops_per_token(m, p.sequence_length) / static_cast<double>(m.layers);
    const double head = 2 * static_cast<double>(m.hidden * m.vocab) / layer;
    const double besides =
        static_cast<double>(1 + m.mtp_layers) * head + static_cast<double>(m.mtp_layers);
    const double mean = (static_cast<double>(m.layers) + besides) / static_cast<double>(p.pipeline);
    const std::int64_t last = std::max<std::int64_t>(0, std::llround(mean - besides));
    const std::int64_t others = p.pipeline - 1;
    p.stage_layers.assign(static_cast<std::size_t>(others), (m.layers - last) / others);
    for (std::int64_t i = 0; i < (m.layers - last) % others; ++i) {
        p.stage_layers[static_cast<std::size_t>(others - 1 - i)]++;
    }
    p.stage_layers.push_back(last);
}

std::optional<Precision> precision_of(const Fields& f, const Software& software, const Gpu& gpu) {
    const std::string& word = f.text("precision");
    const std::string notes = lower_text(f.text("notes"));
    if (word == "bf16" || word == "fp16") return Precision::bf16;
    // Blocks of 32 on a GPU without multipliers for them are 128 x 128 in software.
    if (word == "mxfp8") {
        return gpu.mxfp8_achievable.per_second > 0 ? Precision::mxfp8 : Precision::fp8_current;
    }
    if (word == "nvfp4") return Precision::nvfp4;
    if (word != "fp8") return std::nullopt;
    if (mentions(notes, "rowwise")) return Precision::fp8_rowwise;
    if (mentions(notes, "delayed")) return Precision::fp8;
    if (mentions(notes, "tensorwise")) return Precision::fp8_current;
    return software.fp8;
}

ParallelPlan plan_of(const Fields& f, const TransformerModel& m, const Software& software,
                     const Gpu& gpu) {
    const std::string notes = lower_text(f.text("notes"));
    const std::string name = lower_text(f.text("case"));
    ParallelPlan p;
    const auto one = [&](const char* column) {
        return std::max<std::int64_t>(1, f.integer(column));
    };
    p.tensor = one("tp");
    p.pipeline = one("pp");
    p.interleave = one("vpp");
    p.context = one("cp");
    p.expert = m.experts > 0 ? one("ep") : 1;
    p.sequence_length = f.integer("seq");
    const std::int64_t gpus = f.integer("gpus");
    p.data = f.text("dp").empty() ? data_ranks(p, gpus) : f.integer("dp");
    if (p.tensor * p.pipeline * p.context * p.data != gpus) {
        // Some sources count the context ranks within the data-parallel ones.
        p.data = data_ranks(p, gpus);
    }
    p.microbatch = one("microbatch");
    p.global_batch = f.integer("global_batch");
    const std::string sharding = lower_text(f.text("sharding"));
    p.zero = zero_stage(sharding);
    p.shard_ranks = count_in(sharding, "over ([0-9]+)");
    if (p.shard_ranks >= p.replica_ranks() ||
        p.replica_ranks() % std::max<std::int64_t>(1, p.shard_ranks) != 0) {
        p.shard_ranks = 0;
    }
    if (mentions(sharding, "frozen") || mentions(lower_text(f.text("model")), "lora") ||
        mentions(name, "lora")) {
        p.adapter_rank = std::max<std::int64_t>(16, count_in(sharding, "rank ([0-9]+)"));
    }
    split_layers(m, p);
    read_recompute(lower_text(f.text("recompute")), m, layers_per_stage(m, p), p);
    take_habits(software, p);
    read_overlap(lower_text(f.text("overlap")), p);
    // A graph of the router and attention leaves the experts' many kernels to the CPU.
    const bool partial = mentions(notes, "moe_router") && m.experts > 0;
    p.cuda_graphs = software.cuda_graphs || (mentions(notes, "cuda graph") && !partial);
    p.fold_experts = software.fold_experts && p.expert > 1;
    if (mentions(notes, "hybridep") || mentions(notes, "deepep")) {
        p.dispatch = ExpertDispatch::two_stage;
    }
    const std::optional<Precision> precision = precision_of(f, software, gpu);
    if (!precision) {
        throw RowError{"precision",
                       fmt::format("expected bf16, fp16, fp8, mxfp8 or nvfp4, found '{}'",
                                   f.text("precision"))};
    }
    p.precision = *precision;
    return p;
}

// What there is to check before a step is computed: sizes that a table can't mean.
void check_run(const TransformerModel& m, const ParallelPlan& p) {
    constexpr std::int64_t sequence_max = 10'000'000;
    if (p.sequence_length < 1 || p.sequence_length > sequence_max) {
        throw RowError{"seq", fmt::format("expected 1 to {} tokens, found {}", sequence_max,
                                          p.sequence_length)};
    }
    for (const auto& [column, size] :
         {std::pair("layers", m.layers), std::pair("hidden", m.hidden), std::pair("heads", m.heads),
          std::pair("vocab", m.vocab), std::pair("global_batch", p.global_batch),
          std::pair("microbatch", p.microbatch), std::pair("vpp", p.interleave),
          std::pair("dp", p.data)}) {
        if (size < 1 || size > plan_size_max) {
            throw RowError{column, fmt::format("expected 1 to {}, found {}", plan_size_max, size)};
        }
    }
    if (m.experts > 0 && (m.experts % p.expert != 0 || m.topk < 1 || m.topk > m.experts)) {
        throw RowError{"ep", fmt::format("{} experts, {} of them for a token, on {} ranks",
                                         m.experts, m.topk, p.expert)};
    }
    if (p.global_batch < p.data * p.microbatch) {
        throw RowError{"global_batch",
                       fmt::format("{} sequences for {} replicas", p.global_batch, p.data)};
    }
}

// ---- software ----------------------------------------------------------------------------------------

// The stack whose words are in the row's name, its notes or the table's sources: the longest word wins.
std::string software_of(const Fields& f, const std::string& about) {
    std::string best = "megatron_core_0_12";
    std::size_t longest = 0;
    const auto look = [&](const std::string& text) {
        for (const std::string& name : Catalogue::names("software")) {
            const Value* words = Catalogue::entry("software", name)->find("published_in");
            if (words == nullptr) continue;
            for (const Value& word : words->items) {
                const std::string& w = word.text;
                if (w.size() > longest && mentions(text, w)) {
                    longest = w.size();
                    best = name;
                }
            }
        }
    };
    look(f.text("case"));
    look(f.text("notes"));
    if (longest == 0) look(about);
    return best;
}

// Of one step, with the masked half of attention left out, as such tables count.
double causal_flops(const TransformerModel& m, const ParallelPlan& p) {
    const double masked = attended_tokens(m, p.sequence_length) *
                          (m.query_width() + m.value_width()) * static_cast<double>(m.layers);
    const double tokens =
        static_cast<double>(p.global_batch) * static_cast<double>(p.sequence_length);
    return model_flops(m, p) - 3 * masked * tokens;
}

RowResult run_of(Bench& bench, const Fields& f, const std::string& about) {
    Node node = node_of(bench, f);
    const Software software = read_software(bench.catalogue(), software_of(f, about), node.gpu);
    run_software(software, node);
    const TransformerModel m = model_of(f);
    if (m.layers == 0 || m.hidden == 0 || m.heads == 0) return std::nullopt;
    const ParallelPlan p = plan_of(f, m, software, node.gpu);
    check_run(m, p);
    if (node.gpu.achievable(p.precision).per_second == 0) {
        throw RowError{"precision",
                       fmt::format("{} has no {}", node.gpu.name, f.text("precision"))};
    }
    const CriticalPath path = bench.path(m, p, node);
    double step = 0;
    for (const PathPart& part : path) step += part.seconds;
    const double tokens =
        static_cast<double>(p.global_batch) * static_cast<double>(p.sequence_length);
    const std::string& metric = f.text("metric");
    const double gpus = f.number("gpus");
    VerifiedRow row{f.text("case"), f.text("metric") + ", " + f.text("unit"), f.figure("value")};
    row.software = software.id;
    const StepError error = read_step_error(bench.catalogue(), m.experts > 0, true, node.gpu);
    row.half = error.half;
    row.nine_tenths = error.nine_tenths;
    for (const PathPart& part : path) {
        if (part.seconds > 0) row.parts.emplace_back(part.name, part.seconds);
    }
    // Of a row that does not say what it recomputes nobody knows what it kept.
    if (!f.text("recompute").empty()) {
        for (const MemoryUse& use : memory_per_gpu(m, p, bench.bytes(), node.gpu)) {
            row.memory_bytes.emplace_back(use.component, use.bytes);
        }
        row.memory_capacity = static_cast<double>(node.gpu.usable_memory.count());
    }
    if (metric == "step_time") {
        row.simulated = step;
    } else if (metric == "tokens_per_s_per_gpu") {
        row.simulated = tokens / step / gpus;
    } else if (metric == "model_tflops_per_gpu") {
        row.simulated = causal_flops(m, p) / step / gpus * 1e-12;
    } else {
        return std::nullopt;
    }
    return row;
}

}  // namespace

std::optional<VerifiedTable> verify_published_runs(const CsvTable& table, const Value* overrides) {
    const auto has = [&](const char* column) {
        return std::find(table.columns.begin(), table.columns.end(), column) != table.columns.end();
    };
    for (const char* column : {"case", "model", "layers", "hidden", "gpu", "gpus", "tp", "pp",
                               "global_batch", "metric", "value"}) {
        if (!has(column)) return std::nullopt;
    }
    VerifiedTable out{table.name, "training runs, by model, machine, plan and software",
                      table.rows.size()};
    Bench bench(overrides);
    each_row(table, out.unused, [&](const Fields& f) {
        if (const RowResult result = run_of(bench, f, table.about)) {
            out.expressed.push_back(*result);
        }
    });
    bench.check();
    return out;
}

}  // namespace railyard
