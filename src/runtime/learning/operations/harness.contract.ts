import { createSonaHarness, openTinyModel, PLENTY_MS } from '../../../learning/sona/harness.contract.ts';
import type { SonaOptions } from '../../../learning/sona/options.ts';
import type { Served } from '../../../learning/sona/types.ts';
import { createLearningWork } from '../../../learning/sona/work-methods.ts';
import { trajectoryFixture } from '../../../learning/trajectories/harness.contract.ts';
import type { NewTrajectory } from '../../../learning/trajectories/trajectories.ts';
import { createTestMemory } from '../../../memory/operations/harness.contract.ts';
import { createLearning } from '../learning.ts';
import { createLearningControl } from './control.ts';
import { learningOperation } from './table.ts';

/** Learning with a tiny model that is really trained, in a memory that lives as long as the test. */
export async function createTestLearning(
  options: SonaOptions = {},
  modelId = 'small',
  /** Without recall of corrections, loop A learns each of them at once. */
  { implicitFeedback = false, corrections = false }: { implicitFeedback?: boolean; corrections?: boolean } = {},
) {
  const remembered = await createTestMemory();
  const { memory } = remembered;
  const { model } = createSonaHarness();
  const served = new Map<string, Served>();
  const work = createLearningWork(openTinyModel, () => performance.now(), memory.services.sha256);
  const told: string[] = [];
  const learning = createLearning({
    memory,
    work,
    endWork: async () => {},
    schedule: () => () => {},
    report: (message) => void told.push(message),
    implicitFeedback,
    corrections,
    probes: [],
    options: { rank: 2, numLayers: 2, learningRate: 0.02, fisherSamples: 4, minExamples: 4, instantLearningRate: 0.05, backgroundLimitMs: PLENTY_MS, ...options }, // prettier-ignore
  });
  learning.attach({ ...model, id: modelId, serve: async (tenant, adapters) => void served.set(tenant, adapters) });
  const control = createLearningControl({ learning, memory });
  let numAdded = 0;
  /** A request that can be judged; its id. */
  async function add(changes: Partial<NewTrajectory> = {}, tenant = 'acme'): Promise<string> {
    const given = { embedding: null, space: null, query: `${++numAdded}?`, answer: 'a blue zog', model: modelId };
    const one = trajectoryFixture(numAdded, { ...given, ...changes });
    await learning.trajectories.add(tenant, one);
    return one.requestId;
  }

  return {
    ...remembered,
    learning,
    control,
    served,
    model,
    work,
    told,
    /** Runs an operation, and checks that JSON does not change what comes back. */
    async run<T = unknown>(name: string, input: unknown = {}, tenant = 'acme'): Promise<T> {
      const value = await learningOperation(name).run(control, tenant, input);
      const copy = JSON.parse(JSON.stringify(value)) as T;
      if (JSON.stringify(copy) !== JSON.stringify(value)) throw new Error(`${name} is not plain JSON`);
      return copy;
    },
    add,
    /** As many that were judged, without a step of their own. */
    async teach(count: number, score = 1): Promise<string[]> {
      const ids: string[] = [];
      for (let i = 0; i < count; i++) {
        const id = await add();
        await learning.trajectories.rate('acme', { requestId: id, score });
        ids.push(id);
      }
      return ids;
    },
  };
}
export type TestLearning = Awaited<ReturnType<typeof createTestLearning>>;
