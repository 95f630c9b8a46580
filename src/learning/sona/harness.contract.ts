import { createHash } from 'node:crypto';
import { buildRandomModel } from '../../../test/support/random-model.ts';
import type { LowRankFactors } from '../../adapters/types.ts';
import { createMemorySource } from '../../core/byte-source.ts';
import { createRandom } from '../../core/random.ts';
import { openGguf } from '../../gguf/index.ts';
import { createWasmPackFactory } from '../../kernels/wasm/wasm-pack.ts';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import { createPolicyMemory } from '../../memory/policies/policies.ts';
import { DEFAULT_POLICIES } from '../../memory/policies/defaults.ts';
import { createTestServices, createTestStore } from '../../memory/test-store.contract.ts';
import type { MemoryStore } from '../../memory/types.ts';
import { joinFactors } from '../lora-training/join-factors.contract.ts';
import { createTrainingModel } from '../lora-training/training-model.ts';
import type { ExampleLoss, TrainingExample, TrainingModel } from '../lora-training/types.ts';
import { trajectoryFixture } from '../trajectories/harness.contract.ts';
import { createTrajectories, type NewTrajectory } from '../trajectories/trajectories.ts';
import type { SonaOptions } from './options.ts';
import { createSona } from './sona.ts';
import type { Probe } from './probes.ts';
import type { AdapterPlan, InstantEvent, LearningModel, Served } from './types.ts';
import { createLearningWork } from './work-methods.ts';

const VOCAB = 260;
const DIM = 24;

const MODEL = buildRandomModel({
  architecture: 'llama',
  type: 'F32',
  seed: 3,
  shape: {
    numLayers: 2,
    embeddingDim: DIM,
    numHeads: 6,
    numKvHeads: 2,
    headDim: 4,
    feedForwardDim: 20,
    vocabSize: VOCAB,
  },
});

interface Pass {
  readonly result: ExampleLoss;
  readonly gradient: Float32Array;
}
/** The results of passes, of all tests of the process, oldest first: most train the same on the same examples. */
const passes = new Map<string, Pass>();
const MAX_PASSES = 8000;

/** Computes a pass once: its result depends on the weights and the example alone, unless it draws labels or has another objective. */
function rememberPasses(model: TrainingModel, plan: AdapterPlan): TrainingModel {
  const shape = JSON.stringify([plan.rank, plan.numLayers, plan.maxTokens]);
  async function once(
    method: string,
    parameters: Float32Array | null,
    example: TrainingExample,
    compute: (gradient: Float32Array) => Promise<ExampleLoss>,
  ): Promise<Pass> {
    const { tokenIds, numPromptTokens, weight = 1 } = example;
    const weights = parameters === null ? '' : createHash('sha256').update(parameters).digest('base64');
    const key = [shape, method, weights, numPromptTokens, weight, Array.from(tokenIds).join(' ')].join(';');
    const known = passes.get(key);
    if (known !== undefined) return known;
    const gradient = new Float32Array(method === 'loss' ? 0 : model.layout.numParameters);
    const pass = { result: await compute(gradient), gradient };
    if (passes.size >= MAX_PASSES) passes.delete(passes.keys().next().value!);
    passes.set(key, pass);
    return pass;
  }
  return {
    ...model,
    async loss(parameters, example, options) {
      if (options !== undefined) return model.loss(parameters, example, options);
      return (await once('loss', parameters, example, () => model.loss(parameters, example))).result;
    },
    async addGradient(parameters, example, gradient, options) {
      if (options !== undefined) return model.addGradient(parameters, example, gradient, options);
      const pass = await once('gradient', parameters, example, (zero) => model.addGradient(parameters, example, zero));
      pass.gradient.forEach((value, i) => (gradient[i]! += value));
      return pass.result;
    },
  };
}

export async function openTinyModel(plan: AdapterPlan): Promise<TrainingModel> {
  const { rank, numLayers, maxTokens } = plan;
  const gguf = openGguf(createMemorySource(MODEL));
  return rememberPasses(
    await createTrainingModel(gguf, createWasmPackFactory(createNodeWasmPlatform(['simd128'])), {
      rank,
      numLayers,
      maxTokens,
    }),
    plan,
  );
}

/** A busy machine must not change what a test comes to. */
export const PLENTY_MS = 1e8;

/** In milliseconds: opening the model, the loss of an example, and its gradient. */
export interface Costs {
  readonly open: number;
  readonly loss: number;
  readonly gradient: number;
}

/** Takes no more time than the clock says. */
async function openSlowModel(plan: AdapterPlan, costs: Costs, spend: (ms: number) => void): Promise<TrainingModel> {
  const model = await openTinyModel(plan);
  spend(costs.open);
  return {
    ...model,
    loss: (...given) => (spend(costs.loss), model.loss(...given)),
    addGradient: (...given) => (spend(costs.gradient), model.addGradient(...given)),
  };
}

/** One token a character. */
const encode = (text: string): number[] => Array.from(text, (letter) => 3 + (letter.charCodeAt(0) % 250));

export const hashFactors = (factors: readonly LowRankFactors[]): string => {
  const hash = createHash('sha256');
  for (const { target, layer, a, b } of factors)
    hash.update(`${target}${layer}`).update(Buffer.from(a.buffer)).update(Buffer.from(b.buffer));
  return hash.digest('hex');
};

/** All of learning on a tiny model and a store that lives as long as the harness, or one that is given. */
export function createSonaHarness(
  given: SonaOptions = {},
  other: MemoryStore | null = null,
  probes: readonly Probe[] = [],
) {
  const events: InstantEvent[] = [];
  const services = createTestServices();
  const store = (other as ReturnType<typeof createTestStore> | null) ?? createTestStore(services);
  const trajectories = createTrajectories(store, services);
  const policies = createPolicyMemory(store, services);
  const served = new Map<string, Served>();
  let isLoaded = true;

  const model: LearningModel = {
    id: 'small',
    path: 'small.gguf',
    architecture: 'llama',
    hiddenDim: DIM,
    vocabSize: VOCAB,
    numParameters: 1e4,
    maxTokens: 32,
    async encodeExample({ query, prompt }, answer) {
      const [asked, said] = [encode(query).slice(0, 10), encode(answer).slice(0, 10)];
      return prompt === null ? null : { tokenIds: [...asked, ...said], numPromptTokens: asked.length };
    },
    examine: async (_tenant, { tokenIds, numPromptTokens }) =>
      Array.from(tokenIds)
        .slice(numPromptTokens)
        .map((label, i) => {
          const random = createRandom(tokenIds[numPromptTokens + i - 1]! * 1000 + i);
          const hidden = Float32Array.from({ length: DIM }, () => random.next() * 2 - 1);
          const ids = Array.from({ length: 20 }, (_, k) => (label + k) % VOCAB);
          return { hidden, label, ids, logits: ids.map(() => random.next()) };
        }),
    serve: async (tenant, adapters) => void served.set(tenant, adapters),
  };

  const { sha256 } = services;
  let work = createLearningWork(openTinyModel, () => performance.now(), sha256);
  /** `costs`: what a pass takes on the clock of the services, which nothing else moves then. */
  function open(options: SonaOptions = {}, costs: Costs | null = null) {
    const now = (): number => services.timeMs;
    const spend = (ms: number): void => void (services.timeMs += ms);
    work =
      costs === null
        ? createLearningWork(openTinyModel, () => performance.now(), sha256)
        : createLearningWork((plan) => openSlowModel(plan, costs, spend), now, sha256);
    const sona = createSona({
      store,
      services,
      trajectories,
      work,
      policies: () => policies,
      model: (id) => (isLoaded && id === 'small' ? model : null),
      createAdapter: async (architecture, factors) => ({ architecture, factors, contentHash: hashFactors(factors) }),
      report: () => {},
      probes,
      onInstant: (event) => void events.push(event),
      ewcSettings: async () => DEFAULT_POLICIES.ewc.parameters,
      options: { rank: 2, numLayers: 2, learningRate: 0.02, fisherSamples: 4, backgroundLimitMs: PLENTY_MS, ...given, ...options }, // prettier-ignore
    });
    const adaptTo = async (tenant: string, requestId: string) =>
      sona.instantAdapt(tenant, (await trajectories.get(tenant, requestId))!);
    return { ...sona, instantAdapt: adaptTo };
  }

  let numAdded = 0;
  /** A request about creature `n`, and what somebody said of it. */
  async function add(
    quality: number | null,
    changes: Partial<NewTrajectory> & { correction?: string } = {},
  ): Promise<string> {
    const { correction, ...rest } = changes;
    const one = trajectoryFixture(++numAdded, {
      embedding: null,
      space: null,
      query: `${numAdded}?`,
      answer: 'a blue zog',
      ...rest,
    });
    await trajectories.add('acme', one);
    if (quality !== null || correction !== undefined) {
      await trajectories.rate('acme', { requestId: one.requestId, score: quality, correction: correction ?? null });
    }
    return one.requestId;
  }

  return {
    services,
    store,
    trajectories,
    served,
    events,
    model,
    open,
    /** Learning work of the loops opened last. */
    work: () => work,
    add,
    /** Heard when a run writes down how far it came. */
    onCheckpoint(heard: (() => unknown) | null): void {
      store.onCall = (operation, argument) => {
        const records = argument as { fields?: { name?: string } }[];
        if (operation === 'put' && records.some?.(({ fields }) => fields?.name === 'checkpoint')) heard?.();
      };
    },
    setLoaded: (value: boolean) => (isLoaded = value),
    /** Mean loss of an answer under what serves. */
    async lossOf(query: string, answer: string): Promise<number> {
      const training = await openTinyModel({ path: '', rank: 2, numLayers: 2, maxTokens: 32 });
      const example = (await model.encodeExample(trajectoryFixture(0, { query }) as never, answer))!;
      const factors = served.get('acme')?.trained?.factors ?? [];
      const parameters = factors.length === 0 ? null : joinFactors(factors);
      const { loss } = await training.loss(parameters, example);
      await training.dispose();
      return loss;
    },
  };
}
