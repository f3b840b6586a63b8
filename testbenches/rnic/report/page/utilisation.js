// SPDX-License-Identifier: Apache-2.0
// How much of the time each resource was busy, blocked or idle.
import { figure } from './charts.js';
import { heatMap, lyingBars } from './curves.js';
import { select, table } from './dom.js';
import { number, percent } from './numbers.js';

const sum = (of) => Object.values(of || {}).reduce((a, b) => a + b, 0);
/** Of the resources, those in use or blocked for this part of the time in one of the rows; the table has the others. */
const least = 0.02, most = 24;

/** By their largest part of the time in use, or in use and blocked. */
function resourcesOf(rows, withBlocked = true) {
  const highest = new Map();
  for (const r of rows)
    for (const [name, busy] of Object.entries(r.utilisation || {}))
      highest.set(name, Math.max(highest.get(name) || 0, busy + (withBlocked ? sum((r.blocked || {})[name]) : 0)));
  return [...highest.entries()].sort((a, b) => b[1] - a[1]);
}

function cells(name, r) {
  const busy = (r.utilisation || {})[name] || 0, blocked = Math.min(1 - busy, sum((r.blocked || {})[name]));
  return { busy, blocked, idle: Math.max(0, 1 - busy - blocked), by: (r.blocked || {})[name] || {} };
}

const blockers = (by) => Object.entries(by).sort((a, b) => b[1] - a[1]).map(([who, part]) => `${who} ${percent(part)}`).join(', ') || null;

/** A heat map of all rows, or bars where there is one row; `nameOf` a row, `axisName` of their axis. */
export function utilisation(entry, rows, nameOf, axisName) {
  const resources = resourcesOf(rows, false);
  if (resources.length === 0) return null;
  const shown = resources.filter(([, part]) => part >= least).slice(0, most).map(([name]) => name);
  const all = resources.map(([name]) => name);
  if (rows.length > 1 && shown.length)
    return [figure({
      id: `${entry.id}-use`, title: 'Resources in use',
      says: `Share of the time in which each resource was in use, for each ${axisName}: ${shown.length} of ${all.length} resources, most used first.`,
      height: 110 + 24 * shown.length,
      option: (t, width) => heatMap(t, width, {
        columns: rows.map(nameOf), rows: shown, x: { name: axisName }, y: {}, low: 0, high: 1, text: (v) => percent(v), scaleName: 'in use',
        cells: shown.flatMap((name, y) => rows.map((r, x) => {
          const busy = (r.utilisation || {})[name] || 0;
          return [x, y, busy, percent(busy)];
        }))
      }),
      table: table('Resources in use, % of the time', [
        { name: 'resource', value: (name) => name },
        ...rows.map((r) => ({ name: nameOf(r), value: (name) => (r.utilisation || {})[name], text: (v) => percent(v, 4) }))
      ], all)
    }).root, bars(entry, rows, nameOf, axisName)];
  return bars(entry, rows, nameOf, axisName);
}

function bars(entry, rows, nameOf, axisName) {
  const choice = { row: rows[rows.length - 1] };
  const resources = () => resourcesOf([choice.row]);
  const shown = () => resources().filter(([, part]) => part >= least).slice(0, 16).map(([name]) => name);
  if (!rows.some((r) => Object.keys(r.utilisation || {}).length)) return null;
  const f = figure({
    id: `${entry.id}-busy`, title: 'Busy, blocked, idle',
    says: () => {
      const first = shown()[0];
      if (!first) return `No resource was in use for ${percent(least)} of the time.`;
      const c = cells(first, choice.row);
      return `${nameOf(choice.row)}: most used is ${first}, busy ${percent(c.busy)}${c.blocked > 0 ? ` and blocked ${percent(c.blocked)} (${blockers(c.by)})` : ''}. Blocked is what could work and was kept from it by another one.`;
    },
    height: () => 100 + 24 * shown().length,
    controls: rows.length > 1 ? [select(axisName, rows.map((r, i) => [i, nameOf(r)]), rows.length - 1, (v) => { choice.row = rows[Number(v)]; f.update(); })] : [],
    option: (t, width) => lyingBars(t, width, {
      bars: shown(), title: 'share of the time (%)', max: 100, text: (v) => `${number(v, 3)} %`,
      parts: [['busy', t.colours[0]], ['blocked', t.colours[1]], ['idle', t.idle]].map(([name, colour]) => ({
        name, colour, values: shown().map((resource) => 100 * cells(resource, choice.row)[name])
      }))
    }),
    table: () => table(`Busy, blocked and idle, ${nameOf(choice.row)}`, [
      { name: 'resource', value: (name) => name },
      { name: 'busy', value: (name) => (choice.row.utilisation || {})[name], text: (v) => percent(v, 4) },
      { name: 'blocked', value: (name) => cells(name, choice.row).blocked, text: (v) => percent(v, 4) },
      { name: 'blocked by', value: (name) => blockers(cells(name, choice.row).by) },
      { name: 'idle', value: (name) => cells(name, choice.row).idle, text: (v) => percent(v, 4) }
    ], resources().map(([name]) => name))
  });
  return f.root;
}
