#pragma once
// What an Xid means, and how reports of GPUs' errors become failures by cause.

#include <map>
#include <string_view>

#include "tools/import/failure_rates.h"

namespace railyard {

struct XidCause {
    const char* cause;
    const char* remedy;  // restart, reset or replace; empty: the machine has not failed
    std::vector<int> codes;
};
// NVIDIA's catalogue of Xid errors, docs.nvidia.com/deploy/xid-errors, as of 2025-10-29: what to do at once.
const std::vector<XidCause>& xid_causes();
// The first Xid of a cause that is called as it is there; 0 of others.
int xid_of(std::string_view cause);

// One report of an error: a line of a log, or a sample that has changed.
struct GpuReport {
    std::string host;
    std::string gpu;
    std::int64_t at_s = 0;
    std::string where;  // file:line
};

// Counts faults. One fault is tens of reports, of each process and each GPU of its node: those of a cause
// that follow each other on one node within five minutes are one. Reports may come in any order.
class GpuFaults {
  public:
    void xid(GpuReport report, int code);
    // An error that is told of without an Xid's code; `cause` is one of the catalogue's.
    void fault(GpuReport report, std::string_view cause, std::string what);

    // What was counted and what was not, then the causes with their rates.
    void write(double node_days, ImportedPart& part);

  private:
    struct Seen {
        GpuReport report;
        const XidCause* cause;
        std::string what;  // "Xid 79"
    };
    std::vector<SeenCause> by_cause(std::map<std::string, std::int64_t>& by_gpu) const;

    std::vector<Seen> seen_;
    std::map<std::string, std::int64_t> ignored_;
    std::map<int, std::int64_t> unknown_;
};

}  // namespace railyard
