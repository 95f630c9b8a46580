import { RuvLLMError } from '../../core/errors.ts';
import type { PolicyMemory } from '../../memory/policies/policies.ts';
import type { RouterParameters } from '../../memory/schemas/policy.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { PeerVerdict } from './screen-peers.ts';
import type { ActivePointer, LearnedVersion, VersionLog } from '../versions/version-log.ts';

export const ROUTER_LINE = 'router/main';
const BLOB = 'router';

/** Contents of a router version besides its weights. */
export interface RouterContents {
  /** `default`: the default candidate answers. */
  readonly kind: 'router' | 'default';
  readonly winner: string;
  readonly candidates: readonly string[];
  readonly contests: readonly { readonly name: string; readonly heldOut: number }[];
  readonly sampling: RouterParameters['sampling'];
  /** Whether the examples of each peer were used; absent: none were offered. */
  readonly peers?: readonly PeerVerdict[];
}

const SOURCES = { instant: 'instant-loop', background: 'background-loop', deep: 'deep-loop', operator: 'operator' } as const; // prettier-ignore
const NO_ROUTER: RouterParameters = { version: 0, winner: '', candidates: [], metrics: {}, sampling: [] };

/** The active router is a policy: `ruvllm memory policy-rollback router` and `ruvllm learn rollback` change the same one. */
export const routerPointer = (policies: () => PolicyMemory): Readonly<Record<string, ActivePointer>> => ({
  [ROUTER_LINE]: {
    read: async (tenant) => (await policies().get(tenant, 'router'))!.parameters.version,
    async write(tenant, version, { isRollback }) {
      const what = version === null ? 'the default candidate answers' : `version ${version.version}: ${version.reason}`;
      await policies().put(tenant, {
        policyType: 'router',
        confidence: Math.max(0, Math.min(1, -(version?.metrics['held_out_mean'] ?? 0))),
        source: version === null || isRollback ? 'operator' : SOURCES[version.loop],
        reason: `${isRollback ? 'back to ' : ''}${what}`.slice(0, 1024),
        parameters: version === null ? NO_ROUTER : toParameters(version),
      });
    },
  },
});

function toParameters({ version, metrics, contents }: LearnedVersion): RouterParameters {
  const { winner, candidates, sampling } = contents as unknown as RouterContents;
  return { version, winner, candidates: [...candidates], metrics, sampling };
}

/** The bytes of a text as floats, because blobs hold floats; padded with spaces, which JSON ignores. */
export function textToFloats(text: string): Float32Array {
  const bytes = new TextEncoder().encode(text);
  const padded = new Uint8Array(Math.ceil(bytes.length / 4) * 4).fill(0x20);
  padded.set(bytes);
  return new Float32Array(padded.buffer);
}

export function textFromFloats(values: Float32Array): string {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes).trimEnd();
}

/** Stores the text of a router; returns the version's `blobs`. */
export async function putRouterText(
  blobs: FloatBlobs,
  tenant: string,
  text: string,
): Promise<Readonly<Record<string, string>>> {
  return { [BLOB]: await blobs.put(tenant, textToFloats(text)) };
}

/** The router text of a version; null: the safe default serves. */
export async function getRouterText(
  blobs: FloatBlobs,
  tenant: string,
  version: LearnedVersion | null,
): Promise<string | null> {
  const hash = version?.blobs[BLOB];
  return hash === undefined ? null : textFromFloats(await blobs.get(tenant, hash));
}

/** Withdraws and deletes routers trained on these requests; the next loop trains on the remaining ones. */
export async function forgetRouters(
  { versions, blobs, policies }: { versions: VersionLog; blobs: FloatBlobs; policies: () => PolicyMemory },
  tenant: string,
  forgottenIds: ReadonlySet<string>,
): Promise<readonly { readonly model: string; readonly reason: string }[]> {
  const affected = (await versions.history(tenant, ROUTER_LINE, 1000)).filter(({ learnedFrom }) =>
    learnedFrom.some((id) => forgottenIds.has(id)),
  );
  if (affected.length === 0) return [];
  const active = await versions.active(tenant, ROUTER_LINE);
  // Withdrawn before deletion, so that a crash in between leaves no such router active. With its history, so that no rollback restores it.
  if (affected.some(({ version }) => version === active?.version)) await policies().remove(tenant, 'router');
  for (const { blobs: names } of affected) for (const blob of Object.values(names)) await blobs.delete(tenant, blob);
  return [
    { model: ROUTER_LINE, reason: 'the safe default answers until a router is trained on the remaining requests' },
  ];
}

/** Throws if the text of a version is deleted, so that no rollback activates it. */
export async function checkRouterText(blobs: FloatBlobs, tenant: string, version: LearnedVersion): Promise<void> {
  if (version.isAccepted && version.blobs[BLOB] === undefined && !isDefault(version))
    throw new RuvLLMError('not_found', `version ${version.version} of ${version.line} has no router`);
  await getRouterText(blobs, tenant, version);
}

const isDefault = ({ contents }: LearnedVersion): boolean => (contents as { kind?: unknown }).kind === 'default';
