// SPDX-License-Identifier: Apache-2.0
// Makes the page one text, and this a C++ source: node build.mjs PACKAGES OUTPUT, where PACKAGES has node_modules.
// OUTPUT.html is the page without data, to look at.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [packages, output] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(packages, 'package.json'))('esbuild');
const modules = join(packages, 'node_modules');

const bundle = await esbuild.build({
  entryPoints: [join(here, 'main.js')], bundle: true, minify: true, write: false, format: 'iife', target: 'es2020',
  nodePaths: [modules], legalComments: 'none', logLevel: 'warning'
});
const script = bundle.outputFiles[0].text;
if (/<\/script/i.test(script)) throw new Error('the script has the end of its own element');
const style = (await esbuild.transform(readFileSync(join(here, 'style.css'), 'utf8'), { loader: 'css', minify: true })).code;

// What the licences of the packages in the bundle ask for.
const licences = [
  ['Apache ECharts', 'echarts/NOTICE'], ['Apache ECharts', 'echarts/LICENSE'], ['d3, parts of it in ECharts', 'echarts/licenses/LICENSE-d3'],
  ['ZRender', 'zrender/LICENSE'], ['tslib', 'tslib/LICENSE.txt']
].map(([name, file]) => `${name}\n\n${readFileSync(join(modules, file), 'utf8').trim()}\n`).join(`\n${'-'.repeat(72)}\n\n`);
const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

const version = JSON.parse(readFileSync(join(modules, 'echarts/package.json'), 'utf8')).version;
const parts = {
  style, script, licences: escaped(licences), library: `Apache ECharts ${version}`,
  'script-hash': createHash('sha256').update(script).digest('base64')
};
const page = readFileSync(join(here, 'page.html'), 'utf8').replace(/\{\{([a-z-]+)\}\}/g, (all, name) => {
  if (name === 'data') return all;
  if (!(name in parts)) throw new Error(`page.html: there is no ${name}`);
  return parts[name];
});
const ends = page.split('{{data}}');
if (ends.length !== 2) throw new Error('page.html needs {{data}} once');

/** A list of literals, each short enough for every compiler. */
function literals(text) {
  const bytes = Buffer.from(text, 'utf8');
  const all = [];
  for (let at = 0; at < bytes.length; at += 12000) {
    let literal = '';
    for (const byte of bytes.subarray(at, at + 12000)) {
      const c = String.fromCharCode(byte);
      literal += byte === 10 ? '\\n' : /[\w .,:;(){}[\]<>=+*/!|&^%$#@~`'-]/.test(c) && byte < 128
        ? c : `\\${byte.toString(8).padStart(3, '0')}`;
    }
    all.push(`    "${literal}"sv`);
  }
  return all.join(',\n');
}

writeFileSync(`${output}.html`, page);
writeFileSync(output, `// Made by testbenches/rnic/report/page/build.mjs.
#include "testbenches/rnic/report/page.h"

namespace rnic::program {

using namespace std::string_view_literals;

const std::vector<std::string_view>& page_before_data() {
  static const std::vector<std::string_view> pieces{
${literals(ends[0])}};
  return pieces;
}

const std::vector<std::string_view>& page_behind_data() {
  static const std::vector<std::string_view> pieces{
${literals(ends[1])}};
  return pieces;
}

}  // namespace rnic::program
`);
