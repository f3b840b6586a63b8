// SPDX-License-Identifier: Apache-2.0
// Which files are results, and what of them a page shows.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rnic::program {

struct collected_result {
  std::string name;  ///< of the file, below the folder that was given; behind it the name of one of several in it
  nlohmann::json result;
};

struct skipped_file {
  std::string name, why;
};

struct collected_results {
  std::vector<collected_result> results;  ///< in the order of the places, of a folder by name
  std::vector<skipped_file> skipped;
};

/// Results and traces of files, and of all .json and .json.gz below folders, but for points of sweeps and hidden ones.
/// What is neither is among the skipped. Throws usage_error for a place that is not there or cannot be read.
collected_results collect_results(const std::vector<std::string>& places);

}  // namespace rnic::program
