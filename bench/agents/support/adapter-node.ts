import { createHash } from 'node:crypto';
import { createRandom } from '../../../src/core/random.ts';
import { buildRandomModel } from '../../../test/support/random-model.ts';
import type { LowRankFactors } from '../../../src/adapters/types.ts';
import type { AdapterPlan, LearningModel, LearningWork } from '../../../src/learning/sona/types.ts';
import { importBuilt } from '../../support/dist.ts';

const { createUuidV7 } = await importBuilt<typeof import('../../../src/core/uuid.ts')>('core/uuid');
const { createMemorySource } = await importBuilt<typeof import('../../../src/core/byte-source.ts')>('core/byte-source');
const { openGguf } = await importBuilt<typeof import('../../../src/gguf/index.ts')>('gguf/index');
const { createReferencePackFactory } = await importBuilt<typeof import('../../../src/kernels/reference/reference-pack.ts')>('kernels/reference/reference-pack'); // prettier-ignore
const { createTrainingModel } = await importBuilt<typeof import('../../../src/learning/lora-training/training-model.ts')>('learning/lora-training/training-model'); // prettier-ignore
const { planOf } = await importBuilt<typeof import('../../../src/learning/sona/learned-adapter.ts')>('learning/sona/learned-adapter'); // prettier-ignore
const { createSona } = await importBuilt<typeof import('../../../src/learning/sona/sona.ts')>('learning/sona/sona');
const { createLearningWork } = await importBuilt<typeof import('../../../src/learning/sona/work-methods.ts')>('learning/sona/work-methods'); // prettier-ignore
const { createTrajectories } = await importBuilt<typeof import('../../../src/learning/trajectories/trajectories.ts')>('learning/trajectories/trajectories'); // prettier-ignore
const { DEFAULT_POLICIES } = await importBuilt<typeof import('../../../src/memory/policies/defaults.ts')>('memory/policies/defaults'); // prettier-ignore
const { createPolicyMemory } = await importBuilt<typeof import('../../../src/memory/policies/policies.ts')>('memory/policies/policies'); // prettier-ignore
const { createInMemoryStore } = await importBuilt<typeof import('../../../src/memory/store/in-memory/in-memory-store.ts')>('memory/store/in-memory/in-memory-store'); // prettier-ignore

const TENANT = 'bench';
const RANK = 4;
const VOCAB = 64;
const ANSWERS = ['A', 'B', 'C', 'D'];

/** The adapter of a peer. */
interface Sent {
  readonly name: string;
  readonly factors: readonly LowRankFactors[];
}

/** A question and the number of its right answer. */
export interface Lesson {
  readonly question: string;
  readonly right: number;
}

const bytes = buildRandomModel({
  architecture: 'llama',
  type: 'F32',
  seed: 3,
  shape: {
    numLayers: 2,
    embeddingDim: 32,
    numHeads: 4,
    numKvHeads: 2,
    headDim: 8,
    feedForwardDim: 48,
    vocabSize: VOCAB,
  },
});
const openModel = ({ rank, numLayers, maxTokens }: AdapterPlan) =>
  createTrainingModel(openGguf(createMemorySource(bytes)), createReferencePackFactory(), {
    rank,
    numLayers,
    maxTokens,
  });
const sha256 = (data: Uint8Array): Uint8Array => createHash('sha256').update(data).digest();
const work: LearningWork = createLearningWork(openModel, () => performance.now(), sha256);
/** One token a character. */
const encode = (text: string): number[] => Array.from(text, (letter) => 3 + (letter.charCodeAt(0) % (VOCAB - 3)));

const model: LearningModel = {
  id: 'tiny',
  path: 'tiny.gguf',
  architecture: 'llama',
  hiddenDim: 32,
  vocabSize: VOCAB,
  numParameters: 1e4,
  maxTokens: 32,
  async encodeExample({ query }, answer) {
    const asked = encode(query);
    return { tokenIds: [...asked, ...encode(answer)], numPromptTokens: asked.length };
  },
  examine: async () => [],
  serve: async () => {},
};
const plan = planOf(model, RANK, 2);

/** Parameters of factors with the rank of the plan. */
export async function parametersOf(factors: readonly LowRankFactors[]): Promise<Float32Array> {
  const like = await work.factorsOf(plan, new Float32Array(await work.layoutSize(plan)));
  return Float32Array.from(
    like.flatMap(({ target, layer, scale }) => {
      const one = factors.find((other) => other.target === target && other.layer === layer)!;
      return [...one.a, ...Array.from(one.b, (value) => (value * one.scale) / scale)];
    }),
  );
}

/** Whether the right answer is the likeliest of the four, for each question. */
export async function judge(parameters: Float32Array | null, lessons: readonly Lesson[]): Promise<Uint8Array> {
  const examples = lessons.flatMap(({ question }) =>
    ANSWERS.map((answer) => ({ tokenIds: encode(question + answer), numPromptTokens: question.length })),
  );
  const { losses } = await work.losses(plan, examples as never, parameters, null);
  return Uint8Array.from(lessons, ({ right }, i) => {
    const each = losses.slice(i * ANSWERS.length, (i + 1) * ANSWERS.length);
    return +(each.indexOf(Math.min(...each)) === right);
  });
}

/** A node with a tiny model and its own store: the code of users, in one process. */
export function createAdapterNode(seed: number) {
  const random = createRandom(seed);
  // The id decides whether a request is held out.
  const randomBytes = (count: number): Uint8Array => Uint8Array.from({ length: count }, () => Math.floor(random.next() * 256)); // prettier-ignore
  let timeMs = Date.UTC(2026, 0, 1);
  const now = (): number => timeMs;
  const services = { now, newId: createUuidV7({ now, randomBytes }), sha256 };
  const store = createInMemoryStore({ now });
  const trajectories = createTrajectories(store, services);
  const policies = createPolicyMemory(store, services);
  const sona = createSona({
    store,
    services,
    trajectories,
    work,
    policies: () => policies,
    model: (id) => (id === model.id ? model : null),
    createAdapter: async (architecture, factors) => ({ architecture, factors, contentHash: '' }),
    report: () => {},
    ewcSettings: async () => DEFAULT_POLICIES.ewc.parameters,
    options: { rank: RANK, numLayers: 2, learningRate: 0.003, fisherSamples: 8, maxExamples: 5000, deepLimitMs: 1e9 },
  });
  /** What serves, as parameters; null: the model as in its file. */
  async function served(): Promise<Float32Array | null> {
    const active = await sona.versions.active(TENANT, `adapter/${model.id}`);
    if (active === null) return null;
    return parametersOf((await sona.adapterOf(TENANT, model.id, active.version)).factors);
  }

  return {
    async teach(lessons: readonly Lesson[]): Promise<void> {
      for (const { question, right } of lessons) {
        timeMs++;
        const requestId = services.newId();
        await trajectories.add(TENANT, {
          requestId,
          sessionId: null,
          userId: null,
          model: model.id,
          createdMs: timeMs,
          query: question,
          prompt: [{ role: 'user', content: question }],
          answer: ANSWERS[right]!,
          steps: [],
          parameters: { propensity: null },
          retrieved: [],
          quality: null,
          latencyMs: 0,
          numOutputTokens: 1,
          embedding: null,
          space: null,
        });
        await trajectories.rate(TENANT, { requestId, score: 1 });
      }
    },
    /** Trains with the gate. */
    async train(): Promise<string> {
      timeMs += 1000;
      return (await sona.deepOptimize(TENANT, model.id)).adapter.reason;
    },
    adapter: () => sona.ownAdapter(TENANT, model.id),
    /** Merges with the gate, and calls `use` with what then serves; afterwards the node is as before. */
    async merge<T>(
      peers: readonly Sent[],
      use: (served: Float32Array | null, reason: string) => Promise<T>,
    ): Promise<T> {
      timeMs += 1000;
      const before = await sona.versions.active(TENANT, `adapter/${model.id}`);
      const deltas = peers.map(({ name, factors }) => ({ id: `federation/${name}`, peer: name, factors }));
      const { reason } = await sona.mergePeers(TENANT, model.id, deltas);
      const result = await use(await served(), reason);
      await sona.rollback(TENANT, model.id, before?.version ?? 0);
      return result;
    },
    served,
  };
}
