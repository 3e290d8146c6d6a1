#pragma once
// The verbs. Each takes its own arguments, without the program's and the verb's name, and returns
// the exit code. User errors leave as ScenarioError or boost::program_options::error.

#include <span>
#include <string>
#include <vector>

#include "tools/program/program.h"

// Every verb and a line of --help, in its order: cmd_NAME() is in cmd_NAME.cpp.
#define RAILYARD_VERBS(VERB)                                                                    \
    VERB(run, "simulate a scenario and print goodput, its ledger and how sure that is")         \
    VERB(compare,                                                                               \
         "two or more designs on the same random numbers: which is better, how sure is that")   \
    VERB(sweep, "a study of many points into a database; goes on where it was stopped")         \
    VERB(design, "which design of a space to choose, and what would change the choice")         \
    VERB(check, "say all that is wrong with scenarios, run nothing")                            \
    VERB(list,                                                                                  \
         "the catalogue with its sources; 'list keys' and 'list kinds': the scenario language") \
    VERB(plan, "the step of a parallel plan, its memory, and the best plans there are")         \
    VERB(perf, "what nccl-tests would print: times of a collective by message size")            \
    VERB(topo, "what the networks are made of, and pictures of them")                           \
    VERB(storage, "what the store gives, holds, and loses with its parts")                      \
    VERB(window, "the scenario's traffic and faults, packet by packet")                         \
    VERB(report, "a results database as one page of HTML: verdicts, charts, tables")            \
    VERB(trace, "a replica, a step or a packet window as a trace for ui.perfetto.dev")          \
    VERB(cost, "what the cluster costs, line by line, and what its answer costs")               \
    VERB(export, "what was simulated, in the forms that other programs have")                   \
    VERB(import, "what others' files say, as a part of a scenario")                             \
    VERB(jobs, "a trace of many jobs on a cluster: who waits how long")                         \
    VERB(verify, "published measurements beside what the program says")                         \
    VERB(calibrate, "numbers of the models fitted to your own measurements")                    \
    VERB(explain, "why goodput is not 100 %: what each cause of loss takes")                    \
    VERB(sensitivity, "which inputs decide the answer, and which keys do nothing")              \
    VERB(breakeven, "the value of a key at which the better of two designs changes")            \
    VERB(calc, "checkpoint size, training memory, training time, KV cache, with formulas")

namespace railyard {

using VerbRun = int(const std::vector<std::string>& arguments);
#define RAILYARD_DECLARE_VERB(name, doc) VerbRun cmd_##name;
RAILYARD_VERBS(RAILYARD_DECLARE_VERB)
#undef RAILYARD_DECLARE_VERB

struct Verb {
    const char* name;
    VerbRun* run;
    const char* doc;  // one line, for --help
};
// All of a program: finds the verb among its own, in the order in which --help prints them, and runs it;
// errors become words. The exit code.
int command_line(std::span<const Verb> verbs, int argc, char** argv);

}  // namespace railyard
