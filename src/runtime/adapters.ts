import { affectsKv } from '../adapters/affects-kv.ts';
import { adapterBytes } from '../adapters/create-adapter.ts';
import type { Adapter, AdapterBase } from '../adapters/types.ts';
import { RuvLLMError } from '../core/errors.ts';
import { instanceOption, optional, type OptionReader, resolveOptions } from '../core/options.ts';
import { createSerialQueue } from '../core/serial-queues.ts';
import type { RequestAdapter } from '../engine/types.ts';
import type { EngineClient } from './engine-client.ts';
import { nameOption } from './name-option.ts';

/** A loaded adapter. */
export interface AdapterInfo {
  readonly name: string;
  /** The tenant that may use it; null: all tenants. */
  readonly tenant: string | null;
  /** SHA-256 of its weights: part of every cache key. */
  readonly contentHash: string;
  readonly architecture: string;
  /** The file that it was read from; null: it was passed as an object. */
  readonly path: string | null;
  /** The matrices that it changes, and the highest rank among them. */
  readonly numMatrices: number;
  readonly rank: number;
  /** Size of its factors, and of its share of the model's memory budget. */
  readonly factorBytes: number;
  readonly sizeBytes: number;
  /** Whether it changes keys and values; false: its requests share the KV pages of the plain model. */
  readonly affectsKv: boolean;
}

/** The name of an adapter, and whose it is. */
export interface LoadAdapterOptions {
  /** The name that calls use: 1 to 64 letters, digits, `_`, `-` or `.`. Replaces an adapter of the same name. */
  name: string;
  /** The tenant that may use it; it hides a shared adapter of the same name. Default null: all tenants. */
  tenant?: string | null;
}

/** How an adapter is prepared for activation. */
export interface StageAdapterOptions extends LoadAdapterOptions {
  /** Called before each call that uses it; throws if the call must not. Default: every call may. */
  check?: () => void;
}

/** An adapter whose weights are in the engine, under no name yet. */
export interface StagedAdapter {
  readonly info: AdapterInfo;
  /** New calls use it from now on, in place of one of the same name. */
  activate(): void;
  /** Frees its memory, unless it was activated. */
  discard(): void;
}

/** One adapter, or several whose changes add up. */
export type AdapterWish = string | ScaledAdapter | readonly (string | ScaledAdapter)[];

/** An adapter's name and scale. */
export interface ScaledAdapter {
  readonly name: string;
  /** -100 to 100. Default 1: as trained. */
  readonly scale?: number;
}

export type ResolvedAdapterWish = readonly Required<ScaledAdapter>[];

/** The adapters of a model by name, and the version of each that new calls use. */
export interface AdapterNames {
  load(source: string | Adapter, options: LoadAdapterOptions): Promise<AdapterInfo>;
  stage(source: string | Adapter, options: StageAdapterOptions): Promise<StagedAdapter>;
  /** Returns false if not found. Calls in progress keep it. */
  unload(name: string, tenant: string | null): boolean;
  list(): readonly AdapterInfo[];
  /** `not_found` lists the names that this tenant may use. */
  /** Null selects the adapters learned for the tenant. */
  resolve(wish: ResolvedAdapterWish | null, tenant: string): readonly RequestAdapter[];
  /** Adapters learned for a tenant: used by all calls that name no adapter. */
  loadLearned(adapter: Adapter, name: string, tenant: string): Promise<AdapterInfo>;
  learned(tenant: string, names?: readonly string[]): readonly RequestAdapter[];
}

/** Callers cannot use these names, because they contain a colon. */
export const TRAINED_ADAPTER = 'learned:trained';
export const INSTANT_ADAPTER = 'learned:instant';
const LEARNED = [TRAINED_ADAPTER, INSTANT_ADAPTER];

export interface AdapterNamesOptions {
  readonly client: Pick<EngineClient, 'loadAdapter' | 'unloadAdapter'>;
  readonly base: AdapterBase;
  readonly readAdapter: (path: string, base: AdapterBase) => Promise<Adapter>;
}

interface Version {
  readonly id: number;
  readonly info: AdapterInfo;
  readonly check: (() => void) | null;
}

const isFunction = (value: unknown): value is () => void => typeof value === 'function';

const keyOf = (name: string, tenant: string | null): string => JSON.stringify([name, tenant]);

const NAME = /^[\w.-]{1,64}$/;
const MAX_ADAPTERS_OF_CALL = 4;

function adapterName(value: unknown, option: string): string {
  if (typeof value === 'string' && NAME.test(value)) return value;
  const shown = typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : typeof value;
  throw new RuvLLMError(
    'invalid_option',
    `option "${option}" must be 1 to 64 letters, digits, "_", "-" or ".", got ${shown}`,
    { data: { option } },
  );
}

export function createAdapterNames({ client, base, readAdapter }: AdapterNamesOptions): AdapterNames {
  const versions = new Map<string, Version>();
  /** Serial: of two loads with one name, the later call must win. */
  const queue = createSerialQueue();

  async function stage(
    source: string | Adapter,
    { name, tenant, check }: { name: string; tenant: string | null; check: (() => void) | null },
  ): Promise<StagedAdapter> {
    const path = typeof source === 'string' ? source : null;
    const adapter = typeof source === 'string' ? await readAdapter(source, base) : source;
    const { id, sizeBytes } = await client.loadAdapter(adapter);
    const { contentHash, architecture, factors } = adapter;
    const info: AdapterInfo = {
      name,
      tenant,
      contentHash,
      architecture,
      path,
      numMatrices: factors.length,
      rank: factors.reduce((most, { rank }) => Math.max(most, rank), 0),
      factorBytes: adapterBytes(factors),
      sizeBytes,
      affectsKv: affectsKv(adapter, base),
    };
    let isOpen = true;
    return {
      info,
      activate() {
        if (!isOpen) return;
        isOpen = false;
        const old = versions.get(keyOf(name, tenant));
        versions.set(keyOf(name, tenant), { id, info, check });
        if (old !== undefined) client.unloadAdapter(old.id);
      },
      discard() {
        if (isOpen) client.unloadAdapter(id);
        isOpen = false;
      },
    };
  }

  const loadInTurn = (source: string | Adapter, name: string, tenant: string | null): Promise<AdapterInfo> =>
    queue(async () => {
      const staged = await stage(source, { name, tenant, check: null });
      staged.activate();
      return staged.info;
    });

  const learned: AdapterNames['learned'] = (tenant, names = LEARNED) =>
    names.flatMap((name) => {
      const version = versions.get(keyOf(name, tenant));
      return version === undefined ? [] : [{ id: version.id, scale: 1 }];
    });

  return {
    learned,
    loadLearned: loadInTurn,
    load(source, given) {
      const { name, tenant } = resolveOptions<Required<LoadAdapterOptions>>('loadAdapter', given, {
        name: adapterName,
        tenant: optional(nameOption),
      });
      return loadInTurn(source, name, tenant);
    },
    stage: async (source, given) =>
      stage(
        source,
        resolveOptions<{ name: string; tenant: string | null; check: (() => void) | null }>('stageAdapter', given, {
          name: adapterName,
          tenant: optional(nameOption),
          check: optional(instanceOption('a function', isFunction)),
        }),
      ),
    unload(name, tenant) {
      const version = versions.get(keyOf(name, tenant));
      if (version === undefined) return false;
      versions.delete(keyOf(name, tenant));
      client.unloadAdapter(version.id);
      return true;
    },
    list: () => [...versions.values()].map(({ info }) => info),
    resolve: (wish, tenant) =>
      wish?.map(({ name, scale }) => {
        const version = versions.get(keyOf(name, tenant)) ?? versions.get(keyOf(name, null));
        if (version !== undefined) {
          version.check?.();
          return { id: version.id, scale };
        }
        const theirs = [...versions.values()].filter(({ info }) => info.tenant === null || info.tenant === tenant);
        const known = [...new Set(theirs.map(({ info }) => info.name))];
        throw new RuvLLMError('not_found', `adapter "${name}" not found (loaded: ${known.join(', ') || 'none'})`, {
          data: { adapter: name, known },
        });
      }) ?? learned(tenant),
  };
}

/** Reads the option `adapter` of a call. */
export const adapterWishOption: OptionReader<ResolvedAdapterWish | null> = (value, option) => {
  if (value === undefined) return null;
  if (value === null) return [];
  const list = Array.isArray(value) ? (value as unknown[]) : [value];
  if (list.length > MAX_ADAPTERS_OF_CALL) {
    throw new RuvLLMError(
      'invalid_option',
      `option "${option}" names ${list.length} adapters, the limit is ${MAX_ADAPTERS_OF_CALL}`,
      {
        data: { option },
      },
    );
  }
  return list.map((item) => {
    if (typeof item === 'string') return { name: adapterName(item, option), scale: 1 };
    return resolveOptions<Required<ScaledAdapter>>(option, item as object, {
      name: (name) => adapterName(name, `${option}.name`),
      scale: (scale = 1) => {
        if (typeof scale === 'number' && Math.abs(scale) <= 100) return scale;
        throw new RuvLLMError('invalid_option', `option "${option}.scale" must be a number from -100 to 100`, {
          data: { option: `${option}.scale` },
        });
      },
    });
  });
};
