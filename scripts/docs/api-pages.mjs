// docs/api/*.md as text: one page per entry point of the package, from its declarations.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDeclarationReader } from './declarations.mjs';

const KINDS = { function: 'Functions', class: 'Classes', const: 'Constants', interface: 'Types', type: 'Types' };

/** The entry points: the name to import, the page, and the declaration file. */
export function entryPoints(root) {
  const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return Object.entries(exports)
    .filter(([, target]) => typeof target === 'object')
    .map(([key]) => ({
      specifier: key === '.' ? name : `${name}/${key.slice(2)}`,
      page: key === '.' ? name : key.slice(2),
      types: join(root, '.cache/types', key === '.' ? '' : key.slice(2), 'index.d.ts'),
    }));
}

/** Every page by its file name, and the exports without a sentence. */
export function buildApiPages(root) {
  const reader = createDeclarationReader(join(root, '.cache/types'));
  const entries = entryPoints(root).map((entry) => ({ ...entry, exports: reader.exportsOf(entry.types) }));
  const missing = new Set();
  const pages = new Map();
  for (const { specifier, page, exports } of entries) {
    const sorted = [...exports.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    const lines = [
      `# ${specifier}`,
      '',
      '<!-- Made by npm run docs:api from the declarations: edit the comments there. -->',
      '',
    ];
    for (const title of new Set(Object.values(KINDS))) {
      const section = sorted.filter(({ kind }) => KINDS[kind] === title);
      if (section.length > 0) lines.push(`## ${title}`, '');
      for (const entry of section) {
        if (entry.comment === null) missing.add(`${entry.name} in src/${entry.file.replace(/\.d\.ts$/, '.ts')}`);
        lines.push(...describe(entry, page, entries));
      }
    }
    pages.set(`${page}.md`, lines.join('\n'));
  }
  return { pages, missing: [...missing].sort(), entries };
}

function describe({ name, source, comment }, page, entries) {
  const mentioned = new Set(source.replaceAll(/\/\*[^]*?\*\//g, '').match(/\b[A-Z]\w+\b/g));
  mentioned.delete(name);
  const links = [...mentioned].sort().flatMap((type) => {
    const home = entries.find((entry) => entry.page === page && entry.exports.has(type));
    const entry = home ?? entries.find(({ exports }) => exports.has(type));
    if (entry === undefined) return [];
    return [`[${type}](${entry.page === page ? '' : `${entry.page}.md`}#${type.toLowerCase()})`];
  });
  const see = links.length === 0 ? [] : [`See ${links.join(', ')}.`, ''];
  return [`### ${name}`, '', comment ?? '', '', '```ts', source, '```', '', ...see];
}
