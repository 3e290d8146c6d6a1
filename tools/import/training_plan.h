#pragma once
// The plan of a training run as Megatron-LM's arguments say it, from whatever file they come.

#include <map>
#include <string>
#include <vector>

#include "tools/import/importers.h"

namespace railyard {

// An argument: its values, empty for a flag, and where it stands.
struct TrainingArgument {
    std::vector<std::string> values;
    std::string file;
    int line = 0;
    std::string note;  // "TP is 1 by default"
};

class TrainingPlan : protected Importer {
  public:
    using Importer::Importer;

  protected:
    using Arguments = std::map<std::string, TrainingArgument>;  // by name, with underscores

    // Writes [job.parallel] and [job.checkpoint].
    void add_plan();
    const TrainingArgument* find(const std::string& name);
    std::string origin(const std::string& name) const;
    // A whole number; reports what is none. 0 where it is not given.
    std::int64_t count(const std::string& name);

    Arguments arguments_;
    // ZeRO is not an argument everywhere: what the importer knows of it.
    int zero_ = 0;
    std::string zero_origin_;

  private:
    void copy(const char* ours, const char* theirs);
    void add_flag(const char* ours, const char* theirs, bool means);
    void add_interleave();
    void add_recompute();
    void add_offload();
    void add_parts();
    void add_overlap();
    void add_precision();
    void add_checkpoint();
    void say_rest();

    std::vector<std::string> read_;
};

}  // namespace railyard
