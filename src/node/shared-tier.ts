import { resolve } from 'node:path';
import { type ErasurePart, isWholeTenant } from '../core/erasure.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { SharedSpec } from '../engine/protocol.ts';
import type { SharedPlace } from '../kv-cache/shared-store.ts';
import type { ResolvedKvShared } from '../runtime/kv-shared-option.ts';
import type { SharedTier } from '../runtime/load-model.ts';
import { expandHome } from '../platform/node/files/paths.ts';
import { deriveKey, frame } from '../platform/node/sealing/sealing.ts';
import { openObjects } from '../platform/node/shared-pages/open-objects.ts';
import { openSharedKeys } from '../platform/node/shared-pages/shared-keys.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_REGION = 'us-east-1';
const REGION = /^[\w-]{1,64}$/;
const ERASE_TIMEOUT_MS = 60_000;

/** The storage of an option, with credentials from the environment where the option has none. */
export function openSharedTier(shared: ResolvedKvShared, environment: Environment = process.env): SharedTier {
  const spec: SharedSpec = {
    place: openPlace(shared, environment),
    masterKey: deriveKey(Buffer.from(shared.secret), Buffer.from('ruvllm fleet'), frame('shared pages')),
    limitBytes: shared.limitBytes,
    timeoutMs: shared.timeoutMs,
  };
  return { spec, erasure: createSharedErasure(spec) };
}

function openPlace({ place, s3 }: ResolvedKvShared, environment: Environment): SharedPlace {
  if (place.type === 'folder') return { type: 'folder', path: resolve(expandHome(place.path)) };
  const read = (given: string | null | undefined, ...variables: string[]): string | null =>
    given ?? variables.map((name) => environment[name]).find((value) => value !== undefined && value !== '') ?? null;
  const region = read(s3?.region, 'AWS_REGION', 'AWS_DEFAULT_REGION') ?? DEFAULT_REGION;
  if (!REGION.test(region)) throw invalid(`the region of the S3 storage is ${JSON.stringify(region.slice(0, 80))}`);
  const endpoint = read(s3?.endpoint, 'AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL') ?? `https://s3.${region}.amazonaws.com`; // prettier-ignore
  const url = URL.canParse(endpoint) ? new URL(endpoint) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.search !== '' || url.username !== '') {
    throw invalid(`the endpoint of the S3 storage must be an http(s) address, got ${JSON.stringify(endpoint.slice(0, 80))}`); // prettier-ignore
  }
  const accessKeyId = read(s3?.accessKeyId, 'AWS_ACCESS_KEY_ID');
  const secretAccessKey = read(s3?.secretAccessKey, 'AWS_SECRET_ACCESS_KEY');
  if (accessKeyId === null || secretAccessKey === null) {
    throw invalid(`s3://${place.bucket} requires AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`);
  }
  const sessionToken = read(s3?.sessionToken, 'AWS_SESSION_TOKEN');
  return { ...place, endpoint, region, credentials: { accessKeyId, secretAccessKey, sessionToken } };
}

const invalid = (message: string): RuvLLMError =>
  new RuvLLMError('invalid_option', message, { data: { option: 'kvShared' } });

/** Deletes the pages of a tenant from the storage, of all models. Other nodes must erase it, too: they may still have its pages. */
function createSharedErasure({ place, masterKey }: SharedSpec): ErasurePart {
  const objects = openObjects(place);
  const folderOf = (tenant: string): string => openSharedKeys(masterKey).folderOf(tenant);
  const list = (tenant: string) => objects.list(folderOf(tenant), AbortSignal.timeout(ERASE_TIMEOUT_MS));
  return {
    name: 'shared KV pages',
    isLast: true,
    async erase({ tenant }) {
      for (const { name } of await list(tenant)) await objects.delete(name, AbortSignal.timeout(ERASE_TIMEOUT_MS));
    },
    count: async (subject) => (isWholeTenant(subject) ? (await list(subject.tenant)).length : 0),
  };
}
