import { createSecretKey, randomBytes } from 'node:crypto';
import * as nodeFiles from 'node:fs';
import { join, resolve } from 'node:path';
import { assert, RuvLLMError } from '../../../core/errors.ts';
import { instanceOption, integerOption, optional, resolveOptions, type OptionReader } from '../../../core/options.ts';
import type { CacheNamespace } from '../../../kv-cache/cache-namespace.ts';
import type { SpillSpace, SpillStore } from '../../../kv-cache/types.ts';
import { toFileError } from '../files/file-errors.ts';
import { listNames, removeAbandoned, type Files } from '../sealing/atomic-files.ts';
import { claimFolder } from './folder-header.ts';
import { openKeyRing, type TenantKeys } from '../sealing/key-ring.ts';
import { masterKeyOption } from '../sealing/master-key.ts';
import { createChildKeys, createRootKey, isPageKey } from './page-keys.ts';
import { createPageStore, type PageStore } from './page-store.ts';
import { KEY_BYTES } from '../sealing/sealing.ts';

const SPILL_HEADER = 'spill.json';

type Warn = (message: string) => void;

export interface SpillFolderOptions {
  readonly folder: string;
  /** Of all pages in the folder, whichever model or tenant they are of. */
  readonly limitBytes: number;
  /** 32 bytes: see `readOrCreateMasterKey`. */
  readonly masterKey: Uint8Array;
  /** Hears once of each kind of thing that keeps pages from being kept; default: nobody. */
  readonly warn?: Warn;
}

const folderOption: OptionReader<string> = (value, name) => {
  if (typeof value === 'string' && value !== '') return resolve(value);
  throw new RuvLLMError('invalid_option', `option "${name}" must be a path`, { data: { option: name } });
};
const limitOption: OptionReader<number> = (value, name) =>
  integerOption(0, 0, Number.MAX_SAFE_INTEGER)(value ?? null, name);
const isWarn = (value: unknown): value is Warn => typeof value === 'function';

/**
 * Opens a folder of sealed pages, making it when it is not there. One that is not ours (another master key, a newer version, a file)
 * gives a store that keeps and finds nothing, says so in `stats().ignored`, and touches nothing in there.
 */
export function openSpillFolder(given: SpillFolderOptions, files: Files = nodeFiles): SpillStore {
  const options = resolveOptions<Omit<SpillFolderOptions, 'warn'> & { warn: Warn | null }>('spill folder', given, {
    folder: folderOption,
    limitBytes: limitOption,
    masterKey: masterKeyOption,
    warn: optional(instanceOption('a function', isWarn)),
  });
  const { folder, limitBytes } = options;
  const warn = options.warn ?? (() => {});
  const root = join(folder, 'v1');
  const ring = openKeyRing(files, folder, options.masterKey);
  const pages = createPageStore({ files, root, limitBytes, warn });
  const ignored = claimFolder(files, folder, SPILL_HEADER, ring);
  if (ignored === null) {
    removeLeftovers(files, folder, pages.report);
    pages.scan();
  } else warn(ignored);

  const lostKeys = new Set<string>();
  const openModels = new Set<string>();
  const openTenants = new Map<string, { isOpen: boolean }>();
  let isClosed = false;

  function findKeys(tenant: string): TenantKeys | null {
    if (ignored !== null || isClosed) return null;
    try {
      return ring.keysOf(tenant);
    } catch (error) {
      const { message } = toFileError(error, 'opening the key of a tenant', folder);
      pages.report(message);
      lostKeys.add(message);
      return null;
    }
  }

  function open(namespace: CacheNamespace): SpillSpace {
    const tenantId = ring.idOf(namespace.tenant);
    const modelId = ring.nameOf('model', namespace.modelHash);
    const keys = findKeys(namespace.tenant);
    if (keys === null)
      return createEmptySpace(namespace, () => pages.refuse(ignored ?? 'the store has no key for this tenant'));
    openModels.add(modelId);
    const state = openTenants.get(tenantId) ?? { isOpen: true };
    openTenants.set(tenantId, state);
    return createSpace(namespace, {
      pages,
      prefix: `${tenantId}/${modelId}/`,
      keys,
      isOpen: () => state.isOpen && !isClosed,
    });
  }

  const eraseTenant: SpillStore['eraseTenant'] = (tenant, { keepsKey = false } = {}) => {
    const tenantId = ring.idOf(tenant);
    if (ignored !== null) throw new RuvLLMError('io', `erasing a tenant: ${ignored}`, { data: { path: folder } });
    // Spaces of the old key that are still held would write pages that nobody can ever read.
    const state = openTenants.get(tenantId);
    if (state !== undefined) state.isOpen = false;
    openTenants.delete(tenantId);
    if (!keepsKey) ring.erase(tenant); // first: what the disk does not let go cannot be read
    try {
      pages.removeTenant(tenantId);
    } catch (error) {
      throw toFileError(error, 'erasing the pages of a tenant', join(root, tenantId));
    }
  };

  return {
    open,
    eraseTenant,
    numPagesOf: (tenant) => (ignored === null ? pages.countTenant(ring.idOf(tenant)) : 0),
    stats: () => ({
      ...pages.stats(),
      ignored: [...(ignored === null ? [] : [ignored]), ...lostKeys, ...describeOthers(pages.groups, openModels)],
    }),
    close() {
      isClosed = true;
    },
  };
}

/** Why `openSpillFolder` would store no pages in a folder; null: it would. */
export function whySpillRefused(folder: string, masterKey: Uint8Array, files: Files = nodeFiles): string | null {
  return claimFolder(files, resolve(folder), SPILL_HEADER, openKeyRing(files, resolve(folder), masterKey));
}

/** Of models that nobody has opened here; nothing before the first is opened. */
function describeOthers(groups: ReadonlyMap<string, number>, openModels: ReadonlySet<string>): string[] {
  if (openModels.size === 0) return [];
  let numPages = 0;
  for (const [group, count] of groups) if (!openModels.has(group.slice(group.indexOf('/') + 1))) numPages += count;
  return numPages === 0 ? [] : [`pages of other models: ${numPages}`];
}

/** Header and key files are made by way of temporary files too. */
function removeLeftovers(files: Files, folder: string, report: (reason: string) => void): void {
  for (const path of [folder, join(folder, 'keys')]) {
    try {
      removeAbandoned(files, path, listNames(files, path));
    } catch (error) {
      report(toFileError(error, 'listing', path).message);
    }
  }
}

interface SpaceParts {
  readonly pages: PageStore;
  /** `<tenant>/<model>/` */
  readonly prefix: string;
  readonly keys: TenantKeys;
  readonly isOpen: () => boolean;
}

function createSpace(namespace: CacheNamespace, { pages, prefix, keys, isOpen }: SpaceParts): SpillSpace {
  const refOf = (key: string) => ({ id: prefix + key, key, sealing: keys.sealing });
  return {
    rootKey: createRootKey(keys.naming, namespace),
    childKey: createChildKeys(keys.naming),
    has: (key) => isOpen() && pages.has(prefix + key),
    write(key, tier, bytes) {
      assert(isPageKey(key), 'a page is written under a key of childKey'); // else it could be a path to anywhere
      return isOpen()
        ? pages.write(refOf(key), tier, bytes)
        : pages.refuse('the store was closed or the tenant erased');
    },
    read: (key) => (isOpen() ? pages.read(refOf(key)) : null),
  };
}

/** For a store that cannot be used: keys as always, of a key that nobody has. */
function createEmptySpace(namespace: CacheNamespace, refuse: () => false): SpillSpace {
  const naming = createSecretKey(randomBytes(KEY_BYTES));
  return {
    rootKey: createRootKey(naming, namespace),
    childKey: createChildKeys(naming),
    has: () => false,
    write: refuse,
    read: () => null,
  };
}
