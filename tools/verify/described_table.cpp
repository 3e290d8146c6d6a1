#include "tools/verify/described_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "sim/cancel.h"
#include "sim/text.h"
#include "tools/program/installation.h"
#include "tools/program/lists.h"
#include "tools/program/program.h"
#include "tools/study/axis.h"
#include "tools/study/trials.h"
#include "tools/verify/nccl.h"
#include "tools/verify/table_description.h"

namespace railyard {

namespace described {

namespace {

// "memory_optimizer_state", as expressions have it.
std::string memory_name(const std::string& component) {
    std::string out = "memory_" + lower_case(component);
    std::ranges::replace(out, ' ', '_');
    return out;
}

// In bytes of a GPU; nothing for a name that is none of memory's.
std::optional<double> memory_of(const Trial& trial, const std::string& name) {
    if (name == "memory_per_gpu") return total_bytes(trial.memory);
    for (const MemoryUse& use : trial.memory) {
        if (memory_name(use.component) == name) return use.bytes;
    }
    return std::nullopt;
}

// A figure of the modelled step that is no metric of a campaign; nothing for another name.
double TrialStep::*step_figure(const std::string& name) {
    if (name == "model_flops") return &TrialStep::model_flops;
    if (name == "causal_flops") return &TrialStep::causal_flops;
    return nullptr;
}

constexpr std::string_view of_base = "base_";
constexpr std::string_view of_cause = "interruptions_";

// Interruptions by one cause, averaged over replicas; nothing for another name.
std::optional<double> interruptions_of(const Trial& trial, const std::string& name) {
    for (const auto& [cause, count] : trial.interruptions) {
        if (name == std::string(of_cause) + cause) return count;
    }
    return std::nullopt;
}

// What all nodes of a job read or write together, in bytes/s; nothing for another name.
using StoreFigure = Bandwidth (*)(const StoreLimits& limits, std::int64_t clients);
StoreFigure store_figure(const std::string& name) {
    if (name == "store_read_bandwidth") return read_bandwidth;
    if (name == "store_write_bandwidth") return write_bandwidth;
    return nullptr;
}

bool is_metric(const std::string& name) {
    return !name.starts_with("memory_") && !name.starts_with(of_cause) && !step_figure(name) &&
           store_figure(name) == nullptr;
}

// What a row is held to, its columns filled in.
struct Expected {
    const Expectation* of;
    Expression simulated;
};

// A row that can be said: what it is, and its variants, one for each choice of what is left open.
struct RowRun {
    std::size_t row = 0;
    Columns columns;
    std::string name = {};
    std::string software = {};  // that ran it, where the description or the row says so
    std::vector<Expected> expected = {};
    std::vector<std::size_t> variants = {};
    std::optional<std::size_t> base = {};
};

// Where 95 % of runs are. Few replicas say it by their deviation.
Interval interval_of_a_run(std::vector<double> replicas) {
    constexpr std::size_t many = 40;
    if (replicas.size() < many) {
        const Summary all = summarise(replicas);
        const double n = static_cast<double>(all.count);
        const double half = student_t_quantile(0.975, n - 1) * all.deviation * std::sqrt(1 + 1 / n);
        return {all.mean - half, all.mean + half};
    }
    std::erase_if(replicas, [](double value) { return std::isnan(value); });
    std::ranges::sort(replicas);
    return {sorted_quantile(replicas, 0.025), sorted_quantile(replicas, 0.975)};
}

void add_intervals(const Trial& trial, std::size_t metric, VerifiedRow& out) {
    const Interval of_mean = trial.summary(metric).ci95;
    const double half = of_mean.half_width();
    if (half <= 0 || !std::isfinite(half)) return;
    out.ci95 = of_mean;
    out.of_run = interval_of_a_run(trial.values[metric]);
}

bool has_figures(const Expectation& e, const Columns& columns) {
    return std::ranges::none_of(e.published->names(), [&](const std::string& name) {
        return columns.text(name).empty() || columns.text(name) == "-";
    });
}

bool fits(const Trial& trial) {
    return !trial.step || total_bytes(trial.memory) <= trial.step->memory_capacity;
}

class TableRuns {
  public:
    TableRuns(const CsvTable& table, const Description& description, const VerifyOptions& options,
              VerifiedTable& out)
        : table_(table), d_(description), options_(options), out_(out) {}

    void run() {
        warn_of_columns();
        std::size_t number = 0;
        each_row(table_, out_.unused, [&](const Fields&) {
            if (!d_.nccl_tests.empty() && options_.progress) {
                options_.progress(static_cast<double>(number) /
                                  static_cast<double>(table_.rows.size()));
            }
            add(number++);
        });
        run_variants();
        out_.rows = table_.rows.size();
        for (const RowRun& row : rows_) {
            finish(row);
            out_.rows += row.expected.size() - 1;
        }
    }

  private:
    void add(std::size_t number) {
        RowRun run{number, d_.columns_of(table_.rows[number])};
        Columns& columns = run.columns;
        columns.add("row", fmt::format("{}", number + 1));
        columns.add("about", table_.about);
        for (const Part& part : d_.parts) columns.add(part.name, part.text(columns));
        add_sums(columns, number);
        for (const Words& words : d_.words) {
            if (words.name.empty()) continue;
            columns.add(words.name, words.said(columns));
        }
        for (const Expectation& e : d_.expected) {
            if (e.rows.holds(columns)) run.expected.push_back({&e, e.simulated_of(columns)});
        }
        std::vector<const Change*> changes;
        for (const Change& change : d_.changes) {
            if (change.rows.holds(columns)) changes.push_back(&change);
        }
        // Neither run nor complained of: nobody holds these rows to anything.
        if (std::ranges::any_of(changes, &Change::skip)) return;
        if (run.expected.empty()) return refuse_unheld(run);
        for (const Change* change : changes) {
            if (!change->refuse.empty()) return refuse(run, change->rows.column, change->refuse);
            if (!change->remark.empty()) remark(run, change->rows.column, change->remark);
        }
        check_measured(run);
        run.name = d_.row->text(columns);
        if (!d_.nccl_tests.empty()) return add_collective(run);
        std::vector<std::string> settings = options_.settings;
        for (const KeyTemplate& key : d_.set) settings.push_back(key.setting(columns));
        for (const Words& words : d_.words) {
            for (const std::string& piece : words.unread(columns)) {
                pass_over(run, words.columns[0], piece);
            }
            std::string setting = words.setting(columns);
            if (setting.empty() && words.key == "job.software") run.software = "not named";
            if (!setting.empty()) settings.push_back(std::move(setting));
        }
        for (const Change* change : changes) {
            for (const KeyTemplate& key : change->set) settings.push_back(key.setting(columns));
        }
        constexpr std::string_view stack = "job.software=\"";
        for (const std::string& setting : settings) {  // the last one wins
            if (setting.starts_with(stack)) {
                run.software = setting.substr(stack.size(), setting.size() - stack.size() - 1);
            }
        }
        add_variants(run, changes, settings);
        if (!d_.base.empty()) {
            for (const KeyTemplate& key : d_.base) settings.push_back(key.setting(columns));
            run.base = variant(std::move(settings), false);
        }
        rows_.push_back(std::move(run));
    }

    void add_collective(const RowRun& run) {
        if (!collectives_) collectives_.emplace(options_.overrides, options_.perturbations);
        const std::map<std::string, double> figures = collectives_->figures(
            [&](const char* name) { return d_.nccl_tests.at(name).text(run.columns); },
            [&](const char* name) { return d_.nccl_tests.at(name).column(); });
        const std::string network = d_.nccl_tests.at("network").column();
        for (const std::string& word : collectives_->unread()) {
            pass_over(run, network.empty() ? "network" : own_column(network), word);
        }
        for (const auto& [e, simulated] : run.expected) {
            VerifiedRow out = expected(run, *e);
            out.half = figures.at("model_error_half");
            out.nine_tenths = out.model_error = figures.at("model_error");
            out.simulated = simulated.value([&](const std::string& name) {
                const auto found = figures.find(name);
                if (found != figures.end()) return found->second;
                if (!run.columns.has(name)) throw no_such_value(name);
                return run.columns.figure(name);
            });
            out_.expressed.push_back(std::move(out));
        }
        if (options_.estimates != nullptr) {
            note_estimates(collectives_->estimates(), *options_.estimates);
        }
    }

    // One for each choice of what is left open, by the table or by what holds for this row.
    void add_variants(RowRun& run, const std::vector<const Change*>& changes,
                      const std::vector<std::string>& settings) {
        std::vector<const Open*> open = mapped(d_.open, [](const Open& each) { return &each; });
        for (const Change* change : changes) {
            for (const Open& each : change->open) open.push_back(&each);
        }
        add_choices(run, open, settings);
    }

    void add_choices(RowRun& run, const std::vector<const Open*>& open,
                     std::vector<std::string> chosen) {
        if (open.empty()) {
            // What a table leaves open was chosen so that it fits; what it prints did run.
            run.variants.push_back(variant(std::move(chosen), !d_.open.empty()));
            return;
        }
        for (const std::string& value : open[0]->values) {
            std::vector<std::string> with = chosen;
            with.push_back(open[0]->key + "=" + value);
            add_choices(run, {open.begin() + 1, open.end()}, std::move(with));
        }
    }

    std::size_t variant(std::vector<std::string> settings, bool must_run) {
        const auto [found, added] =
            by_settings_.try_emplace({settings, must_run}, variants_.size());
        if (added) {
            variants_.push_back({.settings = std::move(settings),
                                 .perturbations = options_.perturbations,
                                 .must_run = must_run});
        }
        return found->second;
    }

    void add_sums(Columns& columns, std::size_t number) const {
        for (const Sum& sum : d_.sums) {
            const Columns own = d_.columns_of(table_.rows[number]);
            double total = 0;
            for (const CsvRow& each : table_.rows) {
                const Columns row = d_.columns_of(each);
                const bool together =
                    sum.among.empty() || row.text(sum.among) == own.text(sum.among);
                if (together && sum.rows.holds(row)) total += row.figure(sum.column);
            }
            columns.add(sum.name, number_text(total));
        }
    }

    void run_variants() {
        if (variants_.empty()) return;
        if (options_.estimates != nullptr) {
            for (const ScenarioChanges& variant : variants_) {
                try {
                    note_estimates(load_scenario(d_.text, d_.file, variant).estimates,
                                   *options_.estimates);
                } catch (const ScenarioError&) {  // said of its row when it is run
                }
            }
        }
        std::set<std::string> names;
        for (const RowRun& row : rows_) {
            if (row.variants.size() > 1) names.insert("step_time");
            for (const Expected& e : row.expected) {
                for (std::string name : e.simulated.names()) {
                    if (row.columns.has(name)) continue;
                    if (row.base && name.starts_with(of_base)) name.erase(0, of_base.size());
                    if (is_metric(name)) names.insert(name);
                }
            }
        }
        metrics_.assign(names.begin(), names.end());
        TrialOptions options;
        options.text = d_.text;
        options.file = d_.file;
        options.metrics = metrics_;
        options.steps = true;
        options.lacking = true;
        options.threads = options_.threads > 0 ? options_.threads
                                               : std::max(1U, std::thread::hardware_concurrency());
        options.cancelled = &interrupted();
        if (options_.progress) {
            options.progress = [this](std::int64_t done, std::int64_t total) {
                options_.progress(static_cast<double>(done) / static_cast<double>(total));
            };
        }
        trials_ = run_trials(options, variants_);
        heed_cancel();
    }

    double of_store(StoreFigure figure, std::size_t variant) const {
        const Scenario s = load_scenario(d_.text, d_.file, variants_[variant]);
        return figure(s.store().limits({}), s.job.nodes).bytes_per_second();
    }

    void finish(const RowRun& row) {
        const Trial* const base = row.base ? &*trials_[*row.base] : nullptr;
        if (base != nullptr && !base->possible()) return refuse(row, *base);
        const std::optional<std::size_t> chosen = fastest(row.variants);
        if (!chosen) return refuse(row, *trials_[row.variants[0]]);
        const Trial* const best = &*trials_[*chosen];
        for (const auto& [e, simulated] : row.expected) {
            VerifiedRow out = expected(row, *e);
            const std::vector<std::string>& read = simulated.names();
            const bool of_a_step = contains(read, "step_time");
            if (best->step && of_a_step) out.model_error = best->step->error.nine_tenths;
            const auto value = [&](std::size_t variant, const std::string& name) {
                const Trial& trial = *trials_[variant];
                if (const auto figure = step_figure(name); figure && trial.step) {
                    return (*trial.step).*figure;
                }
                if (const auto count = interruptions_of(trial, name)) return *count;
                if (const StoreFigure figure = store_figure(name)) return of_store(figure, variant);
                const std::optional<double> memory = memory_of(trial, name);
                if (memory) return *memory;
                if (trial.values[metric(name)].empty()) throw no_such_value(name);
                return trial.summary(metric(name)).mean;
            };
            out.simulated = simulated.value([&](const std::string& name) {
                if (row.columns.has(name)) return row.columns.figure(name);
                if (base != nullptr && name.starts_with(of_base)) {
                    return value(*row.base, name.substr(of_base.size()));
                }
                return value(*chosen, name);
            });
            // A mean of replicas by itself has intervals, which a limit is not asked to be in.
            const bool alone = e->as == Published::figure && simulated.names().size() == 1 &&
                               simulated.names()[0] == simulated.text();
            if (alone && is_metric(simulated.text()) && !row.columns.has(simulated.text())) {
                add_intervals(*best, metric(simulated.text()), out);
            }
            if (!row.software.empty()) add_step(row, *best, out);
            out.settings = variants_[*chosen].settings;
            if (!std::isfinite(out.simulated)) {
                refuse(row, "", fmt::format("{} is no finite number", simulated.text()));
                continue;
            }
            out_.expressed.push_back(std::move(out));
        }
    }

    // What is known of a step whose stack is: how far off such steps are, what it and its memory are made of.
    void add_step(const RowRun& row, const Trial& trial, VerifiedRow& out) const {
        if (!trial.step) return;
        out.software = row.software;
        std::ranges::replace(out.software, '.', '_');  // as the catalogue has it
        out.half = trial.step->error.half;
        out.nine_tenths = trial.step->error.nine_tenths;
        out.parts = trial.step->parts;
        // A row that does not say what it recomputes does not say what it kept either.
        if (d_.memory_known && !d_.memory_known->holds(row.columns)) return;
        for (const MemoryUse& use : trial.memory)
            out.memory_bytes.emplace_back(use.component, use.bytes);
        out.memory_capacity = trial.step->memory_capacity;
    }

    // What this row makes the key of; nullptr when it is the description's own.
    const Template* source_of(const RowRun& row, const std::string& key) const {
        const Template* source = nullptr;
        const auto look = [&](const std::vector<KeyTemplate>& set) {
            for (const KeyTemplate& each : set) {
                if (each.key == key && each.value) source = &*each.value;
            }
        };
        look(d_.set);
        for (const Change& change : d_.changes) {
            if (change.rows.holds(row.columns)) look(change.set);
        }
        return source;
    }

    double published(const Expectation& e, const Columns& columns) const {
        return value_of(*e.published, [&](const auto& name) { return columns.figure(name); });
    }

    // Without a figure in any of the columns that it is made of, where that may be.
    bool measured(const Expectation& e, const Columns& columns) const {
        return !options_.unmeasured || has_figures(e, columns);
    }

    // Leaves out measurements whose field is empty, but for the last one. Throws RowError for what is none.
    void check_measured(RowRun& run) const {
        const bool needed = !options_.unmeasured;
        const auto blank = [&](const Expected& e) { return !has_figures(*e.of, run.columns); };
        const bool any = !std::ranges::all_of(run.expected, blank);
        if (needed && any) std::erase_if(run.expected, blank);
        for (const auto& [e, simulated] : run.expected) {
            if (!measured(*e, run.columns)) continue;
            const double value = published(*e, run.columns);
            if (!needed || e->as != Published::figure || value > 0) continue;
            throw RowError{
                e->published->names().empty() ? "" : e->published->names()[0],
                fmt::format("expected a measurement of more than 0, found {:.6g}", value)};
        }
    }

    // What a row is held to, before anything is simulated.
    VerifiedRow expected(const RowRun& run, const Expectation& e) const {
        VerifiedRow out{run.name, e.quantity};
        out.as = e.as;
        out.measured = measured(e, run.columns);
        if (out.measured) out.published = published(e, run.columns);
        const std::vector<std::string>& names = e.published->names();
        out.at = place(run, names.empty() ? std::string() : names[0]);
        return out;
    }

    // Where a row has this column; where the row begins if the table has no such column.
    Position place(const RowRun& run, const std::string& column) const {
        const auto found = std::ranges::find(table_.columns, column);
        const bool own = found != table_.columns.end();
        return table_.places[run.row][own ? found - table_.columns.begin() : 0];
    }

    // The table's own column of which the words are that made one.
    const std::string& own_column(const std::string& column) const {
        for (const Words& words : d_.words) {
            if (!column.empty() && words.name == column) return words.columns[0];
        }
        return column.empty() ? table_.columns[0] : column;
    }

    void refuse(const RowRun& row, const std::string& column, const std::string& why) {
        const std::string& own = own_column(column);
        out_.unused.push_back({table_.path, place(row, own), own, why, ""});
    }

    void refuse(const RowRun& row, const Trial& impossible) {
        if (impossible.problems.empty()) return refuse(row, "", impossible.problem);
        const Diagnostic& problem = impossible.problems[0];
        const Template* source = source_of(row, problem.path);
        const std::string column = source != nullptr ? source->column() : "";
        const bool plain =
            source != nullptr && source->text(row.columns) == row.columns.text(column);
        refuse(row, column,
               plain ? problem.message : fmt::format("{}: {}", problem.path, problem.message));
    }

    // Where each row is to be held to something, by a column that says to what.
    void refuse_unheld(const RowRun& row) {
        if (!d_.every_row) return;
        for (const Expectation& e : d_.expected) {
            const std::string& column = e.rows.column;
            if (column.empty() || row.columns.text(column).empty()) continue;
            return refuse(row, column,
                          fmt::format("nothing is held to '{}' here", row.columns.text(column)));
        }
    }

    void remark(const RowRun& row, const std::string& column, const std::string& what) {
        out_.warnings.push_back({table_.path, place(row, column),
                                 column.empty() ? table_.columns[0] : column, what,
                                 "this row is expressed all the same"});
    }

    void warn_of_columns() {
        if (d_.read.empty()) return;
        const std::vector<std::string> read = d_.columns_read();
        for (const std::string& column : table_.columns) {
            if (contains(read, column)) continue;
            const std::string near = did_you_mean(column, d_.read);
            out_.warnings.push_back({table_.path, {}, column, "nothing reads this column", near});
        }
    }

    // Says of the first row that has it what no rule reads.
    void pass_over(const RowRun& row, const std::string& column, const std::string& piece) {
        if (!passed_over_.emplace(column, piece).second) return;
        out_.warnings.push_back({table_.path, place(row, column), column,
                                 fmt::format("nothing here reads '{}'", piece),
                                 "rows with it are run as if it were not there"});
    }

    ScenarioError no_such_value(const std::string& name) const {
        return ScenarioError(
            fmt::format("{}: table.expect: there is no {}", d_.file, name),
            "columns, metrics of 'railyard run --json', memory_per_gpu, memory_weights and the "
            "like of a model, store_read_bandwidth and store_write_bandwidth; of nccl-tests time, "
            "busbw and framework_launch");
    }

    std::size_t metric(const std::string& name) const {
        const auto found = std::ranges::find(metrics_, name);
        if (found == metrics_.end()) throw no_such_value(name);
        return static_cast<std::size_t>(found - metrics_.begin());
    }

    // The possible variant with the shortest step, of those that fit where one does.
    std::optional<std::size_t> fastest(const std::vector<std::size_t>& variants) const {
        std::optional<std::size_t> best;
        const auto rank = [&](std::size_t i) {
            return std::pair(!fits(*trials_[i]), trials_[i]->summary(metric("step_time")).mean);
        };
        for (const std::size_t i : variants) {
            if (trials_[i]->possible() && (!best || rank(i) < rank(*best))) best = i;
        }
        return best;
    }

    const CsvTable& table_;
    const Description& d_;
    const VerifyOptions& options_;
    VerifiedTable& out_;
    std::vector<RowRun> rows_;
    std::vector<ScenarioChanges> variants_;
    // Rows of one scenario share its run.
    std::map<std::pair<std::vector<std::string>, bool>, std::size_t> by_settings_;
    std::set<std::pair<std::string, std::string>> passed_over_;  // columns and pieces of text
    std::vector<std::string> metrics_;
    std::vector<std::optional<Trial>> trials_;
    std::optional<NcclTests> collectives_;
};

}  // namespace

}  // namespace described

namespace {

bool within(const std::vector<std::string>& some, const std::vector<std::string>& all) {
    return std::ranges::all_of(some, [&](const std::string& each) { return contains(all, each); });
}

// Whether a file describes every table with such columns.
bool describes_columns(const std::string& file, const std::vector<std::string>& columns) {
    const std::string text = read_file(file);
    if (!mentions(text, "[table]")) return false;
    Diagnostics diagnostics;
    const Document document = parse_document(text, file, diagnostics);
    const Value* section = document.root.find("table");
    const Value* header = section != nullptr ? section->find("columns") : nullptr;
    if (header == nullptr || header->items.empty()) return false;
    const std::vector<std::string> needed = mapped(header->items, &Value::text);
    return within(needed, columns);
}

}  // namespace

bool more_rows_of(const CsvTable& table, const std::filesystem::path& shipped) {
    const Found number = match_pattern(table.name, R"((\d{2,3})\D.*)");
    if (number.empty() || !shipped.stem().string().starts_with(number[1] + "_")) return false;
    const std::vector<std::string> columns = read_csv_table(shipped.string()).columns;
    return within(table.columns, columns) || within(columns, table.columns);
}

std::optional<std::string> description_of(const CsvTable& table) {
    namespace fs = std::filesystem;
    const fs::path beside = fs::path(table.path).replace_extension(".toml");
    if (fs::exists(beside)) return beside.string();
    std::vector<std::string> shipped;
    for (const auto& entry : fs::directory_iterator(shipped_file("tests/validation"))) {
        if (entry.path().extension() == ".toml") shipped.push_back(entry.path().string());
    }
    std::ranges::sort(shipped);
    for (const std::string& path : shipped) {
        const fs::path its_table = fs::path(path).replace_extension(".csv");
        const bool of_number = fs::exists(its_table) && more_rows_of(table, its_table);
        if (of_number || describes_columns(path, table.columns)) return path;
    }
    return std::nullopt;
}

VerifiedTable verify_described(const CsvTable& table, const std::string& description,
                               const VerifyOptions& options) {
    const described::Description d = described::read_description(description, table);
    VerifiedTable out{table.name, d.title};
    out.tolerances = d.tolerances;
    described::TableRuns(table, d, options, out).run();
    std::ranges::stable_sort(out.unused, {}, [](const Diagnostic& row) {
        return std::pair(row.at.line, row.at.column);
    });
    return out;
}

std::vector<SchemaRow> table_schema() {
    return described::schema();
}

}  // namespace railyard
