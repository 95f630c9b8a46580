// Kernel packs from outside, through the command line: sign, trust, allow, run, change.
import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from './support/run-command.ts';
import { buildRandomModel } from './support/random-model.ts';

const root = mkdtempSync(join(tmpdir(), 'ruvllm-kernels-'));
const pack = join(root, 'acme');
const model = join(root, 'model.gguf');
const keyFile = join(root, 'key.pem');
let publicKey = '';
afterAll(() => rmSync(root, { recursive: true, force: true }));

const CODE = `export function createKernelPackFactory({ reference }) {
  return { ...reference, async create(options) { console.error('acme kernels'); return reference.create(options); } };
}
`;

beforeAll(() => {
  const { privateKey } = generateKeyPairSync('ed25519');
  writeFileSync(keyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }));
  mkdirSync(pack);
  writeFileSync(join(pack, 'pack.mjs'), CODE);
  const shape = { embeddingDim: 64, feedForwardDim: 64, numLayers: 1, numHeads: 2, numKvHeads: 2, headDim: 32 };
  writeFileSync(model, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 4, shape }));
});

const environment = { RUVLLM_DATA_DIR: join(root, 'data'), RUVLLM_STATE_DIR: join(root, 'state'), RUVLLM_THREADS: '1' };
const ruvllm = (...args: string[]) => runCommand(args, { environment });
/** A real process: kernels write to its error output, and warnings go there. */
function generate(kernels: string) {
  const options = ['--raw', '--max-tokens', '4', '--temperature', '0', '--json', '--kernels', kernels];
  const env = { ...process.env, ...environment };
  const result = spawnSync(process.execPath, [bin, 'run', model, 'ab', ...options], { encoding: 'utf8', env });
  return { ...result, said: result.stdout + result.stderr }; // errors of --json are documents
}
const bin = fileURLToPath(new URL('../bin/ruvllm.mjs', import.meta.url));

test('[KP6] a pack runs after its author signed it and the user trusts the key and allows the pack', async () => {
  const unknown = generate('pack:acme');
  expect(unknown.said).toContain('none is allowed');
  const signed = await ruvllm(
    'kernels',
    'sign',
    pack,
    '--key',
    keyFile,
    '--pack-name',
    'acme',
    '--pack-version',
    '1.0.0',
  );
  expect(signed.status, signed.stderr).toBe(0);
  publicKey = signed.stdout.trim();
  const early = await ruvllm('kernels', 'trust', pack);
  expect(early.status).not.toBe(0);
  expect(early.stderr).toContain(`its key ${publicKey} is not trusted`);
  expect((await ruvllm('kernels', 'trust', publicKey, '--name', 'Acme')).status).toBe(0);
  expect((await ruvllm('kernels', 'verify', pack)).stderr).toContain('it would not run: it is not on the list');
  expect((await ruvllm('kernels', 'trust', pack)).status).toBe(0);
  expect((await ruvllm('kernels', 'verify', pack)).stdout).toContain('computes what the reference computes');
  const ran = generate('pack:acme');
  expect(ran.stderr).toContain('acme kernels');
  const text = (stdout: string): unknown => (JSON.parse(stdout) as { text: unknown }).text;
  expect(text(ran.stdout)).toBe(text(generate('reference').stdout));
  const { packs, trustedKeys } = JSON.parse((await ruvllm('kernels', 'list', '--json')).stdout) as Record<
    string,
    unknown
  >;
  expect([packs, trustedKeys]).toMatchObject([[{ name: 'acme', problem: null }], [{ key: publicKey, name: 'Acme' }]]);
});

test('[KP6] speeds are measured, recorded and listed; the slow pack is not chosen by "auto"', async () => {
  const bench = await ruvllm('kernels', 'bench', model, '--json');
  expect(bench.status, bench.stderr).toBe(0);
  const { speeds, fastest } = JSON.parse(bench.stdout) as { speeds: { kernels: string }[]; fastest: string };
  expect(speeds.map(({ kernels }) => kernels)).toEqual(expect.arrayContaining(['acme@1.0.0']));
  expect(fastest).not.toBe('acme@1.0.0');
  const listed = JSON.parse((await ruvllm('kernels', 'list', '--json')).stdout) as { speeds: unknown };
  expect(listed.speeds).toEqual(speeds);
  const ran = JSON.parse(generate('auto').stdout) as { model: { kernels: string } };
  expect(ran.model.kernels.startsWith(fastest)).toBe(true); // with its build
});

test('[KP6] a changed pack is refused, and untrust ends it', async () => {
  appendFileSync(join(pack, 'pack.mjs'), '// more');
  const changed = generate('pack:acme');
  expect([changed.status === 0, changed.said]).toEqual([false, expect.stringContaining('pack.mjs has the hash')]);
  const again = ['kernels', 'sign', pack, '--key', keyFile, '--pack-name', 'acme', '--pack-version', '1.0.1'];
  expect((await ruvllm(...again)).status).toBe(0);
  expect(generate('pack:acme').said).toContain('changed since it was allowed');
  const fallback = generate('auto');
  expect([fallback.status, fallback.stderr]).toEqual([0, expect.stringContaining('kernel pack acme refused')]);
  expect((await ruvllm('kernels', 'untrust', publicKey)).status).toBe(0);
  expect((await ruvllm('kernels', 'untrust', publicKey)).stderr).toContain('no trusted key or allowed pack');
  expect(generate('pack:acme').said).toContain('is not trusted');
  expect(generate('pack:../x').said).toContain('one of auto, native, webgpu, wasm, reference, or pack:NAME');
});
