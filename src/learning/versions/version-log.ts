import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { nameId } from '../../memory/common/ids.ts';
import { retryConflict } from '../../memory/common/retry-conflict.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import { count, name, parseStored, parseWith, text, timeMs } from '../../memory/schemas/primitives.ts';
import type { JsonValue, MemoryRecord, MemoryStore } from '../../memory/types.ts';

const learnedVersion = z.strictObject({
  /** `adapter/<model>`, `router/<name>`, … */
  line: name,
  /** 1 for the first of its line. */
  version: z.int().min(1),
  /** Active version when this one was made; 0: none. */
  parent: count,
  createdMs: timeMs,
  loop: z.enum(['instant', 'background', 'deep', 'operator']),
  /** Refused versions are kept with their reason. */
  isAccepted: z.boolean(),
  /** Why it was accepted or refused. */
  reason: text(2048),
  /** Figures behind the decision. */
  metrics: z.record(z.string().max(64), z.number()),
  /** Hashes of float blobs by role; none for a refused version. */
  blobs: z.record(z.string().max(64), name),
  /** Other data, specific to the line. */
  contents: z.custom<JsonValue>((value) => value !== undefined),
  /** Requests it learned from: forgetting one of them deletes the version. */
  learnedFrom: z.array(name).max(50_000),
});
export type LearnedVersion = z.infer<typeof learnedVersion>;
export type NewVersion = Omit<LearnedVersion, 'version' | 'parent' | 'createdMs'>;

/** Immutable versions, grouped in lines; at most one of a line is active. */
export interface VersionLog {
  /** Null: none is active. */
  active(tenant: string, line: string): Promise<LearnedVersion | null>;
  /** Writes a version; an accepted one becomes active. */
  add(tenant: string, version: NewVersion): Promise<LearnedVersion>;
  get(tenant: string, line: string, version: number): Promise<LearnedVersion>;
  /** The newest first. */
  history(tenant: string, line: string, limit?: number): Promise<readonly LearnedVersion[]>;
  /** Lines with at least one version. */
  lines(tenant: string): Promise<readonly string[]>;
  /** Makes an older version active, 0: none; throws `conflict` for a refused one. */
  rollback(tenant: string, line: string, toVersion: number): Promise<LearnedVersion | null>;
}

/** Says which version of a line serves, where something else than the log keeps that. */
export interface ActivePointer {
  /** 0: none. */
  read(tenant: string): Promise<number>;
  write(tenant: string, version: LearnedVersion | null, how: { readonly isRollback: boolean }): Promise<void>;
}

interface Pointer {
  readonly line: string;
  readonly active: number;
  readonly newest: number;
}

const POINTER_NAME = 'learned-line';
const versionName = (line: string): string => `learned-version/${line}`;
const MAX_HISTORY = 1000;

export function createVersionLog(
  store: MemoryStore,
  services: MemoryServices,
  pointers: Readonly<Record<string, ActivePointer>> = {},
): VersionLog {
  const pointerId = (tenant: string, line: string): string => nameId(services.sha256, tenant, POINTER_NAME, line);
  const versionId = (tenant: string, line: string, version: number): string =>
    nameId(services.sha256, tenant, 'learned-version', line, String(version));

  async function readPointer(tenant: string, line: string): Promise<{ pointer: Pointer; ifVersion: number }> {
    const [record] = await store.get(tenant, [pointerId(tenant, line)]);
    const elsewhere = pointers[line];
    const active = elsewhere === undefined ? {} : { active: await elsewhere.read(tenant) };
    if (record == null) return { pointer: { line, active: 0, newest: 0, ...active }, ifVersion: 0 };
    return { pointer: { ...(record.body as unknown as Pointer), ...active }, ifVersion: record.version };
  }

  const pointerPut = (tenant: string, pointer: Pointer, ifVersion: number) => ({
    id: pointerId(tenant, pointer.line),
    tenant,
    kind: 'state' as const,
    expiresMs: null,
    fields: { name: POINTER_NAME },
    body: pointer as unknown as JsonValue,
    vector: null,
    space: null,
    ifVersion,
  });

  async function find(tenant: string, line: string, version: number): Promise<LearnedVersion | null> {
    const [record] = await store.get(tenant, [versionId(tenant, line, version)]);
    return record == null ? null : read(record);
  }

  async function get(tenant: string, line: string, version: number): Promise<LearnedVersion> {
    const found = await find(tenant, line, version);
    if (found !== null) return found;
    const known = (await readPointer(tenant, line)).pointer.newest;
    throw new RuvLLMError('not_found', `${line} has no version ${version}; its newest is ${known}`, {
      data: { version, newest: known },
    });
  }

  return {
    get,
    async active(tenant, line) {
      const { pointer } = await readPointer(tenant, line);
      return pointer.active === 0 ? null : get(tenant, line, pointer.active);
    },
    async add(tenant, given) {
      const elsewhere = pointers[given.line];
      const added = await retryConflict(async () => {
        const { pointer, ifVersion } = await readPointer(tenant, given.line);
        const version = pointer.newest + 1;
        const whole = parseWith<LearnedVersion>(
          learnedVersion,
          { ...given, version, parent: pointer.active, createdMs: Math.floor(services.now()) },
          'version',
        );
        // In one call, so that neither a version without its line nor a line to a missing version can exist.
        await store.put([
          {
            id: versionId(tenant, given.line, version),
            tenant,
            kind: 'state',
            expiresMs: null,
            fields: { name: versionName(given.line), sequence: version },
            body: whole as unknown as JsonValue,
            vector: null,
            space: null,
            ifVersion: 0,
          },
          pointerPut(
            tenant,
            {
              line: given.line,
              active: elsewhere !== undefined ? 0 : given.isAccepted ? version : pointer.active,
              newest: version,
            },
            ifVersion,
          ),
        ]);
        return whole;
      });
      if (added.isAccepted) await elsewhere?.write(tenant, added, { isRollback: false });
      return added;
    },
    async history(tenant, line, limit = 50) {
      const { pointer } = await readPointer(tenant, line);
      const wanted = Array.from({ length: Math.min(limit, MAX_HISTORY, pointer.newest) }, (_, i) => pointer.newest - i);
      const found: LearnedVersion[] = [];
      for (const version of wanted) {
        const one = await find(tenant, line, version);
        if (one !== null) found.push(one);
      }
      return found;
    },
    async lines(tenant) {
      const filter = { fields: [{ field: 'name', is: '=', value: POINTER_NAME }] } as const;
      const { records } = await store.find(tenant, { kinds: ['state'], filter, order: 'oldest', limit: 1000 });
      return records.map(({ body }) => (body as unknown as Pointer).line).sort();
    },
    rollback: (tenant, line, toVersion) =>
      retryConflict(async () => {
        const target = toVersion === 0 ? null : await get(tenant, line, toVersion);
        if (target !== null && !target.isAccepted) {
          throw new RuvLLMError('conflict', `version ${toVersion} of ${line} was refused: ${target.reason}`, {
            data: { version: toVersion },
          });
        }
        const { pointer, ifVersion } = await readPointer(tenant, line);
        const elsewhere = pointers[line];
        if (elsewhere === undefined)
          await store.put([pointerPut(tenant, { ...pointer, active: toVersion }, ifVersion)]);
        else await elsewhere.write(tenant, target, { isRollback: true });
        return target;
      }),
  };
}

function read(record: MemoryRecord): LearnedVersion {
  return parseStored<LearnedVersion>(learnedVersion, record.body, `learned version ${record.id}`);
}
