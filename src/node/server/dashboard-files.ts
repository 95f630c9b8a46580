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

/** Reads the built dashboard, so that its requests never read the disk, and finds its engine and the documentation. Null: not built. */
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
  const folders = [
    ['/assets/', join(folder, 'assets'), readFile],
    ['/engine/', engineFolder, findFile],
  ] as const;
  for (const [prefix, from, open] of folders) {
    for (const name of existsSync(from) ? readdirSync(from) : []) {
      if (CONTENT_TYPES[extname(name)] !== undefined) files.set(prefix + name, open(from, name));
    }
  }
  for (const entry of existsSync(docsFolder) ? readdirSync(docsFolder, { recursive: true, encoding: 'utf8' }) : []) {
    if (CONTENT_TYPES[extname(entry)] === undefined) continue;
    const file = findFile(docsFolder, entry);
    const path = `/docs/${entry.replaceAll('\\', '/')}`;
    files.set(path, file);
    if (path.endsWith('/index.html')) files.set(path.slice(0, -'index.html'.length), file);
  }
  return files;
}

/** Read by its requests: together these files take 6 MB, and most servers never show them. */
function findFile(folder: string, name: string): DashboardFile {
  let kept: WeakRef<DashboardFile> | null = null;
  /** The same within a request, so that its tag is that of its body. */
  function open(): DashboardFile {
    const file = kept?.deref() ?? readFile(folder, name);
    kept = new WeakRef(file);
    return file;
  }
  return {
    contentType: CONTENT_TYPES[extname(name)]!,
    get etag() {
      return open().etag;
    },
    get bodies() {
      return open().bodies;
    },
  };
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
