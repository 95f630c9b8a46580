import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { parseWith } from '../../memory/schemas/primitives.ts';

export const BUNDLE_FORMAT = 'ruvllm-federation/1';

/** Characters of the contents: with their escapes they fit into a request body of 4 MiB, the default of servers. */
export const MAX_CONTENTS_CHARS = 3 << 20;
/** Longer than any use of stale evidence. */
export const MAX_LIFETIME_MS = 90 * 86_400_000;
/** Clocks of nodes differ; a bundle from further in the future could block all later ones. */
const MAX_CLOCK_SKEW_MS = 5 * 60_000;

const base64 = (max: number): z.ZodString =>
  z
    .string()
    .max(max)
    .regex(/^[A-Za-z0-9+/]*={0,2}$/, 'is not base64');

/** A signed snapshot of what a node shares; a newer one replaces it. */
const bundle = z.strictObject({
  format: z.literal(BUNDLE_FORMAT),
  /** Ed25519 public key of the sender, in base64. */
  key: base64(44),
  /** Distinguishes tenants of the sender without naming them. */
  stream: z.string().regex(/^[0-9a-f]{32}$/),
  /** Rises with every bundle of a stream, so that an old one cannot be sent again. */
  sequence: z.int().min(1),
  createdMs: z.int().min(0),
  expiresMs: z.int().min(0),
  /** JSON, signed as text: reading and writing it again could change its bytes. */
  contents: z.string().max(MAX_CONTENTS_CHARS),
  signature: base64(88),
});
export type Bundle = z.infer<typeof bundle>;
export type UnsignedBundle = Omit<Bundle, 'signature' | 'format'>;

/** Keys and signatures come from the platform, because this layer has no cryptography. */
export interface BundleSigner {
  /** The public key of this node, in base64. */
  publicKey(): string;
  sign(bytes: Uint8Array): string;
  isSignedBy(key: string, bytes: Uint8Array, signature: string): boolean;
}

function signedBytes({ key, stream, sequence, createdMs, expiresMs, contents }: UnsignedBundle): Uint8Array {
  const fields = JSON.stringify([key, stream, sequence, createdMs, expiresMs, contents]);
  return new TextEncoder().encode(`${BUNDLE_FORMAT}\n${fields}`);
}

export function signBundle(unsigned: UnsignedBundle, signer: BundleSigner): Bundle {
  return { format: BUNDLE_FORMAT, ...unsigned, signature: signer.sign(signedBytes(unsigned)) };
}

/** Checks form and size, not the signature. */
export function readBundle(value: unknown): Bundle {
  const { contents } = (value ?? {}) as { contents?: unknown };
  if (typeof contents === 'string' && contents.length > MAX_CONTENTS_CHARS) {
    throw new RuvLLMError(
      'limit_exceeded',
      `the bundle has contents of ${contents.length} characters, the limit is ${MAX_CONTENTS_CHARS}`,
      { data: { numChars: contents.length, maxChars: MAX_CONTENTS_CHARS } },
    );
  }
  return parseWith<Bundle>(bundle, value, 'bundle');
}

/** Throws `untrusted` unless the holder of the bundle's key signed exactly this bundle. */
export function checkSignature(one: Bundle, signer: BundleSigner): void {
  if (signer.isSignedBy(one.key, signedBytes(one), one.signature)) return;
  throw new RuvLLMError('untrusted', `the signature of bundle ${one.sequence} is not that of key ${one.key}`, {
    data: { key: one.key, sequence: one.sequence },
  });
}

/** Throws for a bundle that is expired, from the future or valid for too long. */
export function checkTimes({ createdMs, expiresMs, sequence }: Bundle, nowMs: number): void {
  const refuse = (reason: string): never => {
    throw new RuvLLMError('untrusted', `bundle ${sequence} ${reason}`, { data: { sequence, createdMs, expiresMs } });
  };
  if (expiresMs <= nowMs)
    refuse(`expired ${Math.ceil((nowMs - expiresMs) / 1000)} s ago; ask its sender for a new one`);
  if (createdMs > nowMs + MAX_CLOCK_SKEW_MS)
    refuse(`was made ${Math.round((createdMs - nowMs) / 1000)} s in the future; check the clocks of both nodes`);
  if (expiresMs - createdMs > MAX_LIFETIME_MS)
    refuse(`is valid for ${Math.round((expiresMs - createdMs) / 86_400_000)} days, at most 90 are accepted`);
}
