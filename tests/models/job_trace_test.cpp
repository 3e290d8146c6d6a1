// Job traces: what each format's columns mean, and what is said about a line that is malformed.

#include <doctest/doctest.h>

#include "models/scheduler/scheduler.h"

using namespace railyard;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;

namespace {

JobTrace parse(std::string_view text, const TraceReading& reading = {}) {
    return parse_job_trace(text, "trace", reading);
}

std::string said_of(std::string_view text) {
    try {
        parse(text);
    } catch (const ScenarioError& error) {
        return error.what();
    }
    return "";
}

constexpr char skip_help[] = "\n    --skip-bad passes over malformed lines and counts them";

}  // namespace

TEST_CASE("a CSV is read by its columns' names, in the trace's unit of time") {
    TraceReading minutes;
    minutes.time_unit = 1min;
    const JobTrace t = parse(
        "\xEF\xBB\xBF# source\njob_id,user,num_gpu,submit_time,duration,time_limit\n"
        "7,vc_a,8,10,90,120\n8,vc_b,0,11,5,5\n9,vc_b,1,11.5,5,\n",
        minutes);
    REQUIRE(t.jobs.size() == 2);
    CHECK(t.without_gpus == 1);
    CHECK(t.jobs[0].id == 7);
    CHECK(t.jobs[0].gpus == 8);
    CHECK(t.jobs[0].submit == 10min);
    CHECK(t.jobs[0].duration == 90min);
    CHECK(t.jobs[0].limit == 120min);
    CHECK(t.jobs[1].submit == 11min + 30s);
    CHECK(t.jobs[1].limit == 0min);
    CHECK(t.user_names == std::vector<std::string>{"vc_a", "vc_b"});
    CHECK(t.partition_names.empty());
}

TEST_CASE("time stamps are read with their offset, quoted or not") {
    const JobTrace t = parse(
        "job_id,vc,gpu_num,submit_time,start_time,duration\r\n"
        "1,x,8,2020-04-01 00:00:10,2020-04-01 00:00:10,30\r\n"
        "2,\"x,y\",8,2020-04-01T08:00:20+08:00,2020-04-01 00:00:20,30\r\n"
        "3,x,8,2020-04-01 00:00:30,,\r\n");
    REQUIRE(t.jobs.size() == 2);
    CHECK(t.never_started == 1);
    CHECK(t.jobs[0].submit == 1'585'699'210s);
    CHECK(t.jobs[1].submit - t.jobs[0].submit == 10s);
    CHECK(t.partition_names[1] == "x,y");
}

TEST_CASE("sacct's jobs are read without their steps, CPU jobs and those that never started") {
    const JobTrace t = parse(
        "JobID|User|Partition|Submit|Start|Elapsed|Timelimit|AllocTRES|State\n"
        "11|ann|train|2024-05-01T12:00:00|2024-05-01T12:00:05|1-02:03:04|2-00:00:00|"
        "billing=8,cpu=64,gres/gpu:h100=16,gres/gpu=16,node=2|COMPLETED\n"
        "11.batch|||2024-05-01T12:00:05|2024-05-01T12:00:05|1-02:03:04||cpu=64|COMPLETED\n"
        "12_3|ben|train|2024-05-01T12:00:01|2024-05-01T12:00:05|00:10:00|UNLIMITED|"
        "gres/gpu:a100=2,gres/gpu:h100=1|FAILED\n"
        "13|ben|cpu|2024-05-01T12:00:02|2024-05-01T12:00:05|00:10:00|UNLIMITED|cpu=4|COMPLETED\n"
        "14|ben|train|2024-05-01T12:00:02|None|00:00:00|UNLIMITED||CANCELLED by 1000\n"
        "15|ben|train|2024-05-01T12:00:02|Unknown|00:00:00|UNLIMITED||PENDING\n");
    CHECK(t.format == TraceFormat::sacct);
    REQUIRE(t.jobs.size() == 2);
    CHECK(t.jobs[0].gpus == 16);
    CHECK(t.jobs[0].duration == 26h + 3min + 4s);
    CHECK(t.jobs[0].limit == 48h);
    CHECK(t.jobs[1].id == 12);
    CHECK(t.jobs[1].gpus == 3);
    CHECK(t.jobs[1].limit == 0s);
    CHECK(t.jobs[1].submit - t.jobs[0].submit == 1s);
    CHECK(t.steps == 1);
    CHECK(t.without_gpus == 1);
    CHECK(t.never_started == 2);
    CHECK(t.partition_names == std::vector<std::string>{"train"});
}

TEST_CASE(
    "a job that still runs has no length: sacct's and Acme's are left out, and that is said") {
    const std::string header = "JobID|Submit|Start|End|Elapsed|AllocTRES|State\n";
    const std::string ended =
        "11|2024-05-01T12:00:00|2024-05-01T12:00:05|2024-05-01T13:00:05|01:00:00|gres/"
        "gpu=8|FAILED\n";
    for (const char* state : {"RUNNING", "SUSPENDED", "COMPLETING", ""}) {
        const JobTrace t = parse(header + ended +
                                 "12|2024-05-01T12:00:00|2024-05-01T12:00:05|Unknown|00:10:00|"
                                 "gres/gpu=8|" +
                                 state + "\n");
        REQUIRE(t.jobs.size() == 1);
        CHECK(t.ids == std::vector<std::string>{"11"});
        CHECK(t.still_running == 1);
        REQUIRE(t.warnings().size() == 1);
        CHECK(t.warnings()[0].starts_with("1 of 2 jobs still ran"));
    }
    CHECK(parse(header + ended).warnings().empty());
    const JobTrace untold =
        parse("JobIDRaw|Submit|ElapsedRaw|ReqTRES|\n11|2024-05-01T12:00:00|90|gres/gpu=4|\n");
    CHECK_FALSE(untold.ends_told);
    CHECK(untold.warnings().size() == 1);
    const JobTrace acme = parse(
        "job_id,gpu_num,submit_time,start_time,end_time,duration\n"
        "a,8,2023-08-01 00:00:00,2023-08-01 00:00:00,2023-08-01 00:01:00,60\n"
        "b,8,2023-08-01 00:00:00,2023-08-01 00:00:00,,60\n");
    CHECK(acme.ids == std::vector<std::string>{"a"});
    CHECK(acme.still_running == 1);
}

TEST_CASE(
    "sacct's array tasks have ids of their own, and tasks that wait are as many as they are") {
    const JobTrace t = parse(
        "JobID|Submit|Start|Elapsed|AllocTRES|State\n"
        "12_3|2024-05-01T12:00:01|2024-05-01T12:00:05|00:10:00|gres/gpu=1|COMPLETED\n"
        "12_4|2024-05-01T12:00:01|2024-05-01T12:00:05|00:20:00|gres/gpu=1|COMPLETED\n"
        "12_[5-99%10]|2024-05-01T12:00:01|Unknown|00:00:00||PENDING\n"
        "13_[1,4-8:2]|2024-05-01T12:00:01|Unknown|00:00:00||PENDING\n");
    CHECK(t.ids == std::vector<std::string>{"12_3", "12_4"});
    CHECK(t.jobs[1].duration == 20min);
    CHECK(t.never_started == 95 + 4);
}

TEST_CASE("the parts of sacct's heterogeneous job are one gang, once for each time it was queued") {
    const std::string header = "JobID|Submit|Start|Elapsed|Timelimit|AllocTRES|State\n";
    const auto part = [](const char* id, const char* submit, const char* elapsed, int gpus,
                         const char* state) {
        return std::string(id) + "|2024-05-01T" + submit + "|2024-05-01T15:00:00|" + elapsed +
               "|02:00:00|gres/gpu=" + std::to_string(gpus) + "|" + state + "\n";
    };
    const JobTrace t = parse(header + part("20+0", "12:00:00", "00:10:00", 8, "NODE_FAIL") +
                             part("20+1", "12:00:00", "00:12:00", 16, "NODE_FAIL") +
                             part("21", "12:00:00", "00:12:00", 1, "COMPLETED") +
                             part("20+0", "13:00:00", "00:30:00", 8, "COMPLETED") +
                             part("20+1", "13:00:00", "00:30:00", 16, "COMPLETED"));
    CHECK(t.ids == std::vector<std::string>{"20", "21", "20"});
    REQUIRE(t.jobs.size() == 3);
    CHECK(t.jobs[0].gpus == 24);
    CHECK(t.jobs[0].duration == 12min);
    CHECK(t.jobs[2].gpus == 24);
    CHECK(t.gang_parts == 2);
    // One part that runs on: nobody knows how long the gang takes.
    for (const bool first : {true, false}) {
        const std::string runs = part("20+0", "12:00:00", "00:10:00", 8, "RUNNING");
        const std::string ended = part("20+1", "12:00:00", "00:10:00", 8, "COMPLETED");
        const JobTrace one = parse(header + (first ? runs + ended : ended + runs) +
                                   part("21", "12:00:00", "00:12:00", 1, "COMPLETED"));
        CHECK(one.ids == std::vector<std::string>{"21"});
        CHECK(one.still_running == 1);
    }
}

TEST_CASE(
    "a duration with the wait in it, as Kalos has it, is taken without; any other as it stands") {
    // The rows that Acme's README prints of Kalos and Seren.
    const JobTrace t = parse(
        "job_id,gpu_num,submit_time,start_time,end_time,duration\n"
        "dlctk696s0jbvitv,8,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,"
        "2023-05-17 11:01:16+00:00,18\n"
        "5778432,8,2023-03-01 00:24:00+08:00,2023-03-01 00:25:00+08:00,2023-03-01 "
        "00:26:57+08:00,117\n"
        "waited,8,2023-03-01 00:00:00,2023-03-01 00:10:00,2023-03-01 00:20:00,90\n");
    REQUIRE(t.jobs.size() == 3);
    CHECK(t.ids[0] == "dlctk696s0jbvitv");
    CHECK(t.jobs[0].duration == 8s);
    CHECK(t.jobs[1].duration == 117s);
    CHECK(t.jobs[2].duration == 90s);
    CHECK(t.waits_in_duration == 1);
    CHECK(t.warnings().size() == 1);
}

TEST_CASE("sacct's raw columns are seconds and minutes, and -p's last bar is no column") {
    const JobTrace t = parse(
        "JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|ReqTRES|\n"
        "11|2024-05-01T12:00:00|90|2|gres/gpu=4|\n");
    CHECK(t.jobs[0].duration == 90s);
    CHECK(t.jobs[0].limit == 2min);
    CHECK(t.jobs[0].gpus == 4);
}

TEST_CASE(
    "the Standard Workload Format's requested processors and time are used where they are known") {
    const JobTrace t = parse(
        "; Computer: none\n"
        "  1  0  5  100  4 -1 -1  8 200 -1 1 3 -1 -1 2 -1 -1 -1\n"
        "  2 10 -1   50  4 -1 -1 -1  -1 -1 1 3 -1 -1 2 -1 -1 -1\n"
        "  3 20 -1   -1 -1 -1 -1  4  60 -1 5 3 -1 -1 2 -1 -1 -1\n");
    CHECK(t.format == TraceFormat::swf);
    REQUIRE(t.jobs.size() == 2);
    CHECK(t.jobs[0].gpus == 8);
    CHECK(t.jobs[0].limit == 200s);
    CHECK(t.jobs[1].gpus == 4);
    CHECK(t.jobs[1].submit == 10s);
    CHECK(t.jobs[1].limit == 0s);
    CHECK(t.never_started == 1);
    CHECK(t.partition_names == std::vector<std::string>{"2"});
}

TEST_CASE("a malformed line is told with its number, its column and what was expected") {
    const std::string header = "job_id,gpus,submit_time,duration\n";
    CHECK(said_of(header + "1,8,0,10\n2,eight,0,10\n") ==
          std::string("trace:3:1: error: gpus: expected a whole number from 0 to 1000000000, found "
                      "'eight'") +
              skip_help);
    CHECK(said_of(header + "1,8,0\n") ==
          std::string("trace:2:1: error: expected 4 fields, found 3") + skip_help);
    CHECK(said_of(header + "1,8,-5,10\n") ==
          std::string("trace:2:1: error: submit_time: expected a number from 0 to 3153600000 (100 "
                      "years), found '-5'") +
              skip_help);
    CHECK(said_of(header + "1,8,2020-02-30 00:00:00,10\n") ==
          std::string("trace:2:1: error: submit_time: expected a time such as 2024-05-01T12:00:03, "
                      "found '2020-02-30 00:00:00'") +
              skip_help);
    CHECK(said_of(header + "1,\"8\"x,0,10\n") ==
          std::string("trace:2:1: error: expected fields with commas between them, found a stray "
                      "quote") +
              skip_help);
    CHECK(said_of("; x\n1 2 3\n") ==
          std::string("trace:2:1: error: expected 18 numbers, found 3") + skip_help);
    CHECK(
        said_of("JobID|Submit|Elapsed|AllocTRES\n1|2024-05-01T12:00:00|1:x|gres/gpu=1\n") ==
        std::string("trace:2:1: error: Elapsed: expected a time such as 4-01:02:03, found '1:x'") +
            skip_help);
    CHECK(said_of("job_id,gpus,duration\n") ==
          "trace:1:1: error: no column says when a job is submitted: expected one called "
          "submit_time or submit");
    CHECK(said_of("") == "railyard: error: trace has no job of GPUs that has ended");
}

TEST_CASE("malformed lines are counted when that is wanted, and the first is kept") {
    TraceReading skip;
    skip.skip_bad = true;
    const JobTrace t = parse("job_id,gpus,submit_time,duration\n1,8,0,x\n\n2,8,0,10\n3\n", skip);
    CHECK(t.jobs.size() == 1);
    CHECK(t.bad == 2);
    CHECK(t.first_bad->at.line == 2);
}

TEST_CASE("of many malformed lines the first twenty are told") {
    std::string text = "job_id,gpus,submit_time,duration\n";
    for (int i = 0; i < 50; ++i) text += "x\n";
    const std::string said = said_of(text);
    CHECK(std::count(said.begin(), said.end(), '\n') == 20);
    CHECK(said.ends_with("and 30 more malformed lines; --skip-bad passes over them"));
}

TEST_CASE(
    "jobs go to the virtual cluster that is called like their partition, or like their user") {
    JobTrace t = parse("job_id,user,gpus,submit,duration\n1,vc_b,1,0,1\n2,a,1,0,1\n3,c,1,0,1\n");
    const auto homeless = assign_clusters(t, {{"a", 1, 8}, {"b", 1, 8}});
    REQUIRE(t.jobs.size() == 2);
    CHECK(t.jobs[0].cluster == 1);
    CHECK(t.jobs[1].cluster == 0);
    CHECK(homeless == std::map<std::string, std::int64_t>{{"c", 1}});
    JobTrace p = parse("job_id,user,vc,gpus,submit,duration\n1,a,b,1,0,1\n");
    CHECK(assign_clusters(p, {{"b", 1, 8}}).empty());
    CHECK(p.jobs[0].cluster == 0);
}
