// SPDX-License-Identifier: Apache-2.0
// Numbers as text, with their units.

export const isNumber = (v) => typeof v === 'number' && Number.isFinite(v);

/** Up to `digits` significant digits; whole numbers in full. */
export function number(v, digits = 4) {
  if (!isNumber(v)) return v === null || v === undefined ? '–' : String(v);
  if (Number.isInteger(v)) return v.toLocaleString('en-US');
  return v.toLocaleString('en-US', { maximumSignificantDigits: digits });
}

/** As a table has it. */
export const exact = (v) => number(v, 6);
/** A number and its unit, never on two lines. */
export const us = (v) => `${number(v)}\u00a0µs`;
export const gbps = (v) => `${number(v)}\u00a0Gb/s`;
export const mpps = (v) => `${number(v)}\u00a0Mpps`;
export const percent = (part, digits = 3) => `${number(100 * part, digits)}\u00a0%`;

export function bytes(n) {
  for (const [unit, of] of [['MiB', 1 << 20], ['KiB', 1 << 10]])
    if (n >= of && n % of === 0) return `${n / of}\u00a0${unit}`;
  return `${number(n)}\u00a0B`;
}

/** Roughly, for axes. */
export function about_bytes(n) {
  for (const [unit, of] of [['MB', 1e6], ['kB', 1e3]]) if (Math.abs(n) >= of) return `${number(n / of, 3)}\u00a0${unit}`;
  return `${number(n)}\u00a0B`;
}

const quantiles = { p50: '50\u00a0%', p90: '90\u00a0%', p99: '99\u00a0%', p999: '99.9\u00a0%', p9999: '99.99\u00a0%' };
export const quantileList = [['p50', 0.5], ['p90', 0.9], ['p99', 0.99], ['p999', 0.999], ['p9999', 0.9999]];
export const quantileName = (key) => quantiles[key] || key;

const units = [
  [/(^|[._])latency\.(min|mean|max|p\d+)$|_us$|message_us\./, 'µs'], [/gbps$/, 'Gb/s'], [/mpps$/, 'Mpps'], [/mbps$/, 'Mb/s'],
  [/khz$/, 'kHz'], [/_ps$/, 'ps'], [/_ns$/, 'ns'], [/_cycles$/, 'cycles'], [/(^|[._])(bytes|size|sizes)$/, 'B'], [/percent$|_pct$/, '%']
];
export const unitOf = (field) => (units.find(([pattern]) => pattern.test(field)) || ['', ''])[1];
/** "all.latency.p99 (µs)". */
export const withUnit = (field) => (unitOf(field) ? `${field} (${unitOf(field)})` : field);
export const lowerIsBetter = (field) => unitOf(field) === 'µs' || /lost|unfinished|drop|pause|error|fail/.test(field);

/** "1 run", "3 runs". */
export const count = (n, what, many = `${what}s`) => `${number(n)} ${n === 1 ? what : many}`;
