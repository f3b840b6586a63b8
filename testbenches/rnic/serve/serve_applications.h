// SPDX-License-Identifier: Apache-2.0
// The applications of `rnic serve`: their options, made from those of the command line, and their results.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "testbenches/rnic/options.h"
#include "testbenches/serve/cm/cm_applications.h"
#include "testbenches/serve/perftest/perftest.h"
#include "testbenches/serve/pingpong/pingpong.h"
#include "testbenches/serve/qperf/qperf.h"

namespace rnic::program {

/// How many adapters there are.
inline std::size_t adapters(const serve_options& o) {
  return o.topology.empty() ? o.links.size() / (o.bonded ? 2 : 1) : o.hosts.size();
}
/// What concerns adapter `index`, 0 being the first. Throws usage_error.
serve_options of_adapter(const serve_options& options, unsigned index);
/// A locally administered address for the first of several adapters: of the seed when the user gave one, else another
/// one in each process.
std::uint64_t draw_mac(const serve_options& options);
/// Throws usage_error.
void check(const serve_options& options);
/// Its programs are commands of a client.
bool is_script(const serve_options& options);
/// It meets its peer over TCP and over QP1.
bool is_qperf(const serve_options& options);
/// It meets its peer over QP1.
bool meets_over_cm(const serve_options& options);
/// Of the exchange of addresses.
std::uint16_t listening_port(const serve_options& options);

serve::pingpong_options pingpong_from(const serve_options& options, int gid_index);
serve::cm_application_options cm_application_from(const serve_options& options, int gid_index);
serve::perftest_options perftest_from(const serve_options& options, int gid_index);
serve::qperf_options qperf_from(const serve_options& options, int gid_index);
nlohmann::json to_json(const std::string& app, const serve::application_result& run);

}  // namespace rnic::program
