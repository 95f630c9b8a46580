import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { RuvLLMError } from '../core/errors.ts';
import {
  COMMIT,
  createTestPlatform,
  sha256,
  startFakeHub,
  type FakeFile,
  type FakeHub,
  type FileReply,
} from './fake-hub.contract.ts';
import { createHub, type Hub } from './hub.ts';
import type { HubOptions } from './hub-options.ts';
import type { HubPlatform } from './platform.ts';

export const BYTES = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 7 + (i >> 8)) & 255);
export const OID = sha256(BYTES);
export const FILE = 'model-q4_k_m.gguf';
export const REPO = 'models--owner--repo';
export const LINK = `${REPO}/snapshots/${COMMIT}/${FILE} -> ../../blobs/${OID}`;
export const DONE = [
  `${REPO}/`,
  `${REPO}/blobs/`,
  `${REPO}/blobs/${OID}`,
  `${REPO}/refs/`,
  `${REPO}/refs/main`,
  `${REPO}/snapshots/`,
  `${REPO}/snapshots/${COMMIT}/`,
  LINK,
];
export const EMPTY = [`${REPO}/`, `${REPO}/blobs/`];
export const PARTIAL = [...EMPTY, `${REPO}/blobs/${OID}.incomplete`];

export interface Setup {
  hub: Hub;
  fake: FakeHub;
  platform: HubPlatform & { waits: number[] };
}

export async function setUp(
  reply?: FileReply,
  files: FakeFile[] = [{ path: FILE, bytes: BYTES }],
  options: Partial<HubOptions> & { changes?: Partial<HubPlatform> } = {},
): Promise<Setup> {
  const { changes, ...hubOptions } = options;
  const fake = await startFakeHub(files, reply);
  onTestFinished(fake.close);
  const platform = createTestPlatform(changes);
  return { hub: createHub({ platform, endpoint: fake.endpoint, ...hubOptions }), fake, platform };
}

export async function failure(work: Promise<unknown>): Promise<RuvLLMError> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RuvLLMError);
  return error as RuvLLMError;
}

export function writePartial(platform: HubPlatform, bytes: Uint8Array): void {
  mkdirSync(join(platform.cacheRoot, REPO, 'blobs'), { recursive: true });
  writeFileSync(join(platform.cacheRoot, REPO, 'blobs', `${OID}.incomplete`), bytes);
}
