import { RuvLLMError } from '../../core/errors.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion, VersionLog } from '../versions/version-log.ts';

/** The line of versions that requests are routed by. */
export const ROUTER_LINE = 'router/main';
const ROUTER_PREFIX = 'router/';
const BLOB = 'router';

/** The bytes of a text as floats, unchanged, with spaces at the end: blobs are of floats, and JSON does not mind spaces. */
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

/** Keeps the text of a router; what a version's `blobs` has to say of it. */
export async function putRouterText(
  blobs: FloatBlobs,
  tenant: string,
  text: string,
): Promise<Readonly<Record<string, string>>> {
  return { [BLOB]: await blobs.put(tenant, textToFloats(text)) };
}

/** The text of a version; null: with it the safe default serves. */
export async function getRouterText(
  blobs: FloatBlobs,
  tenant: string,
  version: LearnedVersion | null,
): Promise<string | null> {
  const hash = version?.blobs[BLOB];
  return hash === undefined ? null : textFromFloats(await blobs.get(tenant, hash));
}

/** Takes what learned from these requests out of use and away; the next loop learns anew from what is kept. */
export async function forgetRouters(
  { versions, blobs }: { readonly versions: VersionLog; readonly blobs: FloatBlobs },
  tenant: string,
  gone: ReadonlySet<string>,
): Promise<readonly { readonly model: string; readonly reason: string }[]> {
  const forgotten: { model: string; reason: string }[] = [];
  for (const line of (await versions.lines(tenant)).filter((one) => one.startsWith(ROUTER_PREFIX))) {
    const stained = (await versions.history(tenant, line, 1000)).filter(({ learnedFrom }) =>
      learnedFrom.some((id) => gone.has(id)),
    );
    if (stained.length === 0) continue;
    const active = await versions.active(tenant, line);
    // First out of use: whatever stops in between, what was to be forgotten does not serve.
    if (stained.some(({ version }) => version === active?.version)) await versions.rollback(tenant, line, 0);
    for (const { blobs: names } of stained) for (const blob of Object.values(names)) await blobs.delete(tenant, blob);
    forgotten.push({ model: line, reason: 'the safe default answers until a router is trained on what is kept' });
  }
  return forgotten;
}

/** A rollback to a version whose text is gone must not succeed. */
export async function checkRouterText(blobs: FloatBlobs, tenant: string, version: LearnedVersion): Promise<void> {
  if (version.isAccepted && version.blobs[BLOB] === undefined && !isDefault(version))
    throw new RuvLLMError('not_found', `version ${version.version} of ${version.line} has no router`);
  await getRouterText(blobs, tenant, version);
}

const isDefault = ({ contents }: LearnedVersion): boolean => (contents as { kind?: unknown }).kind === 'default';
