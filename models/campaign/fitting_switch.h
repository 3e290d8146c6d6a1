#pragma once
// Which switch of the catalogue a network gets that names none.

#include <string>

#include "models/fabric/fabric.h"

namespace railyard {

// The slowest of this kind whose ports are as fast as the NICs; empty: there is none.
std::string fitting_switch(Catalogue& catalogue, bool infiniband, Bandwidth rate);

}  // namespace railyard
