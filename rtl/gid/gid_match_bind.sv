// SPDX-License-Identifier: Apache-2.0
// Puts the stream checker onto the look-ups of every GID match.

bind gid_match prim_stream_checker #(
  .Width(128 + 1)
) u_look_up_checker (
  .clk_i    (clk_i),
  .rst_ni   (rst_ni),
  .valid_i  (valid_i),
  .ready_i  (ready_o),
  .payload_i({dgid_i, v2_i})
);
