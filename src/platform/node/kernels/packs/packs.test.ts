import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { KernelPackFactory } from '../../../../kernels/contract.ts';
import { createReferencePackFactory } from '../../../../kernels/reference/reference-pack.ts';
import { chooseFastest, findSpeeds, openAllowedPacks, openNamedPack } from './choose-pack.ts';
import { findDistrust, openPack, verifyPack } from './external-pack.ts';
import { MANIFEST_NAME, readManifest, writeManifest } from './pack-manifest.ts';
import { type PackTrust, readTrust, writeTrust } from './pack-trust.ts';
import { addSpeeds, describeMachine, readSpeeds } from './speed-history.ts';

/** Uses the host's kernels; `change` alters one operation. */
const packCode = (change = ''): string => `
export function createKernelPackFactory({ reference, files }) {
  if (!files.has('pack.mjs')) throw new Error('no files');
  return { ...reference, async create(options) { const pack = await reference.create(options); ${change} return pack; } };
}`;
/** Adds a little to a result, which the self-check must notice. */
const WRONG = packCode(
  `const add = pack.add.bind(pack); pack.add = (op) => { add(op); pack.arena.f32(op.out, op.count)[0] += 1; };`,
);
const CHECK = { numThreads: 1, types: ['Q8_0'] } as const;

let root: string;
let author: { readonly publicKey: string; readonly privateKey: KeyObject };

function createAuthor() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { x } = publicKey.export({ format: 'jwk' });
  return { publicKey: Buffer.from(x!, 'base64url').toString('base64'), privateKey };
}

function createPack(name: string, code: string, { version = '1.0.0', key = author.privateKey } = {}): string {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'pack.mjs'), code);
  const files = { 'pack.mjs': createHash('sha256').update(code).digest('hex') };
  writeFileSync(join(folder, MANIFEST_NAME), writeManifest({ name, version, entry: 'pack.mjs', files }, key));
  return folder;
}

function allow(...folders: string[]): PackTrust {
  const packs = folders.map((folder) => {
    const { manifest, manifestHash } = verifyPack(folder);
    return { name: manifest.name, folder, manifestHash };
  });
  return { keys: [{ key: author.publicKey, name: 'author' }], packs };
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ruvllm-packs-'));
  author = createAuthor();
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

test('[KP1] a pack that is signed, allowed and right is used under its name', async () => {
  const folder = createPack('acme', packCode());
  const factory = await openPack(folder, allow(folder), CHECK);
  expect(factory.name).toBe('acme@1.0.0');
  expect((await openNamedPack('acme', CHECK, allow(folder))).name).toBe('acme@1.0.0');
  expect(() => openNamedPack('other', CHECK, allow(folder))).toThrow(/"other": allowed are acme/);
});

test('[KP1] no code of an untrusted pack runs', async () => {
  const mark = join(root, 'ran');
  const folder = createPack(
    'acme',
    `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(mark)}, '');${packCode()}`,
  );
  const { packs, keys } = allow(folder);
  const stranger = { key: createAuthor().publicKey, name: 'stranger' };
  for (const [trust, reason] of [
    [{ keys: [], packs }, /key .* is not trusted/],
    [{ keys: [stranger], packs }, /key .* is not trusted/],
    [{ keys, packs: [] }, /not on the list of allowed packs/],
    [{ keys, packs: [{ ...packs[0]!, manifestHash: '0'.repeat(64) }] }, /changed since it was allowed/],
  ] as const) {
    expect(findDistrust(verifyPack(folder), trust)).toMatch(reason);
    await expect(openPack(folder, trust, CHECK)).rejects.toMatchObject({ code: 'untrusted', message: reason });
  }
  expect(() => readFileSync(mark)).toThrow('ENOENT');
  await openPack(folder, { keys, packs }, CHECK);
  expect(readFileSync(mark, 'utf8')).toBe('');
});

test('[KP2] a changed file, a changed manifest and a forged signature are refused', () => {
  const folder = createPack('acme', packCode());
  const path = join(folder, MANIFEST_NAME);
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  const rewrite = (changes: object): void => writeFileSync(path, JSON.stringify({ ...manifest, ...changes }));
  const signature = manifest['signature'] as { key: string; value: string };
  for (const changes of [
    { version: '1.0.1' },
    { name: 'acne' },
    { files: { ...(manifest['files'] as object), 'more.wasm': '0'.repeat(64) } },
    { signature: { ...signature, key: createAuthor().publicKey } },
    { signature: { ...signature, value: Buffer.alloc(64, 1).toString('base64') } },
    { signature: { ...signature, key: Buffer.alloc(32).toString('base64') } },
  ]) {
    rewrite(changes);
    expect(() => verifyPack(folder)).toThrow('the signature does not match the manifest');
  }
  rewrite({});
  appendFileSync(join(folder, 'pack.mjs'), ' ');
  expect(() => verifyPack(folder)).toThrow(/pack\.mjs has the hash [0-9a-f]{64}, signed is [0-9a-f]{64}/);
});

test.each([
  [{ format: 'ruvllm-kernels/2' }, '"format" must be ruvllm-kernels/1'],
  [{ name: '../evil' }, '"name" must match'],
  [{ version: '1' }, '"version" must match'],
  [{ files: { '../pack.mjs': '0'.repeat(64) } }, 'a file name must match'],
  [{ files: { 'pack.mjs': 'abc' } }, 'the hash of pack.mjs must match'],
  [{ files: {} }, '"entry" must be one of the files'],
  [
    { files: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`f${i}`, '0'.repeat(64)])) },
    '65 entries, the limit is 64',
  ],
  [{ signature: { key: 'AAAA', value: 'AAAA' } }, 'the public key must be 32 bytes in base64, got 3'],
  [{ more: 1 }, 'unknown field "more"'],
  [{ entry: undefined }, '"entry" must be one of the files'],
])('[KP2] a manifest with %j is refused', (changes, message) => {
  const folder = createPack('acme', packCode());
  const manifest = JSON.parse(readFileSync(join(folder, MANIFEST_NAME), 'utf8')) as object;
  expect(() => readManifest({ ...manifest, ...changes })).toThrow(message);
});

test('[KP3] a pack that computes wrong is refused with the numbers, and reported where others are used', async () => {
  const good = createPack('good', packCode());
  const bad = createPack('bad', WRONG);
  const trust = allow(good, bad);
  await expect(openPack(bad, trust, CHECK)).rejects.toMatchObject({
    code: 'kernel_failed',
    message: /bad@1\.0\.0 computes wrong: norm and activation, .* the reference has/,
  });
  const refused: string[] = [];
  const factories = await openAllowedPacks(CHECK, (name, reason) => refused.push(`${name}: ${reason}`), trust);
  expect(factories.map(({ name }) => name)).toEqual(['good@1.0.0']);
  expect(refused).toEqual([expect.stringMatching(/^bad: .*computes wrong/)]);
});

test('[KP4] the trust list survives, and a damaged one trusts nobody', () => {
  const path = join(root, 'deep', 'trust.json');
  expect(readTrust(path)).toEqual({ keys: [], packs: [] });
  const trust = { keys: [{ key: author.publicKey, name: 'author' }], packs: [] };
  writeTrust(trust, path);
  expect(readTrust(path)).toEqual(trust);
  for (const text of ['{', '{"keys":[{"key":"AA","name":"x"}],"packs":[]}', '{"keys":[],"packs":[{"name":1}]}', '[]']) {
    writeFileSync(path, text);
    expect(() => readTrust(path)).toThrow(/is damaged; no kernel pack is trusted/);
  }
});

/** The reference, with a pause in every product. */
function createSlow(name: string, pauseMs: number, clock: { ms: number }): KernelPackFactory {
  const reference = createReferencePackFactory();
  return {
    ...reference,
    name,
    async create(options) {
      const pack = await reference.create(options);
      return { ...pack, arena: pack.arena, matmul: () => void (clock.ms += pauseMs), sync: async () => {} };
    },
  };
}

test('[KP5] the fastest is chosen by measurement, once per machine and shape', async () => {
  const clock = { ms: 0 };
  const [slow, fast] = [createSlow('slow', 40, clock), createSlow('fast', 5, clock)];
  const historyPath = join(root, 'speeds.json');
  const matrices = [{ type: 'Q8_0', numRows: 64, numCols: 64 }] as const;
  const check = { numThreads: 1, matrices, now: () => clock.ms, historyPath };
  expect((await chooseFastest([slow, fast], check)).name).toBe('fast');
  const measured = readSpeeds(historyPath);
  expect(measured).toMatchObject([
    { kernels: 'slow', decodeMs: 40, promptMs: 40, shape: 'Q8_0 64x64', machine: describeMachine() },
    { kernels: 'fast', decodeMs: 5 },
  ]);
  const before = clock.ms;
  expect((await chooseFastest([slow, fast], check)).name).toBe('fast');
  expect(clock.ms).toBe(before);
  // Records decide, not the order; those of another machine, shape or number of threads do not count.
  addSpeeds(
    measured.map((one) => ({ ...one, decodeMs: one.kernels === 'fast' ? 99 : 1, promptMs: 9 })),
    historyPath,
  );
  expect((await chooseFastest([slow, fast], check)).name).toBe('slow');
  expect(readSpeeds(historyPath)).toHaveLength(2);
  const other = await findSpeeds([slow, fast], { ...check, matrices: [{ type: 'Q8_0', numRows: 32, numCols: 64 }] });
  expect(other.map(({ decodeMs }) => decodeMs)).toEqual([40, 5]);
  await findSpeeds([slow], { ...check, numThreads: 2 });
  expect(readSpeeds(historyPath)).toHaveLength(5);
  expect((await findSpeeds([fast], { ...check, isFresh: true }))[0]!.decodeMs).toBe(5);
});

test('[KP5] a damaged history is an empty one', () => {
  const path = join(root, 'speeds.json');
  for (const text of ['{', '{}', '[1, null, {"machine": "x"}]']) {
    writeFileSync(path, text);
    expect(readSpeeds(path)).toEqual([]);
  }
});
