#pragma once
// The importers, each in the file of its name; for the table of kinds alone.

#include "tools/import/import.h"

namespace railyard {

void import_huggingface(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_slurm(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
void import_torchtitan(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);

}  // namespace railyard
