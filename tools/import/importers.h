#pragma once
// The importers, each in the file of its name; for the table of kinds alone.

#include "tools/import/import.h"

namespace railyard {

// What an importer reads from, writes to and complains to, while it makes one part.
class Importer {
  public:
    Importer(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics)
        : options_(options), part_(part), diagnostics_(diagnostics) {}

  protected:
    const ImportOptions& options_;
    ImportedPart& part_;
    Diagnostics& diagnostics_;
};

using Import = void(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
Import import_chakra, import_containerlab, import_dcgm, import_dlio, import_elbencho, import_fio,
    import_huggingface, import_ibnetdiscover, import_infragraph, import_io500, import_kineto,
    import_kueue, import_lldp, import_megatron, import_nccl_tests, import_nccl_topology,
    import_nemo, import_nvidia_smi_topo, import_pai, import_perftest, import_philly, import_sacct,
    import_slurm, import_slurm_events, import_sonic, import_torchtitan, import_trace, import_xid;

}  // namespace railyard
