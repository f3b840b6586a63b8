// SPDX-License-Identifier: Apache-2.0
// The results of a sweep as a table: CSV, JSON, SQLite.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rnic::program {

struct sweep_row {
  unsigned point = 0;               ///< from 1
  std::string status;               ///< ok; failed: status 1, with what results it has; refused; crashed; missing
  std::string error;                ///< its last line on standard error
  std::vector<std::string> values;  ///< by axis
  /// Fields of the result, numbers and texts.
  std::vector<std::pair<std::string, nlohmann::json>> fields;
};

struct sweep_table {
  std::vector<std::string> axes;
  std::vector<sweep_row> rows;
  /// Names of all fields that any row has, in the order in which they come.
  std::vector<std::string> fields() const;
};

// Throw usage_error when a file cannot be written.
void write_csv(const std::string& file, const sweep_table& t);
nlohmann::json table_json(const sweep_table& t);
/// A table `points` with a column for each axis ("axis workload.rpc.rate_mpps" is its path) and each field.
void write_sqlite(const std::string& file, const sweep_table& t);

}  // namespace rnic::program
