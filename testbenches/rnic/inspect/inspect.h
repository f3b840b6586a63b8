// SPDX-License-Identifier: Apache-2.0
// Commands that show a host's device as the tools of a Linux host do.
#pragma once

#include <string>
#include <vector>

#include "testbenches/rnic/options.h"

namespace rnic::program {

struct inspect_options {
  common_options common;
  std::vector<std::string> addresses;  ///< "INTERFACE=ADDRESS", given in this order
  std::string directory;               ///< of sysfs
  std::string device;                  ///< that is to be looked at, "mlx4_0"; empty: the one that there is
};

int run_show_gids(const inspect_options& options);
int run_devices(const inspect_options& options);
int run_devinfo(const inspect_options& options);
int run_verbose_devinfo(const inspect_options& options);  ///< info.cpp
int run_ibstat(const inspect_options& options);
int run_ibdev2netdev(const inspect_options& options);
int run_sysfs(const inspect_options& options);

}  // namespace rnic::program
