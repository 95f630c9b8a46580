import { createModelHost, type ModelEntry } from '../../src/runtime/requests/model-host.ts';
import type { AdapterInfo } from '../../src/runtime/adapters.ts';
import type { Model } from '../../src/runtime/model.ts';
import type { RuvLLMError } from '../../src/core/errors.ts';
import { createManualClock, settle } from './manual-clock.ts';
import { entryOf } from './test-server.ts';

interface FakeModel {
  model: Model;
  isAlive: boolean;
  /** Calls the listeners of the host. */
  lose: (error: RuvLLMError) => void;
}

/** Models that are nothing but their size; loads end when the test says so. */
export function createFakeModels(
  sizes: Readonly<Record<string, number>>,
  options: {
    readonly budgetBytes?: number;
    readonly groups?: Readonly<Record<string, number>>;
    readonly more?: Readonly<Record<string, Partial<ModelEntry>>>;
    /** Of each model. Default: none. */
    readonly adapters?: readonly Pick<AdapterInfo, 'name' | 'tenant'>[];
  } = {},
) {
  const clock = createManualClock();
  const loads: string[] = [];
  const disposed: string[] = [];
  const pending: { id: string; resolve: () => void; reject: (error: Error) => void }[] = [];
  const models = new Map<string, FakeModel>();
  const entries: ModelEntry[] = Object.entries(sizes).map(([id, sizeBytes]) =>
    entryOf(
      id,
      () => {
        loads.push(id);
        return new Promise<Model>((resolve, reject) => {
          pending.push({
            id,
            reject,
            resolve() {
              const fake: FakeModel = { isAlive: true, model: null!, lose: () => {} };
              fake.model = {
                modelInfo: () => ({ memory: { totalBytes: sizeBytes } }),
                isLoaded: () => fake.isAlive,
                adapters: () => options.adapters ?? [],
                onLost: (listener: (error: RuvLLMError) => void) => (fake.lose = listener),
                async dispose() {
                  fake.isAlive = false;
                  disposed.push(id);
                },
              } as unknown as Model;
              models.set(id, fake);
              resolve(fake.model);
            },
          });
        });
      },
      { sizeBytes, aliases: [`${id}-alias`], ...options.more?.[id] },
    ),
  );
  const host = createModelHost({
    entries,
    budgetBytes: options.budgetBytes ?? null,
    groups: new Map(Object.entries(options.groups ?? {})),
    clock,
  });
  const acquire = (name: string, waitMs = 1000, signal = new AbortController().signal) =>
    host.acquire(name, { signal, waitMs });
  const finish = async (id: string): Promise<void> => {
    await settle();
    const index = pending.findIndex((one) => one.id === id);
    pending.splice(index, 1)[0]!.resolve();
    await settle();
  };
  /** Loads a model and releases it at once. */
  const use = async (id: string): Promise<void> => {
    const loading = acquire(id);
    await settle();
    if (pending.some((one) => one.id === id)) await finish(id);
    (await loading).release();
    await settle();
  };
  return { host, clock, loads, disposed, pending, models, acquire, finish, use };
}
