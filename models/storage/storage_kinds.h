#pragma once
// The builders of the systems, each in the file of its name; for the table of kinds alone.

#include <memory>

#include "models/storage/store_design.h"

namespace railyard {

using BuildStore = std::unique_ptr<StorageSystem>(Section& storage, Section& own,
                                                  Catalogue& catalogue, StoreDesign design);
BuildStore build_beegfs;
BuildStore build_ceph;
BuildStore build_exascaler;
BuildStore build_generic;
BuildStore build_gpfs;
BuildStore build_host_memory;
BuildStore build_local_nvme;
BuildStore build_lustre;
BuildStore build_nfs;
BuildStore build_object;
BuildStore build_peer_memory;
BuildStore build_s3;
BuildStore build_threefs;
BuildStore build_vast;
BuildStore build_weka;

}  // namespace railyard
