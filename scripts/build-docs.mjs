// Builds dist/docs when a page is newer. In a process of its own, because a fresh clone has no Markdown parser before its install.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { root, runOrExit } from './setup.mjs';

const SOURCES = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'examples/README.md', 'scripts/docs-site.mjs', 'scripts/docs.css']; // prettier-ignore

export function buildDocs({ force = false } = {}) {
  const stamp = join(root, 'dist/docs/index.html');
  const inDocs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((path) =>
    join('docs', path),
  );
  const newestMs = Math.max(...[...SOURCES, ...inDocs].map((path) => statSync(join(root, path)).mtimeMs));
  if (!force && existsSync(stamp) && statSync(stamp).mtimeMs > newestMs) return;
  runOrExit(process.execPath, [join(root, 'scripts/docs-site.mjs')]);
}
