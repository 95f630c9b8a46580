import { RuvLLMError } from '../../core/errors.ts';
import type { NodeAdapters } from '../../gateway/releases/follow-releases.ts';
import type { PublishedAdapter } from '../../gateway/releases/release-record.ts';
import type { StagedAdapter } from '../../runtime/adapters.ts';
import type { Model } from '../../runtime/model.ts';
import type { ModelHost } from '../../runtime/requests/model-host.ts';
import type { AdapterFiles } from './adapter-files.ts';

export interface NodeAdapterOptions {
  /** Read late: models load through `attach`. */
  readonly models: () => ModelHost;
  readonly files: AdapterFiles;
  /** The hash of a loaded model's file. */
  hashOf(model: string): string;
  /** Why the publisher of an adapter is not trusted here; null: it is. */
  findDistrust(adapter: PublishedAdapter): string | null;
  /** Called before each request that uses a published adapter; throws if it must not. */
  check(): void;
  /** Called if a model was loaded without a published adapter. */
  onMissing(reason: string): void;
  readonly signal: AbortSignal;
}

export interface AttachedNodeAdapters extends NodeAdapters {
  /** Loads the active adapters into a model that was loaded. */
  attach(id: string, model: Model): Promise<void>;
}

/** Large models take minutes. */
const LOAD_WAIT_MS = 600_000;

interface Staged {
  readonly instance: Model;
  readonly adapter: PublishedAdapter;
  readonly handle: StagedAdapter;
}

/** Loads published adapters into the models of this process. */
export function createNodeAdapters(options: NodeAdapterOptions): AttachedNodeAdapters {
  const { files, hashOf, findDistrust, check, signal } = options;
  const instances = new Map<string, Model>();
  /** Hashes of the published adapters of each model by name. */
  const loaded = new WeakMap<Model, Map<string, string>>();
  let wanted: readonly PublishedAdapter[] = [];
  let staged: Staged[] = [];

  const loadedOf = (model: Model): Map<string, string> => {
    const names = loaded.get(model) ?? new Map<string, string>();
    loaded.set(model, names);
    return names;
  };
  const isServed = ({ model }: PublishedAdapter): boolean => options.models().list().some(({ id }) => id === model); // prettier-ignore

  async function fetch(adapter: PublishedAdapter): Promise<string> {
    const distrust = findDistrust(adapter);
    if (distrust !== null) throw new RuvLLMError('untrusted', distrust, { data: { key: adapter.key } });
    return files.fetch(adapter);
  }

  async function stage(adapter: PublishedAdapter, instance: Model): Promise<void> {
    const { model, name, sha256, modelHash } = adapter;
    const path = await fetch(adapter);
    const hash = hashOf(model);
    if (modelHash !== '' && hash !== modelHash) {
      const message = `model ${model} is another file here, ${hash.slice(0, 12)} instead of ${modelHash.slice(0, 12)}; adapter ${name} does not fit`;
      throw new RuvLLMError('conflict', message, { data: { model, hash, modelHash } });
    }
    const names = loadedOf(instance);
    if (!names.has(name) && instance.adapters().some((one) => one.name === name && one.tenant === null)) {
      throw new RuvLLMError('conflict', `this node has an adapter ${model}:${name} of its own`, {
        data: { model, name },
      });
    }
    const isStaged = (): boolean => staged.some((one) => one.instance === instance && one.adapter.name === name && one.adapter.sha256 === sha256); // prettier-ignore
    if (names.get(name) === sha256 || isStaged()) return;
    staged.push({ instance, adapter, handle: await instance.stageAdapter(path, { name, check }) });
  }

  /** Synchronous: no request sees one adapter of a release without the others. */
  function switchTo(instance: Model, id: string, adapters: readonly PublishedAdapter[]): void {
    const names = loadedOf(instance);
    const own = adapters.filter(({ model }) => model === id);
    for (const { adapter, handle, instance: of } of staged) {
      if (of !== instance || !own.some(({ name, sha256 }) => name === adapter.name && sha256 === adapter.sha256))
        continue;
      handle.activate();
      names.set(adapter.name, adapter.sha256);
    }
    for (const name of names.keys()) {
      if (own.some((one) => one.name === name)) continue;
      instance.unloadAdapter(name);
      names.delete(name);
    }
  }

  function discard(): void {
    for (const { instance, handle } of staged) if (instance.isLoaded()) handle.discard();
    staged = [];
  }

  const alive = (): [string, Model][] => [...instances].filter(([, instance]) => instance.isLoaded());

  /** What instances still lack of a release, those loaded in the meantime included. */
  const missing = (adapters: readonly PublishedAdapter[]): [PublishedAdapter, Model][] =>
    alive().flatMap(([id, instance]) =>
      adapters
        .filter(({ model, name, sha256 }) => model === id && loadedOf(instance).get(name) !== sha256)
        .filter(
          (adapter) =>
            !staged.some(
              (one) =>
                one.instance === instance && one.adapter.name === adapter.name && one.adapter.sha256 === adapter.sha256,
            ),
        ) // prettier-ignore
        .map((adapter): [PublishedAdapter, Model] => [adapter, instance]),
    );

  return {
    discard,
    async prepare(adapters) {
      discard();
      const hashes: Record<string, string> = {};
      for (const adapter of adapters) {
        if (!isServed(adapter)) continue;
        await fetch(adapter);
        const lease = await options.models().acquire(adapter.model, { signal, waitMs: LOAD_WAIT_MS });
        try {
          await stage(adapter, lease.model);
        } finally {
          lease.release();
        }
        hashes[adapter.model] = hashOf(adapter.model);
      }
      return hashes;
    },
    async activate(adapters) {
      for (const adapter of adapters) if (isServed(adapter)) await fetch(adapter);
      for (let rest = missing(adapters); rest.length > 0; rest = missing(adapters)) {
        for (const [adapter, instance] of rest) {
          await stage(adapter, instance).catch((error: unknown) => {
            if (instance.isLoaded()) throw error;
          });
        }
      }
      wanted = adapters;
      for (const [id, instance] of alive()) switchTo(instance, id, adapters);
      discard();
      files.tidy(adapters);
    },
    async attach(id, model) {
      let target: readonly PublishedAdapter[] | null = null;
      while (target !== wanted) {
        target = wanted;
        for (const adapter of target.filter((one) => one.model === id)) {
          try {
            await stage(adapter, model);
          } catch (error) {
            options.onMissing(`model ${id} was loaded without adapter ${adapter.name}: ${(error as Error).message}`);
          }
        }
      }
      switchTo(model, id, target);
      staged = staged.filter(({ instance }) => instance !== model);
      instances.set(id, model);
    },
    async upload(adapters) {
      for (const adapter of adapters) await files.upload(adapter);
    },
  };
}
