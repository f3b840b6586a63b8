// SPDX-License-Identifier: Apache-2.0
// What each result was made with: version, seed, experiment, parameters.
import { details, el, table } from './dom.js';
import { count, number } from './numbers.js';

/** "path = value  # unit; source" by path. */
export function parse(text) {
  const all = new Map();
  for (const line of (text || '').split('\n')) {
    const m = /^([\w.-]+) = ("(?:[^"\\]|\\.)*"|[^#]*?)\s*(?:#\s*(.*))?$/.exec(line);
    if (m) all.set(m[1], { path: m[1], value: m[2], about: m[3] || '' });
  }
  return all;
}

export function configuration(entries, page) {
  const textOf = (n) => (page.parameters || [])[n];
  const cards = entries.filter((e) => e.result.command !== 'trace').map((e) => {
    const r = e.result, own = parse(textOf(r.parameters)), usual = parse(textOf((page.defaults || {})[r.profile]));
    const changed = [...own.values()].filter((p) => usual.size && (!usual.has(p.path) || usual.get(p.path).value !== p.value));
    const files = [['file', 'Experiment'], ['experiment', 'Experiment that is swept']].filter(([key]) => typeof r[key] === 'string' && r[key].trim());
    return el('article', { id: `${e.id}-configuration` }, el('h3', {}, e.label, el('span', { class: 'of' }, ` ${e.name}`)),
      el('dl', { class: 'facts' }, [['command', `rnic ${r.command}`], ['version', r.version], ['profile', r.profile], ['seed', r.seed], ['set', (r.set || []).join(', ') || null]]
        .filter(([, v]) => v !== undefined && v !== null).map(([name, v]) => el('div', {}, el('dt', {}, name), el('dd', {}, String(v))))),
      own.size === 0 ? null : usual.size === 0 ? el('p', {}, `Profile ${r.profile} is not known to the rnic that made this page, so that all parameters are shown.`)
        : changed.length === 0 ? el('p', {}, `All ${own.size} parameters have the profile’s defaults.`)
          : table(`Parameters that differ from the profile’s defaults (${changed.length} of ${own.size})`, [
            { name: 'parameter', value: (p) => p.path }, { name: 'value', value: (p) => p.value }, { name: 'default', value: (p) => (usual.get(p.path) || {}).value }, { name: 'unit, source', value: (p) => p.about }
          ], changed),
      own.size ? lazily(`All ${count(own.size, 'parameter')}`, () => table(`Parameters of ${e.label}`, [
        { name: 'parameter', value: (p) => p.path }, { name: 'value', value: (p) => p.value }, { name: 'unit, source', value: (p) => p.about }
      ], [...own.values()])) : null,
      files.map(([key, title]) => details(title, el('pre', { class: 'scroll', tabindex: '0', 'aria-label': `${title} of ${e.label}` }, r[key]))));
  });
  const versions = [...new Set(entries.map((e) => e.result.version).filter((v) => v))];
  const foreign = versions.filter((v) => v !== page.rnic);
  return [el('p', {}, `Made by rnic ${page.rnic}.${foreign.length ? ` Results are of ${foreign.map((v) => `rnic ${v}`).join(', ')}; defaults are those of rnic ${page.rnic}.` : ''} ${number(cards.length)} results with a configuration.`), cards];
}

/** Hundreds of rows, made when somebody opens them. */
function lazily(summary, make) {
  const d = details(summary);
  d.addEventListener('toggle', () => { if (d.open && d.children.length === 1) d.append(make()); });
  return d;
}
