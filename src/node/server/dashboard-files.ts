import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DashboardFile, DashboardFiles } from '../../server/dashboard-files.ts';

// Three folders up, both from src and from dist.
const FOLDER = fileURLToPath(new URL('../../../dist/dashboard/', import.meta.url));
/** The engine for pages; a static server could serve it too. */
const ENGINE_FOLDER = fileURLToPath(new URL('../../../dist/browser-modules/', import.meta.url));
const DOCS_FOLDER = fileURLToPath(new URL('../../../dist/docs/', import.meta.url));

/** File types of a build; others are not served. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
  '.png': 'image/png',
  '.webm': 'video/webm',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
};
/** Files with fixed names, so that browsers can install the page. */
const PUBLIC_FILES = ['icon.svg', 'manifest.webmanifest'];
const PACKED = { br: '.br', gzip: '.gz' } as const;

/** Reads the whole built dashboard, its engine and the documentation, so that requests never read the disk. Null: not built. */
export function readDashboardFiles(
  folder: string = FOLDER,
  docsFolder: string = DOCS_FOLDER,
  engineFolder: string = ENGINE_FOLDER,
): DashboardFiles | null {
  if (!existsSync(join(folder, 'index.html'))) return null;
  const files = new Map<string, DashboardFile>([['/', readFile(folder, 'index.html')]]);
  for (const name of PUBLIC_FILES) {
    if (existsSync(join(folder, name))) files.set(`/${name}`, readFile(folder, name));
  }
  const folders = { '/assets/': join(folder, 'assets'), '/engine/': engineFolder };
  for (const [prefix, from] of Object.entries(folders)) {
    for (const name of existsSync(from) ? readdirSync(from) : []) {
      if (CONTENT_TYPES[extname(name)] !== undefined) files.set(prefix + name, readFile(from, name));
    }
  }
  for (const entry of existsSync(docsFolder) ? readdirSync(docsFolder, { recursive: true, encoding: 'utf8' }) : []) {
    if (CONTENT_TYPES[extname(entry)] === undefined) continue;
    const file = readFile(docsFolder, entry);
    const path = `/docs/${entry.replaceAll('\\', '/')}`;
    files.set(path, file);
    if (path.endsWith('/index.html')) files.set(path.slice(0, -'index.html'.length), file);
  }
  return files;
}

function readFile(folder: string, name: string): DashboardFile {
  const identity = readFileSync(join(folder, name));
  const bodies: { identity: Uint8Array; br?: Uint8Array; gzip?: Uint8Array } = { identity };
  for (const [encoding, suffix] of Object.entries(PACKED) as [keyof typeof PACKED, string][]) {
    const path = join(folder, name + suffix);
    if (existsSync(path)) bodies[encoding] = readFileSync(path);
  }
  const etag = `"${createHash('sha256').update(identity).digest('base64url').slice(0, 22)}"`;
  return { contentType: CONTENT_TYPES[extname(name)]!, etag, bodies };
}
