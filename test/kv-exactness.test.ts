// Real kernels, pages and folders: whatever happens to a sequence, its logits have the same bits as alone.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createMemorySource } from '../src/core/byte-source.ts';
import { createEngine, type Engine, type EngineOptions } from '../src/engine/engine.ts';
import type { EngineEvent, EngineRequest } from '../src/engine/types.ts';
import { type GgufFile, openGguf } from '../src/gguf/index.ts';
import type { KernelPackFactory } from '../src/kernels/contract.ts';
import { expectSameBits } from '../src/kernels/pack-fixture.contract.ts';
import { createReferencePackFactory } from '../src/kernels/reference/reference-pack.ts';
import { createWasmPackFactory } from '../src/kernels/wasm/wasm-pack.ts';
import { loadModel } from '../src/models/load-model.ts';
import type { ModelLimits } from '../src/models/types.ts';
import { createNodeWasmPlatform } from '../src/platform/node/kernels/wasm-platform.ts';
import { openSpillFolder } from '../src/platform/node/spill/spill-folder.ts';
import { campaign } from './support/campaign.ts';
import { engineRequest } from './support/engine-request.ts';
import { graniteExperts } from './support/random-experts.ts';
import { buildRandomModel, type RandomModelOptions } from './support/random-model.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-exact-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LIMITS: ModelLimits = { maxBatchTokens: 40, maxSequences: 4, maxLogitRows: 4, numPages: 40, numStates: 12 };
const COLD: Partial<EngineOptions> = { keepsPrefixes: false };

type Open = (limits?: Partial<ModelLimits>, options?: Partial<EngineOptions>) => Promise<Engine>;

const wasm = createWasmPackFactory(createNodeWasmPlatform(['simd128']));
/** The reference kernels, which are plain JavaScript and far slower, run in the long form. */
const packs: readonly KernelPackFactory[] = campaign({ short: [wasm], long: [wasm, createReferencePackFactory()] });

function openerOf(
  pack: KernelPackFactory,
  file: Pick<RandomModelOptions, 'architecture' | 'shape' | 'metadata'>,
): Open {
  let gguf: GgufFile | null = null;
  return async (limits = {}, options = {}) => {
    gguf ??= openGguf(
      createMemorySource(buildRandomModel({ type: 'Q8_0', seed: 3, shape: { numLayers: 2 }, ...file })),
    );
    const model = await loadModel(gguf, pack, { limits: { ...LIMITS, ...limits }, numThreads: 1 });
    return createEngine(model, { maxContext: 256, now: () => 0, modelHash: 'random', policy: 'f16', ...options });
  };
}

interface Answer {
  readonly tokens: number[];
  /** The logits after each token. */
  readonly logits: Float32Array[];
  cachedTokens: number;
}

/** Greedy requests; each answer keeps its logits. */
function ask(engine: Engine, id: number, promptIds: readonly number[], request: Partial<EngineRequest> = {}): Answer {
  const answer: Answer = { tokens: [], logits: [], cachedTokens: -1 };
  engine.add(
    engineRequest({
      id,
      promptIds,
      maxTokens: 12,
      ...request,
      sampler: {
        sample(logits) {
          const tokenId = logits.indexOf(logits.reduce((max, value) => Math.max(max, value)));
          answer.logits.push(logits.slice());
          answer.tokens.push(tokenId);
          return { tokenId, logprob: null, top: [] };
        },
      },
    }),
  );
  return answer;
}

async function finish(engine: Engine, answers: readonly Answer[] = []): Promise<EngineEvent[]> {
  const events: EngineEvent[] = [];
  while (engine.hasWork) {
    events.push(...(await engine.step()));
    engine.checkIntegrity();
  }
  for (const event of events) {
    expect(event.type).not.toBe('failed');
    if (event.type === 'finished' && answers[event.id]) answers[event.id]!.cachedTokens = event.cachedTokens;
  }
  return events;
}

async function aloneWith(open: Open, promptIds: readonly number[], maxTokens = 12): Promise<Answer> {
  const engine = await open({}, COLD);
  const answer = ask(engine, 0, promptIds, { maxTokens });
  await finish(engine, [answer]);
  await engine.dispose();
  expect(answer.cachedTokens).toBe(0);
  return answer;
}

/** The same tokens, and logits with the same bits. */
function expectSame(answer: Answer, expected: Answer): void {
  expect(answer.tokens).toEqual(expected.tokens);
  expect(answer.logits).toHaveLength(expected.logits.length);
  for (const [i, logits] of expected.logits.entries()) expectSameBits(answer.logits[i]!, logits, `token ${i}`);
}

const ids = (count: number, salt: number): number[] =>
  Array.from({ length: count }, (_, i) => (i * 37 + salt * 11) % 90);
const base = ids(70, 1);

/** The last layer uses the keys and values of the first. */
const SHARED_KEYS: Pick<RandomModelOptions, 'shape' | 'metadata'> = {
  shape: { numLayers: 3 },
  metadata: [
    { key: 'gemma3n.attention.shared_kv_layers', type: 'u32', value: 1 },
    { key: 'gemma3n.attention.sliding_window_pattern', type: 'array<bool>', value: [true, false, true] },
  ],
};
/** Mamba 2, attention, Mamba 2 with experts in every layer. */
const HYBRID_MIXTURE: Pick<RandomModelOptions, 'shape'> = {
  shape: { numLayers: 3, experts: graniteExperts(8, 64, 96) },
};

/** Heads of two sizes, and experts beside dense layers. */
const MIXED_MIXTURE: Pick<RandomModelOptions, 'shape'> = {
  shape: { numLayers: 3, experts: { numExperts: 4, numUsed: 2, feedForwardDim: 64 } },
};

interface Subject extends Pick<RandomModelOptions, 'architecture' | 'shape' | 'metadata'> {
  /** Default: the architecture. */
  readonly title?: string;
  readonly cached: readonly number[];
}

// Recurrent layers continue only where a state was saved: at the last page border of each step.
const subjects: readonly Subject[] = [
  { architecture: 'llama', cached: [0, 70, 39, 63, 69] },
  { architecture: 'qwen3moe', cached: [0, 70, 39, 63, 69] },
  { architecture: 'lfm2', cached: [0, 64, 32, 32, 64] },
  { architecture: 'granitehybrid', cached: [0, 64, 32, 32, 64] },
  { architecture: 'lfm2moe', cached: [0, 64, 32, 32, 64] },
  { architecture: 'falcon-h1', cached: [0, 64, 32, 32, 64] },
  { architecture: 'qwen3next', cached: [0, 64, 32, 32, 64] },
  { architecture: 'deepseek2', cached: [0, 70, 39, 63, 69] },
  { architecture: 'gemma3n', cached: [0, 70, 39, 63, 69], ...SHARED_KEYS },
  { architecture: 'gemma4', cached: [0, 70, 39, 63, 69], shape: { numLayers: 7 } },
  { architecture: 'gemma4', title: 'gemma4-moe', cached: [0, 70, 39, 63, 69], ...MIXED_MIXTURE },
  { architecture: 'granitehybrid', title: 'granitehybrid-moe', cached: [0, 64, 32, 32, 64], ...HYBRID_MIXTURE },
];

const titled = packs.flatMap((pack) =>
  subjects.map((subject) => ({ title: subject.architecture as string, pack, name: pack.name, ...subject })),
);
describe.each(titled)('$title, $name', ({ cached, title, pack, name, ...file }) => {
  const open = openerOf(pack, file);
  const alone = (promptIds: readonly number[], maxTokens?: number): Promise<Answer> =>
    aloneWith(open, promptIds, maxTokens);

  test('cached equals uncached: whole pages, the middle of a page, and a completely cached prompt', async () => {
    const engine = await open();
    const prompts = [base, [...base, ...ids(9, 2)], [...base.slice(0, 39), ...ids(20, 3)], base.slice(0, 64), base];
    const answers: Answer[] = [];
    for (const [id, prompt] of prompts.entries()) {
      answers.push(ask(engine, id, prompt));
      await finish(engine, answers);
    }
    expect(answers.map(({ cachedTokens }) => cachedTokens)).toEqual(cached);
    for (const [id, prompt] of prompts.entries()) {
      expectSame(answers[id]!, await alone(prompt));
    }
    await engine.dispose();
  });

  test('batched and preempted equals alone, with pages for one and a half sequences', async () => {
    const engine = await open({ numPages: 9 });
    const prompts = [base, [...base.slice(0, 33), ...ids(30, 4)], ids(60, 5), [...ids(60, 5), 7, 8]];
    const answers = prompts.map((prompt, id) => ask(engine, id, prompt, { maxTokens: 30 }));
    await finish(engine);
    const { numPreemptions, cache } = engine.stats();
    expect(numPreemptions).toBeGreaterThan(0);
    expect(cache.peakBytes).toBeLessThanOrEqual(cache.budgetBytes);
    for (const [id, prompt] of prompts.entries()) {
      expectSame(answers[id]!, await alone(prompt, 30));
    }
    await engine.dispose();
  });

  test('restored equals never spilled, in the same process and in the next', async () => {
    const spill = () =>
      openSpillFolder({
        folder: join(folder, `${title} ${name}`),
        limitBytes: 2 ** 26,
        masterKey: new Uint8Array(32).fill(9),
      });
    const first = await open({ numPages: 8 }, { spill: spill() });
    const answers = [ask(first, 0, base)];
    await finish(first, answers);
    answers.push(ask(first, 1, ids(90, 6))); // Needs space, so idle pages are spilled.
    await finish(first, answers);
    answers.push(ask(first, 2, [...base, 5, 6]));
    await finish(first, answers);
    expect(first.stats().cache.numRestored).toBeGreaterThan(0);
    await first.dispose();

    const second = await open({ numPages: 16 }, { spill: spill() });
    const later = [ask(second, 0, [...base, 5, 6])];
    await finish(second, later);
    expect(later[0]!.cachedTokens).toBe(64);
    expect(second.stats().cache.numRestored).toBe(4);
    const expected = await alone([...base, 5, 6]);
    for (const answer of [answers[2]!, later[0]!]) expectSame(answer, expected);

    // Another tenant with the same prompt gets no hit, in memory or on disk.
    const other = [ask(second, 1, base, { tenant: 'other' })];
    const events = await finish(second);
    expect(events.find((event) => event.type === 'finished')).toMatchObject({ cachedTokens: 0 });
    expectSameBits(other[0]!.logits[0]!, (await alone(base)).logits[0]!, 'the other tenant');
    await second.dispose();
  });
});
