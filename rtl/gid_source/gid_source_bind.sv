// SPDX-License-Identifier: Apache-2.0
// Puts the stream checker onto the look-ups of every GID source.

bind gid_source prim_stream_checker #(
  .Width(5 + 3 * 7 + 16 + 48)
) u_look_up_checker (
  .clk_i    (clk_i),
  .rst_ni   (rst_ni),
  .valid_i  (valid_i),
  .ready_i  (ready_o),
  .payload_i({checked_i, any_version_i, v2_i, ipv4_i, tagged_i, index_i, mac_index_i, vlan_index_i, function_i, dmac_i})
);
