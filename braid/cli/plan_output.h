// What braid plan says of layouts: a table with reasons, a JSON object.
#pragma once

#include <string>

#include "braid/cluster/cluster.h"
#include "braid/search/plan.h"

namespace braid {

std::string plan_text(const Plan& plan, const Cluster& cluster);
std::string plan_json(const Plan& plan);

}  // namespace braid
