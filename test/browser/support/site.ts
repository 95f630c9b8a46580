// A static server as a page of the library would have one: files of the built package, the example, and model files.
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browserPath } from '../../dashboard/support/browser.ts';

// Benchmarks run a compiled copy of this file in .cache/tools.
const root = fileURLToPath(new URL('../../..', import.meta.url.replace('/.cache/tools/', '/')));
const modules = join(root, 'dist/browser-modules');
const example = join(root, 'examples/browser');

/** A real model of 27 MB: more than a page stores between two flushes. */
export const STORIES = join(root, '../shared/models/stories15M-q8_0.gguf');
/** A real model of 1 MB, sixty times as fast. */
export const TINY = join(root, '../shared/models/stories260K-f32.gguf');

const missing = [
  existsSync(join(modules, 'index.js')) ? null : 'dist/ (run "npm run build")',
  existsSync(STORIES) ? null : '../shared/models/stories15M-q8_0.gguf',
  existsSync(TINY) ? null : '../shared/models/stories260K-f32.gguf',
  browserPath === null ? 'a Chromium on the PATH' : null,
].filter((item) => item !== null);

/** Whether these tests can run here. */
export const canRun = missing.length === 0;
if (!canRun) console.log(`browser tests skipped: they need ${missing.join(' and ')}`);

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  wasm: 'application/wasm',
};

/** A page that has nothing but the library, as the global `ruvllm`. */
const BLANK: Readonly<Record<string, string>> = {
  '/blank.html':
    '<!doctype html><title>Blank</title><link rel="icon" href="/icon.svg"><script src="/watch.js"></script><script type="module" src="/blank.js"></script>',
  // Before the modules: the browser reports a violation by an event and not in the console.
  '/watch.js':
    "globalThis.violations = []; addEventListener('securitypolicyviolation', (event) => violations.push(event.blockedURI));",
  '/blank.js': "import * as library from '/ruvllm/index.js'; globalThis.ruvllm = library;",
  '/peer.html':
    '<!doctype html><title>Peer</title><link rel="icon" href="/icon.svg"><script type="module" src="/peer.js"></script>',
  '/peer.js': "import { Wllama } from '/peer/index.js'; globalThis.Wllama = Wllama;",
};

/** The strictest policy under which the library runs. */
const POLICY =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const ISOLATION = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  'cross-origin-resource-policy': 'same-origin',
};

export interface SiteOptions {
  /** Sends the headers that isolate the page. Default true. */
  readonly isIsolated?: boolean;
  /** Sends the policy; other libraries than ours need a weaker one. Default true. */
  readonly isStrict?: boolean;
  /** Files below `/files/`, by name: a path, or their bytes. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Further folders, by the prefix of their paths. */
  readonly folders?: Readonly<Record<string, string>>;
  /** Answers a request in its own way; false: as usual. */
  readonly answer?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

export interface Site extends AsyncDisposable {
  readonly url: string;
  /** `method path range` of all requests for files. */
  readonly requests: string[];
  /** The ETag of all files; null: their size. */
  etag: string | null;
}

function findFile(path: string, { files = {}, folders = {} }: SiteOptions): string | Uint8Array | null {
  if (BLANK[path] !== undefined) return new TextEncoder().encode(BLANK[path]);
  if (path.startsWith('/files/')) return files[decodeURIComponent(path.slice('/files/'.length))] ?? null;
  for (const [prefix, folder] of Object.entries({ ...folders, '/ruvllm/': modules, '/': example })) {
    if (!path.startsWith(prefix)) continue;
    const rest = normalize(decodeURIComponent(path.slice(prefix.length)) || 'index.html');
    const file = join(folder, rest);
    return rest.startsWith('..') || !existsSync(file) ? null : file;
  }
  return null;
}

/** Starts the site on a free port. */
export async function startSite(options: SiteOptions = {}): Promise<Site> {
  const requests: string[] = [];
  const site: { -readonly [Key in keyof Site]: Site[Key] } = {
    url: '',
    requests,
    etag: null,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const server: Server = createServer((request, response) => {
    const { pathname } = new URL(request.url!, 'http://localhost');
    requests.push([request.method, pathname, request.headers.range].filter((part) => part !== undefined).join(' '));
    if (options.answer?.(request, response) === true) return;
    const file = findFile(pathname, options);
    const headers = {
      ...((options.isStrict ?? true) ? { 'content-security-policy': POLICY } : {}),
      'cache-control': 'no-cache',
      ...((options.isIsolated ?? true) ? ISOLATION : {}),
    };
    if (file === null) return void response.writeHead(404, headers).end();
    const bytes = typeof file === 'string' ? null : file;
    const sizeBytes = bytes?.length ?? statSync(file as string).size;
    const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
    const start = range === null ? 0 : Number(range[1]);
    if (start >= sizeBytes && range !== null) return void response.writeHead(416, headers).end('beyond the end');
    response.writeHead(range === null ? 200 : 206, {
      ...headers,
      'content-type':
        TYPES[(typeof file === 'string' ? file : pathname).split('.').at(-1)!] ?? 'application/octet-stream',
      'content-length': sizeBytes - start,
      etag: site.etag ?? `"${sizeBytes}"`,
      ...(range === null ? {} : { 'content-range': `bytes ${start}-${sizeBytes - 1}/${sizeBytes}` }),
    });
    if (bytes === null) createReadStream(file as string, { start }).pipe(response);
    else response.end(bytes.subarray(start));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  site.url = `http://localhost:${(server.address() as AddressInfo).port}/`;
  return site;
}

/** The 27 MB with a shorter context, which ends long answers. */
export function storiesOf(contextLength: number): Buffer {
  const bytes = readFileSync(STORIES);
  const key = 'llama.context_length';
  const at = bytes.indexOf(key) + key.length;
  if (bytes.readUInt32LE(at) !== 4) throw new Error(`${key} is no unsigned number`);
  bytes.writeUInt32LE(contextLength, at + 4);
  return bytes;
}

/** The bytes of the tiny model. */
export const readTiny = (): Uint8Array => readFileSync(TINY);
