import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_FOLDER } from '../../platform/node/files/package-folder.ts';
import type { DashboardFile, DashboardFiles } from '../../server/dashboard-files.ts';

const FOLDER = fileURLToPath(new URL('dist/dashboard/', PACKAGE_FOLDER));
/** The engine for pages; a static server could serve it too. */
const ENGINE_FOLDER = fileURLToPath(new URL('dist/browser-modules/', PACKAGE_FOLDER));
const DOCS_FOLDER = fileURLToPath(new URL('dist/docs/', PACKAGE_FOLDER));

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
/** How soon a file that was not there is looked for again. */
const RELIST_MS = 1000;
const PACKED = { br: '.br', gzip: '.gz' } as const;

interface Place {
  readonly folder: string;
  readonly name: string;
}

/** The built dashboard, its engine and the documentation; each file is read at its first request. Null: not built. */
export function readDashboardFiles(
  folder: string = FOLDER,
  docsFolder: string = DOCS_FOLDER,
  engineFolder: string = ENGINE_FOLDER,
): DashboardFiles | null {
  return existsSync(join(folder, 'index.html')) ? openDashboardFiles(folder, docsFolder, engineFolder) : null;
}

/** Like `readDashboardFiles`, also for a dashboard that is still being built: its files appear when they are there. */
export function openDashboardFiles(
  folder: string = FOLDER,
  docsFolder: string = DOCS_FOLDER,
  engineFolder: string = ENGINE_FOLDER,
): DashboardFiles {
  const read = new Map<string, DashboardFile>();
  let places = listPlaces(folder, docsFolder, engineFolder);
  let listedMs = performance.now();
  const placeOf = (path: string): Place | undefined => {
    if (!places.has(path) && performance.now() - listedMs > RELIST_MS) {
      places = listPlaces(folder, docsFolder, engineFolder);
      listedMs = performance.now();
    }
    return places.get(path);
  };
  return {
    keys: () => places.keys(),
    get(path) {
      const known = read.get(path);
      if (known !== undefined) return known;
      const place = placeOf(path);
      if (place === undefined) return undefined;
      const file = readFile(place.folder, place.name);
      read.set(path, file);
      return file;
    },
  };
}

/** Files by URL path: requests name only what is in this list, never a path on the disk. */
function listPlaces(folder: string, docsFolder: string, engineFolder: string): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const name of ['index.html', ...PUBLIC_FILES]) {
    if (existsSync(join(folder, name))) places.set(name === 'index.html' ? '/' : `/${name}`, { folder, name });
  }
  const folders = { '/assets/': join(folder, 'assets'), '/engine/': engineFolder };
  for (const [prefix, from] of Object.entries(folders)) {
    for (const name of existsSync(from) ? readdirSync(from) : []) {
      if (CONTENT_TYPES[extname(name)] !== undefined) places.set(prefix + name, { folder: from, name });
    }
  }
  for (const name of existsSync(docsFolder) ? readdirSync(docsFolder, { recursive: true, encoding: 'utf8' }) : []) {
    if (CONTENT_TYPES[extname(name)] === undefined) continue;
    const path = `/docs/${name.replaceAll('\\', '/')}`;
    places.set(path, { folder: docsFolder, name });
    if (path.endsWith('/index.html')) places.set(path.slice(0, -'index.html'.length), { folder: docsFolder, name });
  }
  return places;
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
