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

void import_chakra(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_containerlab(const ImportOptions& options, ImportedPart& part,
                         Diagnostics& diagnostics);
void import_dcgm(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_dlio(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_elbencho(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_fio(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_huggingface(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_ibnetdiscover(const ImportOptions& options, ImportedPart& part,
                          Diagnostics& diagnostics);
void import_infragraph(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_io500(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_kineto(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_kueue(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_lldp(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_megatron(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_nccl_tests(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_nccl_topology(const ImportOptions& options, ImportedPart& part,
                          Diagnostics& diagnostics);
void import_nemo(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_nvidia_smi_topo(const ImportOptions& options, ImportedPart& part,
                            Diagnostics& diagnostics);
void import_pai(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_perftest(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_philly(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_sacct(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_slurm(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_slurm_events(const ImportOptions& options, ImportedPart& part,
                         Diagnostics& diagnostics);
void import_sonic(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_torchtitan(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_trace(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_xid(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);

}  // namespace railyard
