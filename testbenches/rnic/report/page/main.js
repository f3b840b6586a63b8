// SPDX-License-Identifier: Apache-2.0
// The page: a section for each kind of result, from the data that the program has put into it.
import { kind as bandwidth } from './bandwidth.js';
import { kind as calibrate } from './calibrate.js';
import { drawAll, drawn, showPatterns } from './charts.js';
import { configuration } from './configuration.js';
import { el } from './dom.js';
import { kind as explain } from './explain.js';
import { kind as fabric } from './fabric.js';
import { kind as latency } from './latency.js';
import { count } from './numbers.js';
import { compare, other, replay, soak } from './others.js';
import { kind as run } from './run.js';
import { sideBySide } from './side_by_side.js';
import { kind as sweep } from './sweep.js';
import { kind as trace } from './timeline.js';

// In the order of the page.
const kinds = { latency, bandwidth, run, sweep, explain, fabric, trace, calibrate, soak, replay, compare };

/** Names that no other entry has: what tells files apart comes behind those that are called alike. */
function nameApart(entries) {
  for (const e of entries) {
    const alike = entries.filter((o) => o.plain === e.plain);
    const stem = e.name.replace(/\.json(\.gz)?(?=$|: )/, '').replace(/\/sweep$/, '');
    e.label = alike.length < 2 ? e.plain : alike.some((o) => o !== e && o.name === e.name) ? `${e.plain} (${stem}, ${alike.indexOf(e) + 1})` : `${e.plain} (${stem})`;
  }
}

function groupsOf(page) {
  const groups = [];
  page.results.forEach(({ name, result }, n) => {
    const kind = kinds[result.command] || other;
    let group = groups.find((g) => g.kind === kind && (kind !== other || g.command === result.command));
    if (!group) groups.push(group = { command: result.command, kind, title: kind === other ? `rnic ${result.command}` : kind.title, entries: [] });
    const entry = { id: `r${n + 1}`, name, result };
    entry.plain = guarded(() => kind.label(entry), name);
    group.entries.push(entry);
  });
  const order = (g) => { const at = Object.values(kinds).indexOf(g.kind); return at < 0 ? 99 : at; };
  groups.sort((a, b) => order(a) - order(b));
  for (const g of groups) nameApart(g.entries);
  return groups;
}

/** A result of another version, or one that somebody has edited, must not hide the others. */
function guarded(make, otherwise) {
  try {
    return make();
  } catch (e) {
    console.warn(e);
    return typeof otherwise === 'function' ? otherwise(e) : otherwise;
  }
}
const unreadable = (e) => el('p', { class: 'alarm' }, `This result is not as this page expects it: ${e.message}`);

function summary(groups, page) {
  return el('section', { id: 'summary', 'aria-labelledby': 'summary-title' }, el('h2', { id: 'summary-title' }, 'Summary'),
    el('ul', { class: 'summary' }, groups.flatMap((g) => g.entries.map((e) => el('li', {}, el('a', { href: `#${e.id}` }, `${g.title}: ${e.label}`), ' – ', guarded(() => g.kind.summary(e), 'not as this page expects it.'))))),
    page.skipped.length ? el('div', { class: 'skipped' }, el('p', {}, `${count(page.skipped.length, 'file')} skipped:`), el('ul', {}, page.skipped.map((s) => el('li', {}, el('code', {}, s.name), ` – ${s.why}`)))) : null);
}

function section(g) {
  const id = `kind-${g.command}`;
  return el('section', { id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, g.title),
    g.entries.length > 1 && g.kind.together ? [el('h3', {}, 'All of them'), guarded(() => g.kind.together(g.entries), unreadable)] : null,
    g.entries.map((e) => el('article', { id: e.id }, el('h3', {}, e.label, el('span', { class: 'of' }, ` ${e.name}`)), guarded(() => el('p', { class: 'words' }, upper(g.kind.summary(e))), null), guarded(() => g.kind.show(e), unreadable))));
}
/** A sentence; the name of a field at its begin stays as it is. */
const upper = (text) => (/^\w+[._]/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1));

function contents(groups, hasSides) {
  const item = (href, text, children = []) => el('li', {}, el('a', { href }, text), children.length ? el('ul', {}, children) : null);
  return el('ul', {}, item('#summary', 'Summary'),
    groups.map((g) => item(`#kind-${g.command}`, g.title, g.entries.length > 1 ? g.entries.map((e) => item(`#${e.id}`, e.label)) : [])),
    hasSides ? item('#side', 'Two side by side') : null, item('#configuration', 'Configuration'));
}

function switchTheme() {
  const button = document.getElementById('theme'), wanted = matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  const set = (dark) => {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    button.setAttribute('aria-pressed', String(dark));
    drawAll();
  };
  button.addEventListener('click', () => set(chosen = document.documentElement.dataset.theme !== 'dark'));
  wanted.addEventListener('change', () => { if (chosen === null) set(wanted.matches); });
  set(wanted.matches);
  // Paper is white.
  addEventListener('beforeprint', () => { chosen = document.documentElement.dataset.theme === 'dark'; set(false); });
  addEventListener('afterprint', () => set(chosen));
}

function show() {
  const page = JSON.parse(document.getElementById('data').textContent);
  const groups = groupsOf(page), entries = groups.flatMap((g) => g.entries);
  document.title = page.title;
  document.getElementById('title').textContent = page.title;
  document.getElementById('subtitle').textContent = `${count(page.results.length, 'result')} of rnic, a cycle-accurate model of a RoCE network adapter`;
  document.getElementById('made').textContent = `Made by rnic ${page.rnic}.`;
  switchTheme();
  document.getElementById('patterns').addEventListener('change', (e) => showPatterns(e.target.checked));
  const main = document.getElementById('main');
  const sides = guarded(() => sideBySide(groups), null);
  document.getElementById('contents').append(contents(groups, sides !== null));
  main.replaceChildren(summary(groups, page), ...groups.map(section),
    ...(sides ? [el('section', { id: 'side', 'aria-labelledby': 'side-title' }, el('h2', { id: 'side-title' }, 'Two runs side by side'), sides)] : []),
    el('section', { id: 'configuration', 'aria-labelledby': 'configuration-title' }, el('h2', { id: 'configuration-title' }, 'Configuration'), configuration(entries, page)));
  drawAll();
  document.documentElement.dataset.drawn = 'true';
}

window.rnicReport = { drawn };
show();
