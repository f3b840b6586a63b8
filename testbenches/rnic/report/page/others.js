// SPDX-License-Identifier: Apache-2.0
// Results that have no charts of their own: `rnic soak`, `rnic replay`, and whatever comes later.
import { table, tiles } from './dom.js';
import { count, exact, number, us, withUnit } from './numbers.js';

const plain = (result) => Object.entries(result).filter(([key, v]) => ['number', 'boolean', 'string'].includes(typeof v) && !['command', 'version', 'profile', 'seed', 'file', 'parameters'].includes(key));
const fields = (entry) => table(`Fields of ${entry.name}`, [
  { name: 'field', value: ([key]) => withUnit(key) },
  { name: 'value', value: ([, v]) => (typeof v === 'boolean' ? String(v) : v), text: exact }
], plain(entry.result));

export const soak = {
  title: 'Soaks',
  label: (entry) => `${count(entry.result.posted, 'message')}`,
  summary: ({ result: r }) => `${r.clean ? 'every message arrived once, whole and in order' : 'not everything went well'}: ${number(r.completed)} of ${count(r.posted, 'message')} over ${count(r.qps, 'queue pair')}.`,
  show(entry) {
    const r = entry.result;
    return [
      tiles([{ label: 'completed', value: number(r.completed), note: `of ${number(r.posted)}` }, ...['lost', 'duplicated', 'corrupted', 'reordered', 'hung'].map((k) => ({ label: k, value: number(r[k]) })),
        { label: 'simulated', value: number(r.simulated_ps / 1e6), unit: 'µs' }]),
      table('Messages by verb', [{ name: 'verb', value: ([verb]) => verb }, { name: 'messages', value: ([, n]) => n, text: exact }], Object.entries(r.verbs || {})), fields(entry)
    ];
  }
};

export const replay = {
  title: 'Replays',
  label: (entry) => String(entry.result.capture || 'replay').split('/').pop(),
  summary: ({ result: r }) => `${r.agree ? 'the adapter’s answers are the captured ones' : 'answers differ from the captured ones'}: ${number(r.matched_answers)} of ${number(r.expected_answers)} matched, ${count(r.fatal_differences || 0, 'fatal difference')}.`,
  show(entry) {
    const r = entry.result;
    return [
      tiles([{ label: 'answers that match', value: number(r.matched_answers), note: `of ${number(r.expected_answers)}` }, { label: 'frames', value: number(r.frames) }, { label: 'fatal differences', value: number(r.fatal_differences) }]),
      (r.latency_compared || []).length ? table('Latency of answers: model and capture', [
        { name: 'answer', value: (l) => l.answer }, { name: 'number', value: (l) => l.count, text: exact },
        ...['captured', 'model'].filter((who) => r.latency_compared.some((l) => l[who])).flatMap((who) => [['min_ps', 'minimum'], ['typical_ps', 'typical'], ['p99_ps', '99 %'], ['max_ps', 'maximum']].map(([key, name]) =>
          ({ name: `${who}: ${name}`, value: (l) => (l[who] || {})[key], text: (ps) => us(ps / 1e6) })))
      ], r.latency_compared) : null, fields(entry)
    ];
  }
};

export const compare = {
  title: 'Comparisons',
  label: ({ result: r }) => [r.reference, r.other].map((f) => String(f).split('/').pop()).join(' and '),
  summary: ({ result: r }) => `${r.faults ? `${number(r.faults)} of ${count(r.compared, 'field')} beyond tolerance, missing or failures that are new` : `${count(r.compared, 'field')} within tolerance`}.`,
  show(entry) {
    const r = entry.result;
    return [
      tiles([{ label: 'fields compared', value: number(r.compared) }, { label: 'faults', value: number(r.faults) }]),
      (r.differences || []).length ? table('Fields that differ', [
        { name: 'field', value: (d) => d.field }, { name: 'reference', value: (d) => d.reference }, { name: 'other', value: (d) => d.other }, { name: 'how', value: (d) => d.what }
      ], r.differences) : null, fields(entry)
    ];
  }
};

export const other = {
  title: 'Other results', label: (entry) => entry.result.command,
  summary: (entry) => `${count(plain(entry.result).length, 'field')}.`,
  show: (entry) => [fields(entry)]
};
