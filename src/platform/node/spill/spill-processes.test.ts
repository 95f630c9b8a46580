import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSpillFolder } from './spill-folder.ts';

/** The module of a source, as `scripts/transpile.mjs` writes it before the tests run. */
const moduleOf = (name: string): string =>
  JSON.stringify(new URL(`../../../../.cache/tools/src/platform/node/${name}.js`, import.meta.url).href);
const masterKey = new Uint8Array(32).fill(7);
const NAMESPACE = { tenant: 'tenant', modelHash: 'model', adapterHash: null, policy: 'f16' };
const LIMIT_BYTES = 2 ** 24;
const PAGE_BYTES = 300_000;
const NUM_PAGES = 40;

/** The same in here and in the processes: page `i` of a chain, by its number. */
const COMMON = `
  export const pageOf = (i) => Buffer.alloc(${PAGE_BYTES}, \`page \${i} of a chain \`);
  export function keysOf(space) {
    const keys = [];
    for (let i = 0; i < ${NUM_PAGES}; i++) keys.push(space.childKey(keys.at(-1) ?? space.rootKey, [i, i + 1]));
    return keys;
  }`;

let root: string;
let common: { pageOf(i: number): Buffer; keysOf(space: { rootKey: string }): string[] };
let numFolders = 0;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'ruvllm-spill-'));
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
  writeFileSync(join(root, 'common.js'), COMMON);
  common = (await import(/* @vite-ignore */ pathToFileURL(join(root, 'common.js')).href)) as typeof common;
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const newFolder = (): string => join(root, `folder-${numFolders++}`);

/** A process in which `body` finds the store, its space of one namespace and the keys of the chain. */
function start(folder: string, body: string): ChildProcess {
  const script = `
    import { createHash } from 'node:crypto';
    import { openSpillFolder } from ${moduleOf('spill/spill-folder')};
    import { readOrCreateMasterKey } from ${moduleOf('sealing/master-key')};
    import { pageOf, keysOf } from './common.js';
    const folder = ${JSON.stringify(folder)};
    const openStore = (masterKey = new Uint8Array(32).fill(7), limitBytes = ${LIMIT_BYTES}) => openSpillFolder({ folder, limitBytes, masterKey });
    ${body}`;
  const path = join(root, `script-${numFolders++}.js`);
  writeFileSync(path, script);
  return spawn(process.execPath, [path], { stdio: ['pipe', 'pipe', 'inherit'] });
}

const temporariesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tmp'));

test('[SP8] killed at any moment, a process leaves whole pages, and what it had begun is removed', async () => {
  const folder = newFolder();
  let numLeft = 0;
  let numRead = 0;
  for (let round = 0; round < 10; round++) {
    const child = start(
      folder,
      `const space = openStore().open(${JSON.stringify(NAMESPACE)});
       const keys = keysOf(space);
       const write = (i) => space.write(keys[i], i % 2 ? 'packed' : 'float', pageOf(i));
       for (let i = 0; i < 2; i++) write(i); // however slow the machine is
       process.stdout.write('ready', () => { for (let i = 0; ; i = (i + 1) % keys.length) write(i); });`,
    );
    if (round > 1) await once(child.stdout!, 'data'); // the first two die while the folder or the key is made, perhaps
    await new Promise((resolve) => setTimeout(resolve, 30 + Math.random() * 40));
    child.kill('SIGKILL');
    await once(child, 'exit');

    try {
      numLeft += temporariesIn(folder).length;
    } catch {
      continue; // died before there was a folder
    }
    const store = openSpillFolder({ folder, limitBytes: LIMIT_BYTES, masterKey });
    expect(temporariesIn(folder)).toEqual([]);
    const space = store.open(NAMESPACE);
    common.keysOf(space).forEach((key, i) => {
      if (!space.has(key)) return;
      const page = space.read(key)!;
      expect(page.tier).toBe(i % 2 === 1 ? 'packed' : 'float');
      expect(Buffer.compare(page.bytes, common.pageOf(i))).toBe(0);
      numRead++;
    });
    expect(store.stats()).toMatchObject({ numCorrupt: 0, numFailedWrites: 0, ignored: [] });
  }
  console.log(`${numRead} pages were read after 10 kills, ${numLeft} half-written ones removed`);
  expect(numRead).toBeGreaterThan(10);
});

test('[SP9] [SP11] processes that start at once agree on all keys and never damage a page', async () => {
  const folder = newFolder();
  const body = `
    process.stdout.write('ready');
    process.stdin.once('data', () => {
      process.stdin.pause();
      const masterKey = readOrCreateMasterKey(folder + '.key');
      const store = openStore(masterKey, ${20 * PAGE_BYTES});
      const space = store.open(${JSON.stringify(NAMESPACE)});
      const keys = keysOf(space);
      let numWrong = 0, numRead = 0;
      for (let i = 0; i < 150; i++) {
        const place = (i * 7 + process.pid) % keys.length;
        if (i % 3 === 0) space.write(keys[place], 'float', pageOf(place));
        const page = space.read(keys[place]);
        if (page !== null) { numRead++; if (Buffer.compare(page.bytes, pageOf(place)) !== 0) numWrong++; }
      }
      const masterHash = createHash('sha256').update(masterKey).digest('hex');
      const { numCorrupt, numFailedWrites, ignored } = store.stats();
      process.stdout.write(JSON.stringify({ masterHash, rootKey: space.rootKey, numWrong, isRead: numRead > 0, numCorrupt, numFailedWrites, ignored }));
    });`;
  const children = Array.from({ length: 4 }, () => start(folder, body));
  await Promise.all(children.map((child) => once(child.stdout!, 'data')));
  const outputs = children.map(async (child) => {
    let text = '';
    child.stdout!.on('data', (data: Buffer) => (text += data.toString()));
    await once(child, 'close');
    return JSON.parse(text) as { masterHash: string; rootKey: string };
  });
  for (const child of children) child.stdin!.end('go');
  const results = await Promise.all(outputs);
  const { masterHash, rootKey } = results[0]!;
  const expected = { masterHash, rootKey, numWrong: 0, isRead: true, numCorrupt: 0, numFailedWrites: 0, ignored: [] };
  expect(results).toEqual([expected, expected, expected, expected]);
  expect(readdirSync(join(folder, 'keys'))).toHaveLength(1);
  expect(temporariesIn(folder)).toEqual([]);
});
