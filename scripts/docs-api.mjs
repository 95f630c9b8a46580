// npm run docs:api: writes docs/api/ from the package's declarations and routes. A test compares the result.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { emitDeclarations } from './build-types.mjs';
import { transpile } from './transpile.mjs';
import { buildApiPages } from './docs/api-pages.mjs';
import { buildConfigurationPage } from './docs/configuration-page.mjs';
import { buildHttpPage } from './docs/http-page.mjs';
import { buildModelSizesPage } from './docs/model-sizes-page.mjs';
import { root } from './setup.mjs';

/** Every file of docs/api/ by name, and the exports without a comment. Reads transpiled modules and declarations. */
export async function buildApiDocs() {
  const load = (path) => import(pathToFileURL(join(root, '.cache/tools/src', path)).href);
  const [{ ROUTES }, { describeRoutes }, { suggestModels, WORKING_BYTES }] = await Promise.all([
    load('server/routes/table.js'),
    load('server/routes/openapi.js'),
    load('hub/suggested-models.js'),
  ]);
  const { pages, missing, entries } = buildApiPages(root);
  const routes = await describeRoutes(ROUTES, '');
  const undescribed = Object.entries(routes.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { summary }]) => (summary.trim() === '' ? [`${method} ${path}`] : [])),
  );
  pages.set('http.md', buildHttpPage(routes));
  const schema = JSON.parse(readFileSync(join(root, 'schemas/ruvllm.config.schema.json'), 'utf8'));
  pages.set('configuration.md', buildConfigurationPage(schema));
  pages.set('model-sizes.md', buildModelSizesPage(suggestModels(true), WORKING_BYTES));
  const list = entries.map(({ specifier, page, exports }) => `| [\`${specifier}\`](${page}.md) | ${exports.size} |`);
  const index = ['# Reference', '', '[HTTP](http.md), [configuration](configuration.md), [model sizes](model-sizes.md), and what the package exports:', '', '| import from | exports |', '| - | - |', ...list, '', 'Made by `npm run docs:api`.', '']; // prettier-ignore
  pages.set('README.md', index.join('\n'));
  const options = await resolveConfig(join(root, 'docs/api/README.md'));
  const files = new Map();
  for (const [name, text] of pages) files.set(name, await format(text, { ...options, parser: 'markdown' }));
  return { files, missing: [...missing, ...undescribed] };
}

if (process.argv[1] && import.meta.filename === process.argv[1]) {
  await transpile();
  if (!emitDeclarations()) process.exit(1);
  const { files, missing } = await buildApiDocs();
  for (const one of missing) console.error(`no sentence: ${one}`);
  const folder = join(root, 'docs/api');
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name));
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
  console.log(`docs/api: ${files.size} files`);
  process.exitCode = missing.length === 0 ? 0 : 1;
}
