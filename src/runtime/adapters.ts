import { type Adapter, adapterBytes, type AdapterBase, affectsKv } from '../adapters/index.ts';
import { RuvLLMError } from '../core/errors.ts';
import { optional, type OptionReader, resolveOptions } from '../core/options.ts';
import { createSerialQueue } from '../core/serial-queues.ts';
import type { RequestAdapter } from '../engine/types.ts';
import type { EngineClient } from './engine-client.ts';
import { nameOption } from './name-option.ts';

/** A loaded adapter, as the library tells of it. */
export interface AdapterInfo {
  readonly name: string;
  /** Whose calls may name it; null: everyone's. */
  readonly tenant: string | null;
  /** SHA-256 of what it computes: part of every cache key. */
  readonly contentHash: string;
  readonly architecture: string;
  /** Where it was read from; null: it was handed over. */
  readonly path: string | null;
  /** Matrices it changes, and the highest rank among them. */
  readonly numMatrices: number;
  readonly rank: number;
  /** Of its factors, and of the slabs of the model's memory budget that it has. */
  readonly factorBytes: number;
  readonly sizeBytes: number;
  /** Whether conversations with it have K and V of their own; false: they share those of the model alone. */
  readonly affectsKv: boolean;
}

/** The name of an adapter, and whose it is. */
export interface LoadAdapterOptions {
  /** By which calls ask for it: 1 to 64 of letters, digits, `_`, `-` and `.`. One of the same name is replaced. */
  name: string;
  /** Whose calls may name it; for them it goes before one of the same name that is everyone's. Default null: everyone's. */
  tenant?: string | null;
}

/** One adapter of a call, or several whose changes add up. */
export type AdapterWish = string | ScaledAdapter | readonly (string | ScaledAdapter)[];

/** An adapter by its name, and how much of it. */
export interface ScaledAdapter {
  readonly name: string;
  /** -100 to 100. Default 1: as it was made. */
  readonly scale?: number;
}

export type ResolvedAdapterWish = readonly Required<ScaledAdapter>[];

/** The names of a model's adapters, and which version of each new calls get. */
export interface AdapterNames {
  load(source: string | Adapter, options: LoadAdapterOptions): Promise<AdapterInfo>;
  /** False when there is none. Calls in progress keep it. */
  unload(name: string, tenant: string | null): boolean;
  list(): readonly AdapterInfo[];
  /** `not_found` with the names there are for this tenant. */
  /** A wish that is null is for what was learned for the tenant. */
  resolve(wish: ResolvedAdapterWish | null, tenant: string): readonly RequestAdapter[];
  /** What learning made for a tenant; in use for every call that names no adapters. */
  loadLearned(adapter: Adapter, name: string, tenant: string): Promise<AdapterInfo>;
  learned(tenant: string, names?: readonly string[]): readonly RequestAdapter[];
}

/** Names that no caller can give: they have a colon. */
export const TRAINED_ADAPTER = 'learned:trained';
export const INSTANT_ADAPTER = 'learned:instant';
const LEARNED = [TRAINED_ADAPTER, INSTANT_ADAPTER];

export interface AdapterNamesOptions {
  readonly client: Pick<EngineClient, 'loadAdapter' | 'unloadAdapter'>;
  readonly base: AdapterBase;
  readonly readAdapter: (path: string, base: AdapterBase) => Promise<Adapter>;
}

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
  const versions = new Map<string, { readonly id: number; readonly info: AdapterInfo }>();
  /** One at a time: of two with one name the one asked for last must be the one that stays. */
  const queue = createSerialQueue();

  async function load(source: string | Adapter, name: string, tenant: string | null): Promise<AdapterInfo> {
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
    const old = versions.get(keyOf(name, tenant));
    versions.set(keyOf(name, tenant), { id, info });
    if (old !== undefined) client.unloadAdapter(old.id);
    return info;
  }

  const loadInTurn = (source: string | Adapter, name: string, tenant: string | null): Promise<AdapterInfo> =>
    queue(() => load(source, name, tenant));

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
        if (version !== undefined) return { id: version.id, scale };
        const theirs = [...versions.values()].filter(({ info }) => info.tenant === null || info.tenant === tenant);
        const known = [...new Set(theirs.map(({ info }) => info.name))];
        throw new RuvLLMError('not_found', `there is no adapter "${name}" (loaded: ${known.join(', ') || 'none'})`, {
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
      `option "${option}" names ${list.length} adapters, at most ${MAX_ADAPTERS_OF_CALL}`,
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
