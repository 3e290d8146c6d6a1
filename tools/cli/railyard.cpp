// railyard: all verbs.

#include "tools/cli/cmd.h"

namespace railyard {

std::span<const Verb> verbs() {
    static constexpr Verb all[] = {
        {"run", cmd_run, "simulate a scenario and print goodput, its ledger and how sure that is"},
        {"compare", cmd_compare,
         "two or more designs on the same random numbers: which is better, how sure is that"},
        {"sweep", cmd_sweep,
         "a study of many points into a database; goes on where it was stopped"},
        {"design", cmd_design,
         "which design of a space to choose, and what would change the choice"},
        {"check", cmd_check, "say all that is wrong with scenarios, run nothing"},
        {"list", cmd_list,
         "the catalogue with its sources; 'list keys' and 'list kinds': the scenario language"},
        {"plan", cmd_plan, "the step of a parallel plan, its memory, and the best plans there are"},
        {"perf", cmd_perf, "what nccl-tests would print: times of a collective by message size"},
        {"topo", cmd_topo, "what the networks are made of, and pictures of them"},
        {"storage", cmd_storage, "what the store gives, holds, and loses with its parts"},
        {"window", cmd_window, "the scenario's traffic and faults, packet by packet"},
        {"report", cmd_report, "a results database as one page of HTML: verdicts, charts, tables"},
        {"trace", cmd_trace, "a replica, a step or a packet window as a trace for ui.perfetto.dev"},
        {"cost", cmd_cost, "what the cluster costs, line by line, and what its answer costs"},
        {"export", cmd_export, "what was simulated, in the forms that other programs have"},
        {"import", cmd_import, "what others' files say, as a part of a scenario"},
        {"jobs", cmd_jobs, "a trace of many jobs on a cluster: who waits how long"},
        {"verify", cmd_verify, "published measurements beside what the program says"},
        {"calibrate", cmd_calibrate, "numbers of the models fitted to your own measurements"},
        {"explain", cmd_explain, "why goodput is not 100 %: what each cause of loss takes"},
        {"sensitivity", cmd_sensitivity,
         "which inputs decide the answer, and which keys do nothing"},
        {"breakeven", cmd_breakeven,
         "the value of a key at which the better of two designs changes"},
        {"calc", cmd_calc,
         "checkpoint size, training memory, training time, KV cache, with formulas"},
    };
    return all;
}

}  // namespace railyard
