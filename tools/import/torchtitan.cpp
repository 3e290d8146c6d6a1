// A training configuration of torchtitan, in TOML: the parallel plan, the batch, recomputation, checkpoints.
// The model is not in it: a flavour's name stands for code.

#include <fmt/format.h>

#include <set>

#include "tools/import/importers.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

class TorchTitan : private Importer {
  public:
    using Importer::Importer;

    void run() {
        document_ = parse_document(read_input(file_), file_, diagnostics_);
        diagnostics_.raise_if_any();
        const Value* plan = document_.root.find("parallelism");
        if (plan == nullptr || plan->kind != Value::Kind::table) {
            error(Position{}, "parallelism", "is missing: the plan of a torchtitan run",
                  "is this a train_configs/*.toml of torchtitan, before it became Python?");
            return;
        }
        part_.section("job.parallel");
        add_split();
        add_kernels();
        add_checkpoints();
        say_left_out();
    }

  private:
    const Value* find(const char* table, const char* key) {
        read_.insert(fmt::format("{}.{}", table, key));
        const Value* found = document_.root.find(table);
        return found != nullptr ? found->find(key) : nullptr;
    }

    std::string origin(const Value& at, const char* key) const {
        return fmt::format("{}:{}: {} = {}", file_, at.at.line, key,
                           at.kind == Value::Kind::string    ? at.text
                           : at.kind == Value::Kind::boolean ? (at.integer != 0 ? "true" : "false")
                                                             : fmt::format("{}", at.real));
    }

    // A whole number of at least 1; `otherwise` where the file has none, or -1, which means "the rest".
    std::int64_t count(const char* table, const char* key, std::int64_t otherwise) {
        const Value* value = find(table, key);
        if (value == nullptr || (value->kind == Value::Kind::integer && value->integer == -1)) {
            return otherwise;
        }
        constexpr std::int64_t most = 1'000'000;
        if (value->kind != Value::Kind::integer || value->integer < 1 || value->integer > most) {
            error(value->at, fmt::format("{}.{}", table, key),
                  fmt::format("expected 1 or more, found {}", value->describe()));
            return otherwise;
        }
        return value->integer;
    }

    void copy(const char* ours, const char* table, const char* key) {
        const std::int64_t found = count(table, key, 0);
        if (found > 0) part_.whole(ours, found, origin(*find(table, key), key));
    }

    void add_split() {
        copy("tensor", "parallelism", "tensor_parallel_degree");
        copy("pipeline", "parallelism", "pipeline_parallel_degree");
        copy("context", "parallelism", "context_parallel_degree");
        copy("expert", "parallelism", "expert_parallel_degree");
        add_sharding();
        const std::int64_t stages = count("parallelism", "pipeline_parallel_degree", 1);
        add_schedule(stages);
        add_batch(stages);
    }

    // FSDP2 shares all that there is, among all replicas or some.
    void add_sharding() {
        const Value* shard = find("parallelism", "data_parallel_shard_degree");
        const std::int64_t ranks = count("parallelism", "data_parallel_shard_degree", 0);
        const std::int64_t copies = count("parallelism", "data_parallel_replicate_degree", 1);
        const std::string key = "data_parallel_shard_degree";
        if (ranks == 1) return part_.value("zero", "0", origin(*shard, key.c_str()));
        part_.value("zero", "3",
                    shard != nullptr
                        ? origin(*shard, key.c_str())
                        : fmt::format("not in the file: {} = -1, torchtitan's default", key));
        if (shard == nullptr) part_.left_out("{}: -1, torchtitan's default", key);
        if (copies == 1) return;
        const Value* replicate = find("parallelism", "data_parallel_replicate_degree");
        if (ranks == 0) {
            return error(
                replicate->at, "parallelism.data_parallel_replicate_degree",
                fmt::format("{} groups share what -1 leaves, which hangs on the GPUs", copies),
                "write data_parallel_shard_degree as a number");
        }
        const std::int64_t context = count("parallelism", "context_parallel_degree", 1);
        part_.whole("shard_ranks", ranks * context, origin(*shard, key.c_str()) + ", x context");
    }

    void add_schedule(std::int64_t stages) {
        const Value* schedule = find("parallelism", "pipeline_parallel_schedule");
        if (stages == 1 || schedule == nullptr || schedule->text == "1F1B") return;
        // Those with two parts for each rank, whatever the model.
        const std::string origin_text = origin(*schedule, "pipeline_parallel_schedule");
        if (schedule->text == "ZBVZeroBubble") {
            return part_.value("schedule", "\"zero_bubble_v\"", origin_text);
        }
        if (schedule->text == "DualPipeV") {
            return part_.value("schedule", "\"dualpipe_v\"", origin_text);
        }
        error(schedule->at, "parallelism.pipeline_parallel_schedule",
              fmt::format("'{}' can't be imported: its virtual stages hang on the number of "
                          "layers, which is not in this file",
                          schedule->text),
              "import it as 1F1B, and give job.parallel.interleave beside it (and "
              "job.parallel.schedule = \"zero_bubble\" for InterleavedZeroBubble)");
    }

    void add_batch(std::int64_t stages) {
        const std::int64_t local = count("training", "local_batch_size", 0);
        const std::int64_t all = count("training", "global_batch_size", 0);
        if (stages > 1) {
            copy("microbatch", "parallelism", "pipeline_parallel_microbatch_size");
        } else if (local > 0) {
            copy("microbatch", "training", "local_batch_size");
        }
        if (all == 0) {
            part_.left_out(
                "training.global_batch_size: local_batch_size of each replica, the default");
        }
        if (all > 0) {
            copy("global_batch", "training", "global_batch_size");
        } else if (local > 0 && stages > 1) {
            const std::int64_t shard = count("parallelism", "data_parallel_shard_degree", 0);
            const std::int64_t copies = count("parallelism", "data_parallel_replicate_degree", 1);
            const Value* size = find("training", "local_batch_size");
            if (shard == 0) {
                return error(
                    size->at, "training.local_batch_size",
                    fmt::format("{} sequences of each replica, whose number hangs on the GPUs",
                                local),
                    "write global_batch_size, or data_parallel_shard_degree as a number");
            }
            part_.whole("global_batch", local * shard * copies,
                        origin(*size, "local_batch_size") + ", x replicas");
        }
        if (local == 0) part_.left_out("training.local_batch_size");
        copy("sequence_length", "training", "seq_len");
    }

    void add_kernels() {
        if (const Value* mode = find("activation_checkpoint", "mode")) {
            if (mode->text == "full" || mode->text == "none") {
                part_.value("recompute", fmt::format("\"{}\"", mode->text), origin(*mode, "mode"));
            } else {
                warning(mode->at, "activation_checkpoint.mode",
                        fmt::format("'{}' is by operation or by layer, which no plan can say",
                                    visible(mode->text)),
                        "job.parallel.recompute is left to you");
                part_.left_out("{} can't be said: job.parallel.recompute", origin(*mode, "mode"));
            }
        } else {
            part_.left_out("activation_checkpoint.mode");
        }
        const Value* async = find("parallelism", "enable_async_tensor_parallel");
        if (async != nullptr && async->kind == Value::Kind::boolean) {
            part_.value("overlap_tensor", async->integer != 0 ? "true" : "false",
                        origin(*async, "enable_async_tensor_parallel"));
        }
        const Value* converters = find("model", "converters");
        if (converters == nullptr) return;
        for (const Value& each : converters->items) {
            if (each.text != "float8") continue;
            part_.quoted("precision", "fp8",
                         fmt::format("{}:{}: converters has float8", file_, converters->at.line));
        }
    }

    void add_checkpoints() {
        const Value* enable = find("checkpoint", "enable");
        if (enable == nullptr) return part_.left_out("checkpoint.enable");
        part_.section("job.checkpoint");
        if (enable->integer == 0) {
            return part_.quoted("mode", "none", origin(*enable, "checkpoint.enable"));
        }
        const Value* mode = find("checkpoint", "async_mode");
        if (mode != nullptr) {
            part_.value("mode", mode->text == "disabled" ? "\"sync\"" : "\"async\"",
                        origin(*mode, "async_mode"));
        } else {
            part_.left_out("checkpoint.async_mode");
        }
        if (const std::int64_t steps = count("checkpoint", "interval", 0); steps > 0) {
            part_.value("interval", fmt::format("\"{} steps\"", steps),
                        origin(*find("checkpoint", "interval"), "interval"));
        }
    }

    void say_left_out() {
        const Value* name = find("model", "name");
        const Value* flavor = find("model", "flavor");
        part_.left_out("the model, whose shape is code: job.model for {} {}",
                       name != nullptr ? name->text : "it", flavor != nullptr ? flavor->text : "");
        part_.left_out("nodes and GPUs, which the launcher says");
        const Value* plan = document_.root.find("parallelism");
        for (const auto& [key, value] : plan->members) {
            if (!read_.contains("parallelism." + key)) {
                part_.note("Not expressed: {}", origin(value, key.c_str()));
            }
        }
    }

    Document document_;
    std::set<std::string> read_;
};

}  // namespace

Import import_torchtitan = run_importer<TorchTitan>;

}  // namespace railyard
